/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs dwarf_read in a worker, so that a hostile file costs only its own frames. The worker has
 * limits on memory and time, no descriptors except the files to read, and the rights of the file's
 * owner, because libdw opens the .dwo files that the file names, wherever they are.
 */
#ifndef SFBPF_DEBUGINFO_DWARF_WORKER_H
#define SFBPF_DEBUGINFO_DWARF_WORKER_H

#include "debuginfo/dwarf_reader.h"

struct dwarf_limits {
	uint64_t bytes;	       /* memory (RLIMIT_DATA) */
	unsigned int seconds;  /* CPU time; the wall clock limit is four times this */
	uint64_t most_ns;      /* wall clock, instead of that; 0: not set */
	bool (*stopped)(void); /* whether to give up; NULL: never */
};

#define DWARF_LIMITS ((struct dwarf_limits){ .bytes = 1ull << 30, .seconds = 20 })

/*
 * Does what dwarf_read does, in a worker. Further errors: -EINTR (stopped), -ETIMEDOUT and -ECHILD
 * (the worker crashed or ran out of memory). Everything that it had sent before was emitted.
 */
int dwarf_work(const struct dwarf_job *job, const struct dwarf_limits *limits, dwarf_emit_fn emit,
	       void *ctx);

#endif
