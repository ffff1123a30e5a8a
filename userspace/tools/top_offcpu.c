/* SPDX-License-Identifier: BSD-2-Clause */
/* sfbpf top: blocked time, measured while its view is shown. */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/num.h"
#include "tools/top.h"

/* Measuring continues for this time in another view, so that short visits do not end it. */
#define KEEP_NS	   (10 * NUM_S)
#define FIRST_NS   (500 * NUM_MS)
#define RENEW_NS   (30 * NUM_S)
#define MAX_STACKS 16384
/* Share of one CPU that the BPF programs use: above HIGH sampling gets coarser, below LOW finer */
#define COST_HIGH  0.02
#define COST_LOW   0.005

static void read_counters(const struct top *t, struct live_counters *ret)
{
	struct collector_counters c;
	struct offcpu_totals totals;

	collector_offcpu_counters(t->session.collector, &c);
	offcpu_totals(collector_offcpu(t->session.collector), &totals);
	*ret = t->off.before;
	ret->taken += c.taken;
	ret->bpf_ns += c.run_ns;
	ret->sampled_ns += totals.sampled_ns;
	ret->lost_ns += totals.lost_ns;
	for (int i = 0; i < SF_LOST_MAX; i++)
		ret->lost[i] += c.lost[i];
}

/* 0, or -1 with *err filled. */
static int collect(struct top *t, struct collector_error *err)
{
	t->off.opts = (struct offcpu_opts){
		.max_ns = UINT64_MAX,
		.period_ns = NUM_MS,
		.max_stacks = MAX_STACKS,
		.states = ~(1u << SF_OFF_I) & ((1u << SF_OFF_STATES) - 1),
		.kernel_threads = true,
		.user_threads = true,
	};
	if (!t->off.ready)
		t->off.opts.states &= ~(1u << SF_OFF_R);
	t->off.started_ns = session_now();
	t->off.bpf_at_ns = 0;
	return collector_offcpu_start(t->session.collector, &t->off.opts, err);
}

static void stop_collecting(struct top *t)
{
	read_counters(t, &t->off.before);
	collector_offcpu_stop(t->session.collector);
}

static int make(struct top *t)
{
	if (!t->off.live)
		t->off.live = live_new();
	if (!t->off.blocks.profile) {
		if (blocks_open(&t->off.blocks, &t->session, false))
			return -ENOMEM;
		t->off.blocks.no_info = true;
		t->off.blocks.profile = profile_new();
	}
	return t->off.live && t->off.blocks.profile ? 0 : -ENOMEM;
}

static int begin(struct top *t, struct collector_error *err)
{
	struct live_counters now;

	*err = (struct collector_error){ .trouble = COLLECTOR_FAILED, .text = "out of memory" };
	if (make(t) || collect(t, err))
		return -1;
	t->off.on = true;
	t->off.thin_ns = 0;
	profile_reset(t->off.blocks.profile);
	read_counters(t, &now);
	live_reset(t->off.live);
	live_start(t->off.live, &now, session_now());
	t->off.due_ns = 0;
	return 0;
}

int top_offcpu_start(struct top *t)
{
	struct collector_error err;

	return begin(t, &err) ? session_refused(&err) : 0;
}

static void end(struct top *t)
{
	stop_collecting(t);
	t->off.on = false;
	ui_set_offcpu(&t->ui, NULL, NULL);
}

bool top_offcpu_keep(struct top *t)
{
	bool shown = ui_needs_offcpu(&t->ui), wall = t->ui.view == VIEW_WALL;
	uint64_t now = session_now();
	struct collector_error err;

	if (!shown)
		t->off.tried = false;
	if (shown && !t->ui.paused)
		t->off.until_ns = now + KEEP_NS;
	if (t->off.on && wall && !t->off.ready && !t->ui.paused)
		end(t);
	t->off.ready |= wall;
	if (t->off.on && !shown && !t->off.always && now >= t->off.until_ns)
		end(t);
	if (t->off.on || t->off.tried || !shown || t->ui.paused)
		return false;
	t->off.tried = true;
	t->ui.off.error[0] = 0;
	if (begin(t, &err))
		snprintf(t->ui.off.error, sizeof(t->ui.off.error), "%s", err.text);
	else
		t->slice_ns = t->refresh_ns = session_now() + FIRST_NS;
	return true;
}

