/* SPDX-License-Identifier: BSD-2-Clause */
#include "tui/annotate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/ui.h"

#define HOT    10.0 /* percent: drawn in bold */
#define LINES  4    /* besides the instructions: two of the header, titles, keys */
#define PERC_W 7
#define ADDR_W 12

void annotate_close(struct annotate *a)
{
	free(a->fn.code);
	free(a->self);
	*a = (struct annotate){ 0 };
}

/* ---- Counting ---- */

/* The instruction that covers the offset, which is inside the function. */
static size_t at_offset(const struct annotate *a, uint64_t offset)
{
	size_t lo = 0, hi = a->fn.n;

	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;

		if (a->fn.code[mid].at <= offset - a->fn.start)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

static bool in_file(uint64_t word)
{
	return SF_FRAME_KIND(word) == SF_FRAME_ROW || SF_FRAME_KIND(word) == SF_FRAME_NOROW;
}

/* Index of the leaf among the user frames; n_user: it is another frame. */
static size_t user_leaf(const struct ui *ui, const struct profile_stack *s)
{
	struct shown f = shown_frames(&ui->sel, s);
	size_t at = shown_count(&f) ? shown_at(&f, 0) : s->n_user;

	return at < s->n_user && in_file(s->frames[at]) ? at : s->n_user;
}

/* Whether the instruction x is hotter than y; among equals the first one is. */
static bool hotter(const struct annotate *a, size_t x, size_t y)
{
	return a->self[x] != a->self[y] ? a->self[x] > a->self[y] : x < y;
}

static size_t hottest(const struct annotate *a)
{
	size_t best = 0;

	for (size_t i = 1; i < a->fn.n; i++)
		if (hotter(a, i, best))
			best = i;
	return best;
}

void annotate_count(struct ui *ui)
{
	struct annotate *a = &ui->annotate;
	struct profile_stack s;

	if (!a->open || !ui->window)
		return;
	memset(a->self, 0, a->fn.n * sizeof(*a->self));
	a->own = a->all = 0;
	for (size_t i = 0; i < profile_count(ui->window); i++) {
		const uint32_t *ids = profile_symbols(ui->window, i, ui->symbols);
		uint64_t off;
		size_t leaf;

		profile_stack(ui->window, i, &s);
		if (!ids || !selection_takes(&ui->sel, &s, ids, ui->symbols))
			continue;
		a->all += s.count;
		leaf = user_leaf(ui, &s);
		if (leaf == s.n_user || SF_FRAME_MODULE(s.frames[leaf]) != a->fn.module)
			continue;
		off = SF_FRAME_OFFSET(s.frames[leaf]);
		if (off < a->fn.start || off >= a->fn.end)
			continue;
		a->own += s.count;
		a->self[at_offset(a, off)] += s.count;
	}
	if (!a->moved)
		a->cursor = hottest(a);
}

/* ---- Opening ---- */

/*
 * A frame of the function: where most samples of one stack are, or else any. Files of several
 * processes may have a function of that name; the page shows one of them.
 */
static bool find_frame(const struct ui *ui, uint32_t symbol, uint64_t *ret, uint32_t *ret_pid)
{
	uint64_t most = 0;
	bool found = false;
	struct profile_stack s;

	for (size_t i = 0; ui->window && i < profile_count(ui->window); i++) {
		const uint32_t *ids = profile_symbols(ui->window, i, ui->symbols);
		size_t leaf;

		profile_stack(ui->window, i, &s);
		if (!ids || !selection_takes(&ui->sel, &s, ids, ui->symbols))
			continue;
		leaf = user_leaf(ui, &s);
		for (size_t k = 0; k < s.n_user; k++) {
			uint64_t own = k == leaf ? s.count : 0;

			if (ids[k] != symbol || !in_file(s.frames[k]) || (found && own <= most))
				continue;
			found = true;
			most = own;
			*ret = s.frames[k];
			*ret_pid = s.pid;
		}
	}
	return found;
}

static const char *why_not(int err)
{
	switch (err) {
	case -ENOTSUP:
		return "there is a disassembler for x86-64 code only";
	case -EAGAIN:
		return "reading files takes too long at the moment: try again";
	case -ENOENT:
		return "its code is not in a file that can be read, or has no known size";
	case -ENOMEM:
		return "out of memory";
	default:
		return "its file cannot be read";
	}
}

void annotate_open(struct ui *ui)
{
	struct annotate *a = &ui->annotate;
	const struct ui_row *row = ui_current(ui);
	uint32_t symbol = row ? row->symbol : ROW_NONE, pid = 0;
	uint64_t frame = 0;
	char text[160];
	int err;

	annotate_close(a);
	if (symbol == ROW_NONE) {
		ui_say(ui, false, "annotate needs a function: this row is none");
		return;
	}
	err = find_frame(ui, symbol, &frame, &pid)
		      ? symbolizer_disassemble(ui->symbols, frame, pid, &a->fn)
		      : -ENOENT;
	if (!err) {
		a->self = calloc(a->fn.n, sizeof(*a->self));
		err = a->self ? 0 : -ENOMEM;
	}
	if (err) {
		snprintf(text, sizeof(text), "no instructions of %.60s: %s",
			 symbolizer_name(ui->symbols, symbol), why_not(err));
		annotate_close(a);
		ui_say(ui, true, text);
		return;
	}
	a->open = true;
	a->symbol = symbol;
	annotate_count(ui);
}

/* ---- Keys ---- */

static size_t page_of(const struct ui *ui)
{
	return ui->h > LINES ? (size_t)(ui->h - LINES) : 1;
}

/* The next instruction with samples in the order of their heat; after the last, the first. */
static size_t next_hot(const struct annotate *a, bool down)
{
	size_t from = a->cursor, best = from, end = from;

	for (size_t i = 0; i < a->fn.n; i++) {
		if (i == from || !a->self[i])
			continue;
		if (down == hotter(a, from, i) && (best == from || down == hotter(a, i, best)))
			best = i;
		if (end == from || down == hotter(a, i, end))
			end = i;
	}
	return best == from ? end : best;
}

static void move_to(struct ui *ui, size_t to)
{
	struct annotate *a = &ui->annotate;

	a->cursor = to < a->fn.n ? to : a->fn.n - 1;
	a->moved = true;
}

unsigned int annotate_key(struct ui *ui, uint32_t key)
{
	struct annotate *a = &ui->annotate;
	size_t at = a->cursor, page = page_of(ui);

	switch (key) {
	case K_UP:
	case 'k':
		move_to(ui, at - (at > 0));
		return UI_DRAW;
	case K_DOWN:
	case 'j':
		move_to(ui, at + 1);
		return UI_DRAW;
	case K_PAGE_UP:
		move_to(ui, at - (at < page ? at : page));
		return UI_DRAW;
	case K_PAGE_DOWN:
		move_to(ui, at + page);
		return UI_DRAW;
	case K_HOME:
	case 'g':
		move_to(ui, 0);
		return UI_DRAW;
	case K_END:
	case 'G':
		move_to(ui, a->fn.n);
		return UI_DRAW;
	case 'n':
	case 'p':
		move_to(ui, next_hot(a, key == 'n'));
		return UI_DRAW;
	case 'H':
		a->moved = false;
		a->cursor = hottest(a);
		return UI_DRAW;
	case KEY_ESCAPE:
	case KEY_RUBOUT:
	case 'a':
	case 'q':
		annotate_close(a);
		return UI_DRAW;
	case 'Z': /* the views have this key, too */
		ui->paused = !ui->paused;
		return ui->paused ? UI_DRAW : UI_DRAW | UI_RESUMED;
	default:
		return 0;
	}
}

unsigned int annotate_mouse(struct ui *ui, const struct ui_event *ev)
{
	size_t at = ui->annotate.cursor;

	if (ev->mouse != MOUSE_WHEEL_UP && ev->mouse != MOUSE_WHEEL_DOWN)
		return 0;
	move_to(ui, ev->mouse == MOUSE_WHEEL_DOWN ? at + 3 : at - (at < 3 ? at : 3));
	return UI_DRAW;
}

/* ---- Drawing ---- */

static void draw_instruction(const struct ui *ui, struct grid *g, int y, size_t i)
{
	const struct annotate *a = &ui->annotate;
	const struct elf_instruction *in = &a->fn.code[i];
	double share = ui_share(a->self[i], a->own);
	char text[32] = "";

	if (a->self[i])
		snprintf(text, sizeof(text), "%.1f", share);
	grid_right(g, 0, y, PERC_W, share >= HOT ? ROLE_STRONG : ROLE_TEXT, text);
	snprintf(text, sizeof(text), "%" PRIx64, a->fn.addr + in->at);
	grid_right(g, PERC_W, y, ADDR_W, ROLE_DIM, text);
	grid_fit(g, PERC_W + ADDR_W + 2, y, g->w - PERC_W - ADDR_W - 2,
		 share >= HOT ? ROLE_STRONG : ROLE_TEXT, in->text);
	if (i == a->cursor)
		grid_role(g, 0, y, g->w, ROLE_CURSOR);
}

void draw_annotate(const struct ui *ui, struct grid *g)
{
	const struct annotate *a = &ui->annotate;
	size_t page = page_of(ui), first;
	char text[160];

	/* The cursor stays in the middle, as what leads to a hot instruction is above it. */
	first = a->cursor > page / 2 ? a->cursor - page / 2 : 0;
	if (first + page > a->fn.n)
		first = a->fn.n > page ? a->fn.n - page : 0;
	snprintf(text, sizeof(text), "%s  %s%s", symbolizer_name(ui->symbols, a->symbol),
		 symbolizer_module(ui->symbols, a->symbol),
		 a->fn.cut ? "  (only its first 64 KiB)" : "");
	grid_fit(g, 0, 0, g->w, ROLE_STRONG, text);
	snprintf(text, sizeof(text), "%" PRIu64 " samples in it, %.1f%% of all%s", a->own,
		 ui_share(a->own, a->all), ui->paused ? "  paused" : "");
	grid_fit(g, 0, 1, g->w, ROLE_TEXT, text);
	grid_fill(g, 0, 2, g->w, ROLE_TITLE, ' ');
	grid_right(g, 0, 2, PERC_W, ROLE_TITLE, "SELF%");
	grid_right(g, PERC_W, 2, ADDR_W, ROLE_TITLE, "ADDRESS");
	grid_text(g, PERC_W + ADDR_W + 2, 2, g->w, ROLE_TITLE, "INSTRUCTION");
	for (size_t i = 0; i < page && first + i < a->fn.n; i++)
		draw_instruction(ui, g, 3 + (int)i, first + i);
	grid_fit(g, 0, g->h - 1, g->w, ROLE_LABEL,
		 "n p Next, previous hot  H Hottest  Z Pause  Esc Back");
}
