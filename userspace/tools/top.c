/* SPDX-License-Identifier: BSD-2-Clause */
/* sfbpf top: the live view, on a terminal or as pages of text. */
#include <errno.h>
#include <linux/capability.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exitcode.h"
#include "base/num.h"
#include "base/result_file.h"
#include "cli/tools.h"
#include "tools/stages.h"
#include "tools/top.h"
#include "tui/batch.h"
#include "tui/cgroup_name.h"
#include "tui/screen.h"
#include "tui/term.h"
#include "worker/privs.h"

#define POLL_MS	   50		  /* time between two polls of the ring without input */
#define FIRST_NS   (200 * NUM_MS) /* time until the first screen */
#define SLICE_NS   NUM_S
#define BATCH_ROWS 40

enum { OPT_JSON = 512, OPT_COLOR, OPT_ROWS, OPT_KEYS, OPT_OFFCPU };

static const struct option_spec options[] = {
	{ 'b', "batch", NULL, "print pages of text instead of drawing on the terminal" },
	{ 'n', "pages", "N", "exit after N refreshes" },
	{ 'd', "delay", "SECONDS", "time between refreshes (default 1)" },
	{ OPT_JSON, "json", NULL, "print each page as one JSON object on a line; implies -b" },
	{ OPT_ROWS, "rows", "N", "rows of each table in batch mode (default 40; 0: all)" },
	{ OPT_OFFCPU, "offcpu", NULL,
	  "measure blocked time from the start (default: only while view 7 or 8 is shown)" },
	{ OPT_BY, "by", "NAME", "process (default) or thread: whose names rows and trees have" },
	{ OPT_KEYS, "keys", NULL, "print the keys and exit" },
	{ OPT_COLOR, "color", "WHEN", "auto (default), always or never; NO_COLOR is honoured" },
	{ 0 },
};

static int top_run(int argc, char **argv);

const struct tool_spec top_tool = {
	.name = "top",
	.usage = "top [options]",
	.brief = "show live which functions and processes use the CPUs",
	.summary =
		"Shows live which functions and processes use the CPUs, from full stacks of all or "
		"selected processes. Press h or F1 for the keys. Without a terminal it prints "
		"pages of text.",
	.options = options,
	.common = true,
	.examples = "  sudo sfbpf top                           everything, live\n"
		    "  sudo sfbpf top -p 1234 -F 499            one process, at 499 Hz\n"
		    "  sudo sfbpf top -b -n 1 -d 10             one page that covers ten seconds\n",
	.run = top_run,
};

/* ---- Options ---- */

static void print_keys(void)
{
	const struct binding *b;
	char keys[64];

	for (size_t i = 0; (b = keys_at(i)); i++)
		if (b->help)
			printf("%-15s %s\n", keys_text(b, keys, sizeof(keys)), b->help);
}

static int take(void *ctx, int id, const char *arg)
{
	struct top *t = ctx;

	switch (id) {
	case 'b':
		t->batch = true;
		return 0;
	case 'n':
		return num_u64(arg, 1, UINT32_MAX, &t->pages)
			       ? complain(EXIT_USAGE, "-n: '%s' is not a number above 0", arg)
			       : 0;
	case 'd':
		t->has_delay = true;
		if (num_duration(arg, NUM_S, &t->ui.delay_ns) || t->ui.delay_ns < UI_DELAY_MIN ||
		    t->ui.delay_ns > UI_DELAY_MAX)
			return complain(EXIT_USAGE,
					"-d: '%s' is not a time from 0.1 to 3600 seconds", arg);
		return 0;
	case OPT_JSON:
		t->json = t->batch = true;
		return 0;
	case OPT_ROWS:
		return num_u64(arg, 0, UINT32_MAX, &t->rows)
			       ? complain(EXIT_USAGE, "--rows: '%s' is not a number", arg)
			       : 0;
	case OPT_OFFCPU:
		t->off.always = true;
		return 0;
	case OPT_BY:
		t->has_by = true;
		t->ui.sel.by_thread = !strcmp(arg, "thread");
		return t->ui.sel.by_thread || !strcmp(arg, "process")
			       ? 0
			       : complain(EXIT_USAGE, "--by: '%s' is not process or thread", arg);
	case OPT_COLOR:
		t->always_color = !strcmp(arg, "always");
		t->never_color = !strcmp(arg, "never");
		if (!t->always_color && !t->never_color && strcmp(arg, "auto"))
			return complain(EXIT_USAGE, "--color: '%s' is not auto, always or never",
					arg);
		return 0;
	case OPT_KEYS:
		print_keys();
		return OPTIONS_DONE;
	default:
		return common_opts_take(&t->common, id, arg);
	}
}

