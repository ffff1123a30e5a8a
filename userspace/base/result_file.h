/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Result files. They contain data about other users from a system-wide profile. The user who names
 * them may be root, in a directory where others may write. So they are created with mode 0600,
 * owned by the caller of sudo (SUDO_UID, SUDO_GID) if there is one. Nothing is written through a
 * file that another user may have planted: a symbolic link that belongs neither to us, to root nor
 * to the caller of sudo; a file or FIFO of another user; a file with several hard links. The
 * caller's own files are overwritten as usual and keep their mode and owner.
 */
#ifndef SFBPF_BASE_RESULT_FILE_H
#define SFBPF_BASE_RESULT_FILE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* The user who called sudo. false: not called through sudo, or we are not root. */
bool result_file_caller(uid_t *uid, gid_t *gid);
/*
 * Keeps the ability to create files for the caller of sudo after CAP_SETUID and CAP_SETGID are
 * dropped. If they are already dropped, such files will belong to us. 0 or -errno.
 */
int result_file_keep_caller(void);

/*
 * Opens path for writing. /dev/stdout, /dev/stderr and /dev/fd/N use the descriptor itself. Old
 * contents stay until result_file_begin. 0 or -errno. *why: an explanation where errno is not
 * enough, else NULL.
 */
int result_file_open(const char *path, FILE **ret, const char **why);
/* Opens a new file as result_file_open does. -EEXIST: it exists. */
int result_file_create(const char *path, FILE **ret);
/* Makes a directory (0700), with the rights of the caller of sudo if possible. 0 or -errno. */
int result_file_make_directory(const char *path);
/* Removes what an older run left in the file. Call it before the first write. 0 or -errno. */
int result_file_begin(FILE *f);

/* A file in memory, to make a result in. NULL, and errno. */
FILE *result_file_stage(void);
/*
 * Copies what was made to f, in place of what an older run left there. 0 or -errno. A regular file
 * without room for it keeps its old contents.
 */
int result_file_fill(FILE *f, FILE *stage);

#endif
