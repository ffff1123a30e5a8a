/* SPDX-License-Identifier: BSD-2-Clause */
#include "kern/opener.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs_kind.h"
#include "base/num.h"

#define SOON_NS (OPENER_SOON_MS * NUM_MS)
#define LONG_NS (1000 * NUM_MS)		/* who has not answered for so long is not asked for another file */
#define GIVE_UP_NS (10000 * NUM_MS)
#define USER_MAX 2			/* files that a user, but root, may have us wait for */
#define COPY_MAX (128ull << 20)
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

void openers_init(struct openers *o, struct fork_server *server)
{
	*o = (struct openers){ .server = server };
	for (int i = 0; i < OPENERS; i++)
		o->all[i].child = FORK_CHILD_NONE;
}

/* They would wait for the same: a server, or a process whose mappings do not change hands. */
static bool same_fate(const struct sf_need *a, const struct sf_need *b)
{
	return a->owner == b->owner && (opener_is_local(a) ? a->pid == b->pid : a->key.dev == b->key.dev);
}

static const struct opener *a_free_one(const struct openers *o)
{
	const struct opener *free = NULL;

	for (int i = 0; i < OPENERS; i++)
		if (!o->all[i].busy && (!free || o->all[i].child.pid))
			free = &o->all[i];
	return free;
}

bool openers_ready(const struct openers *o, uint64_t now)
{
	for (int i = 0; i < OPENERS; i++)
		if (o->all[i].busy && now - o->all[i].since_ns < SOON_NS)
			return false;
	return true;
}

enum open_may openers_may(const struct openers *o, const struct sf_need *need, uint64_t now)
{
	uint64_t youngest = UINT64_MAX, of_fate = UINT64_MAX, of_user = UINT64_MAX, age;
	int user = 0;

	for (int i = 0; i < OPENERS; i++) {
		const struct opener *one = &o->all[i];

		if (!one->busy)
			continue;
		age = now - one->since_ns;
		youngest = age < youngest ? age : youngest;
		if (same_fate(need, &one->need))
			of_fate = age;
		if (need->owner == one->need.owner && need->owner) {
			of_user = age < of_user ? age : of_user;
			user++;
		}
	}
	if (of_fate != UINT64_MAX)
		return of_fate < LONG_NS ? OPEN_WAIT : OPEN_NEVER;
	if (user >= USER_MAX)
		return of_user < LONG_NS ? OPEN_WAIT : OPEN_NEVER;
	if (a_free_one(o))
		return OPEN_NOW;
	return youngest < LONG_NS ? OPEN_WAIT : OPEN_NEVER;
}

static void forget(struct opener *one)
{
	close(one->child.sock);
	close(one->child.mem);
	*one = (struct opener){ .child = FORK_CHILD_NONE };
}

static void end(struct openers *o, struct opener *one)
{
	o->spent_ns += fork_child_cpu_ns(&one->child);
	fork_server_end(o->server, &one->child);
	one->busy = false;
}

int openers_ask(struct openers *o, const struct sf_need *need, uint64_t copied)
{
	const struct open_ask ask = {
		.pid = need->pid, .copy = kind_of(need) == FS_USERS, .start = need->vm_start, .end = need->vm_end, .ino = need->key.ino, .mtime_ns = need->key.mtime_ns,
		.most = copied < COPIES_MAX - COPY_MAX ? COPY_MAX : copied < COPIES_MAX ? COPIES_MAX - copied : 0,
	};
	struct opener *one = (struct opener *)a_free_one(o);
	int err = one ? 0 : -EAGAIN;

	for (int tries = 0; one && tries < 2; tries++) {
		err = one->child.pid ? 0 : fork_server_child(o->server, open_child_main, &one->child);
		if (!err)
			err = fork_send(one->child.sock, &ask, sizeof(ask), NULL, 0, MSG_DONTWAIT);
		if (!err || !one->child.pid)
			break;
		o->died++;	/* while it was idle */
		end(o, one);
	}
	if (!err) {
		one->busy = true;
		one->need = *need;
		one->since_ns = clock_ns(CLOCK_MONOTONIC);
	}
	return err;
}

/* One that has nothing to do is enough. */
static void end_spare(struct openers *o, const struct opener *one)
{
	for (int i = 0; i < OPENERS; i++)
		if (&o->all[i] != one && o->all[i].child.pid && !o->all[i].busy)
			end(o, &o->all[i]);
}

static enum open_event look(struct openers *o, struct opener *one, struct open_answer *ret, int *fd)
{
	int err = fork_receive(one->child.sock, ret, sizeof(*ret), fd, 1, MSG_DONTWAIT);

	if (one->killed) {
		if (!err)
			close(*fd);
		else if (err != -EAGAIN)
			forget(one);
		return OPEN_NOTHING;
	}
	if (!err) {
		one->busy = ret->err == -EINPROGRESS;
		ret->path[sizeof(ret->path) - 1] = 0;
		if (ret->err)
			close(*fd);
		if (one->busy)
			return OPEN_PATH;
		end_spare(o, one);
		return OPEN_DONE;
	}
	if (err != -EAGAIN) {
		o->died++;
		end(o, one);
		return OPEN_DIED;
	}
	if (clock_ns(CLOCK_MONOTONIC) - one->since_ns < GIVE_UP_NS)
		return OPEN_NOTHING;
	o->late++;
	one->killed = true;
	fork_server_kill(o->server, &one->child);
	return OPEN_LATE;
}

enum open_event openers_look(struct openers *o, struct sf_need *need, struct open_answer *ret, int *fd)
{
	for (int i = 0; i < OPENERS; i++) {
		enum open_event event;

		if (!o->all[i].busy)
			continue;
		*need = o->all[i].need;
		event = look(o, &o->all[i], ret, fd);
		if (event != OPEN_NOTHING)
			return event;
	}
	return OPEN_NOTHING;
}

bool openers_busy(const struct openers *o)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	for (int i = 0; i < OPENERS; i++)
		if (o->all[i].busy && now - o->all[i].since_ns < LONG_NS)
			return true;
	return false;
}

int openers_poll(const struct openers *o, struct pollfd p[OPENERS], int ms)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	for (int i = 0; i < OPENERS; i++) {
		const struct opener *one = &o->all[i];
		int look_ms = now - one->since_ns < LONG_NS ? OPENER_SOON_MS : (int)(LONG_NS / NUM_MS);

		p[i] = (struct pollfd){ .fd = one->busy ? one->child.sock : -1, .events = POLLIN };
		if (one->busy && ms > look_ms)
			ms = look_ms;
	}
	return ms;
}

uint64_t openers_cpu_ns(const struct openers *o)
{
	uint64_t ns = o->spent_ns;

	for (int i = 0; i < OPENERS; i++)
		ns += fork_child_cpu_ns(&o->all[i].child);
	return ns;
}

/* Nobody waits for those that are busy: when the server is stopped, they are nobody's. */
void openers_end(struct openers *o)
{
	for (int i = 0; i < OPENERS; i++)
		if (o->all[i].busy)
			forget(&o->all[i]);
		else
			end(o, &o->all[i]);
}
