/* SPDX-License-Identifier: BSD-2-Clause */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kern/collector_internal.h"
#include "kern/offcpu_internal.h"

/* Adds to *ret. */
static void sum_stats(const struct sf_cpu_stats *stats, int ncpus, struct collector_counters *ret)
{
	for (int cpu = 0; cpu < ncpus; cpu++) {
		const volatile struct sf_cpu_stats *st = &stats[cpu];

		ret->taken += st->taken + st->off_taken;
		ret->idle += st->idle;
		ret->run_ns += st->run_ns;
		ret->vma_walks += st->vma_walks;
		ret->cache_hits += st->cache_hits;
		ret->window_reads += st->window_reads;
		ret->needs += st->needs;
		ret->off_no_state += st->off_no_state;
		ret->needs_dropped += st->needs_dropped;
		ret->needs_refused += st->needs_refused;
		for (int i = 0; i < SF_LOST_MAX; i++)
			ret->lost[i] += st->lost[i];
	}
}

void collector_counters(struct collector *c, struct collector_counters *ret)
{
	uint64_t missed;

	*ret = (struct collector_counters){ 0 };
	sum_stats(c->cpu_stats, c->ncpus, ret);
	if (c->opts.offcpu && c->off_stats) /* else they are in collector_offcpu_counters */
		sum_stats(c->off_stats, c->ncpus, ret);
	ret->lost[SF_LOST_BAD_RECORD] += c->bad_records;
	missed = collector_missed_hits(c);
	ret->taken += missed;
	ret->lost[SF_LOST_BUSY] += missed;
	tables_counts(c->tables, &ret->tables);
	loader_totals(c->loader, &ret->loader);
	worker_totals_add(&ret->loader.workers, &c->lists);
}

/* "processed 25093 insns (limit 1000000) max_states_per_insn 8 total_states 1423 ..." */
uint64_t collector_verifier_states(const char *log)
{
	const char *at = strstr(log, "total_states ");

	return at ? strtoull(at + strlen("total_states "), NULL, 10) : 0;
}

/* False: there is no such program. */
static bool describe(struct collector_program *ret, const char *name, int fd, uint64_t states)
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);

	if (fd <= 0 || bpf_obj_get_info_by_fd(fd, &info, &len))
		return false;
	snprintf(ret->name, sizeof(ret->name), "%s", name);
	ret->run_cnt = info.run_cnt;
	ret->run_ns = info.run_time_ns;
	ret->verified_insns = info.verified_insns;
	ret->verifier_states = states;
	ret->code_bytes = info.jited_prog_len;
	return true;
}

/* said: the verifier's log of each program, or NULL */
static size_t programs_of(struct bpf_object *obj, char (*said)[VERIFIER_LOG],
			  struct collector_program *ret, size_t cap)
{
	struct bpf_program *prog;
	size_t n = 0, i = 0;

	bpf_object__for_each_program(prog, obj)
	{
		uint64_t states = said ? collector_verifier_states(said[i]) : 0;

		i++;
		if (n < cap &&
		    describe(&ret[n], bpf_program__name(prog), bpf_program__fd(prog), states))
			n++;
	}
	return n;
}

static size_t programs_of_version(const struct walk_version *v, struct collector_program *ret,
				  size_t cap)
{
	static const char *const names[WALKS] = { "on_cpu", "on_tracepoint", "on_probe", "off_back",
						  "off_waking" };
	size_t n = 0;

	for (size_t i = 0; i < WALKS && n < cap; i++)
		n += describe(&ret[n], names[i], v->fds[i], v->states[i]);
	return n;
}

static struct collector_program *find(struct collector_program *list, size_t n, const char *name,
				      size_t len)
{
	for (size_t i = 0; i < n; i++)
		if (!strncmp(list[i].name, name, len) && !list[i].name[len])
			return &list[i];
	return NULL;
}

/*
 * Makes one of each program and the one that jumps to it: the kernel counts the runs of what is
 * attached. Later versions of a program come first. Returns the new n.
 */
static size_t join_jumps(struct collector_program *list, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		const char *jump = strstr(list[i].name, "_jump");
		struct collector_program *to =
			jump ? find(list, n, list[i].name, (size_t)(jump - list[i].name)) : NULL;

		if (to) {
			to->run_cnt = list[i].run_cnt;
			to->run_ns = list[i].run_ns;
		}
	}
	for (size_t i = 0; i < n; i++)
		if (!strstr(list[i].name, "_jump") &&
		    !find(list, kept, list[i].name, strlen(list[i].name)))
			list[kept++] = list[i];
	return kept;
}

size_t collector_programs(struct collector *c, struct collector_program *ret, size_t cap)
{
	size_t n = programs_of_version(&c->walks, ret, cap);

	n += programs_of(c->skel->obj, c->verifier_said, ret + n, cap - n);
	if (c->opts.offcpu && c->off_skel)
		n += programs_of(c->off_skel->obj, c->off_said, ret + n, cap - n);
	if (c->opts.offcpu && c->offcpu && c->offcpu->remote)
		n += programs_of(c->offcpu->remote->obj, NULL, ret + n, cap - n);
	return join_jumps(ret, n);
}

void collector_offcpu_counters(struct collector *c, struct collector_counters *ret)
{
	struct collector_program progs[COLLECTOR_PROGRAMS];
	size_t n;

	*ret = (struct collector_counters){ 0 };
	if (!c->off_skel)
		return;
	sum_stats(c->off_stats, c->ncpus, ret);
	n = c->offcpu_opts.want_cost
		    ? 0
		    : programs_of(c->off_skel->obj, NULL, progs, COLLECTOR_PROGRAMS);
	for (size_t i = 0; i < n; i++)
		/* These run in system calls of this process, so their time is not added */
		if (strcmp(progs[i].name, "off_first") && strcmp(progs[i].name, "off_last_blind"))
			ret->run_ns += progs[i].run_ns;
}
