/* SPDX-License-Identifier: BSD-2-Clause */
/* What a process gives up that only reads descriptors which are sent to it and writes to a memfd: what foreign files are read in. */
#ifndef SFBPF_BASE_READER_JAIL_H
#define SFBPF_BASE_READER_JAIL_H

#include <stdbool.h>
#include <stdint.h>

struct reader_limits {		/* bytes */
	uint64_t memory;	/* beyond what there is now */
	uint64_t output;	/* of the memfd */
	uint64_t keep;		/* of memory from file to file, as fresh pages are what small ones cost */
	bool huge;		/* these come as huge pages, where there are any: it is for files that take megabytes */
};

/* malloc does not give back so many bytes, which the next file needs. */
void reader_keep_memory(uint64_t keep);
/* Twenty system calls remain. Exits if that cannot be. */
void reader_jail_enter(const struct reader_limits *limits);

#endif
