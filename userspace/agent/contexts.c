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
#include "base/user_account.h"
#include "base/vec.h"
#include "sym/process_context.h"

#define MAX_PROCESSES 16384
#define TRIM_LEAST    1024
#define AGAIN_NS      (60 * NUM_S)
#define AGAIN_MOST_NS (8 * AGAIN_NS)
#define KEEP_NS	      (10 * 60 * NUM_S)
#define PAUSE_NS      NUM_S

struct process {
	uint32_t pid, owner;
	bool gone;
	uint64_t started; /* process_started */
	uint64_t seen_ns, due_ns;
	uint64_t wait_ns;     /* after the last question; 0: none was asked */
	uint64_t at;	      /* address of the context; 0: unknown */
	struct target *names; /* NULL: none */
};

struct contexts {
	struct path_opener *opener;
	struct thread_links *links;
	struct idmap pids; /* index into processes */
	struct process *processes;
	size_t cap;
	struct asked {
		uint32_t id;   /* index into processes */
		uint32_t turn; /* how many of the same user come before it; 0 for root */
	} * asked;	       /* they are to be asked, in the order in which they were seen */
	size_t nasked, asked_cap;
	struct idmap users; /* owner -> index into turns */
	uint32_t *turns;
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
	free(c->asked);
	idmap_free(&c->users);
	free(c->turns);
	free(c);
}

void contexts_see(struct contexts *c, uint32_t pid, uint64_t now_ns)
{
	size_t before = c->pids.n;
	struct process *p;
	uint32_t id;

	if (before >= MAX_PROCESSES ? !idmap_find(&c->pids, pid, 0, &id)
				    : vec_reserve(&c->processes, &c->cap, before + 1, sizeof(*p)) ||
					      idmap_get(&c->pids, pid, 0, &id))
		return;
	p = &c->processes[id];
	if (id == before)
		*p = (struct process){ .pid = pid };
	p->seen_ns = now_ns;
	if (p->due_ns > now_ns ||
	    vec_reserve(&c->asked, &c->asked_cap, c->nasked + 1, sizeof(*c->asked)))
		return;
	p->owner = process_user(pid);
	c->asked[c->nasked++] = (struct asked){ .id = id };
	p->due_ns = now_ns + AGAIN_NS;
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
	/* Without another answer it is asked again with the context. */
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

	p->gone = kill((pid_t)p->pid, 0) && errno == ESRCH;
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
	p->owner = process_user(p->pid);
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

/* The entry of a user in turns. NULL: no memory. */
static uint32_t *turn_of(struct contexts *c, uint32_t owner)
{
	size_t before = c->users.n;
	uint32_t id;

	if (vec_reserve(&c->turns, &c->turns_cap, before + 1, sizeof(*c->turns)) ||
	    idmap_get(&c->users, user_account(owner), 0, &id))
		return NULL;
	if (id == before)
		c->turns[id] = 0;
	return &c->turns[id];
}

static int by_turn(const void *a, const void *b)
{
	const struct asked *x = a, *y = b;

	return x->turn != y->turn ? (x->turn < y->turn ? -1 : 1)
	       : x->id != y->id	  ? (x->id < y->id ? -1 : 1)
				  : 0;
}

/* Root's processes first, then one of each user, the next one of each, ... */
static void take_turns(struct contexts *c)
{
	idmap_reset(&c->users);
	for (size_t i = 0; i < c->nasked; i++) {
		uint32_t owner = c->processes[c->asked[i].id].owner,
			 *turn = owner ? turn_of(c, owner) : NULL;

		c->asked[i].turn = turn ? ++*turn : 0;
	}
	qsort(c->asked, c->nasked, sizeof(*c->asked), by_turn);
}

void contexts_ask(struct contexts *c, uint64_t now_ns)
{
	size_t left = 0;

	c->last_ns = now_ns;
	take_turns(c);
	/* In turns, what was refused to a user is UINT32_MAX: the others are still asked. */
	for (size_t i = 0; i < c->nasked; i++) {
		struct process *p = &c->processes[c->asked[i].id];
		uint32_t *turn = turn_of(c, p->owner);

		if ((turn && *turn == UINT32_MAX) || !ask(c, p, now_ns)) {
			c->asked[left++] = c->asked[i];
			if (turn)
				*turn = UINT32_MAX;
		}
	}
	c->nasked = left;
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

void contexts_trim(struct contexts *c, uint64_t now_ns)
{
	struct idmap kept = { 0 };
	size_t n = 0;
	uint32_t id;

	if (c->pids.n < c->trim_at || c->nasked)
		return;
	for (size_t i = 0; i < c->pids.n; i++) {
		struct process *p = &c->processes[i];

		if (!p->gone && now_ns - p->seen_ns < KEEP_NS && !idmap_get(&kept, p->pid, 0, &id))
			c->processes[n++] = *p;
		else {
			thread_links_forget(c->links, p->pid);
			set_names(c, p, NULL);
		}
	}
	idmap_free(&c->pids);
	c->pids = kept;
	c->trim_at = 2 * n > TRIM_LEAST ? 2 * n : TRIM_LEAST;
}

struct contexts_totals contexts_totals(const struct contexts *c)
{
	return c->totals;
}
