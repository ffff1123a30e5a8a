/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files of another process's file system, which is its owner's to arrange: a symbolic link there must not lead out
 * of it, a FIFO not hold us up, a device not be touched. Needs openat2 (Linux 5.6); older kernels: -ENOSYS.
 */
#ifndef SFBPF_BASE_IN_ROOT_H
#define SFBPF_BASE_IN_ROOT_H

#include <stdint.h>
#include <sys/stat.h>

/*
 * Whom to ask in /proc for what a process has mapped and opened: pid, or another thread of it if the first one has ended and others go on
 * (/proc/PID has neither mappings nor root then, /proc/TID has). pid if there is none.
 */
uint32_t living_thread(uint32_t pid);
/* The root directory of a process, or of ourselves (pid 0), only to name files below it. An fd or -errno. */
int root_of_process(uint32_t pid);
/* A regular file below it, for reading; *st is its status. An fd or -errno (-EINVAL: no regular file). */
int open_in_root(int root_fd, const char *path, struct stat *st);

#endif
