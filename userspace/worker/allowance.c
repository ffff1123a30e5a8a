/* SPDX-License-Identifier: BSD-2-Clause */
#include "worker/allowance.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "worker/privs.h"

#define SAVED_NS     (3 * NUM_S) /* the most unused time that is saved */
/* Waits may take one part in SHARE of the wall clock in the long run */
#define SHARE	     10
#define END_SHARE    4 /* one question may take this fraction of what is left at the end */
/* At the end, times p->busy. For each user except root and the caller: */
#define USER_END_NS  (ALLOWANCE_END_NS / 2)
/* The least for one question, if that much is left: */
#define END_LEAST_NS (50 * NUM_MS)

static int kind_of(uint32_t owner)
{
	return owner ? ALLOWANCE_OTHERS : ALLOWANCE_ROOT;
}

void allowance_init(struct allowance *p)
{
	*p = (struct allowance){ .busy = 1 };
	for (int i = 0; i < ALLOWANCES; i++) {
		p->left[i].ns = SAVED_NS;
		p->left[i].since = clock_ns(CLOCK_MONOTONIC);
	}
}

/* Where many tasks wait for a CPU, the workers do so, too: see allowance_end. */
static unsigned int busy(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN), running = 0, factor;
	FILE *f = fopen("/proc/loadavg", "re");

	if (f) {
		if (fscanf(f, "%*s %*s %*s %ld/", &running) != 1)
			running = 0;
		fclose(f);
	}
	factor = running / (2 * (cpus > 0 ? cpus : 1));
	if (factor < 1)
		return 1;
	return factor < ALLOWANCE_BUSY_MAX ? (unsigned int)factor : ALLOWANCE_BUSY_MAX;
}

void allowance_end(struct allowance *p)
{
	if (p->end_ns)
		return;
	p->busy = busy();
	p->end_ns = clock_ns(CLOCK_MONOTONIC) + ALLOWANCE_END_NS * p->busy;
}

bool allowance_ending(struct allowance *p)
{
	if (!p->end_ns && p->stopped && p->stopped())
		allowance_end(p);
	return p->end_ns != 0;
}

void allowance_hold(struct allowance *p)
{
	if (!p->held++)
		p->held_ns = clock_ns(CLOCK_MONOTONIC);
}

void allowance_go_on(struct allowance *p)
{
	if (!--p->held && p->end_ns)
		p->end_ns += clock_ns(CLOCK_MONOTONIC) - p->held_ns;
}

static uint64_t have_at_end(const struct allowance *p, uint32_t owner)
{
	uint64_t now = p->held ? p->held_ns : clock_ns(CLOCK_MONOTONIC);
	uint64_t left = p->end_ns > now ? p->end_ns - now : 0,
		 spent = p->user_ns[owner % ALLOWANCE_USERS], least = END_LEAST_NS * p->busy,
		 most = USER_END_NS * p->busy,
		 have = left / END_SHARE > least ? left / END_SHARE : least;

	if (owner && owner != p->caller && have > most - spent)
		have = most - spent;
	return have < left ? have : left;
}

uint64_t allowance_have(struct allowance *p, uint32_t owner)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), *ns = &p->left[kind_of(owner)].ns,
		 *since = &p->left[kind_of(owner)].since;

	if (allowance_ending(p))
		return have_at_end(p, owner);
	*ns += (now - *since) / SHARE;
	if (*ns > SAVED_NS)
		*ns = SAVED_NS;
	*since = now;
	if (*ns > ALLOWANCE_MOST_NS)
		return ALLOWANCE_MOST_NS;
	return *ns < ALLOWANCE_LEAST_NS ? 0 : *ns;
}

uint64_t allowance_cut(struct allowance *p, uint64_t until_ns)
{
	if (!allowance_ending(p) || p->held)
		return until_ns;
	return until_ns < p->end_ns ? until_ns : p->end_ns;
}

void allowance_spend(struct allowance *p, uint32_t owner, uint64_t ns)
{
	uint64_t *left = &p->left[kind_of(owner)].ns, *user = &p->user_ns[owner % ALLOWANCE_USERS],
		 most = USER_END_NS * p->busy;

	*left = *left > ns ? *left - ns : 0;
	if (owner && p->end_ns)
		*user = ns < most - *user ? *user + ns : most;
}

uint32_t allowance_owner(int fd)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_UID, &st) ||
	    !(st.stx_mask & STATX_UID))
		return NOBODY;
	return st.stx_uid;
}
