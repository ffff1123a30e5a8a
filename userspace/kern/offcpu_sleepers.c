/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stacks of threads that stay asleep. off_last reads their memory, and may wait for ever for a
 * page of a file. So a child runs it. If the child is blocked for too long, it is given up (see
 * off_fence in bpf/offcpu.bpf.c), and another one reads what is left, without the thread that the
 * first one waits for. What cannot be read in time is for off_last_blind, which does not wait.
 */
#include <errno.h>
#include <unistd.h>

#include "kern/iter_reader.h"
#include "kern/offcpu_internal.h"

#define PATIENCE_NS (700 * NUM_MS) /* the patience of a start, a cut or an end */
#define CHILD_NS    (200 * NUM_MS) /* the part of it for one child */
#define LEAST_NS    (50 * NUM_MS)

void offcpu_patience(struct offcpu *off)
{
	off->patience_ns = PATIENCE_NS;
}

static void give_up(void *ctx)
{
	struct offcpu *off = ctx;

	offcpu_run_iterator(off->skel->progs.off_fence, NULL, off);
}

int offcpu_read_sleepers(struct offcpu *off)
{
	struct iter_patience patience = { .over = give_up, .ctx = off };
	uint64_t blocked;
	int fd, err = -ETIMEDOUT;

	while (err == -ETIMEDOUT && off->patience_ns >= LEAST_NS) {
		fd = offcpu_open_iterator(off->remote->progs.off_last);
		if (fd < 0)
			return fd;
		patience.ns = off->patience_ns < CHILD_NS ? off->patience_ns : CHILD_NS;
		err = iter_run(off->readers, fd, &patience, &blocked, off->totals);
		close(fd);
		off->patience_ns -= blocked < off->patience_ns ? blocked : off->patience_ns;
	}
	return err;
}

int offcpu_visit_open(struct offcpu *off)
{
	/* The others leave threads out after a child was given up. */
	if (off->remote && !offcpu_read_sleepers(off) && !off->skel->bss->off_session)
		return 0;
	return offcpu_run_iterator(off->skel->progs.off_last_blind, NULL, off);
}
