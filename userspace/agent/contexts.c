/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/contexts.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/context.h"
#include "base/idmap.h"
#include "base/num.h"
#include "base/process.h"
#include "base/share.h"
#include "base/user_account.h"
#include "base/vec.h"
#include "paths/process_context.h"

#define MAX_PROCESSES 16384
#define SHARED	      (MAX_PROCESSES / 4 * 3) /* number left after some were dropped for others */
#define TRIM_LEAST    1024
#define AGAIN_NS      (60 * NUM_S)
#define AGAIN_MOST_NS (8 * AGAIN_NS)
#define KEEP_NS	      (10 * 60 * NUM_S)
#define PAUSE_NS      NUM_S

struct process {
	uint32_t pid, owner;
	uint32_t next; /* the next in its queue: index into processes plus 1; 0: it is the last */
	bool queued;
	bool gone;
	uint64_t started; /* process_started */
	uint64_t seen_ns, due_ns;
	uint64_t wait_ns;     /* pause after the last question; 0: none was asked */
	uint64_t moved_ns;    /* when it last went to the queue of another user */
	uint64_t at;	      /* address of the context; 0: unknown */
	struct target *names; /* NULL: none */
};

/* The processes of a user that are to be asked, in the order in which they were seen. */
struct queue {
	uint32_t account;     /* the user's account; root's is 0 */
	uint32_t first, last; /* indices into processes plus 1; 0: there are none */
};

struct contexts {
	struct path_opener *opener;
	struct thread_links *links;
	struct idmap pids; /* index into processes */
	struct process *processes;
	size_t cap;
	struct idmap users; /* account -> index into queues */
	struct queue *queues;
	size_t queues_cap;
	uint32_t *turns; /* indices into queues, while processes are asked */
	size_t turns_cap;
	size_t named, trim_at;
	uint64_t last_ns;
	struct contexts_totals totals;
};

struct contexts *contexts_new(struct path_opener *opener, struct thread_links *links)
{
	struct contexts *c = calloc(1, sizeof(*c));

	if (c)
		*c = (struct contexts){ .opener = opener, .links = links, .trim_at = TRIM_LEAST };
	return c;
}

static void set_names(struct contexts *c, struct process *p, struct target *names)
{
	c->named += (names != NULL) - (size_t)(p->names != NULL);
	free(p->names);
	p->names = names;
}

void contexts_free(struct contexts *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->pids.n; i++)
		free(c->processes[i].names);
	idmap_free(&c->pids);
	free(c->processes);
	idmap_free(&c->users);
	free(c->queues);
	free(c->turns);
	free(c);
}

/* ---- Questions ---- */

static bool has_ended(uint32_t pid)
{
	return kill((pid_t)pid, 0) && errno == ESRCH;
}

/* 0, -EINVAL: it cannot be read; -EAGAIN: what its threads publish must be asked for later. */
static int take(struct contexts *c, struct process *p, int fd, const struct path_answer *a)
{
	static uint8_t buf[PROCESS_CONTEXT_MOST];
	struct target *names;
	bool threads;

	if (!a->size || a->size > sizeof(buf) ||
	    pread(fd, buf, (size_t)a->size, 0) != (ssize_t)a->size)
		return -EINVAL;
	names = malloc(sizeof(*names));
	if (!names || !context_parse(buf, (size_t)a->size, names, &threads)) {
		free(names);
		return -EINVAL;
	}
	set_names(c, p, names);
	/* It is asked again with the context if there is no other answer. */
	return threads && c->links && thread_links_find(c->links, p->pid, p->owner) == -EAGAIN
		       ? -EAGAIN
		       : 0;
}

/* false: it must be asked later, as earlier questions for names took too long. */
static bool ask(struct contexts *c, struct process *p, uint64_t now_ns)
{
	static struct path_answer answer;
	static struct path_ask what;
	uint64_t started;
	int fd, err;

	p->gone = has_ended(p->pid);
	started = p->gone ? 0 : process_started(p->pid);
	if (!started) {
		thread_links_forget(c->links, p->pid);
		p->due_ns = 0; /* another process may get the pid */
		return true;
	}
	if (started != p->started) {
		set_names(c, p, NULL);
		p->started = started;
		p->wait_ns = p->at = 0;
	}
	path_ask_begin(&what, PATH_CONTEXT, p->pid, p->owner);
	what.live = true;
	what.at = p->at;
	fd = path_open(c->opener, &what, -1, &answer);
	if (fd == -EAGAIN)
		return false;
	p->wait_ns = fd != -ENOENT || !p->wait_ns || p->names ? AGAIN_NS
		     : 2 * p->wait_ns < AGAIN_MOST_NS	      ? 2 * p->wait_ns
							      : AGAIN_MOST_NS;
	p->due_ns = now_ns + p->wait_ns;
	err = fd < 0 ? fd : take(c, p, fd, &answer);
	if (fd == -ENOENT)
		set_names(c, p, NULL);
	else if (!err)
		c->totals.read++;
	else if (err != -EAGAIN)
		c->totals.failed++;
	p->at = fd >= 0 ? answer.at : 0;
	if (fd >= 0)
		close(fd);
	return err != -EAGAIN;
}

