/* SPDX-License-Identifier: BSD-2-Clause */
/* What code_rows.c and code_roots.c share: the analysis of a file. */
#ifndef SFBPF_READERS_CODE_ROWS_INTERNAL_H
#define SFBPF_READERS_CODE_ROWS_INTERNAL_H

#include "readers/code_accepted.h"
#include "readers/code_data.h"
#include "readers/code_ends.h"
#include "readers/code_rows.h"
#include "readers/code_starts.h"

#define FN_MAX (1u << 20) /* bytes of a function outside of tables that certainly starts there */

struct start {
	uint64_t addr;
	bool certain;
};

struct starts {
	struct start *v;
	size_t n, cap;
};

/* The function at start goes on after a call of one that is not known yet. */
struct late {
	uint64_t start, callee;
};

struct analysis {
	struct unwind_file *file;
	const struct code_rows_opts *opts;
	struct code_gapped code;
	struct code_data data;
	struct code_ends ends;
	struct code_fn *fn;
	struct code_result got; /* what the last analysis found */
	struct code_text texts[EXEC_SEGMENTS_MAX];
	struct elf_blob blobs[EXEC_SEGMENTS_MAX]; /* their bytes */
	struct code_ranges described, gaps, whole;
	struct fntab symbols;
	struct starts certain, maybe; /* starts to be analysed */
	struct starts rejected;
	struct starts waiting; /* CODE_TAILS: starts that wait for a proof of `tails` */
	unsigned int rounds;   /* times the last two were analysed again */
	bool learnt;	       /* something about callees, since functions were rejected */
	bool proved;	       /* a start, since one began to wait */
	struct late *late;
	size_t nlate, late_cap;
	bool ends_learnt; /* a function that does not return, since the last two were compared */
	bool pops_learnt; /* what a function removes from the stack, since all were analysed */
	struct code_accepted accepted;
	uint64_t entry;
	bool has_entry, stopped;
	unsigned int ticks;
	struct fntab found;
};

/* Whether the address is code that may be analysed here. */
bool code_wanted(const struct analysis *a, uint64_t addr);
int code_push_start(struct starts *to, uint64_t addr, bool certain);
/* A function starts at the address, or may. ctx: the analysis. 0 or -ENOMEM. */
int code_note_start(void *ctx, uint64_t addr, bool certain);

/* The functions that symbols, the entry, tables, data and other code tell of. 0 or -ENOMEM. */
int code_note_starts(struct analysis *a);
/*
 * Whether .eh_frame says that a function starts there, and not a part of one that is elsewhere.
 * 1, 0 or -ENOMEM.
 */
int code_described_start(const struct analysis *a, uint64_t addr);

#endif
