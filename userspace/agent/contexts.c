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
#include "base/vec.h"
#include "sym/process_context.h"

#define MAX_PROCESSES 16384
#define TRIM_LEAST    1024
#define AGAIN_NS      (60 * NUM_S)
#define AGAIN_MOST_NS (8 * AGAIN_NS)
#define KEEP_NS	      (10 * 60 * NUM_S)
#define PAUSE_NS      NUM_S

struct process {
	uint32_t pid;
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
	uint32_t *asked; /* indices of processes that are to be asked */
	size_t nasked, asked_cap;
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
	c->asked[c->nasked++] = id;
	p->due_ns = now_ns + AGAIN_NS;
}

/* false: it cannot be read. */
static bool take(struct contexts *c, struct process *p, uint32_t owner, int fd,
		 const struct path_answer *a)
{
	static uint8_t buf[PROCESS_CONTEXT_MOST];
	struct target *names;
	bool threads;

	if (!a->size || a->size > sizeof(buf) ||
	    pread(fd, buf, (size_t)a->size, 0) != (ssize_t)a->size)
		return false;
	names = malloc(sizeof(*names));
	if (!names || !context_parse(buf, (size_t)a->size, names, &threads)) {
		free(names);
		return false;
	}
	set_names(c, p, names);
	/* Without an answer it is asked again with the context. */
	if (threads && c->links)
		thread_links_find(c->links, p->pid, owner);
	return true;
}

/* false: it must be asked later, as earlier questions for names took too long. */
static bool ask(struct contexts *c, struct process *p, uint64_t now_ns)
{
	static struct path_answer answer;
	static struct path_ask what;
	uint64_t started;
	uint32_t owner;
	int fd;

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
	owner = process_user(p->pid);
	path_ask_begin(&what, PATH_CONTEXT, p->pid, owner);
	what.live = true;
	what.at = p->at;
	fd = path_open(c->opener, &what, -1, &answer);
	if (fd == -EAGAIN)
		return false;
	p->wait_ns = fd != -ENOENT || !p->wait_ns || p->names ? AGAIN_NS
		     : 2 * p->wait_ns < AGAIN_MOST_NS	      ? 2 * p->wait_ns
							      : AGAIN_MOST_NS;
	p->due_ns = now_ns + p->wait_ns;
	if (fd == -ENOENT)
		set_names(c, p, NULL);
	else if (fd >= 0 && take(c, p, owner, fd, &answer))
		c->totals.read++;
	else
		c->totals.failed++;
	p->at = fd >= 0 ? answer.at : 0;
	if (fd >= 0)
		close(fd);
	return true;
}

bool contexts_due(const struct contexts *c, uint64_t now_ns)
{
	return now_ns - c->last_ns > PAUSE_NS;
}

void contexts_ask(struct contexts *c, uint64_t now_ns)
{
	size_t i = 0;

	c->last_ns = now_ns;
	while (i < c->nasked && ask(c, &c->processes[c->asked[i]], now_ns))
		i++;
	c->nasked -= i;
	if (c->nasked)
		memmove(c->asked, c->asked + i, c->nasked * sizeof(*c->asked));
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
