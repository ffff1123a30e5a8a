/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lines of a perf-PID.map: "START SIZE NAME", in hexadecimal. Where they overlap, the later one
 * counts.
 */
#ifndef SFBPF_JIT_PERF_LINES_H
#define SFBPF_JIT_PERF_LINES_H

#include <sys/types.h>

#include "base/bytes.h"
#include "jit/code_table.h"

/*
 * Takes the complete lines at the start of a text. time: of the pieces, as the lines have none.
 * Returns the bytes that the lines take; 0: no complete line; -ENOMEM; -ENOSPC: the table is full.
 */
ssize_t perf_lines_take(struct code_table *t, struct bytes text, uint64_t time);

#endif
