/* SPDX-License-Identifier: BSD-2-Clause */
/* The spelling of events; kern/event_places.c finds where they are. */
#include "kern/events.h"

#include <errno.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

struct said {
	char *why;
	size_t cap;
};

static int fail(struct said s, int err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static int fail(struct said s, int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(s.why, s.cap, fmt, args);
	va_end(args);
	return err;
}

/* ---- Perf events ---- */

/* perf's names of cache events, by config: cache | operation << 8 | result << 16 */
static bool cache_event(const char *name, struct perf_event_kind *ret)
{
	static const char *const caches[] = { "L1-dcache", "L1-icache", "LLC", "dTLB",
					      "iTLB",	   "branch",	"node" };
	static const char *const operations[][2] = { { "-loads", "-load-misses" },
						     { "-stores", "-store-misses" },
						     { "-prefetches", "-prefetch-misses" } };

	for (uint64_t c = 0; c < sizeof(caches) / sizeof(caches[0]); c++) {
		size_t len = strlen(caches[c]);

		if (strncmp(name, caches[c], len))
			continue;
		for (uint64_t op = 0; op < 3; op++)
			for (uint64_t miss = 0; miss < 2; miss++)
				if (!strcmp(name + len, operations[op][miss])) {
					ret->type = PERF_TYPE_HW_CACHE;
					ret->config = c | op << 8 | miss << 16;
					return true;
				}
	}
	return false;
}

/* "r00c0": the number that the processor's manual has for an event */
static bool raw_event(const char *name, struct perf_event_kind *ret)
{
	char *end;

	if (*name != 'r' || !name[1] || strspn(name + 1, "0123456789abcdefABCDEF") > 16)
		return false;
	ret->type = PERF_TYPE_RAW;
	ret->config = strtoull(name + 1, &end, 16);
	return !*end;
}

/* u, k: not in the other mode. The other letters choose guests and precision: perf's defaults. */
static bool take_modifiers(const char *text, struct perf_event_kind *ret)
{
	bool user = strchr(text, 'u') != NULL, kernel = strchr(text, 'k') != NULL;

	ret->no_user = kernel && !user;
	ret->no_kernel = user && !kernel;
	return *text && strspn(text, "ukhGHpPS") == strlen(text);
}

static bool perf_kind(const char *spelling, struct perf_event_kind *ret)
{
	const char *colon = strchr(spelling, ':');
	const struct perf_event_kind *known;
	char name[64];
	size_t len = colon ? (size_t)(colon - spelling) : strlen(spelling);

	if (len >= sizeof(name))
		return false;
	memcpy(name, spelling, len);
	name[len] = 0;
	*ret = (struct perf_event_kind){ .name = NULL };
	known = perf_event_named(name);
	if (known)
		*ret = *known;
	return (known || cache_event(name, ret) || raw_event(name, ret)) &&
	       (!colon || take_modifiers(colon + 1, ret));
}

/* ---- Tracepoints and probes ---- */

static int take_arg_type(struct event *e, const char *type)
{
	static const char *const names[] = { "u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64" };

	if (!strcmp(type, "bytes")) {
		e->bytes = true;
		return 0;
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(type, names[i])) {
			e->arg_size = (uint8_t)(1u << i / 2);
			e->arg_signed = i & 1;
			return 0;
		}
	return -EINVAL;
}

/* Cuts "=ARG[:TYPE][:bytes]" off the text. */
static int take_arg(struct event *e, char *text, struct said said)
{
	char *equals = strrchr(text, '='), *colon;
	bool probe = e->from == EVENT_PROBE;

	/* Names of operators end with =. */
	if (!equals || !equals[1] ||
	    (equals > text && probe && strncmp(equals + 1, "arg", 3) &&
	     strncmp(equals + 1, "ret", 3)))
		return 0;
	*equals = 0;
	for (colon = strrchr(equals + 1, ':'); colon; colon = strrchr(equals + 1, ':')) {
		*colon = 0;
		if (take_arg_type(e, colon + 1))
			return fail(said, -EINVAL,
				    "'%s' is no unit or type of a number (bytes, s32, u32, ...)",
				    colon + 1);
	}
	e->arg = strdup(equals + 1);
	return e->arg ? 0 : -ENOMEM;
}

/* "PATH:WHAT[=ARG]" after the kind of probe */
static int parse_probe(struct event *e, char *text, struct said said)
{
	char *colon;
	int err;

	e->from = EVENT_PROBE;
	err = take_arg(e, text, said);
	if (err)
		return err;
	colon = strchr(text, ':');
	if (!colon || colon == text || !colon[1])
		return fail(said, -EINVAL, "'%s' is not PATH:%s", text,
			    e->usdt ? "PROVIDER:NAME" : "FUNCTION");
	*colon = 0;
	e->path = strdup(text);
	e->what = strdup(colon + 1);
	return e->path && e->what ? 0 : -ENOMEM;
}

static int parse_tracepoint(struct event *e, char *text, struct said said)
{
	int err;

	e->from = EVENT_TRACEPOINT;
	err = take_arg(e, text, said);
	if (err)
		return err;
	if (!strchr(text, ':') || strchr(text, ':') == text)
		return fail(said, -EINVAL, "'%s' is not SYSTEM:NAME", text);
	e->what = strdup(text);
	return e->what ? 0 : -ENOMEM;
}

static int unknown(const char *name, struct said said)
{
	struct text_near near = { .word = name, .len = strlen(name) };
	const struct perf_event_kind *k;

	for (unsigned int i = 0; (k = perf_event_at(i)); i++)
		text_near_try(&near, k->name);
	return fail(said, -EINVAL,
		    "unknown event '%s'; did you mean %s? 'sfbpf list' shows them all", name,
		    near.best ? near.best : "cpu-clock, page-faults or sched:sched_switch");
}

/* text: a copy of the spelling, which is cut. */
static int parse(struct event *e, char *text, struct said said)
{
	static const struct {
		const char *prefix;
		bool at_return, usdt;
	} probes[] = { { "uprobe:", false, false },
		       { "uretprobe:", true, false },
		       { "usdt:", false, true } };

	for (size_t i = 0; i < sizeof(probes) / sizeof(probes[0]); i++) {
		size_t len = strlen(probes[i].prefix);

		if (strncmp(text, probes[i].prefix, len))
			continue;
		e->at_return = probes[i].at_return;
		e->usdt = probes[i].usdt;
		return parse_probe(e, text + len, said);
	}
	if (!strncmp(text, "tracepoint:", 11))
		return parse_tracepoint(e, text + 11, said);
	if (perf_kind(text, &e->perf))
		return 0;
	return strchr(text, ':') ? parse_tracepoint(e, text, said) : unknown(text, said);
}

static int add_one(struct events *all, const char *spelling, size_t len, struct said said)
{
	struct event *e = &all->v[all->n];
	char *text = strndup(spelling, len);
	size_t used = strlen(all->text);
	int err;

	if (all->n == SF_EVENTS) {
		free(text);
		return fail(said, -EINVAL, "more than %d events", SF_EVENTS);
	}
	*e = (struct event){ .fd = -1, .name = strndup(spelling, len) };
	all->n++;
	err = text && e->name ? parse(e, text, said) : -ENOMEM;
	free(text);
	if (err)
		return err;
	all->names[all->n - 1] = e->perf.name = e->name;
	snprintf(all->text + used, sizeof(all->text) - used, "%s%s", used ? ", " : "", e->name);
	if (all->n > 1 && strcmp(events_unit(all), all->v[0].bytes ? "bytes"
						   : all->v[0].arg ? "count"
								   : "samples"))
		return fail(said, -EINVAL, "%s has another unit than %s", e->name, all->v[0].name);
	return 0;
}

bool event_is_probe(const char *spelling)
{
	return !strncmp(spelling, "uprobe:", 7) || !strncmp(spelling, "uretprobe:", 10) ||
	       !strncmp(spelling, "usdt:", 5);
}

int events_add(struct events *e, const char *spelling, char *why, size_t cap)
{
	struct said said = { why, cap };
	int err = 0;

	*why = 0;
	/* Names of functions have commas of their own. */
	for (const char *at = spelling; !err && *at;) {
		size_t len = event_is_probe(at) ? strlen(at) : strcspn(at, ",");

		if (!len)
			return fail(said, -EINVAL, "a name is missing in '%s'", spelling);
		err = add_one(e, at, len, said);
		at += len;
		if (*at && !*++at)
			return fail(said, -EINVAL, "a name is missing in '%s'", spelling);
	}
	return *spelling ? err : fail(said, -EINVAL, "the name of an event is empty");
}

int events_add_calls(struct events *e, const char *entry, const char *exit, bool returns, char *why,
		     size_t cap)
{
	const char *const ends[] = { entry, exit };
	int err = 0;

	for (size_t i = 0; i < 2 && ends[i] && !err; i++) {
		struct event *last = &e->v[e->n];

		err = events_add(e, ends[i], why, cap);
		if (!err && (last->from != EVENT_PROBE || last->arg))
			err = fail((struct said){ why, cap }, -EINVAL,
				   "'%s' is no uprobe, uretprobe or usdt without '='", ends[i]);
		if (err)
			return err;
		last->returns = returns;
		last->call = !exit ? SF_CALL_ENTRY : i ? SF_CALL_PAIR_EXIT : SF_CALL_PAIR_ENTRY;
	}
	return 0;
}

bool events_of_goroutines(const struct events *calls)
{
	for (size_t i = 0; i < calls->n; i++)
		if (calls->v[i].go)
			return true;
	return false;
}

int events_add_parks(struct events *calls, struct events *sampled, char *why, size_t cap)
{
	struct events *const to[] = { calls, sampled };
	char spelling[PATH_MAX + 64];
	int err = 0;

	if (!events_of_goroutines(calls))
		return 0;
#ifndef __x86_64__
	return fail((struct said){ why, cap }, -ENOTSUP,
		    "calls of goroutines are measured on x86-64 only");
#endif
	for (size_t i = 0; i < calls->n; i++)
		if (!calls->v[i].go)
			return fail((struct said){ why, cap }, -ENOTSUP,
				    "%s is no program in Go, the other one is", calls->v[i].path);
	snprintf(spelling, sizeof(spelling), "uprobe:%s:runtime.gopark", calls->v[0].path);
	for (size_t i = 0; i < 2 && !err; i++) {
		err = events_add(to[i], spelling, why, cap);
		if (!err)
			to[i]->v[to[i]->n - 1].call = i ? SF_CALL_WAKE : SF_CALL_PARK;
	}
	return err;
}

int events_filter(struct events *all, const char *text, char *why, size_t cap)
{
	struct event *e = all->n ? &all->v[all->n - 1] : NULL;

	if (!e || e->from != EVENT_TRACEPOINT)
		return fail((struct said){ why, cap }, -EINVAL,
			    "it follows the -e of a tracepoint, whose fields it tests");
	free(e->filter);
	e->filter = strdup(text);
	return e->filter ? 0 : -ENOMEM;
}

void events_default(struct events *e)
{
	char why[64];

	if (!e->n)
		events_add(e, "cpu-clock", why, sizeof(why));
}

bool events_are_clock(const struct events *e)
{
	return e->n == 1 && !strcmp(e->v[0].name, "cpu-clock");
}

bool events_have(const struct events *e, enum event_from from)
{
	for (size_t i = 0; i < e->n; i++)
		if (e->v[i].from == from)
			return true;
	return false;
}

bool events_weighted(const struct events *e)
{
	return e->n && e->v[0].arg;
}

const char *events_unit(const struct events *e)
{
	const struct event *last = e->n ? &e->v[e->n - 1] : NULL;

	return last && last->bytes ? "bytes" : last && last->arg ? "count" : "samples";
}

void events_free(struct events *all)
{
	for (size_t i = 0; i < all->n; i++) {
		struct event *e = &all->v[i];

		free(e->name);
		free(e->path);
		free(e->what);
		free(e->arg);
		free(e->filter);
		free(e->places);
		if (e->fd >= 0)
			close(e->fd);
	}
	*all = (struct events){ .n = 0 };
}
