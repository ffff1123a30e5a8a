/* SPDX-License-Identifier: BSD-2-Clause */
/* What triggers samples: perf events on each CPU, and places of tracepoints and probes. */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kern/collector_internal.h"

bool collector_samples(const struct collector *c)
{
	return !c->opts.offcpu || c->opts.wall;
}

bool collector_takes(const struct collector *c, enum event_from from)
{
	return collector_samples(c) && events_have(c->opts.events, from);
}

bool collector_hit_programs(const struct collector *c)
{
	return collector_takes(c, EVENT_TRACEPOINT) || collector_takes(c, EVENT_PROBE);
}

static uint32_t count_places(const struct events *e)
{
	uint32_t places = 0;

	for (size_t i = 0; e && i < e->n; i++)
		places += (uint32_t)e->v[i].nplaces;
	return places;
}

void collector_choose_programs(const struct collector *c, struct sfbpf_bpf *skel)
{
	uint32_t places = count_places(c->opts.events) + count_places(c->opts.calls);

	bpf_map__set_max_entries(skel->maps.event_sites, places ? places : 1);
	bpf_program__set_autoload(skel->progs.on_cpu_jump, collector_takes(c, EVENT_PERF));
	bpf_program__set_autoload(skel->progs.on_tracepoint_jump,
				  collector_takes(c, EVENT_TRACEPOINT));
	bpf_program__set_autoload(skel->progs.on_probe_jump, collector_takes(c, EVENT_PROBE));
	bpf_program__set_autoload(skel->progs.on_call, c->opts.calls != NULL);
	bpf_program__set_autoload(skel->progs.on_running, c->opts.latency);
	bpf_map__set_max_entries(skel->maps.running, (uint32_t)c->ncpus);
}

static int explain(const char *event, int rc, struct collector_error *err)
{
	if (rc == -EACCES || rc == -EPERM)
		return collector_forbid(err, "perf_event_open");
	if (rc == -ENOENT || rc == -EOPNOTSUPP)
		return collector_fail(
			err, COLLECTOR_UNSUPPORTED,
			"this machine has no event '%s' (virtual machines often have no hardware "
			"counters; cpu-clock always works)",
			event);
	if (rc == -ENODEV)
		return collector_fail(err, COLLECTOR_FAILED, "none of the chosen CPUs is online");
	return collector_fail(
		err, COLLECTOR_FAILED, "cannot open event '%s': %s%s", event, strerror(-rc),
		rc == -EINVAL ? " (is the frequency above kernel.perf_event_max_sample_rate?)"
			      : "");
}

static int open_perf(struct collector *c, size_t number, struct collector_error *err)
{
	const struct collector_opts *o = &c->opts;
	struct cpu_events *e = &c->perf[c->nperf++];
	int rc;

	*e = (struct cpu_events){ .kind = &o->events->v[number].perf,
				  .hz = o->hz,
				  .period = o->period,
				  .cookie = number,
				  .cpus = o->cpus,
				  .ncpus = c->ncpus };
	rc = cpu_events_open(e);
	return rc ? explain(e->kind->name, rc, err) : 0;
}

/* Return probes change the words that they are about, and on AArch64 a register has them. */
bool collector_keeps_words(const struct events *calls)
{
#ifdef __x86_64__
	for (size_t i = 0; i < calls->n; i++)
		for (size_t k = 0; k < calls->v[i].nplaces; k++)
			if (calls->v[i].places[k].at_return)
				return false;
	return true;
#else
	(void)calls;
	return false;
#endif
}

/* Adds the places to the map, from number `first` on. 0 or -errno. */
static int fill_sites(const struct collector *c, const struct event_links *l, size_t first)
{
	int sites = bpf_map__fd(c->skel->maps.event_sites), err = 0;

	for (uint32_t i = 0; i < l->n && !err; i++) {
		uint32_t number = (uint32_t)first + i;

		err = bpf_map_update_elem(sites, &number, &l->v[i].place->site, BPF_ANY);
	}
	return err;
}

/* Tells the programs about the places and filters. */
static int fill_maps(const struct collector *c)
{
	int filters = bpf_map__fd(c->skel->maps.event_filters);
	const struct events *e = c->opts.events;
	int err = fill_sites(c, &c->links, 0);

	if (!err)
		err = fill_sites(c, &c->call_links, c->links.n);
	for (uint32_t i = 0; i < e->n && !err; i++)
		if (e->v[i].filter)
			err = bpf_map_update_elem(filters, &i, &e->v[i].tests, BPF_ANY);
	return err;
}

