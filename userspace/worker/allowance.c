/* SPDX-License-Identifier: BSD-2-Clause */
#include "worker/allowance.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/user_account.h"
#include "worker/privs.h"

#define SAVED_NS      (3 * NUM_S) /* the most unused time that is saved */
/* Waits may take one part in SHARE of the wall clock in the long run */
#define SHARE	      10
/*
 * Each user still has a little of its own when the share of all other users is used up: what one
 * user spends is not missing to another. It is a part of the wall clock, up to OWN_NS.
 */
#define OWN_SHARE     200
#define OWN_NS	      ALLOWANCE_LEAST_NS
#define OWN_LEAST_NS  (100 * NUM_MS)
#define END_SHARE     4 /* one question may take this fraction of what is left at the end */
/* The most at the end, for all users but root and the caller together, and for each of them */
#define OTHERS_END_NS (ALLOWANCE_END_NS / 2)
#define USER_END_NS   (ALLOWANCE_END_NS / 4)
/* The least for one question, times p->busy, if that much is left: */
#define END_LEAST_NS  (50 * NUM_MS)

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

/* ---- What each user has for himself ---- */

static void refill(struct allowance_user *u, uint64_t now)
{
	u->ns += (now - u->since) / OWN_SHARE;
	if (u->ns > OWN_NS)
		u->ns = OWN_NS;
	u->since = now;
}

/*
 * The entry of a user other than root. NULL: all are taken by users who have spent from theirs not
 * long ago.
 */
static struct allowance_user *user_of(struct allowance *p, uint32_t owner)
{
	uint32_t id = user_account(owner);
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct allowance_user *free = NULL;

	for (size_t i = 0; i < ALLOWANCE_USERS; i++) {
		struct allowance_user *u = &p->users[i];

		if (u->id)
			refill(u, now);
		if (u->id == id)
			return u;
		if (!free && (!u->id || (u->ns == OWN_NS && !u->end_ns)))
			free = u;
	}
	if (free)
		*free = (struct allowance_user){ .id = id, .ns = OWN_NS, .since = now };
	return free;
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
	p->end_ns = clock_ns(CLOCK_MONOTONIC) + ALLOWANCE_END_NS;
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

static uint64_t least_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static bool is_other(const struct allowance *p, uint32_t owner)
{
	return owner && owner != p->caller;
}

static uint64_t have_at_end(struct allowance *p, uint32_t owner)
{
	uint64_t now = p->held ? p->held_ns : clock_ns(CLOCK_MONOTONIC);
	uint64_t left = p->end_ns > now ? p->end_ns - now : 0, least = END_LEAST_NS * p->busy,
		 have = left / END_SHARE > least ? left / END_SHARE : least;
	const struct allowance_user *u = is_other(p, owner) ? user_of(p, owner) : NULL;

	if (is_other(p, owner)) {
		have = least_of(have, OTHERS_END_NS - p->others_end_ns);
		have = u ? least_of(have, USER_END_NS - u->end_ns) : 0;
	}
	return least_of(have, left);
}

uint64_t allowance_have(struct allowance *p, uint32_t owner)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), *ns = &p->left[kind_of(owner)].ns,
		 *since = &p->left[kind_of(owner)].since;
	const struct allowance_user *u;

	if (allowance_ending(p))
		return have_at_end(p, owner);
	*ns = least_of(*ns + (now - *since) / SHARE, SAVED_NS);
	*since = now;
	if (*ns >= ALLOWANCE_LEAST_NS || !owner)
		return *ns < ALLOWANCE_LEAST_NS ? 0 : least_of(*ns, ALLOWANCE_MOST_NS);
	u = user_of(p, owner);
	return u && u->ns >= OWN_LEAST_NS ? u->ns : 0;
}

uint64_t allowance_cut(struct allowance *p, uint64_t until_ns)
{
	if (!allowance_ending(p) || p->held)
		return until_ns;
	return until_ns < p->end_ns ? until_ns : p->end_ns;
}

void allowance_spend(struct allowance *p, uint32_t owner, uint64_t ns)
{
	uint64_t *left = &p->left[kind_of(owner)].ns, paid = least_of(*left, ns);
	struct allowance_user *u = NULL;

	if (p->end_ns ? is_other(p, owner) : owner && paid < ns)
		u = user_of(p, owner);
	if (p->end_ns && is_other(p, owner))
		p->others_end_ns = least_of(p->others_end_ns + ns, OTHERS_END_NS);
	if (u && p->end_ns)
		u->end_ns = least_of(u->end_ns + ns, USER_END_NS);
	else if (u)
		u->ns -= least_of(u->ns, ns - paid);
	*left -= paid;
}

uint32_t allowance_owner(int fd)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_UID, &st) ||
	    !(st.stx_mask & STATX_UID))
		return NOBODY;
	return st.stx_uid;
}
