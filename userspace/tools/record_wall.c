/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/record_wall.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exitcode.h"
#include "base/idmap.h"
#include "base/num.h"
#include "base/vec.h"
#include "out/critical.h"
#include "prof/wait_notes.h"

#define MAX_STACKS 32768 /* the default of offcpu */

static uint64_t period_ns(const struct collector_opts *o)
{
	return o->hz ? NUM_S / o->hz : o->period;
}

/* A sample stands for the time since the last one. */
static void take(void *ctx, const struct sf_sample *rec)
{
	struct oneshot *r = ctx;
	struct profile_times t = { .count = 1,
				   .weight = period_ns(&r->common.collect),
				   .state = PROFILE_RUNNING };

	if (rec->type == SF_REC_BLOCK)
		blocks_take(&r->blocks, rec);
	else
		session_add(&r->session, rec, &t);
}

/* Checks the options, and says what is measured. */
static int check(struct oneshot *r)
{
	struct collector_opts *o = &r->common.collect;
	bool timeline = r->times_wanted || r->critical;

	if (!events_are_clock(o->events))
		return complain(EXIT_USAGE, "--wall adds times, so it needs -e cpu-clock, not %s",
				o->events->text);
	if (r->critical && (r->exact || r->min_block))
		return complain(EXIT_USAGE,
				"--critical needs all waits, and measures running time: "
				"it excludes -m and --exact");
	for (size_t i = 0; i < r->noutputs && r->critical; i++)
		if (!r->outputs[i].format->write_recorded)
			return complain(EXIT_USAGE, "--critical is written as one of%s, not %s",
					out_format_names(OUT_RECORDED), r->outputs[i].format->name);
	if (r->exact && r->timed)
		return complain(EXIT_USAGE, "--exact divides the sums of stacks, which %s has not",
				r->timed->name);
	if (r->min_block && !timeline)
		return complain(EXIT_USAGE,
				"-m is for timelines (firefox, perfetto, recording): %s adds all "
				"waits up",
				r->outputs[0].format->name);
	r->off = (struct offcpu_opts){
		.max_ns = UINT64_MAX,
		.period_ns = NUM_MS,
		.max_stacks = MAX_STACKS,
		.states = ~(1u << SF_OFF_I) & ((1u << SF_OFF_STATES) - 1),
		.want_cost_back = !r->critical,
		.kernel_threads = true,
		.user_threads = true,
		.running = r->exact,
		.wakers = timeline,
		.singles = timeline,
		.single_min_ns = timeline && !r->critical ? r->min_block_ns : 0,
	};
	r->times_wanted = timeline;
	r->by_thread |= r->critical;
	r->times.min_block_ns = r->off.single_min_ns;
	r->times.has_blocks = true;
	o->offcpu = &r->off;
	o->wall = true;
	r->event = "wall-clock";
	r->hz = (double)NUM_S / (double)period_ns(o);
	return 0;
}

static void opened(struct oneshot *r)
{
	r->session.take = take;
	r->session.take_ctx = r;
	r->blocks.no_info = true;
	if (r->by_thread || r->exact)
		profile_by_thread(r->session.profile);
}

/* The running time of threads, as sampled and as measured. */
struct running {
	struct idmap tids;
	struct thread_time {
		uint64_t sampled_ns, measured_ns;
		uint32_t pid;
		char comm[SF_COMM];
	} * v; /* index: id in tids */
	size_t cap;
	int err;
};

static struct thread_time *time_of(struct running *r, uint32_t tid)
{
	size_t before = r->tids.n;
	uint32_t id;

	if (vec_reserve(&r->v, &r->cap, before + 1, sizeof(*r->v)) ||
	    idmap_get(&r->tids, tid, 0, &id)) {
		r->err = -ENOMEM;
		return NULL;
	}
	if (id == before)
		r->v[id] = (struct thread_time){ 0 };
	return &r->v[id];
}

static void take_measured(void *ctx, uint32_t tid, const struct sf_off_thread *thread)
{
	struct thread_time *t = time_of(ctx, tid);

	if (!t)
		return;
	t->measured_ns = thread->ran_ns;
	t->pid = thread->pid;
	memcpy(t->comm, thread->comm, SF_COMM);
}

