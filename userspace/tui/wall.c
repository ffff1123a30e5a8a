/* SPDX-License-Identifier: BSD-2-Clause */
#include "tui/wall.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "tui/blocked.h"

void wall_free(struct wall *w)
{
	free(w->v);
	free(w->parts);
	idmap_free(&w->pids);
	idmap_free(&w->ids);
	*w = (struct wall){ 0 };
}

static enum wall_kind kind_of(enum wait_note note)
{
	static const uint8_t kinds[WAIT_NOTES] = {
		[WAIT_RUNNING] = WALL_RUNNING, [WAIT_RUNNABLE] = WALL_READY,
		[WAIT_FUTEX] = WALL_LOCK,      [WAIT_LOCK] = WALL_LOCK,
		[WAIT_IO] = WALL_IO,	       [WAIT_SOCKET] = WALL_PEER,
		[WAIT_PIPE] = WALL_PEER,       [WAIT_ANSWER] = WALL_PEER,
		[WAIT_SLEEP] = WALL_SLEEP,     [WAIT_CHILD] = WALL_OTHER,
		[WAIT_STOPPED] = WALL_OTHER,   [WAIT_OTHER] = WALL_OTHER,
	};

	return wait_note_is_idle(note) ? WALL_IDLE : (enum wall_kind)kinds[note];
}

static struct wall_process *process_of(struct wall *w, const struct profile_stack *s)
{
	struct wall_process *p;
	uint32_t id;

	if (idmap_get(&w->pids, s->pid, 0, &id) ||
	    vec_reserve(&w->v, &w->cap, w->pids.n, sizeof(*w->v)))
		return NULL;
	p = &w->v[id];
	if (id == w->n) {
		*p = (struct wall_process){ .pid = s->pid };
		strncpy(p->name, s->process, SF_COMM - 1);
		w->n++;
	}
	return p;
}

static struct wall_part *part_of(struct wall *w, uint32_t process, enum wait_note note,
				 enum wall_kind kind)
{
	struct wall_part *part;
	uint32_t id;

	if (idmap_get(&w->ids, (uint64_t)process << 16 | (uint64_t)note << 8 | kind, 0, &id) ||
	    vec_reserve(&w->parts, &w->parts_cap, w->ids.n, sizeof(*w->parts)))
		return NULL;
	part = &w->parts[id];
	if (id == w->nparts) {
		*part = (struct wall_part){ .process = process, .note = note, .kind = kind };
		w->nparts++;
	}
	return part;
}

/* per_ns: threads for each nanosecond of the window */
static int add(struct wall *w, const struct profile_stack *s, uint32_t stack, uint64_t ns,
	       double per_ns, enum wait_note note, enum wall_kind kind)
{
	struct wall_process *p = process_of(w, s);
	struct wall_part *part = p ? part_of(w, (uint32_t)(p - w->v), note, kind) : NULL;

	if (!part)
		return -ENOMEM;
	p->threads[kind] += (double)ns * per_ns;
	part->threads += (double)ns * per_ns;
	if (ns >= part->most) {
		part->most = ns;
		part->stack = stack;
	}
	return 0;
}

static int add_running(struct wall *w, const struct wall_windows *from, struct symbolizer *sz,
		       const struct selection *sel)
{
	double per_ns = from->running_s > 0 ? 1e-9 / from->running_s : 0;
	size_t n = profile_count(from->running);
	struct profile_stack s;
	int err = 0;

	for (size_t i = 0; i < n && !err && from->period_ns; i++) {
		const uint32_t *ids = profile_symbols(from->running, i, sz);

		profile_stack(from->running, i, &s);
		if (!ids)
			err = -ENOMEM;
		else if (selection_takes(sel, &s, ids, sz))
			err = add(w, &s, (uint32_t)i, s.count * from->period_ns, per_ns,
				  WAIT_RUNNING, WALL_RUNNING);
	}
	return err;
}

static int add_blocked(struct wall *w, const struct wall_windows *from, struct symbolizer *sz,
		       const struct selection *sel)
{
	double per_ns = from->blocked_s > 0 ? 1e-9 / from->blocked_s : 0;
	size_t n = profile_count(from->blocked);
	struct profile_stack s;
	int err = 0;

	for (size_t i = 0; i < n && !err; i++) {
		const uint32_t *ids = profile_symbols(from->blocked, i, sz);
		enum wait_note note;
		bool idle;

		profile_stack(from->blocked, i, &s);
		if (!ids)
			return -ENOMEM;
		if (!selection_takes(sel, &s, ids, sz))
			continue;
		note = wait_note_of(&s, ids, sz);
		idle = note != WAIT_RUNNABLE && blocked_is_idle(&s, ids, sz);
		if (!idle || !sel->no_idle)
			err = add(w, &s, (uint32_t)i, s.weight, per_ns, note,
				  idle ? WALL_IDLE : kind_of(note));
	}
	return err;
}

static int by_process(const void *a, const void *b)
{
	const struct wall_part *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->threads != y->threads)
		return x->threads > y->threads ? -1 : 1;
	return x->note < y->note ? -1 : x->note > y->note;
}

int wall_build(struct wall *w, const struct wall_windows *from, struct symbolizer *sz,
	       const struct selection *sel)
{
	int err;

	w->n = w->nparts = 0;
	idmap_reset(&w->pids);
	idmap_reset(&w->ids);
	err = add_running(w, from, sz, sel);
	if (!err)
		err = add_blocked(w, from, sz, sel);
	if (err) {
		wall_free(w);
		return err;
	}
	for (size_t i = 0; i < w->n; i++)
		for (int kind = 0; kind < WALL_KINDS; kind++)
			w->v[i].sum += w->v[i].threads[kind];
	if (w->nparts)
		qsort(w->parts, w->nparts, sizeof(*w->parts), by_process);
	return 0;
}

size_t wall_parts(const struct wall *w, uint32_t process, size_t *ret_n)
{
	size_t first = 0, end;

	while (first < w->nparts && w->parts[first].process != process)
		first++;
	for (end = first; end < w->nparts && w->parts[end].process == process;)
		end++;
	*ret_n = end - first;
	return first;
}
