/* SPDX-License-Identifier: BSD-2-Clause */
#include "kern/opener.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs_kind.h"
#include "base/num.h"
#include "base/user_account.h"

#define SOON_NS	   (OPENER_SOON_MS * NUM_MS)
/* No answer for this long: files that would block for the same cause are deferred */
#define SLOW_NS	   (1000 * NUM_MS)
#define GIVE_UP_NS (10000 * NUM_MS)
#define USER_MAX   2  /* blocked openers per user, except root */
#define OTHERS_MAX 36 /* busy openers of all users but root */
#define COPY_MAX   (128ull << 20)
#define COPIES_MAX (256ull << 20)

static enum fs_kind kind_of(const struct sf_need *need)
{
	enum fs_kind kind = fs_kind_of_name(need->fs);

	return need->fs_level && kind != FS_MEMORY ? FS_USERS : kind;
}

bool opener_is_local(const struct sf_need *need)
{
	return kind_of(need) >= FS_STACKED;
}

void openers_init(struct openers *o, struct fork_server *server, struct worker_totals *totals)
{
	for (int i = 0; i < OPENERS; i++)
		worker_init(&o->all[i].worker, server, open_worker_main, totals);
}

/*
 * Whether opening both can block for the same cause: a file server, or a process that keeps its
 * mappings locked.
 */
static bool same_cause(const struct sf_need *a, const struct sf_need *b)
{
	return user_account(a->owner) == user_account(b->owner) &&
	       (opener_is_local(a) ? a->pid == b->pid : a->key.dev == b->key.dev);
}

static uint64_t age_of(const struct opener *one, uint64_t now)
{
	return one->worker.busy ? now - one->worker.asked_ns : UINT64_MAX;
}

static const struct opener *idle_opener(const struct openers *o)
{
	const struct opener *idle = NULL;

	for (int i = 0; i < OPENERS; i++)
		if (!o->all[i].worker.busy && (!idle || o->all[i].worker.child.pid))
			idle = &o->all[i];
	return idle;
}

bool openers_ready(const struct openers *o, uint64_t now)
{
	for (int i = 0; i < OPENERS; i++)
		if (age_of(&o->all[i], now) < SOON_NS)
			return false;
	return true;
}

enum open_may openers_may(const struct openers *o, const struct sf_need *need, uint64_t now)
{
	uint64_t youngest = UINT64_MAX, of_cause = UINT64_MAX, of_user = UINT64_MAX, age;
	uint32_t account = user_account(need->owner);
	int user = 0, others = 0;

	for (int i = 0; i < OPENERS; i++) {
		const struct opener *one = &o->all[i];

		age = age_of(one, now);
		if (age == UINT64_MAX)
			continue;
		youngest = age < youngest ? age : youngest;
		if (same_cause(need, &one->need))
			of_cause = age;
		others += one->need.owner != 0;
		if (account && account == user_account(one->need.owner)) {
			of_user = age < of_user ? age : of_user;
			user++;
		}
	}
	if (of_cause != UINT64_MAX)
		return of_cause < SLOW_NS ? OPEN_WAIT : OPEN_BLOCKED;
	if (user >= USER_MAX)
		return of_user < SLOW_NS ? OPEN_WAIT : OPEN_BLOCKED;
	if (idle_opener(o) && (!account || others < OTHERS_MAX))
		return OPEN_NOW;
	return youngest < SLOW_NS ? OPEN_WAIT : OPEN_BLOCKED;
}

int openers_ask(struct openers *o, const struct sf_need *need, uint64_t copied)
{
	const struct open_ask ask = {
		.pid = need->pid,
		.copy = kind_of(need) == FS_USERS,
		.start = need->vm_start,
		.end = need->vm_end,
		.key = need->key,
		.most = copied < COPIES_MAX - COPY_MAX ? COPY_MAX
			: copied < COPIES_MAX	       ? COPIES_MAX - copied
						       : 0,
	};
	static const struct worker_limits limits = { .wall_ns = GIVE_UP_NS };
	struct opener *one = (struct opener *)idle_opener(o);
	int err, iter;
	pid_t pid;

	if (!one)
		return -EAGAIN;
	one->need = *need;
	for (int tries = 0; tries < 2; tries++) {
		err = worker_start(&one->worker);
		pid = one->worker.child.pid;
		iter = err ? err : o->iter(o->iter_ctx, pid);
		if (iter < 0)
			return iter;
		err = worker_ask(&one->worker, &limits, &ask, sizeof(ask), &iter, 1);
		close(iter);
		if (err || one->worker.child.pid == pid)
			return err;
		/* The child had ended while it was idle, and the iterator is not the next one's. */
		worker_lose(&one->worker);
	}
	return -ECHILD;
}

/* One idle opener is enough. */
static void end_spare(struct openers *o, const struct opener *one)
{
	for (int i = 0; i < OPENERS; i++)
		if (&o->all[i] != one && !o->all[i].worker.busy)
			worker_end(&o->all[i].worker);
}

int openers_look(struct openers *o, struct sf_need *need, struct open_answer *ret, int *fd)
{
	int event = -EAGAIN;

	for (int i = 0; i < OPENERS && event == -EAGAIN; i++) {
		struct opener *one = &o->all[i];

		if (!one->worker.busy)
			continue;
		*need = one->need;
		event = worker_look(&one->worker, ret, sizeof(*ret), sizeof(*ret), fd);
		if (event)
			continue;
		ret->path[sizeof(ret->path) - 1] = 0;
		if (ret->err)
			close(*fd);
		one->worker.busy = ret->err == -EINPROGRESS;
		if (!one->worker.busy)
			end_spare(o, one);
	}
	return event;
}

bool openers_busy(const struct openers *o)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	for (int i = 0; i < OPENERS; i++)
		if (age_of(&o->all[i], now) < SLOW_NS)
			return true;
	return false;
}

int openers_poll(const struct openers *o, struct pollfd p[OPENERS], int ms)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	for (int i = 0; i < OPENERS; i++) {
		const struct worker *w = &o->all[i].worker;
		int look_ms = age_of(&o->all[i], now) < SLOW_NS ? OPENER_SOON_MS
								: (int)(SLOW_NS / NUM_MS);

		/* A message of a killed opener is not read. */
		p[i] = (struct pollfd){ .fd = w->busy ? w->child.sock : -1,
					.events = w->killed ? 0 : POLLIN };
		if (w->busy && ms > look_ms)
			ms = look_ms;
	}
	return ms;
}

/* Does not wait for busy openers: they end when their open returns, or when the server stops. */
void openers_end(struct openers *o)
{
	for (int i = 0; i < OPENERS; i++)
		if (o->all[i].worker.busy)
			worker_drop(&o->all[i].worker);
		else
			worker_end(&o->all[i].worker);
}
