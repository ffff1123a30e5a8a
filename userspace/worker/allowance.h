/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long the naming thread may wait for files and workers of other users. It can do nothing else
 * while it waits, so all waits together may take only a share of the wall clock. Files of root have
 * one share, files of all other users another. When that is used up, each user still has a little
 * of his own. One thread only.
 *
 * At the end of a run, all waits together may take ALLOWANCE_END_NS, those for users other than
 * root and the caller half of that, and each of these users a quarter. One question may take a
 * quarter of what is left, so that the first slow file leaves time for others.
 */
#ifndef SFBPF_WORKER_ALLOWANCE_H
#define SFBPF_WORKER_ALLOWANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/num.h"
#include "worker/totals.h"

#define ALLOWANCE_MOST_NS  (2 * NUM_S)	  /* limit of one question; a file of 600 MB takes 50 ms */
#define ALLOWANCE_LEAST_NS (250 * NUM_MS) /* no question is asked if less is left */
#define ALLOWANCE_END_NS   (1500 * NUM_MS)
#define ALLOWANCE_BUSY_MAX 5
#define ALLOWANCE_USERS	   64 /* users with an account at a time, except root */

/* Two owners, so that slow files of users do not delay the files of the distribution. */
enum { ALLOWANCE_ROOT, ALLOWANCE_OTHERS, ALLOWANCES };

struct allowance {
	uint32_t caller; /* the user who started the program; treated like root at the end */
	/* Whether the run ends although allowance_end was not called; NULL: never */
	bool (*stopped)(void);
	uint64_t end_ns;	/* 0: the run goes on */
	unsigned int busy;	/* factor for waits at the end; 1: the run goes on */
	uint64_t held_ns;	/* when the countdown was paused */
	unsigned int held;	/* nesting of pauses; 0: not paused */
	uint64_t others_end_ns; /* spent at the end, for all users but root and the caller */
	struct allowance_user {
		uint32_t id; /* user_account; 0: the entry is free */
		uint64_t ns; /* what is left of his own at `since` */
		uint64_t since;
		uint64_t end_ns; /* spent at the end */
	} users[ALLOWANCE_USERS];
	uint64_t cpu_ns; /* CPU time of this thread for files: as large as their owners make it */
	struct worker_totals totals; /* totals of the workers whose questions are charged here */
	struct {
		uint64_t ns, since; /* the time left at `since` */
	} left[ALLOWANCES];
};

void allowance_init(struct allowance *p);
/*
 * The run ends: from now on, all waits together may take ALLOWANCE_END_NS. p->busy is half of the
 * runnable tasks for each CPU, from 1 to ALLOWANCE_BUSY_MAX: a question is given that many times as
 * long, within the same total. Only the first call counts.
 */
void allowance_end(struct allowance *p);
bool allowance_ending(struct allowance *p);
/*
 * Pause and resume the countdown, around work that the caller requested and that may take its time.
 * Calls nest.
 */
void allowance_hold(struct allowance *p);
void allowance_go_on(struct allowance *p);
/* How long a question about a file of that owner may take, in ns; 0: ask later. */
uint64_t allowance_have(struct allowance *p, uint32_t owner);
/*
 * Cuts a wait until until_ns (CLOCK_MONOTONIC) that began before the end of the run. Returns the
 * time until which it may last now.
 */
uint64_t allowance_cut(struct allowance *p, uint64_t until_ns);
void allowance_spend(struct allowance *p, uint32_t owner, uint64_t ns);
/*
 * The owner of a file, without asking its file system. If that is unknown, a user other than root.
 */
uint32_t allowance_owner(int fd);

#endif
