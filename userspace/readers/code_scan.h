/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the references of code that has tables to code that has none. */
#ifndef SFBPF_READERS_CODE_SCAN_H
#define SFBPF_READERS_CODE_SCAN_H

#include "readers/code_starts.h"

/*
 * Calls note() for each address in a gap that code of the described ranges calls (certain), jumps
 * to or loads. fns: functions in them, to decode only some; it may be empty. 0, or what note()
 * returned.
 */
int code_scan(const struct code_gapped *g, const struct code_ranges *described,
	      const struct fntab *fns, int (*note)(void *ctx, uint64_t addr, bool certain),
	      void *ctx);

#endif
