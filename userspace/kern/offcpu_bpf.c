/* SPDX-License-Identifier: BSD-2-Clause */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "kern/offcpu_internal.h"

#define CALIBRATIONS 8

struct offcpu *offcpu_new(struct offcpu_bpf *skel, const struct offcpu_opts *o, bool at_leave,
			  struct fork_server *readers, struct worker_totals *totals)
{
	struct offcpu *off = calloc(1, sizeof(*off));

	if (!off)
		return NULL;
	off->skel = skel;
	off->remote = offcpu_load_remote(skel, skel->rodata_knobs->cfg_languages);
	off->opts = *o;
	off->at_leave = at_leave;
	off->readers = readers;
	off->totals = totals;
	return off;
}

void offcpu_free(struct offcpu *off)
{
	if (!off)
		return;
	offcpu_stacks_free(off);
	free(off->singles.list);
	idmap_free(&off->seen);
	free(off->counts);
	if (off->remote)
		remote_bpf__destroy(off->remote);
	free(off);
}

void offcpu_use_remote(struct offcpu *off, struct remote_bpf *remote)
{
	remote_bpf__destroy(off->remote);
	off->remote = remote;
}

int offcpu_open_iterator(const struct bpf_program *prog)
{
	struct bpf_link *link = bpf_program__attach_iter(prog, NULL);
	int fd = link ? bpf_iter_create(bpf_link__fd(link)) : -errno;

	bpf_link__destroy(link);
	return fd;
}

int offcpu_run_iterator(const struct bpf_program *prog, off_words_fn take, struct offcpu *off)
{
	int fd = offcpu_open_iterator(prog);
	uint64_t words[512];
	ssize_t got;

	if (fd < 0)
		return fd;
	while ((got = read(fd, words, sizeof(words))) > 0 ||
	       (got < 0 && (errno == EAGAIN || errno == EINTR)))
		if (take && got > 0)
			take(off, words, (size_t)got / sizeof(words[0]));
	close(fd);
	return 0;
}

/*
 * Measures CLOCK_MONOTONIC minus the clock of the run queues. This thread sleeps a few times. Each
 * switch shows the difference plus the time since the run queue's clock was read, so the minimum is
 * the best estimate. The clocks drift apart by some ppm.
 */
void offcpu_calibrate(struct offcpu_bpf__bss *bss)
{
	struct timespec pause = { .tv_nsec = 20000 };

	bss->off_lag_least = INT64_MAX;
	__atomic_store_n(&bss->off_lag_wanted, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < CALIBRATIONS; i++)
		nanosleep(&pause, NULL);
	__atomic_store_n(&bss->off_lag_wanted, 0, __ATOMIC_RELEASE);
	if (bss->off_lag_least != INT64_MAX)
		__atomic_store_n(&bss->off_lag, bss->off_lag_least, __ATOMIC_RELAXED);
}

/*
 * off_switch comes last: the other programs must be attached when it opens the first block. A wait
 * for a lock that off_contended sees must be seen to end.
 */
static int attach_programs(const struct offcpu *off)
{
	struct offcpu_bpf *skel = off->skel;
	const struct {
		struct bpf_program *prog;
		struct bpf_link **link;
	} all[] = {
		{ skel->progs.off_fork, &skel->links.off_fork },
		{ skel->progs.off_waking_jump, &skel->links.off_waking_jump },
		{ skel->progs.off_back_jump, &skel->links.off_back_jump },
		{ skel->progs.off_uncontended, &skel->links.off_uncontended },
		{ skel->progs.off_contended, &skel->links.off_contended },
		{ skel->progs.off_switch, &skel->links.off_switch },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (!bpf_program__autoload(all[i].prog))
			continue;
		*all[i].link = bpf_program__attach(all[i].prog);
		if (!*all[i].link)
			return -errno;
	}
	return 0;
}

int offcpu_attach(struct offcpu *off)
{
	struct offcpu_bpf *skel = off->skel;
	int err;

	err = attach_programs(off);
	if (err)
		return err;
	offcpu_calibrate(skel->bss);
	/*
	 * Every switch is seen from here on. The iterator finds the threads that were off the CPU
	 * before.
	 */
	err = offcpu_run_iterator(skel->progs.off_first, NULL, off);
	skel->bss->off_pass = SF_OFF_PASS_AGAIN;
	if (!err)
		err = offcpu_run_iterator(skel->progs.off_first, NULL, off);
	skel->bss->off_pass = SF_OFF_PASS_STACKS;
	if (err)
		return err;
	offcpu_patience(off);
	if (off->at_leave && off->remote)
		offcpu_read_sleepers(off);
	__atomic_store_n(&skel->bss->off_begin, clock_ns(CLOCK_MONOTONIC), __ATOMIC_RELEASE);
	return 0;
}

void offcpu_finish(struct offcpu *off, void (*drain)(void *ctx), void *ctx)
{
	struct offcpu_bpf__bss *bss = off->skel->bss;

	if (!bss->off_begin || bss->off_finish)
		return;
	__atomic_store_n(&bss->off_finish, clock_ns(CLOCK_MONOTONIC), __ATOMIC_RELEASE);
	if (off->opts.running)
		offcpu_run_iterator(off->skel->progs.off_still_running, NULL, off);
	offcpu_patience(off);
	bss->off_pass = SF_OFF_PASS_CLOSE;
	if (off->remote)
		offcpu_read_sleepers(off);
	drain(ctx);
	bss->off_pass = SF_OFF_PASS_REST;
	offcpu_visit_open(off);
	drain(ctx);
}

int offcpu_cut(struct offcpu *off)
{
	struct offcpu_bpf__bss *bss = off->skel->bss;
	int err;

	if (!bss->off_begin || bss->off_finish)
		return 0;
	bss->off_cut = clock_ns(CLOCK_MONOTONIC);
	bss->off_pass = SF_OFF_PASS_CUT;
	offcpu_patience(off);
	err = offcpu_visit_open(off);
	bss->off_pass = SF_OFF_PASS_STACKS;
	return err;
}

void offcpu_thin(struct offcpu *off, uint64_t ns)
{
	__atomic_store_n(&off->skel->bss->off_thin, off->at_leave ? 0 : ns, __ATOMIC_RELAXED);
	__atomic_store_n(&off->skel->bss->off_one_in,
			 off->at_leave ? (uint32_t)(ns / OFFCPU_THIN_MIN) : 0, __ATOMIC_RELAXED);
}

uint64_t offcpu_thinner(uint64_t ns)
{
	uint64_t next = ns ? ns * 4 : OFFCPU_THIN_MIN * 4;

	return next > OFFCPU_THIN_MAX ? OFFCPU_THIN_MAX : next;
}

uint64_t offcpu_denser(uint64_t ns)
{
	return ns / 2 < OFFCPU_THIN_MIN ? 0 : ns / 2;
}

void offcpu_totals(const struct offcpu *off, struct offcpu_totals *ret)
{
	*ret = (struct offcpu_totals){
		.sampled_ns = off->skel->bss->off_sampled_ns,
		.lost_ns = off->skel->bss->off_lost_ns,
		.stacks = off->past + off->seen.n,
		.full_at = off->opts.max_stacks,
		.generations = off->generation,
		.threads_full = off->skel->bss->off_threads_full,
		.singles = off->skel->bss->off_singles_sent - off->singles.dropped,
		.singles_lost = off->skel->bss->off_singles_lost + off->singles.dropped,
		.at_leave = off->at_leave,
		.remote = off->remote != NULL,
	};
}
