/* SPDX-License-Identifier: BSD-2-Clause */
/* sfbpf top: writes the shown stacks to files. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/result_file.h"
#include "tools/top.h"

static const char *const formats[] = { "folded", "json", "pprof", "html" };

struct snapshot {
	struct top *top;
	bool off;		 /* blocked time instead of samples */
	struct profile *profile; /* the shown stacks */
	const struct live_sum *sum;
	char host[256];
	uint64_t end_unix_ns;
};

/* Never overwrites a file, because the user did not choose the name. 0 or -errno. */
static int write_one(const struct out_report *rep, const struct out_format *format,
		     const char *path)
{
	FILE *f = NULL;
	int err = result_file_create(path, &f);

	if (err)
		return err;
	err = format->write(rep, f);
	return fclose(f) && !err ? -errno : err;
}

static enum view view_of(const struct snapshot *s)
{
	/* The samples that belong to the off-CPU view are those of the zoom, as in the tree. */
	return s->off ? VIEW_OFFCPU : s->top->ui.view == VIEW_OFFCPU ? VIEW_TREE : s->top->ui.view;
}

/* Copies the stacks that the rows of the view include. 0 or -ENOMEM. */
static int select_stacks(struct snapshot *s)
{
	struct ui *ui = &s->top->ui;
	struct profile *from = s->off ? ui->off.window : ui->window;
	int err;

	s->sum = s->off ? &ui->off.sum : &ui->sum;
	s->profile = profile_new();
	err = s->profile ? 0 : -ENOMEM;
	for (size_t i = 0; i < profile_count(from) && !err; i++)
		if (ui_shows_stack(ui, view_of(s), from, i))
			err = profile_merge_one(s->profile, from, i);
	return err;
}

static void fill_stats(const struct snapshot *s, struct run_stats *ret)
{
	const struct live_counters *c = &s->sum->c;
	char any[64];

	session_stats(&s->top->session, s->profile, ret);
	ret->duration_s = s->sum->seconds;
	ret->samples = *ui_describe(&s->top->ui, view_of(s), any, sizeof(any))
			       ? profile_samples(s->profile)
			       : c->taken;
	memcpy(ret->lost, c->lost, sizeof(ret->lost));
	if (!s->off)
		return;
	ret->offcpu = true;
	ret->off_sampled_ns = c->sampled_ns;
	ret->off_lost_ns = c->lost_ns;
	for (size_t i = 0; i < profile_count(s->profile); i++) {
		struct profile_stack stack;

		profile_stack(s->profile, i, &stack);
		if (stack.state < SF_OFF_STATES)
			ret->off_ns[stack.state] += stack.weight;
	}
}

/* Writes base.folded and the other formats. 0, or -errno with the failed file in ret_path. */
static int write_files(struct snapshot *s, const char *base, char *ret_path, size_t cap)
{
	struct top *t = s->top;
	const struct collector_opts *o = &t->common.collect;
	struct run_stats stats;
	struct out_meta meta = {
		.event = s->off ? "off-cpu" : o->events->text,
		.hz = s->off ? 0 : (double)o->hz,
		.host = s->host,
		.start_unix_ns = s->end_unix_ns - (uint64_t)(s->sum->seconds * 1e9),
	};
	struct out_report rep = {
		.profile = s->profile,
		.symbols = t->session.symbols,
		.modules = t->session.modules,
		.meta = &meta,
		.stats = &stats,
		.opts = { .user_only = t->ui.sel.user_only,
			  .kernel_only = t->ui.sel.kernel_only,
			  .usec = s->off },
	};
	int err = 0;

	fill_stats(s, &stats);
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]) && !err; i++) {
		const struct out_format *format = out_format_named(formats[i], OUT_PROFILE);

		if (!format)
			continue;
		snprintf(ret_path, cap, "%s%s%s", base, s->off ? "-offcpu" : "",
			 format->suffixes[0]);
		err = write_one(&rep, format, ret_path);
	}
	return err;
}

/*
 * One pattern for all files, which fits a narrow screen:
 * "wrote sfbpf-20261122-000033{,-offcpu}.{folded,json,pb.gz,html}".
 */
static void say_names(struct top *t, const char *base, const char *infix)
{
	char said[320], what[160];
	size_t n = (size_t)snprintf(said, sizeof(said), "wrote %s%s.{", base, infix), first = n;

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]) && n < sizeof(said); i++) {
		const struct out_format *format = out_format_named(formats[i], OUT_PROFILE);

		if (format)
			n += (size_t)snprintf(said + n, sizeof(said) - n, "%s%s",
					      n > first ? "," : "", format->suffixes[0] + 1);
	}
	ui_describe(&t->ui, t->ui.view, what, sizeof(what));
	if (n < sizeof(said))
		snprintf(said + n, sizeof(said) - n, *what ? "}: %s" : "}", what);
	ui_say(&t->ui, false, said);
}

void top_snapshot(struct top *t)
{
	struct snapshot s = { .top = t, .end_unix_ns = clock_ns(CLOCK_REALTIME) };
	time_t seconds = (time_t)(s.end_unix_ns / NUM_S);
	bool with_off = ui_needs_offcpu(&t->ui) && t->ui.off.window;
	char base[64], path[128] = "the files", said[200];
	struct tm tm;
	bool samples = false;
	int err = 0;

	if (!t->ui.window || !localtime_r(&seconds, &tm))
		return;
	gethostname(s.host, sizeof(s.host) - 1);
	strftime(base, sizeof(base), "sfbpf-%Y%m%d-%H%M%S", &tm);
	for (int i = 0; i <= with_off && !err; i++) {
		s.off = i;
		err = select_stacks(&s);
		/* The off-CPU view may show a program that only sleeps, which has no samples. */
		if (!err && (profile_count(s.profile) || i == with_off)) {
			err = write_files(&s, base, path, sizeof(path));
			samples |= !i;
		}
		profile_free(s.profile);
		s.profile = NULL;
	}
	if (!err) {
		say_names(t, base, !with_off ? "" : samples ? "{,-offcpu}" : "-offcpu");
		return;
	}
	snprintf(said, sizeof(said), "cannot write %s here: %s", path, strerror(-err));
	ui_say(&t->ui, true, said);
}