/* A thread that ran, but not while a sample was taken. */
static int add_unsampled(struct profile *p, uint32_t tid, const struct thread_time *t)
{
	struct sf_sample rec = { .type = SF_REC_SAMPLE, .pid = t->pid, .tid = tid };
	struct profile_times times = { .weight = t->measured_ns, .state = PROFILE_RUNNING };

	memcpy(rec.comm, t->comm, SF_COMM);
	return profile_add_times(p, &rec, &times, NULL);
}

/* --exact: divides the measured running time of each thread among its stacks, as the samples do. */
static int make_exact(struct oneshot *one)
{
	struct profile *p = one->session.profile;
	size_t n = profile_count(p);
	struct running r = { .err = 0 };
	struct profile_stack s;
	struct thread_time *t;

	if (!one->exact)
		return 0;
	for (size_t i = 0; i < n && !r.err; i++) {
		profile_stack(p, i, &s);
		t = s.state == PROFILE_RUNNING ? time_of(&r, s.tid) : NULL;
		if (t)
			t->sampled_ns += s.weight;
	}
	if (!r.err)
		r.err = offcpu_threads(collector_offcpu(one->session.collector), take_measured, &r);
	for (size_t i = 0; i < n && !r.err; i++) {
		profile_stack(p, i, &s);
		t = s.state == PROFILE_RUNNING ? time_of(&r, s.tid) : NULL;
		if (t && t->measured_ns)
			profile_set_weight(p, i,
					   (uint64_t)((double)s.weight * (double)t->measured_ns /
						      (double)t->sampled_ns));
	}
	for (uint32_t id = 0; id < r.tids.n && !r.err; id++)
		if (!r.v[id].sampled_ns && r.v[id].measured_ns)
			r.err = add_unsampled(p, (uint32_t)r.tids.keys[id].a, &r.v[id]);
	idmap_free(&r.tids);
	free(r.v);
	return r.err;
}

/* ---- --critical ---- */

static bool lives(uint32_t tid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u", tid);
	return !access(path, F_OK);
}

/* Makes the critical path, which is written instead of the report. */
static int make_critical(struct oneshot *r, const struct out_report *all)
{
	static struct stackset path;
	uint32_t tid = r->critical_tid ? r->critical_tid : (uint32_t)r->child.pid;
	bool to_end = r->critical_tid && lives(tid);
	struct critical_sums sums;
	int err;

	if (!r->critical)
		return 0;
	err = stackset_init(&path);
	if (!err)
		err = critical_path(all, tid, r->session.start_ns, to_end ? r->session.end_ns : 0,
				    &path, &sums);
	r->path = &path;
	if (err == -ENOENT)
		return complain(EXIT_FAILED, "nothing is known of thread %u: it did not run", tid);
	if (err)
		return complain(EXIT_FAILED, "making the critical path: %s", strerror(-err));
	if (sums.unknown_ns)
		complain(0, "%.1f of %.1f ms of the path are waits whose waker is not known",
			 (double)sums.unknown_ns / 1e6, (double)sums.elapsed_ns / 1e6);
	if (r->times.missing || r->times.dropped)
		complain(0,
			 "%llu waits and %llu samples are missing, as there was no room for them: "
			 "threads seem to run in such waits (use a shorter time)",
			 (unsigned long long)r->times.missing,
			 (unsigned long long)r->times.dropped);
	return 0;
}

static void say(struct oneshot *r, const struct run_stats *st)
{
	if (r->limit.thinnest_ns && st->off_sampled_ns)
		complain(0,
			 "%.1f ms of waits are sampled: measuring all of them would cost more than "
			 "%g %% of the CPUs' time",
			 (double)st->off_sampled_ns / 1e6, 100 * BLOCKS_COST);
	if (!r->critical)
		run_say_timeline(r);
	if (st->off_lost_ns)
		complain(0, "%.1f ms of waits are lost", (double)st->off_lost_ns / 1e6);
}

const struct run_hooks wall_hooks = {
	.things = "samples and blocks",
	.check = check,
	.opened = opened,
	.collected = make_exact,
	.report = make_critical,
	.say = say,
};
