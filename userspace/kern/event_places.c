/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds where tracepoints and probes are, and what their hits count for. */
#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/num.h"
#include "base/text.h"
#include "base/vec.h"
#include "kern/event_regs.h"
#include "kern/events.h"
#include "kern/tracepoint.h"

struct resolving {
	struct events *all;
	struct event *e;
	struct elf_reader *reader;
	const uint32_t *pids;
	size_t npids;
	size_t places; /* number of places of all events */
	int tracefs;   /* -1: not open yet */
	char *why;
	size_t cap;
};

static int fail(struct resolving *r, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int fail(struct resolving *r, int err, const char *fmt, ...)
{
	size_t n = (size_t)snprintf(r->why, r->cap, "%s: ", r->e->name);
	va_list args;

	va_start(args, fmt);
	if (n < r->cap)
		vsnprintf(r->why + n, r->cap - n, fmt, args);
	va_end(args);
	return err;
}

static int add(struct resolving *r, const struct event_place *place)
{
	struct event *e = r->e;

	if (r->places++ == EVENT_PLACES)
		return fail(r, -E2BIG, "there are more than %d places", EVENT_PLACES);
	if (vec_reserve(&e->places, &e->cap, e->nplaces + 1, sizeof(*e->places)))
		return -ENOMEM;
	e->places[e->nplaces] = *place;
	e->places[e->nplaces].site.event = (uint8_t)(e - r->all->v);
	e->places[e->nplaces++].site.filtered = e->filter != NULL;
	return 0;
}

/* ---- Tracepoints ---- */

static int field_value(struct resolving *r, const struct tracepoint *t, struct sf_event_site *ret)
{
	const struct tracepoint_field *f;
	char known[512] = "";
	size_t len = 0;

	if (!r->e->arg)
		return 0;
	f = tracepoint_field(t, r->e->arg, strlen(r->e->arg));
	if (f && !f->dynamic && !f->text && f->size <= 8) {
		ret->value = SF_VALUE_HERE;
		ret->at = f->at;
		ret->size = r->e->arg_size ? r->e->arg_size : (uint8_t)f->size;
		ret->is_signed = r->e->arg_size ? r->e->arg_signed : f->is_signed;
		return 0;
	}
	for (size_t i = 0; i < t->nfields && len < sizeof(known); i++)
		len += (size_t)snprintf(known + len, sizeof(known) - len, " %s", t->fields[i].name);
	return fail(r, -ENOENT, "it has no number '%s'; its fields:%s", r->e->arg, known);
}

static int add_tracepoint(void *ctx, const char *system, const char *name)
{
	struct resolving *r = ctx;
	struct event *e = r->e;
	struct event_place place = { .site = { .value = SF_VALUE_ONE, .size = 8 } };
	char why[256];
	struct tracepoint *t = malloc(sizeof(*t));
	int err = t ? tracepoint_read(r->tracefs, system, name, t) : -ENOMEM;

	/* Some cannot be opened; a pattern need not mean them. */
	if (err == -ENOENT || !t) {
		free(t);
		return t ? 0 : -ENOMEM;
	}
	place.config = err ? 0 : t->id;
	if (!err)
		err = field_value(r, t, &place.site);
	if (!err && e->filter && e->nplaces)
		err = fail(r, -EINVAL, "--filter is for one tracepoint, not for a pattern");
	if (!err && e->filter && event_filter_compile(t, e->filter, &e->tests, why, sizeof(why)))
		err = fail(r, -EINVAL, "--filter '%s': %s", e->filter, why);
	if (!err)
		err = add(r, &place);
	free(t);
	return err;
}

struct matching {
	struct resolving *r;
	struct text_near near;
	char nearest[256];
};

static int try_tracepoint(void *ctx, const char *system, const char *name)
{
	struct matching *m = ctx;
	const char *before = m->near.best;
	char full[256];

	snprintf(full, sizeof(full), "%s:%s", system, name);
	if (!fnmatch(m->r->e->what, full, 0))
		return add_tracepoint(m->r, system, name);
	text_near_try(&m->near, full);
	if (m->near.best != before) {
		snprintf(m->nearest, sizeof(m->nearest), "%s", full);
		m->near.best = m->nearest;
	}
	return 0;
}

static int resolve_tracepoint(struct resolving *r)
{
	struct event *e = r->e;
	struct matching m = { .r = r, .near = { .word = e->what, .len = strlen(e->what) } };
	bool wild = strpbrk(e->what, "*?[") != NULL;
	char *colon = strchr(e->what, ':');
	int err = 0;

	if (r->tracefs < 0)
		r->tracefs = tracefs_open();
	if (r->tracefs < 0)
		return fail(r, r->tracefs, "tracefs cannot be read: %s", strerror(-r->tracefs));
	if (!wild) {
		*colon = 0;
		err = add_tracepoint(r, e->what, colon + 1);
		*colon = ':';
	}
	if (!err && !e->nplaces)
		err = tracepoints_each(r->tracefs, try_tracepoint, &m);
	if (err || e->nplaces)
		return err;
	return fail(r, -ENOENT, "the kernel has no such tracepoint%s%s",
		    m.near.best ? "; did you mean " : "", m.near.best ? m.near.best : "");
}

/* ---- Probes ---- */

static int register_value(struct resolving *r, bool go, struct sf_event_site *ret)
{
	const char *arg = r->e->arg;
	uint64_t n;
	int at;

	if (r->e->at_return)
		at = !strcmp(arg, "ret") || !strcmp(arg, "retval") ? event_result() : -1;
	else
		at = strncmp(arg, "arg", 3) || num_u64(arg + 3, 1, 99, &n)
			     ? -1
			     : event_argument((unsigned int)n, go);
	if (at < 0)
		return fail(r, -ENOENT, "'%s' is not %s", arg,
			    r->e->at_return ? "ret, the result of a function"
					    : "an argument in a register: arg1, arg2, ...");
	ret->value = SF_VALUE_HERE;
	ret->at = (uint16_t)at;
	return 0;
}

static int usdt_value(struct resolving *r, const char *args, struct sf_event_site *ret)
{
	uint64_t n;
	int err;

	if (strncmp(r->e->arg, "arg", 3) || num_u64(r->e->arg + 3, 1, 99, &n))
		return fail(r, -ENOENT, "'%s' is not an argument: arg1, arg2, ...", r->e->arg);
	err = event_usdt_argument(args, (unsigned int)n, ret);
	if (err)
		return fail(r, err,
			    err == -ENOENT ? "it has no argument '%s': it has \"%s\""
					   : "the form of '%s' is not known: it has \"%s\"",
			    r->e->arg, args);
	return 0;
}

/* The exit of a call that begins at the place, where its code does not show the exits. */
static int add_return(struct resolving *r, struct event_place place)
{
	place.at_return = true;
	place.site.call = SF_CALL_EXIT;
	return add(r, &place);
}

static int add_probe(struct resolving *r, const struct elf_probes *p, uint32_t i, uint64_t offset)
{
	struct event_place place = { .offset = p->v[i].off + offset,
				     .semaphore = p->v[i].semaphore,
				     .at_return = r->e->at_return,
				     .site = { .value = SF_VALUE_ONE, .size = 8 } };
	int err = 0;

	place.site.call = p->v[i].kind == PROBE_EXIT ? SF_CALL_EXIT : (uint8_t)r->e->call;
	if (p->v[i].kind == PROBE_EXIT && !p->exits_known)
		return 0;
	if (r->e->call == SF_CALL_WAKE && p->v[i].kind != PROBE_EXIT)
		return 0;
	if (r->e->call == SF_CALL_WAKE)
		place.site.call = SF_CALL_WAKE;

	if (r->e->arg)
		err = r->e->usdt ? usdt_value(r, p->text + p->v[i].args, &place.site)
				 : register_value(r, p->go, &place.site);
	if (!err && r->e->arg_size) {
		place.site.size = r->e->arg_size;
		place.site.is_signed = r->e->arg_signed;
	}
	if (!err)
		err = add(r, &place);
	return !err && r->e->call == SF_CALL_ENTRY && !p->exits_known ? add_return(r, place) : err;
}

static int no_probe(struct resolving *r, const char *nearest)
{
	return fail(r, -ENOENT, "%s has no such %s%s%s", r->e->path,
		    r->e->usdt ? "USDT probe" : "function", *nearest ? "; did you mean " : "",
		    nearest);
}

/* FUNCTION[+OFFSET] */
static char *pattern_of(const struct event *e, uint64_t *ret_offset)
{
	char *pattern = strdup(e->what), *plus = pattern ? strrchr(pattern, '+') : NULL, *end;

	*ret_offset = 0;
	if (plus && plus[1] >= '0' && plus[1] <= '9') {
		*ret_offset = strtoull(plus + 1, &end, 0);
		if (!*end)
			*plus = 0;
		else
			*ret_offset = 0;
	}
	return pattern;
}

static bool asks_exits(const struct event *e)
{
	return e->call == SF_CALL_ENTRY || e->call == SF_CALL_WAKE;
}

/* Return probes find all exits of functions, but change the stacks of the program. */
static int check_returns(struct resolving *r, const struct elf_probes *p)
{
	const struct event *e = r->e;

	if (e->call == SF_CALL_PARK || (!e->at_return && (!asks_exits(e) || p->exits_known)))
		return 0;
	if (p->go && !e->at_return)
		return fail(r, -EINVAL,
			    "the code of the function does not show where it ends (it jumps to "
			    "another one): name a function above or below it");
	/* The runtime finds another return address than its own on a stack that it moves. */
	if (p->go)
		return fail(r, -EINVAL,
			    "%s is a program in Go, which a return probe would break; use uprobe",
			    e->path);
	if (e->call != SF_CALL_ENTRY || !p->throws || e->returns)
		return 0;
	return fail(r, -EINVAL,
		    "the code of the function does not show where it ends (it jumps to another "
		    "one), and an exception that passes a return probe ends %s: name a function "
		    "above or below it, or take the risk with --return-probes",
		    e->path);
}

static int resolve_probe(struct resolving *r)
{
	static const enum elf_probes_of questions[2][2] = {
		{ ELF_PROBES_FUNCTIONS, ELF_PROBES_CALLS }, { ELF_PROBES_USDT, ELF_PROBES_USDT }
	};
	struct elf_probes p = { .v = NULL };
	struct event *e = r->e;
	uint64_t offset;
	char *pattern;
	int err;

	e->fd = event_file_open(e->path, r->pids, r->npids);
	if (e->fd < 0)
		return fail(r, e->fd, "%s: %s", e->path, strerror(-e->fd));
	pattern = pattern_of(e, &offset);
	err = pattern ? elf_reader_probes(r->reader, e->fd, questions[e->usdt][asks_exits(e)],
					  pattern, &p)
		      : -ENOMEM;
	free(pattern);
	if (err)
		return fail(r, err, "reading %s: %s", e->path, strerror(-err));
	e->go = p.go;
	err = p.n ? check_returns(r, &p) : no_probe(r, p.text);
	for (uint32_t i = 0; i < p.n && !err; i++)
		err = add_probe(r, &p, i, offset);
	elf_probes_free(&p);
	return err;
}

int events_resolve(struct events *all, struct elf_reader *reader, const uint32_t *pids,
		   size_t npids, char *why, size_t cap)
{
	struct resolving r = { .all = all,
			       .reader = reader,
			       .pids = pids,
			       .npids = npids,
			       .tracefs = -1,
			       .why = why,
			       .cap = cap };
	int err = 0;

	*why = 0;
	for (size_t i = 0; i < all->n && !err; i++) {
		r.e = &all->v[i];
		r.places += r.e->nplaces;
		if (r.e->nplaces)
			continue;
		if (r.e->from == EVENT_TRACEPOINT)
			err = resolve_tracepoint(&r);
		else if (r.e->from == EVENT_PROBE)
			err = resolve_probe(&r);
		if (err && !*why)
			fail(&r, err, "%s", strerror(-err));
	}
	if (r.tracefs >= 0)
		close(r.tracefs);
	return err;
}
