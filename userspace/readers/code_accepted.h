/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions whose rows count, by their start, and all of those rows. */
#ifndef SFBPF_READERS_CODE_ACCEPTED_H
#define SFBPF_READERS_CODE_ACCEPTED_H

#include "base/slots.h"
#include "codewalk/codewalk.h"

struct code_accepted_fn {
	uint64_t start;
	bool certain;
	bool guessed; /* see struct code_result */
	bool again;   /* it is to be analysed again */
	struct code_callee callee;
	size_t first, n; /* its rows */
};

struct code_accepted {
	struct code_accepted_fn *fns;
	size_t n, cap;
	struct slots by_start;
	struct rowbuf rows; /* ascending and without overlaps only after code_settle() */
};

/*
 * Takes the result of the function, in place of that of one with the same start. has_poppers: of
 * the file. 0 or -ENOMEM.
 */
int code_accept(struct code_accepted *a, const struct code_result *r, bool has_poppers,
		uint64_t start, bool certain);
/* NULL: there is none. */
const struct code_accepted_fn *code_accepted_at(const struct code_accepted *a, uint64_t start);
/* The function has no rows, and is no longer known. */
void code_reject(struct code_accepted *a, const struct code_accepted_fn *fn);
void code_drop_rows(struct code_accepted *a, const struct code_accepted_fn *fn);
/*
 * Sorts the rows, and joins those of code that several functions share. Where they disagree, none
 * counts.
 */
void code_settle(struct code_accepted *a);
void code_accepted_free(struct code_accepted *a);

#endif
