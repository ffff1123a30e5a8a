/* SPDX-License-Identifier: BSD-2-Clause */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/complain.h"
#include "kern/collector_internal.h"
#include "kern/irq_code.h"
#include "kern/libbpf_log.h"
#include "kern/offcpu_internal.h"

_Static_assert(sizeof(struct sfbpf_bpf__rodata_knobs) == sizeof(struct offcpu_bpf__rodata_knobs) &&
		       sizeof(struct sfbpf_bpf__data_tables) ==
			       sizeof(struct offcpu_bpf__data_tables),
	       "the on-CPU and the off-CPU object have the same knobs and the same tables' state");

/* Files, tables, ring and filters are shared. Scratch, caches and counters are separate. */
static int share_maps(const struct sfbpf_bpf *from, struct offcpu_bpf *to)
{
	struct {
		struct bpf_map *from, *to;
	} shared[] = {
		{ from->maps.ring, to->maps.ring },
		{ from->maps.files, to->maps.files },
		{ from->maps.modules, to->maps.modules },
		{ from->maps.copies, to->maps.copies },
		{ from->maps.chunks, to->maps.chunks },
		{ from->maps.pids, to->maps.pids },
		{ from->maps.tids, to->maps.tids },
		{ from->maps.excluded, to->maps.excluded },
		{ from->maps.calls, to->maps.calls },
		{ from->maps.calls_of_g, to->maps.calls_of_g },
		{ from->maps.grants, to->maps.grants },
		{ from->maps.codes, to->maps.codes },
		{ from->maps.code_grants, to->maps.code_grants },
		{ from->maps.code_pcs, to->maps.code_pcs },
		{ from->maps.data_tables, to->maps.data_tables },
	};
	int err = 0;

	for (size_t i = 0; i < sizeof(shared) / sizeof(shared[0]) && !err; i++)
		err = bpf_map__reuse_fd(shared[i].to, bpf_map__fd(shared[i].from));
	return err;
}

static int open_and_load(struct collector *c, bool rdonly_cast, bool at_leave)
{
	struct offcpu_bpf *skel = offcpu_open(rdonly_cast);
	struct irq_code irq = { 0 };
	int err;

	c->refused = (struct refusal){ 0 };
	if (!skel)
		return -errno;
	if (c->opts.offcpu && c->opts.count_run_time && c->opts.verbose <= 1)
		collector_log_verifier(skel->obj, &c->off_said);
	memcpy(skel->rodata_knobs, c->skel->rodata_knobs, sizeof(*skel->rodata_knobs));
	if (c->offcpu_opts.wakers)
		irq_code_find(collector_kernel_name, c, &irq);
	/* If stacks are taken on leaving, off_switch walks: it has one version. */
	skel->rodata_knobs->cfg_languages = at_leave ? ~0u : c->walks.languages;
	offcpu_configure(skel, &c->offcpu_opts, c->ncpus, at_leave, &irq);
	err = share_maps(c->skel, skel);
	libbpf_log_into(&c->refused);
	if (!err)
		err = offcpu_bpf__load(skel);
	if (!err)
		err = collector_put_walk(skel->maps.off_back_walks,
					 bpf_program__fd(skel->progs.off_back));
	if (!err)
		err = collector_put_walk(skel->maps.off_waking_walks,
					 bpf_program__fd(skel->progs.off_waking));
	libbpf_log_into(NULL);
	if (err) {
		collector_read_verifier(&c->refused, skel->obj, c->off_said);
		offcpu_bpf__destroy(skel);
	} else {
		c->off_skel = skel;
	}
	return err;
}

/*
 * Stacks are taken when threads come back if the kernel can do that (it has sched_exit_tp, and its
 * verifier accepts off_back), otherwise when they leave. A tracepoint that the kernel does not have
 * is -EPERM: libbpf searches it in all modules then, which needs CAP_SYS_ADMIN.
 */
static int load_where(struct collector *c, bool rdonly_cast, bool *ret_at_leave)
{
	enum offcpu_where where = c->offcpu_opts.where;
	bool at_leave = where == OFFCPU_LEAVE;
	int err = open_and_load(c, rdonly_cast, at_leave);

	if (where == OFFCPU_AUTO && !at_leave &&
	    (err == -EPERM ||
	     collector_refused(c, &c->refused, err, "take stacks when threads come back")))
		err = open_and_load(c, rdonly_cast, at_leave = true);
	*ret_at_leave = at_leave;
	return err;
}

void collector_off_cache(struct collector *c)
{
	const struct bpf_map *map = c->off_skel->maps.cache;

	tables_off_cache(c->tables,
			 (struct tables_cache){ bpf_map__fd(map), bpf_map__max_entries(map) });
}

/* c->off_skel is loaded. 0 or -ENOMEM. */
static int make_offcpu(struct collector *c, bool at_leave)
{
	struct refusal refused;
	char why[REFUSAL_LINE + sizeof(refused.program)];

	libbpf_log_into(&refused);
	c->offcpu = offcpu_new(c->off_skel, &c->offcpu_opts, at_leave, c->opts.servers->openers,
			       &c->lists);
	libbpf_log_into(NULL);
	if (!c->offcpu)
		return -ENOMEM;
	if (!c->offcpu->remote && c->opts.verbose) {
		refusal_text(&refused, why, sizeof(why));
		complain(0, "the kernel refuses the program that reads stacks of sleepers (%s)",
			 why);
	}
	return 0;
}

int collector_load_offcpu(struct collector *c)
{
	bool at_leave;
	int err = load_where(c, c->rdonly_cast, &at_leave);

	if (c->rdonly_cast && collector_refused(c, &c->refused, err, "use bpf_rdonly_cast"))
		err = load_where(c, false, &at_leave);
	if (!err)
		err = collector_map_stats(c, c->off_skel->maps.cpu_stats, &c->off_stats);
	if (!err)
		collector_off_cache(c);
	return err ? err : make_offcpu(c, at_leave);
}

void collector_offcpu_stop(struct collector *c)
{
	collector_walks_drop_off(c);
	offcpu_free(c->offcpu);
	c->offcpu = NULL;
	if (c->off_stats)
		munmap(c->off_stats, c->cpu_stats_len);
	c->off_stats = NULL;
	if (c->tables)
		tables_off_cache(c->tables, (struct tables_cache){ -1, 0 });
	if (c->off_skel)
		offcpu_bpf__destroy(c->off_skel);
	c->off_skel = NULL;
}