static int parse(struct top *t, int argc, char **argv)
{
	int err = options_parse(&top_tool, argc, argv, take, t);

	if (err)
		return err;
	if (optind < argc)
		return complain(EXIT_USAGE, "unexpected '%s'", argv[optind]);
	if (t->common.format && !strcmp(t->common.format, "json"))
		t->json = true;
	else if (t->common.format && strcmp(t->common.format, "text"))
		return complain(EXIT_USAGE, "--format: top writes text or json, not '%s'",
				t->common.format);
	t->batch |= t->common.format || t->common.output;
	err = common_opts_check(&t->common);
	return err ? err : common_opts_one_count(&t->common);
}

/* The live view needs a terminal for input and output that can address the cursor. */
static bool can_draw(void)
{
	const char *name = getenv("TERM");

	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && name && *name &&
	       strcmp(name, "dumb");
}

static bool want_color(const struct top *t)
{
	const char *no = getenv("NO_COLOR");

	return t->always_color || (!t->never_color && !(no && *no));
}

static void describe(struct top *t)
{
	const struct collector_opts *o = &t->common.collect;
	bool filtered = common_opts_filter(&t->common);
	char rate[48];

	if (o->hz)
		snprintf(rate, sizeof(rate), "%llu Hz", (unsigned long long)o->hz);
	else if (o->period > 1)
		snprintf(rate, sizeof(rate), "every %llu", (unsigned long long)o->period);
	else
		snprintf(rate, sizeof(rate), "each hit");
	snprintf(t->what, sizeof(t->what), "%s %s, %s", o->events->text, rate,
		 filtered ? "filtered" : "all processes");
	t->ui.gauges.what = t->what;
	if (!filtered && events_are_clock(o->events))
		t->ui.gauges.full_rate = (double)o->hz * (double)sysconf(_SC_NPROCESSORS_ONLN);
	t->ui.gauges.ncpus = (unsigned int)sysconf(_SC_NPROCESSORS_CONF);
	if (events_are_clock(o->events))
		t->ui.gauges.period_ns = o->hz ? NUM_S / o->hz : o->period;
	t->ui.gauges.table_limit = o->table_bytes;
	t->ui.sel.user_only = !o->kernel;
	t->ui.sel.kernel_only = !o->user;
}

/* ---- Samples ---- */

static uint64_t rss_kb(void)
{
	unsigned long long size, resident = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f && fscanf(f, "%llu %llu", &size, &resident) != 2)
		resident = 0;
	if (f)
		fclose(f);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

static void read_counters(struct top *t, struct live_counters *ret)
{
	struct collector_counters c;
	struct rusage ru;

	collector_counters(t->session.collector, &c);
	t->ui.gauges.parsers = session_parsers(&t->session, &c);
	*ret = (struct live_counters){ .taken = c.taken,
				       .bpf_ns = c.run_ns + top_offcpu_bpf_ns(t) };
	memcpy(ret->lost, c.lost, sizeof(ret->lost));
	ret->lost[SF_LOST_BAD_RECORD] += t->session.dropped;
	if (!getrusage(RUSAGE_SELF, &ru))
		ret->cpu_ns = (uint64_t)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * NUM_S +
			      (uint64_t)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) * NUM_US +
			      t->ui.gauges.parsers.cpu_ns;
	t->ui.gauges.table_files = c.loader.loaded;
	t->ui.gauges.table_bytes = c.tables.bytes;
	t->ui.gauges.table_evicted = c.tables.evicted;
	t->ui.gauges.table_refused = c.needs_refused;
}

