/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens files in the file system of another process. The owner of that process controls its paths:
 * a symbolic link must not lead out of the root, a FIFO must not block, a device must not be
 * opened. Uses openat2, and its own walk where that is refused: systemd's DynamicUser=, which the
 * packaged unit of the agent has, makes it fail with ENOSYS.
 */
#ifndef SFBPF_BASE_IN_ROOT_H
#define SFBPF_BASE_IN_ROOT_H

#include <stdint.h>
#include <sys/stat.h>

/*
 * The thread whose /proc directory shows the mappings and the root of a process: pid, or another of
 * its threads if the first one has ended while others run (then /proc/PID shows neither, but
 * /proc/TID does). pid if there is none.
 */
uint32_t living_thread(uint32_t pid);
/* Root directory of a process, or our own (pid 0), only to open files below it. An fd or -errno. */
int root_of_process(uint32_t pid);
/*
 * Opens a regular file below root_fd for reading. *st: its status. An fd or -errno (-EINVAL: not a
 * regular file).
 */
int open_in_root(int root_fd, const char *path, struct stat *st);
/* Opens a regular file in our own root; its path may be foreign. Results as above. */
int open_regular(const char *path, struct stat *st);

#endif
