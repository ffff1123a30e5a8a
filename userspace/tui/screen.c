/* SPDX-License-Identifier: BSD-2-Clause */
#include "tui/draw_cell.h"
#include "tui/screen.h"
#include "tui/setup.h"
#include "tui/view.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/text.h"
#include "languages/lang.h"

/* ---- The header: samples, losses, cost ---- */

#define SEGMENTS_MAX 12

struct segment {
	char text[96];
	enum role role;
	int need; /* priority: the lowest are dropped first */
};

struct line {
	struct segment seg[SEGMENTS_MAX];
	int n;
};

static void say(struct line *l, int need, enum role role, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void say(struct line *l, int need, enum role role, const char *fmt, ...)
{
	struct segment *s = &l->seg[l->n];
	va_list args;

	if (l->n == SEGMENTS_MAX)
		return;
	va_start(args, fmt);
	vsnprintf(s->text, sizeof(s->text), fmt, args);
	va_end(args);
	s->role = role;
	s->need = need;
	l->n++;
}

static int line_width(const struct line *l)
{
	int w = 0;

	for (int i = 0; i < l->n; i++)
		w += text_width(l->seg[i].text) + (i ? 2 : 0);
	return w;
}

static void put_line(struct line *l, struct grid *g, int y)
{
	int x = 0;

	while (l->n > 1 && line_width(l) > g->w) {
		int least = 0;

		for (int i = 1; i < l->n; i++)
			if (l->seg[i].need <= l->seg[least].need)
				least = i;
		memmove(&l->seg[least], &l->seg[least + 1],
			(size_t)(l->n - least - 1) * sizeof(l->seg[0]));
		l->n--;
	}
	for (int i = 0; i < l->n; i++)
		x += grid_fit(g, x, y, g->w - x, l->seg[i].role, l->seg[i].text) + 2;
}

static enum role worry(double value, double warn, double bad)
{
	return value >= bad ? ROLE_BAD : value >= warn ? ROLE_WARN : ROLE_TEXT;
}

static void say_lost(struct line *l, const struct live_counters *c)
{
	uint64_t lost = 0, events = c->taken ? c->taken : 1;
	char causes[80] = "";
	size_t n = 0;

	for (unsigned int i = 0; i < SF_LOST_MAX; i++) {
		lost += c->lost[i];
		if (c->lost[i] && n < sizeof(causes))
			n += (size_t)snprintf(causes + n, sizeof(causes) - n, "%s%s %llu",
					      n ? ", " : "", profile_lost_name(i),
					      (unsigned long long)c->lost[i]);
	}
	say(l, 90, worry(100.0 * (double)lost / (double)events, 0.001, 0.5), "lost %llu%s%s%s",
	    (unsigned long long)lost, n ? " (" : "", causes, n ? ")" : "");
}

/* enough: there are enough stacks to colour a low share. */
static void say_complete(struct line *l, uint64_t complete, uint64_t all, bool enough)
{
	double share = ui_share(complete, all);

	if (all)
		say(l, 95, enough ? worry(100 - share, 1, 3) : ROLE_TEXT, "complete %.1f%%", share);
	else
		say(l, 95, ROLE_TEXT, "complete -");
}

/* The share of stacks with all frames of a language, if some are missing. */
static void say_languages(struct line *l, const struct census *c)
{
	for (uint32_t i = SF_LANG_NONE + 1; i < SF_LANG_MAX; i++) {
		double share = ui_share(c->all.lang_complete[i], c->all.lang_stacks[i]);

		if (c->all.lang_stacks[i] >= 20 && share < 99)
			say(l, 88, worry(100 - share, 1, 3), "%s %.1f%%", lang_name(i), share);
	}
}

static void say_window(struct line *l, const struct ui *ui, double have)
{
	static const char *const names[LIVE_SPANS] = {
		[LIVE_5S] = "5s", [LIVE_30S] = "30s", [LIVE_ALL] = "all"
	};
	double want[LIVE_SPANS] = { [LIVE_5S] = 5, [LIVE_30S] = 30 };

	if (ui->span != LIVE_ALL && have > want[ui->span] - 0.6 && have < want[ui->span] + 0.6)
		say(l, 60, ROLE_TEXT, "last %s", names[ui->span]);
	else
		say(l, 60, ROLE_TEXT, have < 10 ? "last %s (%.1fs)" : "last %s (%.0fs)",
		    names[ui->span], have);
}

/* A rate. Over less than a tenth of a second, as after a reset, it says nothing: 0. */
static double per_second(double n, double seconds)
{
	return seconds >= 0.1 ? n / seconds : 0;
}

static void say_busy(struct line *l, const struct ui *ui, double rate)
{
	double full = ui->gauges.full_rate, busy;

	if (full <= 0)
		return;
	busy = 100 * rate / (ui->sel.cpu1 && ui->gauges.ncpus ? full / ui->gauges.ncpus : full);
	say(l, 55, ROLE_TEXT, "busy %.0f%%", busy < 100 ? busy : 100);
}

/* Shares of blocked time, and the average number of blocked threads. */
static void say_blocked(struct line *l, const struct ui *ui)
{
	const struct live_sum *sum = &ui->off.sum;
	const struct blocked *b = &ui->off.now;

	say_window(l, ui, sum->seconds);
	say(l, 92, ROLE_TEXT, "%.0f blocks/s", per_second((double)sum->c.taken, sum->seconds));
	say_lost(l, &sum->c);
	if (sum->c.lost_ns)
		say(l, 85, ROLE_BAD, "%.1fms lost", (double)sum->c.lost_ns / 1e6);
	say_complete(l, b->all.complete_ns, b->all.user_ns, true);
	if (sum->c.sampled_ns)
		say(l, 80, ROLE_WARN, "sampled %.0f%%", ui_share(sum->c.sampled_ns, b->all.ns));
	say(l, 50, ROLE_TEXT, "%.0f threads", per_second((double)b->all.ns / 1e9, sum->seconds));
}

static void first_line(struct line *l, const struct ui *ui)
{
	enum view_time time = view_at(ui->view)->time;
	const struct live_sum *sum = &ui->sum;
	uint64_t taken = ui->sel.cpu1 ? ui->census.all.samples : sum->c.taken;
	double rate = per_second((double)taken, sum->seconds);

	say(l, 40, ROLE_STRONG, "sfbpf top");
	if (!ui->window) {
		say(l, 30, ROLE_TEXT, "%s", ui->gauges.what);
		return;
	}
	if (ui->paused)
		say(l, 99, ROLE_WARN, "PAUSED");
	if (time == TIME_BLOCKED) {
		say_blocked(l, ui);
		return;
	}
	if (ui->sel.cpu1)
		say(l, 98, ROLE_WARN, "CPU %u", ui->sel.cpu1 - 1);
	say_window(l, ui, sum->seconds);
	say(l, 92, ROLE_TEXT, "%.0f samples/s", rate);
	say_lost(l, &sum->c);
	say_complete(l, ui->census.all.complete, ui->census.all.user_stacks,
		     ui->census.all.user_stacks >= 20);
	say_languages(l, &ui->census);
	say(l, 50, ROLE_TEXT, "kernel %.0f%%",
	    ui_share(ui->census.all.kernel, ui->census.all.samples));
	say_busy(l, ui, rate);
	if (time == TIME_BOTH && ui->off.sum.c.sampled_ns)
		say(l, 80, ROLE_WARN, "blocks are sampled");
	if (time == TIME_BOTH && ui->off.sum.c.lost_ns)
		say(l, 85, ROLE_BAD, "%.1fms lost", (double)ui->off.sum.c.lost_ns / 1e6);
}

/* Stop reasons of incomplete stacks, most common first. A short line drops the rarer ones first. */
static void say_stops(struct line *l, const struct ui *ui)
{
	bool off = view_at(ui->view)->time == TIME_BLOCKED;
	uint64_t left[SF_STOP_MAX],
		all = off ? ui->off.now.all.user_ns : ui->census.all.user_stacks;

	memcpy(left, off ? ui->off.now.all.stops : ui->census.all.stops, sizeof(left));
	left[SF_STOP_COMPLETE] = 0;
	for (int k = 0; k < 4; k++) {
		uint8_t top = 0;

		for (uint8_t i = 0; i < SF_STOP_MAX; i++)
			if (left[i] > left[top])
				top = i;
		if (!left[top])
			break;
		say(l, k ? 30 - k : 60, ROLE_TEXT, "%s%s %.1f%%",
		    k ? "" : "stops: ", profile_stop_name(top), ui_share(left[top], all));
		left[top] = 0;
	}
	if (!l->n)
		say(l, 60, ROLE_TEXT, "stops: none early");
}

static void second_line(struct line *l, const struct ui *ui)
{
	const struct ui_gauges *ga = &ui->gauges;
	double cpu = per_second((double)ui->sum.c.cpu_ns / 1e7, ui->sum.seconds);
	double bpf = per_second((double)ui->sum.c.bpf_ns / 1e7, ui->sum.seconds);
	uint64_t ended = worker_totals_ended(&ga->parsers),
		 names_lost = worker_totals_names_lost(&ga->parsers);
	enum role rss = worry((double)ga->rss_kb, 300e3, 600e3), own = worry(cpu + bpf, 1.5, 3);
	char a[16], b[16];

	if (ui->window)
		say_stops(l, ui);
	if (ui->window)
		say(l, 80, own == ROLE_BAD || rss == ROLE_TEXT ? own : rss,
		    "sfbpf CPU %.1f%% BPF %.1f%% RSS %s", cpu, bpf,
		    draw_bytes(ga->rss_kb * 1024, a, sizeof(a)));
	say(l, 50, worry(ui_share(ga->table_bytes, ga->table_limit), 70, 90), "tables %s/%s files",
	    draw_bytes(ga->table_bytes, a, sizeof(a)), draw_amount(ga->table_files, b, sizeof(b)));
	if (ga->table_evicted)
		say(l, 49, ROLE_TEXT, "evicted %s", draw_amount(ga->table_evicted, a, sizeof(a)));
	if (ga->table_refused)
		say(l, 85, ROLE_WARN, "refused %s", draw_amount(ga->table_refused, a, sizeof(a)));
	if (ended)
		say(l, 86, ROLE_WARN, "parsers died %s, files lost %s",
		    draw_amount(ended, a, sizeof(a)),
		    draw_amount(ga->parsers.failed, b, sizeof(b)));
	if (names_lost)
		say(l, 84, ROLE_WARN, "names lost %s", draw_amount(names_lost, a, sizeof(a)));
	say(l, 20, ROLE_DIM, "%s", ga->what);
}

static void draw_trust(const struct ui *ui, struct grid *g, const struct layout *l)
{
	struct line line = { .n = 0 };

	first_line(&line, ui);
	put_line(&line, g, l->trust);
	if (l->ntrust < 2)
		return;
	line.n = 0;
	second_line(&line, ui);
	put_line(&line, g, l->trust + 1);
}

/* ---- Tabs, zoom path and state ---- */

/*
 * Whether the tabs of all views fit with their names and this many characters around each name. The
 * blank after the last one need not fit.
 */
static bool tabs_fit(const struct ui *ui, size_t around)
{
	size_t n = 0;

	for (int v = 0; v < VIEW_MAX; v++)
		n += around + strlen(view_at((enum view)v)->title);
	return n - 1 <= (size_t)ui->w;
}

/*
 * Formats the tab of a view that starts at column x. Returns its end. Narrow screens show the name
 * of the current view only, and the numbers of the others.
 */
static int tab(const struct ui *ui, enum view view, int x, char *dst, size_t cap)
{
	const bool names = tabs_fit(ui, strlen("1  ")), blanks = tabs_fit(ui, strlen(" 1  "));

	if (!names && view != ui->view)
		snprintf(dst, cap, " %d ", view + 1);
	else
		snprintf(dst, cap, "%s%d %s ", names && !blanks ? "" : " ", view + 1,
			 view_at(view)->title);
	return x + (int)strlen(dst);
}

enum view screen_tab_at(const struct ui *ui, int at)
{
	char text[32];
	int x = 0;

	for (int v = 0; v < VIEW_MAX; v++) {
		x = tab(ui, (enum view)v, x, text, sizeof(text));
		if (at < x)
			return (enum view)v;
	}
	return VIEW_MAX;
}

static int draw_tabs(const struct ui *ui, struct grid *g, int y)
{
	char text[32];
	int x = 0;

	grid_fill(g, 0, y, g->w, ROLE_TAB, ' ');
	for (int v = 0; v < VIEW_MAX; v++) {
		int end = tab(ui, (enum view)v, x, text, sizeof(text));

		grid_text(g, x, y, g->w - x, (enum view)v == ui->view ? ROLE_TAB_ON : ROLE_TAB,
			  text);
		x = end;
	}
	return x;
}

/* Settings that differ from the defaults, and the range of rows shown. */
static void state_text(const struct ui *ui, const struct layout *l, char *dst, size_t cap)
{
	const struct ui_position *pos = &ui->pos[ui->view];
	size_t n = 0, last = pos->scroll + (size_t)l->nbody;

	dst[0] = 0;
#define ADD(...)                                                              \
	do {                                                                  \
		if (n < cap)                                                  \
			n += (size_t)snprintf(dst + n, cap - n, __VA_ARGS__); \
	} while (0)
	if (ui->filter[0])
		ADD("  filter '%s'", ui->filter);
	if (ui->sel.uid1)
		ADD("  user %s", ui->user);
	if (ui->sel.user_only)
		ADD("  kernel hidden");
	if (ui_needs_offcpu(ui) && ui->sel.no_idle)
		ADD("  idle hidden");
	if (pos->follow)
		ADD("  following");
	if (ui->delay_ns != NUM_S)
		ADD("  every %gs", (double)ui->delay_ns / 1e9);
	if (view_at(ui->view)->draw || !ui->nrows)
		return;
	ADD("  %zu-%zu of %zu", pos->scroll + 1, last < ui->nrows ? last : ui->nrows, ui->nrows);
#undef ADD
}

/* "all > gdb (123) > parse  12.3% of all samples", and the state at the right. */
static void draw_crumb(const struct ui *ui, struct grid *g, const struct layout *l, int x, int y,
		       enum role role)
{
	char state[256], share[48];
	int end;

	state_text(ui, l, state, sizeof(state));
	end = g->w - text_width(state);
	if (end < x + 3) { /* no room: the zoom path is more important */
		end = g->w;
		state[0] = 0;
	}
	x += grid_text(g, x, y, end - x, ui->sel.n ? role : ROLE_STRONG, "all");
	for (unsigned int i = 0; i < ui->sel.n; i++) {
		int width = end - x - 3, most = g->w / 3;

		x += grid_text(g, x, y, end - x, role, g->unicode ? " \u203a " : " > ");
		x += grid_fit(g, x, y, width < most ? width : most,
			      i + 1 == ui->sel.n ? ROLE_STRONG : role, ui->sel.levels[i].label);
	}
	if (ui->sel.n) {
		bool off = view_at(ui->view)->time == TIME_BLOCKED;
		double part = off ? ui_share(ui->off.now.ns, ui->off.now.all.ns)
				  : ui_share(ui->census.sum, ui->census.all.samples);

		snprintf(share, sizeof(share), "  %.1f%% of all %s", part,
			 off ? "time" : "samples");
		if (x + (int)strlen(share) > end)
			snprintf(share, sizeof(share), "  %.1f%%", part);
		if (x + (int)strlen(share) <= end)
			grid_text(g, x, y, end - x, role, share);
	}
	grid_text(g, end, y, g->w - end, ui->filter[0] ? ROLE_WARN : role, state);
}

/* ---- The bar ---- */

static const struct binding *bar_entry(size_t *i, int *x, int w, char *key, size_t cap)
{
	const struct binding *b;

	while ((b = keys_at((*i)++))) {
		if (!b->label)
			continue;
		keys_name(b->keys[0], key, cap);
		*x += (int)strlen(key) + (int)strlen(b->label) + 3;
		return *x - 1 <= w ? b : NULL;
	}
	return NULL;
}

enum action screen_bar_at(const struct ui *ui, int at)
{
	const struct binding *b;
	char key[16];
	size_t i = 0;
	int x = 0;

	while ((b = bar_entry(&i, &x, ui->w, key, sizeof(key))))
		if (at < x)
			return keys_work(b, ui->view) ? b->action : ACT_NONE;
	return ACT_NONE;
}

static void draw_bar(const struct ui *ui, struct grid *g, int y)
{
	const struct binding *b;
	char key[16];
	size_t i = 0;
	int x = 0, from = 0;

	while ((b = bar_entry(&i, &x, ui->w, key, sizeof(key)))) {
		const char *label = b->action == ACT_PAUSE && ui->paused ? "Resume" : b->label;
		int n = grid_text(g, from, y, g->w - from, ROLE_KEY, key);

		grid_text(g, from + n, y, g->w, ROLE_LABEL, " ");
		grid_fit(g, from + n + 1, y, x - from - n - 2, ROLE_LABEL, label);
		from = x;
	}
}

static void draw_bottom(const struct ui *ui, struct grid *g, int y)
{
	static const char *const questions[] = {
		[PROMPT_FILTER] = "Filter: ",	     [PROMPT_DELAY] = "Seconds between refreshes: ",
		[PROMPT_CPU] = "CPU (empty: all): ", [PROMPT_USER] = "User (empty: all): ",
		[PROMPT_SEARCH] = "Search: ",	     [PROMPT_SIGNAL] = ": signal ",
	};
	int x = 0;

	if (ui->prompt) {
		if (ui->prompt == PROMPT_SIGNAL)
			x = grid_text(g, 0, y, g->w, ROLE_STRONG, ui->signal.to);
		x += grid_text(g, x, y, g->w - x, ROLE_STRONG, questions[ui->prompt]);
		x += grid_text(g, x, y, g->w - x - 1, ROLE_TEXT, ui->typed);
		grid_text(g, x, y, 1, ROLE_CURSOR, " ");
		grid_right(g, x + 2, y, g->w - x - 2, ROLE_DIM,
			   ui->prompt == PROMPT_SEARCH	 ? "F3: next  Enter: stay  Esc: back"
			   : ui->prompt == PROMPT_SIGNAL ? "Enter: send  Esc: cancel"
							 : "Enter: apply  Esc: cancel");
	} else if (ui->message[0]) {
		grid_fit(g, 0, y, g->w, ui->message_bad ? ROLE_BAD : ROLE_GOOD, ui->message);
	} else {
		draw_bar(ui, g, y);
	}
}

/* ---- All of it ---- */

static void draw_nothing(const struct ui *ui, struct grid *g, const struct layout *l)
{
	const struct view_spec *view = view_at(ui->view);
	char text[512];

	if (ui_needs_offcpu(ui) && ui->off.error[0])
		snprintf(text, sizeof(text), "%s", ui->off.error);
	else if (ui_needs_offcpu(ui) && (!ui->off.window || ui->off.sum.seconds < 0.2))
		snprintf(text, sizeof(text),
			 ui->paused ? "paused (Z resumes)" : "measuring blocks...");
	else if (view->time == TIME_BLOCKED && !ui->filter[0])
		snprintf(text, sizeof(text),
			 ui->sel.no_idle ? "all blocked threads are idle (i shows them)"
					 : "no blocked threads");
	else if (!ui->window || (!ui->census.all.samples && ui->sum.seconds < 0.2))
		snprintf(text, sizeof(text), "sampling...");
	else if (!ui->census.all.samples)
		snprintf(text, sizeof(text),
			 ui->sel.cpu1 ? "no samples on this CPU"
				      : "no samples: no profiled thread ran on a CPU");
	else if (ui->sel.uid1)
		snprintf(text, sizeof(text), "no samples of processes of user %s (u: all users)",
			 ui->user);
	else if (ui->filter[0])
		snprintf(text, sizeof(text), "nothing matches '%s' (Esc clears the filter)",
			 ui->filter);
	else if (ui->sel.n)
		snprintf(text, sizeof(text), "no samples here in this window (Esc goes back)");
	else
		snprintf(text, sizeof(text), "no samples");
	grid_fit(g, 2, l->body + (l->nbody > 2), g->w - 2, ROLE_DIM, text);
}

void screen_draw(const struct ui *ui, struct grid *g)
{
	const struct view_spec *view = view_at(ui->view);
	struct layout l = layout_lines(ui->view, g->h);
	int x;

	if (ui->help || ui->setup) {
		(ui->help ? draw_help : draw_setup)(ui, g);
		return;
	}
	if (ui->annotate.open) {
		draw_annotate(ui, g);
		return;
	}
	draw_trust(ui, g, &l);
	x = draw_tabs(ui, g, l.tabs);
	if (l.crumb >= 0)
		draw_crumb(ui, g, &l, 0, l.crumb, ROLE_TEXT);
	else
		draw_crumb(ui, g, &l, x + 1, l.tabs, ROLE_TAB);
	if (l.title >= 0)
		draw_titles(ui, g, &l);
	if (!ui->nrows)
		draw_nothing(ui, g, &l);
	else if (view->draw)
		view->draw(ui, g, l.body, l.nbody);
	else
		draw_table(ui, g, &l);
	if (l.bar >= l.body)
		draw_bottom(ui, g, l.bar);
}
