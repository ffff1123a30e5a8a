/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Restrictions on a process before it reads foreign files (for capabilities see worker/privs.h).
 * Each is permanent and applies to the whole process, which should have only one thread.
 */
#ifndef SFBPF_WORKER_JAIL_H
#define SFBPF_WORKER_JAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Closes all descriptors except those in `keep` and standard input, output and error. Values below
 * 3 in `keep` are ignored.
 */
void jail_close_others(const int *keep, size_t n);

struct jail_limits {	      /* 0: no limit */
	uint64_t data_bytes;  /* private memory, on top of the present use (RLIMIT_DATA) */
	uint64_t space_bytes; /* address space, likewise (RLIMIT_AS) */
	uint64_t file_bytes;  /* size of a file that it writes (RLIMIT_FSIZE) */
	unsigned int files;   /* open descriptors (RLIMIT_NOFILE) */
	unsigned int cpu_seconds;
};

/*
 * Also disables core files. It opens a file, so call it before dropping privileges and system
 * calls.
 */
void jail_limit(const struct jail_limits *l);

/* Whether the kernel supports the filters that jail_calls needs. */
bool jail_can_filter(void);
/*
 * Allows only the n system calls, mmap and mprotect. Any other call kills the process (SIGSYS), and
 * so does mmap or mprotect of executable memory. Sets no_new_privs, without which an unprivileged
 * process may not install a filter. 0 or -errno.
 */
int jail_calls(const uint16_t *numbers, size_t n);

/* A process that only reads descriptors that are sent to it and writes to a memfd. */
struct jail_reader {	 /* bytes */
	uint64_t memory; /* memory on top of the present use */
	uint64_t output; /* size of the memfd */
	/* Memory kept from file to file, because fresh pages dominate the cost of small files */
	uint64_t keep;
	/* Use huge pages for it if available, for files that take megabytes */
	bool huge;
};

/* Makes malloc keep this many free bytes for the next file. */
void jail_keep_memory(uint64_t keep);
/* Enters the jail, which leaves twenty system calls. Exits if it cannot. */
void jail_enter_reader(const struct jail_reader *limits);

#endif