/* Blocks and samples come through one ring. */
static void on_record(void *ctx, const struct sf_sample *rec)
{
	struct profile_times once = { .count = 1, .weight = rec->weight, .cpu1 = rec->cpu + 1 };
	struct top *t = ctx;

	if (rec->type == SF_REC_BLOCK)
		top_offcpu_record(t, rec);
	else
		session_add(&t->session, rec, &once);
}

/* Moves the samples since the last call into the windows. late: as for live_take. */
static void take_samples(struct top *t, bool late)
{
	struct live_counters now;

	read_counters(t, &now);
	t->session.profile = live_take(t->live, t->session.profile, t->session.symbols, &now,
				       session_now(), late);
	top_offcpu_take(t, late);
}

static void mark_live(void *ctx, const struct modules *ms)
{
	const struct top *t = ctx;

	live_mark(t->live, ms);
	top_offcpu_mark(t, ms);
}

/* ui_refresh replaces the old rows, so session_sweep may free the modules they point to. */
static int show_window(struct top *t)
{
	struct profile *window;
	struct live_sum sum;

	session_sweep(&t->session, mark_live, t);
	if (top_offcpu_window(t))
		return -ENOMEM;
	window = live_window(t->live, t->ui.span, &sum);
	t->ui.gauges.rss_kb = rss_kb();
	return window ? ui_refresh(&t->ui, window, &sum) : -ENOMEM;
}

static void reset(struct top *t)
{
	live_reset(t->live);
	top_offcpu_reset(t);
}

/* ---- Batch ---- */

static int write_page(struct top *t)
{
	struct batch_page page = { .number = ++t->refreshed, .rows = t->rows };
	int err;

	page.unix_ns = clock_ns(CLOCK_REALTIME);
	take_samples(t, true);
	err = show_window(t);
	if (!err)
		err = t->json ? batch_json(&t->ui, &page, t->out)
			      : batch_text(&t->ui, &page, t->out);
	reset(t);
	return err;
}

static void begin_batch(struct top *t)
{
	t->batch = true;
	t->ui.span = LIVE_ALL;
	t->ui.all_tables = true;
	t->ui.sel.no_idle = false;
	t->refresh_ns = session_now() + t->ui.delay_ns;
}

/* The last page is due at once when a signal ends the run. */
static int wait_for_page(struct top *t)
{
	uint64_t now = session_now(), left = t->refresh_ns > now ? t->refresh_ns - now : 0;

	t->page_due = !left || session_stopped();
	return t->page_due ? 0 : left > 100 * NUM_MS ? 100 : (int)((left + NUM_MS - 1) / NUM_MS);
}

static int tick_batch(struct top *t)
{
	int err;

	if (!t->page_due)
		return 0;
	if (t->refreshed + 1 == t->pages)
		allowance_end(&t->session.allowance);
	err = write_page(t);
	t->refresh_ns += t->ui.delay_ns;
	t->done = session_stopped();
	return err ? complain(EXIT_FAILED, "writing %s: %s",
			      t->common.output ? t->common.output : "the output", strerror(-err))
		   : 0;
}

/* ---- Live ---- */

static void draw(struct top *t, bool repaint)
{
	int w, h;

	term_size(&w, &h);
	if (w != t->ui.w || h != t->ui.h)
		ui_resize(&t->ui, w, h);
	if (grid_reset(&t->grid, w, h))
		return;
	screen_draw(&t->ui, &t->grid);
	term_draw(&t->grid, repaint);
}

