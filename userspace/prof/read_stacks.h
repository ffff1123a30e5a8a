/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads files that `record` wrote: folded lines, JSON and pprof. See out/out_folded.c, out_json.c
 * and out_pprof.c for the formats, which are recognized by the first bytes. The files are foreign
 * bytes, so names are cleaned again.
 */
#ifndef SFBPF_PROF_READ_STACKS_H
#define SFBPF_PROF_READ_STACKS_H

#include <stdio.h>

#include "base/bytes.h"
#include "prof/stackset.h"

#define READ_STACKS_MAX	  (2ull << 30) /* bytes of a file */
/* frames per stack; a stack with more counts as damaged */
#define READ_STACKS_DEPTH 4096

/* The metadata of a file; folded lines have none. */
struct stacks_meta {
	uint64_t bytes; /* size of the file */
	char event[64], host[256];
	char unit[16];	  /* "samples", "microseconds" */
	char command[64]; /* the command whose run it is; "": none, or unknown */
	double hz, duration_s;
	uint64_t start_unix_ns, lost;
	uint64_t user_stacks, complete; /* samples */
};

struct read_error {
	char text[160]; /* "line 12: no count at its end" */
};

/*
 * Adds all stacks in f to one side of ss. 0; -EINVAL: no valid profile, see *why; -EIO, -EFBIG,
 * -ENOMEM.
 */
int read_stacks(FILE *f, struct stackset *ss, enum stack_side side, struct stacks_meta *meta,
		struct read_error *why);

/* All bytes of f, at most READ_STACKS_MAX; the caller frees them. 0, -EFBIG, -EIO or -ENOMEM. */
int read_stacks_slurp(FILE *f, uint8_t **ret, size_t *ret_len);

/* Readers of the formats, from memory. */
int read_folded(struct bytes text, struct stackset *ss, enum stack_side side,
		struct stacks_meta *meta, struct read_error *why);
int read_json(struct bytes text, struct stackset *ss, enum stack_side side,
	      struct stacks_meta *meta, struct read_error *why);
int read_pprof(struct bytes packed, struct stackset *ss, enum stack_side side,
	       struct stacks_meta *meta, struct read_error *why);

#endif
