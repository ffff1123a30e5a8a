/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of code that a process generated, from a dump in perf's format
 * (linux/tools/perf/Documentation/jitdump-specification.txt): node --perf-prof, the JVM with perf's
 * agent, wasmtime, LLVM's listener. Unlike perf-PID.map it records when code was made and moved, so
 * an address that was reused has the name of the time of the sample.
 *
 * The file is jit-PID.dump. It is found as perf finds it: its writer maps a page of it executable.
 * Without such a mapping, /tmp/jit-PID.dump is used.
 */
#ifndef SFBPF_JIT_JIT_DUMP_H
#define SFBPF_JIT_JIT_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/idmap.h"
#include "jit/code_table.h"

struct jit_dump {	/* zeroed: nothing has been read */
	bool own_clock; /* its times are CPU timestamps, not comparable with ours */
	/* Secret key of by_index's hash, which prevents chosen collisions */
	uint64_t key;
	struct idmap by_index; /* index of a piece in the file, which moves refer to */
	uint32_t *piece;       /* id of by_index -> the latest piece in the table with that index */
	size_t piece_cap;
};

/*
 * Takes the complete records at the start of a window of the file. at: offset of the window in the
 * file. left: bytes from there to the end of the file. Returns the bytes to advance, which may be
 * more than the window; 0: incomplete record, or damage; -ENOEXEC: not a dump; -ENOMEM; -ENOSPC:
 * the table is full.
 */
ssize_t jit_dump_take(struct jit_dump *d, struct code_table *t, struct bytes window, uint64_t at,
		      uint64_t left);
size_t jit_dump_bytes(const struct jit_dump *d);
void jit_dump_free(struct jit_dump *d); /* d is then as before the first read */

#endif
