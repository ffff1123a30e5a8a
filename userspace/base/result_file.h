/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files that results go to. They hold what a system-wide profile knows about other users, and are named by somebody who may be root in a
 * directory that others may write to. So they are created 0600, for who called sudo (SUDO_UID, SUDO_GID) if somebody
 * did; nothing is written through what another user may have planted: a symbolic link that belongs neither to us, to root nor to who
 * called sudo, another user's file or FIFO, a file with several names. What the caller himself has is overwritten as ever, with
 * its mode and owner.
 */
#ifndef SFBPF_BASE_RESULT_FILE_H
#define SFBPF_BASE_RESULT_FILE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* Who called sudo. False: nobody did, or we are not root. */
bool result_file_caller(uid_t *uid, gid_t *gid);
/*
 * So that files can be made for who called sudo after CAP_SETUID and CAP_SETGID are given up. Where they are given up already, such files will be
 * ours. 0 or -errno.
 */
int result_file_keep_caller(void);

/*
 * Opens path for writing; /dev/stdout, /dev/stderr and /dev/fd/N are the descriptor itself. Old contents stay until
 * result_file_begin. 0 or -errno; *why is set where errno says too little, else NULL.
 */
int result_file_open(const char *path, FILE **ret, const char **why);
/* The same, but there must be no such file yet: -EEXIST. */
int result_file_create(const char *path, FILE **ret);
/* To be called before the first byte: what an older run left in the file is gone now. 0 or -errno. */
int result_file_begin(FILE *f);

#endif
