/* SPDX-License-Identifier: BSD-2-Clause */
/* A file in memory that is written once and then cannot be changed any more, also not by who gets its descriptor. */
#ifndef SFBPF_BASE_SEALED_FILE_H
#define SFBPF_BASE_SEALED_FILE_H

#include <sys/types.h>

/* Of size bytes, all 0. A descriptor, or -errno. name is for /proc only. */
int sealed_file_begin(const char *name, off_t size);
/* Seals it, unless there was an error so far (err, 0 or -errno). The descriptor, or -errno with it closed. fd: also of a begin that failed. */
int sealed_file_end(int fd, int err);

#endif