static void send_signal(struct ui *ui)
{
	const struct ui_signal *s = &ui->signal;
	char text[160];

	/* A pid of 0 or below would name a group. */
	if (!s->pid || s->pid > INT32_MAX || kill((pid_t)s->pid, s->number))
		snprintf(text, sizeof(text), "signal %d was not sent to %s: %s", s->number, s->to,
			 s->pid && s->pid <= INT32_MAX ? strerror(errno) : "not a process");
	else
		snprintf(text, sizeof(text), "signal %d was sent to %s", s->number, s->to);
	ui_say(ui, strstr(text, " not sent ") != NULL, text);
}

/* Carries out the UI_* flags of an event. Returns whether to draw. */
static bool obey(struct top *t, unsigned int flags)
{
	uint64_t now = session_now();

	if (flags & UI_RESET) {
		take_samples(t, true);
		reset(t);
		t->refresh_ns = now + t->ui.delay_ns;
	}
	if (flags & UI_RESUMED) {
		take_samples(t, true);
		t->slice_ns = now + SLICE_NS;
		t->refresh_ns = now + t->ui.delay_ns;
	}
	if (flags & (UI_RESET | UI_WINDOW))
		show_window(t);
	if (flags & UI_WRITE)
		top_snapshot(t);
	if (flags & UI_SIGNAL)
		send_signal(&t->ui);
	if (flags & UI_COLOR)
		term_color(!t->ui.no_color);
	if (flags & UI_SAVE)
		top_config_save(t);
	return flags & UI_DRAW;
}

/* Returns whether to draw. */
static bool refresh(struct top *t)
{
	uint64_t now = session_now(), delay = t->ui.delay_ns, cpu, cost;
	bool draw_now = false;

	if (t->ui.paused)
		return false;
	if (now >= t->slice_ns) {
		/* Late by several slices: the process or the machine was stopped. */
		take_samples(t, now - t->slice_ns > 3 * SLICE_NS);
		t->slice_ns = now - t->slice_ns > SLICE_NS
				      ? now + SLICE_NS
				      : t->slice_ns + (delay < SLICE_NS ? delay : SLICE_NS);
	}
	if (now >= t->refresh_ns) {
		cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		if (show_window(t))
			ui_say(&t->ui, true, "out of memory: this view is incomplete");
		t->refresh_ns = now - t->refresh_ns > delay ? now + delay : t->refresh_ns + delay;
		/* Refresh large windows less often, to use at most 1 % of a CPU. */
		cost = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
		if (t->refresh_ns < now + 100 * cost)
			t->refresh_ns = now + 100 * cost;
		t->refreshed++;
		draw_now = true;
	}
	return draw_now;
}

/* Draws, then waits until a slice, a refresh or a poll is due, or a key is pressed. */
static int wait_for_key(struct top *t)
{
	uint64_t now, due, left;

	if (term_stopped() || session_stopped()) /* it may have come before term_open */
		return -1;
	if (t->changed)
		draw(t, t->repaint);
	t->changed = top_offcpu_keep(t);
	t->repaint = false;
	now = session_now();
	due = t->slice_ns < t->refresh_ns ? t->slice_ns : t->refresh_ns;
	left = due > now ? (due - now + NUM_MS - 1) / NUM_MS : 0;
	/* A request for the tables of a file cannot wait: its process may live for milliseconds. */
	term_wait(collector_fd(t->session.collector),
		  t->ui.paused || left > POLL_MS ? POLL_MS : (int)left);
	return 0;
}

static void tick_live(struct top *t)
{
	struct ui_event ev;

	while (term_read(&ev)) {
		uint64_t delay = t->ui.delay_ns;
		unsigned int flags = ui_event(&t->ui, &ev);

		if (flags & UI_QUIT) {
			t->done = true;
			return;
		}
		t->repaint |= (flags & UI_REPAINT) != 0;
		t->changed |= obey(t, flags);
		if (delay != t->ui.delay_ns)
			t->refresh_ns = session_now() + t->ui.delay_ns;
	}
	t->changed |= term_changed();
	t->changed |= refresh(t);
}

