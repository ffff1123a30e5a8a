/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a process gives up before it reads a file that somebody else made (with base/privs.h: capabilities). Each of these is for good and for the
 * whole process, which should have one thread only.
 */
#ifndef SFBPF_BASE_JAIL_H
#define SFBPF_BASE_JAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All descriptors but these and standard input, output and error are closed; they keep their numbers. Those below 3 do not count. */
void jail_close_others(const int *keep, size_t n);

struct jail_limits {		/* 0: none */
	uint64_t data_bytes;	/* of private memory, beyond what there is now (RLIMIT_DATA) */
	uint64_t space_bytes;	/* of address space, likewise (RLIMIT_AS) */
	uint64_t file_bytes;	/* of a file that it writes (RLIMIT_FSIZE) */
	unsigned int files;	/* descriptors at a time (RLIMIT_NOFILE) */
	unsigned int cpu_seconds;
};

/* And no core files. Takes a descriptor for a moment: before privileges and system calls are gone. */
void jail_limit(const struct jail_limits *l);

/* The kernel can filter system calls as jail_calls wants it. */
bool jail_can_filter(void);
/*
 * From now on the process is killed (SIGSYS) at any system call but these n, mmap and mprotect, and at these where memory would be
 * executable. Sets no_new_privs, without which there is no filter. 0 or -errno.
 */
int jail_calls(const uint16_t *numbers, size_t n);

#endif
