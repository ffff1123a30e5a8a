/* SPDX-License-Identifier: BSD-2-Clause */
#include "sym/path_opener.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/asked_child.h"
#include "base/clock.h"

#define LIVE_NS (500 * NUM_MS)	/* while samples wait */
#define SILENT_MAX 12		/* questions that were given up and are not forgotten; with more, none is asked */
#define OTHERS_MAX 8		/* of them, not root's */
#define USER_MAX 2		/* and a user's */
#define HALVED_MAX 3

/* What was not answered. It is kept for a minute, and as long as its child does not go. */
struct silent {
	struct fork_child child;
	uint32_t pid, owner;
	uint64_t since_ns;	/* 0: free */
};

struct path_opener {
	struct asked_child child;
	struct patience *patience;
	struct silent silent[SILENT_MAX];
	struct path_opener_totals totals;
};

struct path_opener *path_opener_new(struct fork_server *server, fork_child_fn child, struct patience *patience)
{
	struct path_opener *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	asked_child_init(&o->child, server, child);
	o->patience = patience;
	for (int i = 0; i < SILENT_MAX; i++)
		o->silent[i].child = FORK_CHILD_NONE;
	return o;
}

/* It has been killed, and is gone or nobody's. */
static void let_go(struct fork_child *c)
{
	if (!c->pid)
		return;
	close(c->sock);
	close(c->mem);
	*c = FORK_CHILD_NONE;
}

void path_opener_free(struct path_opener *o)
{
	if (!o)
		return;
	asked_child_end(&o->child);
	for (int i = 0; i < SILENT_MAX; i++)
		let_go(&o->silent[i].child);
	free(o);
}

void path_opener_rest(struct path_opener *o)
{
	asked_child_rest(&o->child);
}

void path_opener_totals(const struct path_opener *o, struct path_opener_totals *ret)
{
	*ret = o->totals;
	ret->died = o->child.died;
	ret->cpu_ns = asked_child_cpu_ns(&o->child);
}

/* ---- What does not answer ---- */

static void look_after(struct silent *s, uint64_t now)
{
	struct path_answer late;
	int fd, err = -EAGAIN;

	while (s->child.pid && (err = fork_receive(s->child.sock, &late, sizeof(late), &fd, 1, MSG_DONTWAIT)) == 0)
		close(fd);
	if (err != -EAGAIN)
		let_go(&s->child);
	if (!s->child.pid && now - s->since_ns > PATH_SILENT_NS)
		s->since_ns = 0;
}

/* How many are not forgotten; *ret_same: it would wait for the same as one of them. */
static int count_silent(struct path_opener *o, const struct path_ask *ask, bool *ret_same)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	int n = 0, of_others = 0, of_user = 0;

	*ret_same = false;
	for (int i = 0; i < SILENT_MAX; i++) {
		struct silent *s = &o->silent[i];

		if (s->since_ns)
			look_after(s, now);
		if (!s->since_ns)
			continue;
		n++;
		of_others += s->owner != 0;
		of_user += s->owner == ask->owner;
		*ret_same |= s->pid == ask->pid && ask->pid;
	}
	*ret_same |= n == SILENT_MAX || (ask->owner && (of_others >= OTHERS_MAX || of_user >= USER_MAX));
	return n;
}

/* There is room: count_silent has said so. */
static void give_up(struct path_opener *o, const struct path_ask *ask)
{
	struct silent *s = o->silent;

	while (s->since_ns)
		s++;
	o->totals.late++;
	o->child.cpu_ns += fork_child_cpu_ns(&o->child.now);
	fork_server_kill(o->child.server, &o->child.now);
	*s = (struct silent){ .child = o->child.now, .pid = ask->pid, .owner = ask->owner, .since_ns = clock_ns(CLOCK_MONOTONIC) };
	o->child.now = FORK_CHILD_NONE;
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

static bool is_sound(const struct path_ask *ask, const struct path_answer *a)
{
	if (a->question != ask->question || !memchr(a->path, 0, sizeof(a->path)))
		return false;
	if (a->err)
		return a->err == -ENOENT || a->err == -EFBIG || a->err == -ENOMEM;
	return ask->question != PATH_FILE || (a->place >= ask->first && a->place < ask->n);
}

/* A descriptor, or as path_open; -ECHILD is not counted yet. */
static int ask_once(struct path_opener *o, const struct path_ask *ask, int root, uint64_t limit, struct path_answer *ret)
{
	uint64_t start = clock_ns(CLOCK_MONOTONIC);
	int fd = -1, err = asked_child_send(&o->child, ask, offsetof(struct path_ask, paths) + ask->len, &root, 1);

	if (!err)
		err = fork_receive_until(o->child.now.sock, ret, sizeof(*ret), &fd, 1, start + limit);
	if (!err && !is_sound(ask, ret)) {
		close(fd);
		err = -ECHILD;
	}
	if (err == -ETIMEDOUT) {
		give_up(o, ask);
	} else if (err) {
		asked_child_lose(&o->child);
		err = -ECHILD;
	}
	o->child.used_ns = clock_ns(CLOCK_MONOTONIC);
	patience_spend(o->patience, ask->owner, o->child.used_ns - start);
	if (!err && ret->err)
		close(fd);
	return err ? err : ret->err ? ret->err : fd;
}

int path_open(struct path_opener *o, struct path_ask *ask, int root, struct path_answer *ret)
{
	uint64_t limit, most;
	bool silent;
	int fd, n;

	if (!o || (ask->question == PATH_FILE && ask->first >= ask->n))
		return -ENOENT;
	ask->at_root = root >= 0;
	n = count_silent(o, ask, &silent);
	limit = patience_have(o->patience, ask->owner);
	if (!silent && !limit) {
		o->totals.deferred++;
		return -EAGAIN;
	}
	/* The more do not answer, the less the next one is believed in: all together take a few seconds, whoever they belong to. */
	most = (ask->live ? LIVE_NS : PATIENCE_MOST_NS) >> (n < HALVED_MAX ? n : HALVED_MAX);
	limit = limit < most ? limit : most < PATIENCE_LEAST_NS ? PATIENCE_LEAST_NS : most;
	fd = silent ? -ETIMEDOUT : ask_once(o, ask, root, limit, ret);
	/* The child may have been ended by somebody else. */
	if (fd == -ECHILD)
		fd = ask_once(o, ask, root, limit, ret);
	if (fd < 0 && fd != -ENOENT && (fd != -EFBIG || ask->most))
		o->totals.failed++;
	return fd == -EFBIG || fd == -ENOMEM ? -ENOENT : fd;
}