static bool begin_live(struct top *t)
{
	t->ui.no_color = !want_color(t);
	top_config_read(t);
	if (term_open(!t->ui.no_color)) {
		complain(0,
			 "the live view does not work on this terminal (TERM=%s): "
			 "printing pages of text",
			 getenv("TERM"));
		return false;
	}
	t->session.allowance.stopped = term_stopped;
	t->grid.unicode = term_unicode();
	t->changed = true;
	return true;
}

/* ---- The stages ---- */

static int prepare(void *ctx)
{
	struct top *t = ctx;
	int err = options_open_output(t->common.output, &t->out);

	describe(t);
	if (err || t->out == stdout)
		return err;
	err = result_file_begin(t->out);
	return err ? complain(EXIT_FAILED, "cannot write '%s': %s", t->common.output,
			      strerror(-err))
		   : 0;
}

static int opened(void *ctx)
{
	struct top *t = ctx;

	t->live = live_new();
	if (!t->live)
		return complain(EXIT_FAILED, "out of memory");
	t->session.take = on_record;
	t->session.take_ctx = t;
	t->ui.cgroups = cgroup_names_new();
	t->ui.symbols = t->session.symbols;
	t->ui.modules = t->session.modules;
	t->batch |= !can_draw();
	if (!t->batch) /* the key F9 needs it */
		t->session.more_caps |= PRIVS_CAP(CAP_KILL);
	session_warn_host();
	return 0;
}

static int begin(void *ctx)
{
	struct top *t = ctx;
	struct live_counters now;
	int err = t->off.always ? top_offcpu_start(t) : 0;

	if (err)
		return err;
	/* Discard samples of the profiler's start. */
	session_poll(&t->session, 0);
	profile_reset(t->session.profile);
	read_counters(t, &now);
	t->ui.gauges.rss_kb = rss_kb();
	live_start(t->live, &now, session_now());
	t->slice_ns = t->refresh_ns = session_now() + FIRST_NS;
	if (t->batch || !begin_live(t))
		begin_batch(t);
	return 0;
}

static int wait(void *ctx)
{
	struct top *t = ctx;

	if (t->done || (t->pages && t->refreshed >= t->pages))
		return -1;
	return t->batch ? wait_for_page(t) : wait_for_key(t);
}

static int tick(void *ctx)
{
	struct top *t = ctx;

	if (t->batch)
		return tick_batch(t);
	tick_live(t);
	return 0;
}

static int end(void *ctx, int err)
{
	if (!((struct top *)ctx)->batch)
		term_close();
	return err;
}

static int top_run(int argc, char **argv)
{
	static const struct stages stages = { .prepare = prepare,
					      .opened = opened,
					      .begin = begin,
					      .wait = wait,
					      .tick = tick,
					      .end = end };
	struct top t = { .rows = BATCH_ROWS };
	int rc;

	setlocale(LC_CTYPE, "");
	ui_init(&t.ui, NULL, NULL);
	common_opts_init(&t.common, 99);
	t.common.collect.want_cost = true;
	rc = parse(&t, argc, argv);
	if (!rc)
		rc = stages_run(&stages, &t, &t.session, &t.common.collect);
	cgroup_names_free(t.ui.cgroups);
	ui_free(&t.ui);
	top_offcpu_free(&t);
	live_free(t.live);
	grid_free(&t.grid);
	session_close(&t.session);
	if (t.out && t.out != stdout && fclose(t.out) && !rc)
		rc = complain(EXIT_FAILED, "writing %s: %s", t.common.output, strerror(errno));
	common_opts_free(&t.common);
	return rc;
}