int collector_open_events(struct collector *c, struct collector_error *err)
{
	const struct events *e = c->opts.events;
	const struct event *failed = NULL;
	uint32_t only = c->opts.npids == 1 && !c->opts.follow_forks ? c->opts.pids[0] : 0;
	int rc;

	if (!collector_samples(c))
		return 0;
	for (size_t i = 0; i < e->n; i++)
		if (e->v[i].from == EVENT_PERF && open_perf(c, i, err))
			return -1;
	rc = event_links_open(&c->links, e, only, &failed);
	if (!rc && c->opts.calls)
		rc = event_links_open(&c->call_links, c->opts.calls, only, &failed);
	if (rc)
		return explain(failed ? failed->name : e->text, rc, err);
	rc = fill_maps(c);
	return rc ? collector_fail(err, COLLECTOR_FAILED, "cannot fill the BPF maps: %s",
				   strerror(-rc))
		  : 0;
}

int collector_attach_events(struct collector *c, struct collector_error *err)
{
	const struct bpf_program *const programs[EVENT_FROMS] = {
		[EVENT_TRACEPOINT] = c->skel->progs.on_tracepoint_jump,
		[EVENT_PROBE] = c->skel->progs.on_probe_jump,
	};
	const struct bpf_program *const calls[EVENT_FROMS] = {
		[EVENT_PROBE] = c->skel->progs.on_call,
	};
	int rc = 0;

	for (size_t i = 0; i < c->nperf && !rc; i++)
		rc = cpu_events_attach(&c->perf[i], c->skel->progs.on_cpu_jump);
	if (!rc)
		rc = event_links_attach(&c->links, programs, 0);
	if (!rc)
		rc = event_links_attach(&c->call_links, calls, c->links.n);
	return rc ? explain(c->opts.events->text, rc, err) : 0;
}

uint64_t collector_missed_hits(const struct collector *c)
{
	const struct bpf_program *const programs[] = { c->skel->progs.on_tracepoint_jump,
						       c->skel->progs.on_probe_jump,
						       c->skel->progs.on_call };
	uint64_t missed = 0;

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		struct bpf_prog_info info = { 0 };
		uint32_t len = sizeof(info);
		int fd = bpf_program__fd(programs[i]);

		if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &len))
			missed += info.recursion_misses;
	}
	return missed;
}

int collector_set_hz(struct collector *c, uint64_t hz)
{
	int err = 0;

	for (size_t i = 0; i < c->nperf && !err; i++)
		err = cpu_events_set_hz(&c->perf[i], hz);
	return err;
}

int collector_pause(struct collector *c, bool pause)
{
	int err = 0;

	c->skel->bss->events_paused = pause;
	for (size_t i = 0; i < c->nperf && !err; i++)
		err = cpu_events_pause(&c->perf[i], pause);
	return err;
}

/* Hits count on all CPUs, without anything to be opened. */
int collector_follow_cpus(struct collector *c)
{
	int n = c->nperf ? 0 : c->ncpus;

	kernel_names_follow(c->names, c->ncpus);
	for (size_t i = 0; i < c->nperf; i++)
		n = cpu_events_follow(&c->perf[i], c->skel->progs.on_cpu_jump);
	return n;
}

void collector_close_events(struct collector *c)
{
	for (size_t i = 0; i < c->nperf; i++)
		cpu_events_close(&c->perf[i]);
	event_links_close(&c->links);
	event_links_close(&c->call_links);
}

void collector_calls_over(struct collector *c, uint64_t ns)
{
	c->skel->bss->calls_over = ns;
}

int collector_calls(const struct collector *c, struct sf_call_stats *ret)
{
	struct sf_call_stats *all = calloc((size_t)c->ncpus, sizeof(*all));
	uint32_t zero = 0;
	int err = all ? bpf_map_lookup_elem(bpf_map__fd(c->skel->maps.call_stats), &zero, all)
		      : -ENOMEM;

	*ret = (struct sf_call_stats){ 0 };
	for (int cpu = 0; cpu < c->ncpus && !err; cpu++) {
		const struct sf_call_stats *st = &all[cpu];

		ret->begun += st->begun;
		ret->ended += st->ended;
		ret->abandoned += st->abandoned;
		ret->alone += st->alone;
		ret->lost += st->lost;
		ret->no_room += st->no_room;
		ret->ns += st->ns;
		if (st->max_ns > ret->max_ns)
			ret->max_ns = st->max_ns;
		for (size_t i = 0; i < SF_CALL_HIST; i++)
			ret->hist[i] += st->hist[i];
	}
	free(all);
	return err;
}
