/* SPDX-License-Identifier: BSD-2-Clause */
#include "tui/blocked.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/vec.h"
#include "prof/wait_notes.h"

void blocked_free(struct blocked *b)
{
	free(b->v);
	free(b->row_of);
	idmap_free(&b->ids);
	*b = (struct blocked){ 0 };
}

static uint64_t hash_stack(const struct profile_stack *s, const struct shown *f,
			   const uint32_t *ids)
{
	uint64_t h = hash_mix(hash_bytes(s->comm, strnlen(s->comm, SF_COMM)),
			      (uint64_t)s->state << 8 | s->stop);

	for (size_t i = 0; i < shown_count(f); i++)
		h = hash_mix(h, ids[shown_at(f, i)]);
	return h;
}

static void count_all(struct blocked *b, const struct profile_stack *s)
{
	b->all.ns += s->weight;
	if (!(s->flags & SF_SAMPLE_USER))
		return;
	b->all.user_ns += s->weight;
	b->all.stops[s->stop] += s->weight;
	if (s->stop == SF_STOP_COMPLETE)
		b->all.complete_ns += s->weight;
}

bool blocked_is_idle(const struct profile_stack *s, const uint32_t *ids,
		     const struct symbolizer *sz)
{
	return !s->count || wait_note_is_idle(wait_note_of(s, ids, sz));
}

static int add_stack(struct blocked *b, struct profile *p, uint32_t i, struct symbolizer *sz,
		     const struct selection *sel)
{
	struct blocked_stack *row;
	struct profile_stack s;
	const uint32_t *ids;
	struct shown f;
	uint64_t key;
	uint32_t id;

	b->row_of[i] = BLOCKED_NONE;
	profile_stack(p, i, &s);
	if (s.state == SF_OFF_R) /* measured for the wall: not blocked */
		return 0;
	count_all(b, &s);
	ids = profile_symbols(p, i, sz);
	if (!ids)
		return -ENOMEM;
	if ((sel->no_idle && blocked_is_idle(&s, ids, sz)) || !selection_takes(sel, &s, ids, sz))
		return 0;
	f = shown_frames(sel, &s);
	key = hash_stack(&s, &f, ids);
	if (idmap_get(&b->ids, key, shown_count(&f), &id) ||
	    vec_reserve(&b->v, &b->cap, b->ids.n, sizeof(*b->v)))
		return -ENOMEM;
	row = &b->v[id];
	if (id == b->n) {
		*row = (struct blocked_stack){ .key = key, .stack = i, .pid = s.pid };
		b->n++;
	}
	b->row_of[i] = id;
	if (row->pid != s.pid)
		row->pid = 0;
	row->ns += s.weight;
	row->blocks += s.count;
	b->ns += s.weight;
	return 0;
}

int blocked_build(struct blocked *b, struct profile *p, struct symbolizer *sz,
		  const struct selection *sel)
{
	int err = vec_reserve(&b->row_of, &b->row_of_cap, profile_count(p) + 1, sizeof(*b->row_of));

	b->n = 0;
	b->nstacks = err ? 0 : profile_count(p);
	b->ns = 0;
	memset(&b->all, 0, sizeof(b->all));
	idmap_reset(&b->ids);
	for (size_t i = 0; i < b->nstacks && !err; i++)
		err = add_stack(b, p, (uint32_t)i, sz, sel);
	if (err)
		blocked_free(b);
	return err;
}

static bool is_libc(const char *module)
{
	return !strncmp(module, "libc.so", 7) || !strncmp(module, "libc-", 5) ||
	       !strncmp(module, "libpthread", 10) || !strncmp(module, "ld-musl", 7);
}

size_t blocked_program_frame(const struct shown *f, const uint32_t *ids,
			     const struct symbolizer *sz)
{
	for (size_t i = f->nk; i < shown_count(f); i++)
		if (!is_libc(symbolizer_module(sz, ids[shown_at(f, i)])))
			return i;
	return f->nk;
}

const char *blocked_text(const struct blocked_stack *row, struct profile *p, struct symbolizer *sz,
			 const struct selection *sel, const char *between, char *dst, size_t cap)
{
	const uint32_t *ids = profile_symbols(p, row->stack, sz);
	struct profile_stack s;
	struct shown f;
	size_t n = 0, program = 0;

	dst[0] = 0;
	profile_stack(p, row->stack, &s);
	f = shown_frames(sel, &s);
	if (ids && f.nu)
		program = blocked_program_frame(&f, ids, sz);
	for (size_t i = 0; ids && i < shown_count(&f) && n < cap; i++)
		if ((!i && f.nk) || i >= program)
			n += (size_t)snprintf(dst + n, cap - n, "%s%s", n ? between : "",
					      symbolizer_name(sz, ids[shown_at(&f, i)]));
	if (!n)
		snprintf(dst, cap, "%s", symbolizer_name(sz, SYM_NO_STACK));
	return dst;
}
