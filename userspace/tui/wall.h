/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the threads of each process do, from two windows: samples of running threads, and the waits
 * of all others. The unit is threads: the time in a state, divided by the duration of the window.
 */
#ifndef SFBPF_TUI_WALL_H
#define SFBPF_TUI_WALL_H

#include <stddef.h>
#include <stdint.h>

#include "base/idmap.h"
#include "prof/profile.h"
#include "prof/selection.h"
#include "prof/wait_notes.h"

enum wall_kind {
	WALL_RUNNING,
	WALL_READY, /* waits for a CPU */
	WALL_LOCK,
	WALL_IO,
	WALL_PEER, /* sockets and pipes */
	WALL_SLEEP,
	WALL_OTHER,
	WALL_IDLE, /* what blocked_is_idle */
	WALL_KINDS
};

struct wall_process {
	uint32_t pid;
	char name[SF_COMM];
	double threads[WALL_KINDS], sum; /* sum: without WALL_IDLE if idle threads are hidden */
};

struct wall_part {	  /* part of a process */
	uint32_t process; /* index */
	uint8_t note;	  /* enum wait_note */
	uint8_t kind;	  /* enum wall_kind */
	double threads;
	uint64_t most;	/* time of its longest stack */
	uint32_t stack; /* index of that stack: of `running` if the note is WAIT_RUNNING */
};

struct wall_windows {
	struct profile *running, *blocked;
	double running_s, blocked_s; /* durations */
	uint64_t period_ns;	     /* what a sample stands for; 0: unknown */
};

struct wall { /* zeroed before its first use */
	struct wall_process *v;
	size_t n, cap;
	struct wall_part *parts; /* sorted by process; the largest first */
	size_t nparts, parts_cap;
	struct idmap pids, ids;
};

/* 0 or -ENOMEM (w is then empty). */
int wall_build(struct wall *w, const struct wall_windows *from, struct symbolizer *sz,
	       const struct selection *sel);
void wall_free(struct wall *w);
/* Index of the first part of a process, and *ret_n parts. */
size_t wall_parts(const struct wall *w, uint32_t process, size_t *ret_n);

#endif