void top_offcpu_record(struct top *t, const struct sf_sample *rec)
{
	if (t->off.on)
		blocks_take(&t->off.blocks, rec);
}

/* Restarts measuring with empty maps after the kernel's maps were full. */
static void renew(struct top *t)
{
	struct collector_error err;
	struct offcpu_totals totals;

	offcpu_totals(collector_offcpu(t->session.collector), &totals);
	if (totals.stacks < totals.full_at || session_now() - t->off.started_ns < RENEW_NS)
		return;
	stop_collecting(t);
	if (!collect(t, &err))
		return;
	t->off.on = false;
	ui_set_offcpu(&t->ui, NULL, NULL);
	snprintf(t->ui.off.error, sizeof(t->ui.off.error), "%s", err.text);
}

/*
 * Some programs block a hundred thousand times per second. At four microseconds per stack that
 * would take 40 % of a CPU. So short blocks are sampled, to keep the cost below COST_HIGH.
 */
static void limit_cost(struct top *t, const struct live_counters *now_counters, uint64_t now)
{
	uint64_t spent = now_counters->bpf_ns - t->off.bpf_ns, since = now - t->off.bpf_at_ns;
	bool first = !t->off.bpf_at_ns;
	double cost = (double)spent / (double)since;

	if (!first && since < NUM_S / 2)
		return;
	t->off.bpf_ns = now_counters->bpf_ns;
	t->off.bpf_at_ns = now;
	if (first)
		return;
	if (cost > COST_HIGH)
		t->off.thin_ns = offcpu_thinner(t->off.thin_ns);
	else if (cost < COST_LOW)
		t->off.thin_ns = offcpu_denser(t->off.thin_ns);
	offcpu_thin(collector_offcpu(t->session.collector), t->off.thin_ns);
}

void top_offcpu_take(struct top *t, bool late)
{
	uint64_t cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID), now = session_now();
	struct live_counters counters;

	if (!t->off.on)
		return;
	read_counters(t, &counters);
	limit_cost(t, &counters, now);
	if (now < t->off.due_ns && !t->batch && !late)
		return;
	collector_offcpu_cut(t->session.collector);
	session_poll(&t->session, 0); /* takes the stacks sent by the cut */
	if (blocks_merge(&t->off.blocks))
		t->session.dropped++;
	read_counters(t, &counters);
	t->off.blocks.profile = live_take(t->off.live, t->off.blocks.profile, t->session.symbols,
					  &counters, session_now(), late);
	t->off.due_ns = now + 100 * (clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu);
	renew(t);
}

void top_offcpu_mark(const struct top *t, const struct modules *ms)
{
	if (!t->off.on)
		return;
	offcpu_mark(collector_offcpu(t->session.collector), ms);
	live_mark(t->off.live, ms);
	profile_mark(t->off.blocks.profile, ms);
}

int top_offcpu_window(struct top *t)
{
	struct profile *window;
	struct live_sum sum;

	if (!t->off.on)
		return 0;
	window = live_window(t->off.live, t->ui.span, &sum);
	ui_set_offcpu(&t->ui, window, &sum);
	return window ? 0 : -ENOMEM;
}

void top_offcpu_reset(struct top *t)
{
	if (t->off.on)
		live_reset(t->off.live);
}

uint64_t top_offcpu_bpf_ns(const struct top *t)
{
	struct live_counters c;

	if (!t->off.on)
		return t->off.before.bpf_ns;
	read_counters(t, &c);
	return c.bpf_ns;
}

void top_offcpu_free(struct top *t)
{
	live_free(t->off.live);
	profile_free(t->off.blocks.profile);
	blocks_close(&t->off.blocks);
}
