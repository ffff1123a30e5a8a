/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dwarf_read in a process of its own, so that a file made to harm its reader costs only its own frames: the process
 * has limits of memory and time, nothing of ours but the files to read, and the rights of the file's owner (names of .dwo files
 * in it are opened by libdw, wherever they point). Its memory is gone when it is done.
 */
#ifndef SFBPF_SYM_DWARF_WORKER_H
#define SFBPF_SYM_DWARF_WORKER_H

#include "sym/dwarf_reader.h"

struct dwarf_limits {
	uint64_t bytes;		/* of memory (RLIMIT_DATA) */
	unsigned int seconds;	/* of time */
};

#define DWARF_LIMITS ((struct dwarf_limits){ .bytes = 1ull << 30, .seconds = 20 })

/* Where a file is from. */
struct dwarf_place {
	bool foreign;		/* from another file system than ours: its root is nobody here */
	int root_fd;		/* that file system's root directory (O_PATH); -1: not known, or ours */
};

/*
 * As dwarf_read. In addition -ETIMEDOUT and -ECHILD (it crashed, or had not enough memory): what it had told before
 * was emitted.
 */
int dwarf_work(const struct dwarf_job *job, const struct dwarf_place *place, const struct dwarf_limits *limits, dwarf_emit_fn emit, void *ctx);

#endif
