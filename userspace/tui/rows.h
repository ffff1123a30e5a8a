/* SPDX-License-Identifier: BSD-2-Clause */
/* What views make their rows with: adding, opening, filtering and comparing them. */
#ifndef SFBPF_TUI_ROWS_H
#define SFBPF_TUI_ROWS_H

#include "tui/ui.h"

/* Adds a row at the end. NULL: out of memory. */
struct ui_row *rows_add(struct ui *ui, uint64_t key, uint32_t index);
/* Adds a row of a process (0: of several) that the user can open. NULL: out of memory. */
struct ui_row *rows_add_process(struct ui *ui, uint64_t key, uint32_t index, uint32_t pid,
				uint64_t self);

/* Whether s contains the filter, ignoring case. An empty filter matches everything. */
bool rows_filter(const char *filter, const char *s);
/* Whether the filter matches the process id or the name, which may have foreign bytes. */
bool rows_filter_process(const char *filter, const char *name, uint32_t pid);
/* Whether the filter matches stack i in what VIEW_FINDS_... selects. */
bool rows_filter_stack(const struct ui *ui, unsigned int finds, struct profile *p, size_t i);

/* Comparisons of values: < 0, 0 or > 0. */
static inline int rows_compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static inline int rows_compare_shares(uint64_t a, uint64_t a_sum, uint64_t b, uint64_t b_sum)
{
	double x = ui_share(a, a_sum), y = ui_share(b, b_sum);

	return x < y ? -1 : x > y;
}

/* Compares shares of complete stacks. The worst is the largest, no user stacks are the least. */
int rows_compare_complete(uint64_t a, uint64_t a_stacks, uint64_t b, uint64_t b_stacks);

/*
 * Builds ui->rows for ui->view from its census or tree; the cursor stays on its row. 0 or -ENOMEM.
 */
int rows_build(struct ui *ui);

void keyset_free(struct keyset *ks);
/* 1: opened by the user, 0: closed by the user, -1: neither. */
int keyset_get(const struct keyset *ks, uint64_t key);
void keyset_set(struct keyset *ks, uint64_t key, bool open);

#endif
