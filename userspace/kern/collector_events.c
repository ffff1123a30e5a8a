/* SPDX-License-Identifier: BSD-2-Clause */
/* What triggers samples: perf events on each CPU, and places of tracepoints and probes. */
#include <bpf/bpf.h>
#include <errno.h>
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

void collector_choose_programs(const struct collector *c, struct sfbpf_bpf *skel)
{
	const struct events *e = c->opts.events;
	uint32_t places = 0;

	for (size_t i = 0; i < e->n; i++)
		places += (uint32_t)e->v[i].nplaces;
	bpf_map__set_max_entries(skel->maps.event_sites, places ? places : 1);
	bpf_program__set_autoload(skel->progs.on_cpu_jump, collector_takes(c, EVENT_PERF));
	bpf_program__set_autoload(skel->progs.on_tracepoint_jump,
				  collector_takes(c, EVENT_TRACEPOINT));
	bpf_program__set_autoload(skel->progs.on_probe_jump, collector_takes(c, EVENT_PROBE));
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

/* Tells the programs about the places and filters. */
static int fill_maps(const struct collector *c)
{
	int sites = bpf_map__fd(c->skel->maps.event_sites),
	    filters = bpf_map__fd(c->skel->maps.event_filters);
	const struct events *e = c->opts.events;
	int err = 0;

	for (uint32_t i = 0; i < c->links.n && !err; i++)
		err = bpf_map_update_elem(sites, &i, &c->links.v[i].place->site, BPF_ANY);
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
	int rc = 0;

	for (size_t i = 0; i < c->nperf && !rc; i++)
		rc = cpu_events_attach(&c->perf[i], c->skel->progs.on_cpu_jump);
	if (!rc)
		rc = event_links_attach(&c->links, programs);
	return rc ? explain(c->opts.events->text, rc, err) : 0;
}

uint64_t collector_missed_hits(const struct collector *c)
{
	const struct bpf_program *const programs[] = { c->skel->progs.on_tracepoint_jump,
						       c->skel->progs.on_probe_jump };
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
}
