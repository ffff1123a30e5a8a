/* SPDX-License-Identifier: BSD-2-Clause */
#include "tui/rows.h"
#include "tui/view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"

#define OPENED_MAX 4096 /* rows opened by the user; beyond that the older half is dropped */

/* ---- Opened rows ---- */

void keyset_free(struct keyset *ks)
{
	free(ks->v);
	*ks = (struct keyset){ 0 };
}

int keyset_get(const struct keyset *ks, uint64_t key)
{
	for (size_t i = 0; i < ks->n; i++)
		if (ks->v[i].key == key)
			return ks->v[i].open;
	return -1;
}

void keyset_set(struct keyset *ks, uint64_t key, bool open)
{
	size_t i;

	for (i = 0; i < ks->n && ks->v[i].key != key; i++)
		;
	if (i == ks->n) {
		if (ks->n == OPENED_MAX) {
			ks->n /= 2;
			memmove(ks->v, ks->v + ks->n, ks->n * sizeof(*ks->v));
			i = ks->n;
		}
		if (vec_reserve(&ks->v, &ks->cap, ks->n + 1, sizeof(*ks->v)))
			return;
		ks->v[ks->n++].key = key;
	}
	ks->v[i].open = open;
}

/* ---- Making rows ---- */

struct ui_row *rows_add(struct ui *ui, uint64_t key, uint32_t index)
{
	if (vec_reserve(&ui->rows, &ui->rows_cap, ui->nrows + 1, sizeof(*ui->rows)))
		return NULL;
	ui->rows[ui->nrows] = (struct ui_row){ .key = key, .index = index, .symbol = ROW_NONE };
	return &ui->rows[ui->nrows++];
}

struct ui_row *rows_add_process(struct ui *ui, uint64_t key, uint32_t index, uint32_t pid,
				uint64_t self)
{
	struct ui_row *row = rows_add(ui, key, index);
	int by_hand = keyset_get(&ui->opened, key);
	bool open = by_hand >= 0 ? by_hand : ui->open_share <= 0;

	if (!row)
		return NULL;
	row->opening = open ? ROW_OPEN : ROW_CLOSED;
	row->pid = pid;
	row->self = self;
	return row;
}

/* ---- Filtering ---- */

bool rows_filter(const char *filter, const char *s)
{
	return !*filter || strcasestr(s, filter);
}

bool rows_filter_process(const char *filter, const char *name, uint32_t pid)
{
	char clean[SF_COMM * 3 + 1], number[16];

	text_clean(clean, sizeof(clean), name, strlen(name), 0);
	snprintf(number, sizeof(number), "%u", pid);
	return rows_filter(filter, clean) || rows_filter(filter, number);
}

bool rows_filter_stack(const struct ui *ui, unsigned int finds, struct profile *p, size_t i)
{
	const uint32_t *ids = profile_symbols(p, i, ui->symbols);
	struct profile_stack s;
	struct shown f;

	profile_stack(p, i, &s);
	f = shown_frames(&ui->sel, &s);
	if ((finds & VIEW_FINDS_PROCESS) && (rows_filter_process(ui->filter, s.comm, s.pid) ||
					     rows_filter_process(ui->filter, s.process, s.pid)))
		return true;
	for (size_t k = 0; ids && k < shown_count(&f); k++) {
		uint32_t id = ids[shown_at(&f, k)];

		if (((finds & VIEW_FINDS_FUNCTION) &&
		     rows_filter(ui->filter, symbolizer_name(ui->symbols, id))) ||
		    ((finds & VIEW_FINDS_MODULE) &&
		     rows_filter(ui->filter, symbolizer_module(ui->symbols, id))))
			return true;
	}
	return false;
}

int rows_compare_complete(uint64_t a, uint64_t a_stacks, uint64_t b, uint64_t b_stacks)
{
	return a_stacks && b_stacks ? rows_compare_shares(b, b_stacks, a, a_stacks)
				    : rows_compare(!!a_stacks, !!b_stacks);
}