bool contexts_due(const struct contexts *c, uint64_t now_ns)
{
	return now_ns - c->last_ns > PAUSE_NS;
}

/* ---- Who is asked next ---- */

/* The index of a user's queue. false: no memory. */
static bool queue_of(struct contexts *c, uint32_t owner, uint32_t *ret)
{
	size_t before = c->users.n;
	uint32_t account = user_account(owner);

	if (vec_reserve(&c->queues, &c->queues_cap, before + 1, sizeof(*c->queues)) ||
	    idmap_get(&c->users, account, 0, ret))
		return false;
	if (*ret == before)
		c->queues[*ret] = (struct queue){ .account = account };
	return true;
}

static void enqueue(struct contexts *c, uint32_t user, uint32_t id)
{
	struct process *p = &c->processes[id];
	struct queue *q = &c->queues[user];

	p->queued = true;
	p->next = 0;
	if (q->first)
		c->processes[q->last - 1].next = id + 1;
	else
		q->first = id + 1;
	q->last = id + 1;
}

/*
 * Asks the first one of a queue. false: there is none, or it must be asked later. A process that
 * has become another user's goes to that user's queue: those behind it shall not wait until that
 * user has time again.
 */
static bool ask_first(struct contexts *c, uint32_t user, uint64_t now_ns)
{
	uint32_t first = c->queues[user].first, now = user;
	struct process *p;

	if (!first)
		return false;
	p = &c->processes[first - 1];
	if (p->moved_ns == now_ns) /* once in each call: a process may change its user any time */
		return false;
	p->owner = process_user(p->pid);
	if (queue_of(c, p->owner, &now) && now != user)
		p->moved_ns = now_ns;
	else if (!ask(c, p, now_ns))
		return false;
	c->queues[user].first = p->next;
	p->queued = false;
	if (now != user)
		enqueue(c, now, first - 1);
	return true;
}

/*
 * Root's processes first, then one of each user, the next one of each, ... When one must be asked
 * later, so must the others of the same user.
 */
void contexts_ask(struct contexts *c, uint64_t now_ns)
{
	size_t n = 0, left;
	uint32_t root;

	c->last_ns = now_ns;
	if (idmap_find(&c->users, 0, 0, &root))
		while (ask_first(c, root, now_ns))
			;
	if (vec_reserve(&c->turns, &c->turns_cap, c->users.n, sizeof(*c->turns)))
		return;
	for (uint32_t i = 0; i < c->users.n; i++)
		if (c->queues[i].first && c->queues[i].account)
			c->turns[n++] = i;
	for (; n; n = left) {
		left = 0;
		for (size_t i = 0; i < n; i++)
			if (ask_first(c, c->turns[i], now_ns))
				c->turns[left++] = c->turns[i];
	}
}

bool contexts_any(const struct contexts *c)
{
	return c->named;
}

const struct target *contexts_of(struct contexts *c, uint32_t pid)
{
	struct process *p;
	uint64_t started;
	uint32_t id;

	if (!c->named || !idmap_find(&c->pids, pid, 0, &id))
		return NULL;
	p = &c->processes[id];
	started = p->names ? process_started(pid) : 0;
	if (started && started != p->started) { /* the pid has been reused */
		set_names(c, p, NULL);
		p->due_ns = 0;
	}
	return p->names;
}

/* ---- Which processes are known ---- */

/* Marks as gone what users have above a share of SHARED: what was not seen for longest. */
static void mark_above_share(struct contexts *c, size_t kept)
{
	const struct share_request ask = { .owner = SHARE_NO_USER,
					   .want = kept - SHARED,
					   .hot_since = UINT64_MAX };
	struct share_item *items = malloc(kept * sizeof(*items));
	size_t k = 0;
	long n = 0;

	for (size_t i = 0; items && i < c->pids.n; i++)
		if (!c->processes[i].gone)
			items[k++] = (struct share_item){
				.id = (uint32_t)i,
				.owner = user_account(c->processes[i].owner),
				.size = 1,
				.last = c->processes[i].seen_ns,
			};
	if (items)
		n = share_choose(items, k, &ask);
	for (long i = 0; i < n; i++)
		c->processes[items[i].id].gone = true;
	free(items);
}

