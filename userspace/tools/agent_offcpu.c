/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/agent_offcpu.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "agent/log.h"

#define MAX_STACKS	  8192 /* stacks in the kernel's maps at a time */
#define MAX_WINDOW_STACKS 16384
#define LOW		  4 /* blocks are sampled more finely below a quarter of the limit */
#define TOO_MUCH	  2 /* windows above the limit until measuring is suspended */
#define SUSPEND_NS	  (600 * NUM_S)

static void read_totals(struct agent_offcpu *o)
{
	struct collector_counters c;
	struct offcpu_totals t;

	collector_offcpu_counters(o->session->collector, &c);
	offcpu_totals(collector_offcpu(o->session->collector), &t);
	o->values.now.bpf_ns = c.run_ns;
	o->values.now.taken = c.taken;
	o->values.now.sampled_ns = t.sampled_ns + o->blocks.sampled_ns;
	o->values.now.lost_ns = t.lost_ns;
	o->values.now.lost = 0;
	for (int i = 0; i < SF_LOST_MAX; i++)
		o->values.now.lost += c.lost[i];
}

int agent_offcpu_start(struct agent_offcpu *o, struct session *s, const struct agent_config *cfg,
		       struct collector_error *err)
{
	struct offcpu_opts opts = {
		.min_ns = cfg->off_min_ns,
		.max_ns = UINT64_MAX,
		.period_ns = NUM_MS,
		.max_stacks = MAX_STACKS,
		.want_cost = true,
		.states = ~(1u << SF_OFF_R | 1u << SF_OFF_I) & ((1u << SF_OFF_STATES) - 1),
		/* Kernel threads sleep most of the time, and large machines have thousands. */
		.user_threads = true,
	};
	int rc = blocks_open(&o->blocks, s, false);

	*err = (struct collector_error){ .trouble = COLLECTOR_FAILED, .text = "out of memory" };
	o->blocks.no_info = true;
	o->blocks.max_stacks = MAX_WINDOW_STACKS;
	o->blocks.profile = rc ? NULL : profile_new();
	rc = o->blocks.profile ? collector_offcpu_start(s->collector, &opts, err) : -1;
	if (rc) {
		profile_free(o->blocks.profile);
		blocks_close(&o->blocks);
		return rc;
	}
	o->session = s;
	o->min_ns = cfg->off_min_ns;
	o->thin_ns = o->bpf_ns = 0;
	o->too_much = 0;
	o->resume_at = 0;
	o->on = o->values.on = true;
	return 0;
}

void agent_offcpu_stop(struct agent_offcpu *o)
{
	struct metrics_off_cpu *v = &o->values;

	if (!o->on)
		return;
	read_totals(o);
	v->before.bpf_ns += v->now.bpf_ns;
	v->before.taken += v->now.taken;
	v->before.sampled_ns += v->now.sampled_ns;
	v->before.lost_ns += v->now.lost_ns;
	v->before.lost += v->now.lost;
	memset(&v->now, 0, sizeof(v->now));
	v->thin_ns = 0;
	o->on = v->on = false;
	collector_offcpu_stop(o->session->collector);
	profile_free(o->blocks.profile);
	blocks_close(&o->blocks);
}

void agent_offcpu_take(struct agent_offcpu *o, const struct sf_sample *rec)
{
	if (o->on)
		blocks_take(&o->blocks, rec);
}

void agent_offcpu_tick(struct agent_offcpu *o)
{
	if (o->on && blocks_tick(&o->blocks))
		o->no_memory = true;
}

void agent_offcpu_into(struct agent_offcpu *o, struct window *w)
{
	struct profile *fresh;

	if (!o->on)
		return;
	collector_offcpu_cut(o->session->collector);
	session_poll(o->session, 0); /* takes the stacks sent by the cut */
	if (blocks_merge(&o->blocks) || window_add_blocks(w, o->blocks.profile))
		o->no_memory = true;
	o->values.blocks += w->blocks;
	o->values.blocked_ns += w->blocked_ns;
	fresh = profile_new(); /* a reset would keep the memory of the largest window */
	if (!fresh) {
		o->no_memory = true;
		profile_reset(o->blocks.profile);
	} else {
		profile_free(o->blocks.profile);
		o->blocks.profile = fresh;
	}
	memcpy(o->state_ns, o->blocks.ns, sizeof(o->state_ns));
	memset(o->blocks.ns, 0, sizeof(o->blocks.ns));
	o->blocks.period_ns = NUM_MS;
	o->blocks.doubled = 0;
	read_totals(o);
}

