/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files that `record` wrote, read back by name: folded lines, JSON and pprof (out/out_folded.c, out_json.c and out_pprof.c
 * say what they look like), told apart by their first bytes. They may come from anywhere, so names are cleaned again.
 */
#ifndef SFBPF_PROF_READ_STACKS_H
#define SFBPF_PROF_READ_STACKS_H

#include <stdio.h>

#include "base/bytes.h"
#include "prof/stackset.h"

#define READ_STACKS_MAX (2ull << 30)	/* bytes of a file */
#define READ_STACKS_DEPTH 4096		/* frames a stack; more are damage */

/* What a file says about itself; folded lines say nothing. */
struct stacks_meta {
	char event[64], host[256];
	char unit[16];			/* "samples", "microseconds" */
	double hz, duration_s;
	uint64_t start_unix_ns, lost;
	uint64_t user_stacks, complete;	/* samples */
};

struct read_error {
	char text[160];			/* "line 12: no count at its end" */
};

/* Adds all of f's stacks to that side of ss. 0; -EINVAL: not such a file, *why says where; -EIO, -EFBIG, -ENOMEM. */
int read_stacks(FILE *f, struct stackset *ss, enum stack_side side, struct stacks_meta *meta, struct read_error *why);

/* The formats, from memory. */
int read_folded(struct bytes text, struct stackset *ss, enum stack_side side, struct stacks_meta *meta, struct read_error *why);
int read_json(struct bytes text, struct stackset *ss, enum stack_side side, struct stacks_meta *meta, struct read_error *why);
int read_pprof(struct bytes packed, struct stackset *ss, enum stack_side side, struct stacks_meta *meta, struct read_error *why);

#endif
