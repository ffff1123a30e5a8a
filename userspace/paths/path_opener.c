/* SPDX-License-Identifier: BSD-2-Clause */
#include "paths/path_opener.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/user_account.h"

#define LIVE_NS	     (500 * NUM_MS) /* deadline while samples wait */
#define END_LEAST_NS (150 * NUM_MS)
#define OTHERS_MAX   32 /* unanswered questions owned by users other than root */
#define USER_MAX     2	/* unanswered questions owned by one user */
#define HALVED_MAX   3

void path_opener_init(struct path_opener *o, struct fork_server *server, fork_child_fn child,
		      struct allowance *allowance)
{
	memset(o, 0, sizeof(*o));
	worker_init(&o->worker, server, child, &allowance->totals);
	o->allowance = allowance;
}

void path_opener_end(struct path_opener *o)
{
	worker_end(&o->worker);
	for (int i = 0; i < PATH_SILENT_MAX; i++)
		worker_drop(&o->silent[i].worker);
}

/* ---- Unanswered questions ---- */

/*
 * The number of unanswered questions remembered. *ret_same: this question must not be asked, as it
 * may block like one of them.
 */
static int count_silent(struct path_opener *o, const struct path_ask *ask, bool *ret_same)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	uint32_t user = user_account(ask->owner);
	int n = 0, of_others = 0, of_user = 0;

	*ret_same = false;
	for (int i = 0; i < PATH_SILENT_MAX; i++) {
		struct path_silent *s = &o->silent[i];

		if (s->since_ns && !worker_alive(&s->worker) && now - s->since_ns > PATH_SILENT_NS)
			s->since_ns = 0;
		if (!s->since_ns)
			continue;
		n++;
		of_others += s->owner != 0;
		of_user += user_account(s->owner) == user;
		*ret_same |= s->pid == ask->pid && ask->pid;
	}
	*ret_same |= n == PATH_SILENT_MAX ||
		     (ask->owner && (of_others >= OTHERS_MAX || of_user >= USER_MAX));
	return n;
}

/* There is a free entry: count_silent has checked. */
static void give_up(struct path_opener *o, const struct path_ask *ask)
{
	struct path_silent *s = o->silent;

	while (s->since_ns)
		s++;
	*s = (struct path_silent){ o->worker, ask->pid, ask->owner, clock_ns(CLOCK_MONOTONIC) };
	worker_init(&o->worker, o->worker.server, o->worker.fn, o->worker.totals);
}

/* ---- Questions ---- */

void path_ask_begin(struct path_ask *ask, enum path_question question, uint32_t pid, uint32_t owner)
{
	memset(ask, 0, offsetof(struct path_ask, paths));
	ask->question = question;
	ask->pid = pid;
	ask->owner = owner;
}

void path_ask_add(struct path_ask *ask, const char *format, ...)
{
	size_t room = sizeof(ask->paths) - ask->len;
	va_list args;
	int n;

	if (room > PATH_MAX)
		room = PATH_MAX;
	va_start(args, format);
	n = vsnprintf(ask->paths + ask->len, room, format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= room)
		return;
	ask->len += (uint32_t)n + 1;
	ask->n++;
}

static bool is_sound(const void *question, const void *answer)
{
	const struct path_ask *ask = question;
	const struct path_answer *a = answer;

	if (a->question != ask->question || !memchr(a->path, 0, sizeof(a->path)))
		return false;
	if (a->err)
		return a->err == -ENOENT || a->err == -EFBIG || a->err == -ENOMEM;
	return ask->question != PATH_FILE || (a->place >= ask->first && a->place < ask->n);
}

/*
 * The more questions are unanswered, the shorter the deadline of the next one, for all users
 * together. Thus they take a few seconds in total, and a part of a second at the end of a run. A
 * single one may take up to ALLOWANCE_BUSY_MAX times as long on a busy machine.
 */
static uint64_t less_for_silence(struct path_opener *o, const struct path_ask *ask, int n)
{
	bool ending = allowance_ending(o->allowance);
	uint64_t least = ending ? END_LEAST_NS : ALLOWANCE_LEAST_NS, most = ALLOWANCE_MOST_NS;

	if (ending || ask->live)
		most = ending ? ALLOWANCE_LEAST_NS : LIVE_NS;
	most >>= n < HALVED_MAX ? n : HALVED_MAX;
	return (most < least ? least : most) * o->allowance->busy;
}

int path_open(struct path_opener *o, struct path_ask *ask, int root, struct path_answer *ret)
{
	bool silent;
	int fd = -1, err, n;
	struct worker_question q = {
		.ask = ask,
		.fds = &root,
		.nfds = 1,
		.answer = ret,
		.answer_len = sizeof(*ret),
		.ret_fd = &fd,
		.sound = is_sound,
	};

	if (!o || (ask->question == PATH_FILE && ask->first >= ask->n))
		return -ENOENT;
	ask->at_root = root >= 0;
	q.len = offsetof(struct path_ask, paths) + ask->len;
	q.owner = ask->owner;
	n = count_silent(o, ask, &silent);
	q.wall_ns = less_for_silence(o, ask, n);
	err = silent ? -ETIMEDOUT : worker_call(&o->worker, o->allowance, &q);
	if (err == -ETIMEDOUT && !silent)
		give_up(o, ask);
	if (!err && ret->err) {
		close(fd);
		err = ret->err;
	}
	if (err && err != -EAGAIN && err != -ENOENT && (err != -EFBIG || ask->most))
		o->allowance->totals.failed++;
	return !err ? fd : err == -EFBIG || err == -ENOMEM ? -ENOENT : err;
}