/* Leaves out what is forgotten. to: the index that a process will have plus 1; 0: forgotten. */
static void renumber_queues(struct contexts *c, const uint32_t *to)
{
	for (size_t i = 0; i < c->users.n; i++) {
		struct queue *q = &c->queues[i];
		uint32_t next, *link = &q->first;

		q->last = 0;
		for (uint32_t at = q->first; at; at = next) {
			next = c->processes[at - 1].next;
			if (!to[at - 1])
				continue;
			*link = q->last = to[at - 1];
			link = &c->processes[at - 1].next;
		}
		*link = 0;
	}
}

/* Forgets the users without a process that is to be asked. */
static void drop_empty_queues(struct contexts *c)
{
	struct idmap kept = { 0 };
	size_t n = 0;
	uint32_t id;

	for (size_t i = 0; i < c->users.n; i++) {
		if (c->queues[i].first && idmap_get(&kept, c->queues[i].account, 0, &id)) {
			idmap_free(&kept);
			return;
		}
	}
	for (size_t i = 0; i < c->users.n; i++)
		if (c->queues[i].first)
			c->queues[n++] = c->queues[i];
	idmap_free(&c->users);
	c->users = kept;
}

/* Forgets the processes that are gone. */
static void drop_gone(struct contexts *c)
{
	uint32_t *to = malloc((c->pids.n + 1) * sizeof(*to)), id;
	struct idmap kept = { 0 };

	if (!to)
		return;
	for (size_t i = 0; i < c->pids.n; i++) {
		struct process *p = &c->processes[i];

		to[i] = p->gone || idmap_get(&kept, p->pid, 0, &id) ? 0 : id + 1;
		if (!to[i]) {
			thread_links_forget(c->links, p->pid);
			set_names(c, p, NULL);
		}
	}
	renumber_queues(c, to);
	drop_empty_queues(c);
	for (size_t i = 0; i < c->pids.n; i++)
		if (to[i])
			c->processes[to[i] - 1] = c->processes[i];
	free(to);
	idmap_free(&c->pids);
	c->pids = kept;
}

/*
 * Forgets processes that have ended or were not seen for long, and what users have above their
 * shares; also those that are to be asked.
 */
static void make_room(struct contexts *c, uint64_t now_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->pids.n; i++) {
		struct process *p = &c->processes[i];

		p->gone = now_ns - p->seen_ns >= KEEP_NS || has_ended(p->pid);
		kept += !p->gone;
	}
	if (kept > SHARED)
		mark_above_share(c, kept);
	drop_gone(c);
}

/* false: there is no room, or no memory. */
static bool meet(struct contexts *c, uint32_t pid, uint64_t now_ns, uint32_t *ret)
{
	if (c->pids.n >= MAX_PROCESSES || c->users.n >= MAX_PROCESSES)
		make_room(c, now_ns);
	if (c->pids.n >= MAX_PROCESSES ||
	    vec_reserve(&c->processes, &c->cap, c->pids.n + 1, sizeof(*c->processes)) ||
	    idmap_get(&c->pids, pid, 0, ret))
		return false;
	c->processes[*ret] = (struct process){ .pid = pid };
	return true;
}

void contexts_see(struct contexts *c, uint32_t pid, uint64_t now_ns)
{
	struct process *p;
	uint32_t id, user;

	if (!idmap_find(&c->pids, pid, 0, &id) && !meet(c, pid, now_ns, &id))
		return;
	p = &c->processes[id];
	p->seen_ns = now_ns;
	if (p->queued || p->due_ns > now_ns)
		return;
	p->owner = process_user(pid);
	if (queue_of(c, p->owner, &user))
		enqueue(c, user, id);
}

void contexts_trim(struct contexts *c, uint64_t now_ns)
{
	if (c->pids.n < c->trim_at)
		return;
	make_room(c, now_ns);
	c->trim_at = 2 * c->pids.n > TRIM_LEAST ? 2 * c->pids.n : TRIM_LEAST;
}

struct contexts_totals contexts_totals(const struct contexts *c)
{
	return c->totals;
}