static void suspend(struct agent_offcpu *o, double percent, double limit)
{
	agent_log(AGENT_LOG_WARN, "blocked time costs too much: measuring is suspended", "percent",
		  "%g", percent, "limit_percent", "%g", limit, "minutes", "%lu",
		  (uint64_t)(SUSPEND_NS / NUM_S / 60), NULL);
	agent_offcpu_stop(o);
	o->values.suspended++;
	o->resume_at = session_now() + SUSPEND_NS;
}

static void resume(struct agent_offcpu *o, const struct agent_config *cfg)
{
	struct collector_error err;

	if (!o->resume_at || session_now() < o->resume_at)
		return;
	if (!agent_offcpu_start(o, o->session, cfg, &err)) {
		agent_log(AGENT_LOG_INFO, "blocked time is measured again", NULL);
		return;
	}
	agent_log(AGENT_LOG_ERROR, "blocked time cannot be measured", "error", "%s", err.text,
		  NULL);
	o->resume_at = session_now() + SUSPEND_NS;
}

static void thin(struct agent_offcpu *o, uint64_t ns, double percent, double limit)
{
	if (ns == o->thin_ns)
		return;
	agent_log(AGENT_LOG_INFO,
		  ns > o->thin_ns ? "blocked time costs too much: sampled more coarsely"
				  : "blocked time: sampled more finely",
		  "percent", "%g", percent, "limit_percent", "%g", limit, "ms", "%g",
		  (double)ns / 1e6, NULL);
	o->thin_ns = o->values.thin_ns = ns;
	offcpu_thin(collector_offcpu(o->session->collector), ns);
}

void agent_offcpu_limit(struct agent_offcpu *o, const struct agent_config *cfg, uint64_t wall_ns,
			bool over)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t spent = o->values.now.bpf_ns - o->bpf_ns;
	double percent = wall_ns ? 100.0 * (double)spent / (double)wall_ns /
					   (double)(cpus > 0 ? cpus : 1)
				 : 0;

	if (o->no_memory)
		agent_log(AGENT_LOG_ERROR, "out of memory: blocked time is missing", NULL);
	o->no_memory = false;
	if (!o->on) {
		resume(o, cfg);
		return;
	}
	o->bpf_ns = o->values.now.bpf_ns;
	o->too_much = percent > cfg->off_pct && o->thin_ns == OFFCPU_THIN_MAX ? o->too_much + 1 : 0;
	if (o->too_much >= TOO_MUCH)
		suspend(o, percent, cfg->off_pct);
	else if (percent > cfg->off_pct || over)
		thin(o, offcpu_thinner(o->thin_ns), percent, cfg->off_pct);
	else if (percent < cfg->off_pct / LOW)
		thin(o, offcpu_denser(o->thin_ns), percent, cfg->off_pct);
}

void agent_offcpu_mark(const struct agent_offcpu *o, const struct modules *ms)
{
	if (!o->on)
		return;
	offcpu_mark(collector_offcpu(o->session->collector), ms);
	profile_mark(o->blocks.profile, ms);
}

void agent_offcpu_follow(struct agent_offcpu *o, struct session *s, const struct agent_config *cfg)
{
	struct collector_error err;

	o->resume_at = 0;
	if (o->on && (!cfg->off_cpu || cfg->off_min_ns != o->min_ns))
		agent_offcpu_stop(o);
	if (!o->on && cfg->off_cpu && agent_offcpu_start(o, s, cfg, &err))
		agent_log(AGENT_LOG_ERROR, "blocked time cannot be measured", "error", "%s",
			  err.text, NULL);
}
