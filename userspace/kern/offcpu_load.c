/* SPDX-License-Identifier: BSD-2-Clause */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kern/irq_code.h"
#include "kern/offcpu_internal.h"
#include "kern/reuse_maps.h"
#include "offcpu_nocast.skel.h"

#define SAME_GLOBALS(other)                                                                   \
	_Static_assert(sizeof(struct offcpu_bpf__rodata) == sizeof(struct other##__rodata) && \
			       sizeof(struct offcpu_bpf__rodata_knobs) ==                     \
				       sizeof(struct other##__rodata_knobs) &&                \
			       sizeof(struct offcpu_bpf__bss) == sizeof(struct other##__bss), \
		       "all off-CPU objects have the same globals")
SAME_GLOBALS(remote_bpf);
SAME_GLOBALS(offcpu_nocast_bpf);

/* The skeleton on one of two objects, which have the same maps, programs and globals. */
struct offcpu_bpf *offcpu_open(bool rdonly_cast)
{
	struct offcpu_bpf *skel = calloc(1, sizeof(*skel));
	int err = skel ? offcpu_bpf__create_skeleton(skel) : -ENOMEM;

	if (!err && !rdonly_cast)
		skel->skeleton->data =
			(void *)offcpu_nocast_bpf__elf_bytes(&skel->skeleton->data_sz);
	if (!err)
		err = bpf_object__open_skeleton(skel->skeleton, NULL);
	if (!err)
		return skel;
	if (skel)
		offcpu_bpf__destroy(skel);
	errno = -err;
	return NULL;
}

static void size_maps(struct offcpu_bpf *skel, const struct offcpu_opts *o, uint32_t ncpus,
		      bool at_leave)
{
	/* off_scratch.bpf.h: two slots per CPU, and those of the iterators */
	uint32_t slots = 2 * ncpus + 1 + skel->rodata->off_readers;

	bpf_map__set_max_entries(skel->maps.scratch, slots);
	bpf_map__set_max_entries(skel->maps.off_scratches, slots);
	bpf_map__set_max_entries(skel->maps.cache, slots);
	bpf_map__set_max_entries(skel->maps.cpu_stats, ncpus);
	bpf_map__set_max_entries(skel->maps.off_counts, o->max_stacks);
	bpf_map__set_max_entries(skel->maps.off_stacks, o->max_stacks);
	if (!at_leave)
		bpf_map__set_max_entries(skel->maps.off_stack_copies, ncpus);
	if (o->hist)
		bpf_map__set_max_entries(skel->maps.off_hists, o->max_stacks);
	if (o->threads || o->running)
		bpf_map__set_max_entries(skel->maps.off_threads, o->max_stacks);
}

static void choose_programs(struct offcpu_bpf *skel, const struct offcpu_opts *o, bool at_leave)
{
	bpf_program__set_autoload(skel->progs.off_switch, true);
	bpf_program__set_autoload(skel->progs.off_back, !at_leave);
	bpf_program__set_autoload(skel->progs.off_back_jump, !at_leave);
	bpf_program__set_autoload(skel->progs.off_waking, o->wakers);
	bpf_program__set_autoload(skel->progs.off_waking_jump,
				  o->wakers || o->locks || (o->states & 1u << SF_OFF_R));
	bpf_program__set_autoload(skel->progs.off_contended, o->locks);
	bpf_program__set_autoload(skel->progs.off_uncontended, o->locks);
	bpf_program__set_autoload(skel->progs.off_fork, true);
	bpf_program__set_autoload(skel->progs.off_first, true);
	bpf_program__set_autoload(skel->progs.off_last_blind, true);
	bpf_program__set_autoload(skel->progs.off_fence, true);
	bpf_program__set_autoload(skel->progs.off_held, true);
	bpf_program__set_autoload(skel->progs.off_still_running, o->running);
}

static void set_irq_code(struct offcpu_bpf *skel, const struct irq_code *k)
{
	skel->rodata->cfg_irq_start = k->irq_start;
	skel->rodata->cfg_irq_len = k->irq_end - k->irq_start;
	skel->rodata->cfg_softirq_start = k->softirq_start;
	skel->rodata->cfg_softirq_len = k->softirq_end - k->softirq_start;
}

void offcpu_configure(struct offcpu_bpf *skel, const struct offcpu_opts *o, int ncpus,
		      bool at_leave, const struct irq_code *irq)
{
	struct offcpu_bpf__rodata_knobs *knobs = skel->rodata_knobs;
	struct offcpu_bpf__rodata *ro = skel->rodata;

	knobs->cfg_want_cost = o->want_cost || (o->want_cost_back && !at_leave);
	ro->cfg_off_at_leave = at_leave;
	knobs->cfg_note_words = !at_leave;
	ro->cfg_off_split = (o->states & 1u << SF_OFF_R) != 0;
	ro->cfg_off_wakers = o->wakers;
	ro->cfg_off_chains = o->chains;
	ro->cfg_off_locks = o->locks;
	ro->cfg_off_hist = o->hist;
	ro->cfg_off_threads = o->threads;
	ro->cfg_off_singles = o->singles;
	ro->cfg_off_single_min = o->single_min_ns;
	ro->cfg_off_running = o->running;
	ro->cfg_off_kthreads = o->kernel_threads;
	ro->cfg_off_users = o->user_threads;
	ro->cfg_off_states = o->states;
	ro->cfg_off_min = o->min_ns;
	ro->cfg_off_max = o->max_ns;
	ro->cfg_off_period = o->period_ns;
	set_irq_code(skel, irq);
	size_maps(skel, o, (uint32_t)ncpus, at_leave);
	choose_programs(skel, o, at_leave);
}

/* ---- The object for sleepers ---- */

struct remote_bpf *offcpu_load_remote(const struct offcpu_bpf *skel, uint32_t languages)
{
	struct remote_bpf *remote = remote_bpf__open();
	struct bpf_program *prog;
	int err;

	if (!remote)
		return NULL;
	memcpy(remote->rodata, skel->rodata, sizeof(*skel->rodata));
	memcpy(remote->rodata_knobs, skel->rodata_knobs, sizeof(*skel->rodata_knobs));
	remote->rodata_knobs->cfg_languages = languages;
	bpf_object__for_each_program(prog, remote->obj)
		bpf_program__set_autoload(prog, prog == remote->progs.off_last);
	err = reuse_maps(remote->obj, skel->obj);
	if (!err)
		err = remote_bpf__load(remote);
	if (!err)
		return remote;
	remote_bpf__destroy(remote);
	return NULL;
}
