/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adds up the windows of a directory. Each CPU reads a share of them, one at a time, so that memory
 * is needed for the sums only.
 */
#ifndef SFBPF_REPORT_WINDOW_SUM_H
#define SFBPF_REPORT_WINDOW_SUM_H

#include "prof/read_stacks.h"
#include "report/windows.h"

struct window_sum {
	struct stacks_meta meta;
	size_t n, unread;  /* windows added; damaged ones */
	size_t lacking;	   /* windows without a label that was asked for, or with an empty one */
	const char *lacks; /* that label; NULL: none */
};

/* Adds the metadata of one more file to the sum, which begins zeroed. */
void window_sum_meta(struct stacks_meta *sum, const struct stacks_meta *m);
/*
 * Adds the chosen windows to one side of ss, as ss->choice says. 0, or an exit code after printing
 * the error.
 */
int window_sum_read(const char *path, const struct window_choice *c, struct stackset *ss,
		    enum stack_side side, struct window_sum *ret);

#endif
