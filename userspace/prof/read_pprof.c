/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * profile.proto as out/out_pprof.c writes it. The tables may stand anywhere among the samples, so there are two passes:
 * one that finds them, one that adds up the samples. What is relied on: ids of locations, functions and mappings are
 * 1, 2, 3, ...; the first value counts samples, or the second one is off-CPU time.
 *
 * A few bytes can stand for many: gzip packs a thousandfold, and a location of many inlined functions is named in
 * one byte. Both are limited, so time and memory are in proportion to the file.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/gunzip.h"
#include "base/num.h"
#include "base/pb.h"
#include "base/text.h"
#include "base/vec.h"
#include "prof/read_stacks.h"

#define UNPACKED_MAX (256u << 20)
#define NAME_BYTES 2048
#define FRAMES_A_BYTE 8			/* of all stacks; a frame takes at least a byte, and few have inlined ones */
#define FRAMES_SPARE (1u << 20)
#define FRAMES_MAX (1u << 26)
#define NO_FRAME UINT32_MAX

enum {
	PROFILE_SAMPLE_TYPE = 1, PROFILE_SAMPLE = 2, PROFILE_MAPPING = 3, PROFILE_LOCATION = 4, PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6, PROFILE_TIME_NANOS = 9, PROFILE_DURATION_NANOS = 10, PROFILE_COMMENT = 13,
	TYPE_TYPE = 1, TYPE_UNIT = 2,
	SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3,
	LABEL_KEY = 1, LABEL_STR = 2, LABEL_NUM = 3,
	ENTRY_ID = 1,			/* of mappings, locations and functions */
	MAPPING_START = 2, MAPPING_OFFSET = 4, MAPPING_FILE = 5,
	LOCATION_MAPPING = 2, LOCATION_ADDRESS = 3, LOCATION_LINE = 4,
	LINE_FUNCTION = 1,
	FUNCTION_NAME = 2,
};

/* Entries of a repeated message, by id - 1. */
struct table {
	struct bytes *at;
	size_t n, cap;
};

struct location {			/* frames[from, from + n): the function inlined last, ..., the one that is in the file */
	size_t from;
	uint32_t n;
	bool known;
};

struct reader {
	struct stackset *ss;
	enum stack_side side;
	struct stacks_meta *meta;
	struct read_error *why;
	struct table strings, mappings, locations, functions, types, comments;
	struct location *resolved;	/* by location */
	uint32_t *frames;
	size_t nframes, frames_cap;
	uint64_t budget;		/* frames that may still be added */
	bool off_cpu;
	uint32_t path[READ_STACKS_DEPTH + 1];
};

static int damaged(struct reader *r, const char *what, uint64_t number)
{
	snprintf(r->why->text, sizeof(r->why->text), "damaged profile: %s %" PRIu64, what, number);
	return -EINVAL;
}

/* ---- Tables ---- */

static int table_add(struct table *t, const struct bytes *entry)
{
	if (vec_reserve(&t->at, &t->cap, t->n + 1, sizeof(*t->at)))
		return -ENOMEM;
	t->at[t->n++] = *entry;
	return 0;
}

/* The entry's number field; the last one counts, and 0 is what is not there. */
static uint64_t number(struct bytes msg, uint32_t field)
{
	uint64_t value = 0;
	struct pb_field f;

	while (pb_next(&msg, &f))
		if (f.number == field)
			value = f.value;
	return value;
}

static const struct bytes *entry(const struct table *t, uint64_t id)
{
	return id && id <= t->n ? &t->at[id - 1] : NULL;
}

/* "" if there is no such string. */
static size_t string(const struct reader *r, uint64_t id, char *dst, size_t cap)
{
	const struct bytes *s = id < r->strings.n ? &r->strings.at[id] : NULL;

	return text_clean(dst, cap, s && s->len ? (const char *)s->base : "", s ? s->len : 0, 0);
}

static bool string_is(const struct reader *r, uint64_t id, const char *want)
{
	const struct bytes *s = id < r->strings.n ? &r->strings.at[id] : NULL;

	return s && s->len == strlen(want) && memcmp(s->base, want, s->len) == 0;
}

static int check_ids(struct reader *r, const struct table *t, const char *what)
{
	for (size_t i = 0; i < t->n; i++)
		if (number(t->at[i], ENTRY_ID) != i + 1)
			return damaged(r, what, i + 1);
	return 0;
}

/* A comment is a number, or many of them packed. */
static int add_comments(struct reader *r, struct pb_field *f)
{
	uint64_t id;
	int err = 0;

	while (!err && pb_next_number(f, &id))
		if (id < r->strings.n)
			err = table_add(&r->comments, &r->strings.at[id]);
	return err;
}

static int read_tables(struct reader *r, struct bytes profile)
{
	struct bytes msg = profile;
	struct pb_field f;
	int err = 0;

	while (!err && pb_next(&msg, &f)) {
		struct table *t = f.number == PROFILE_STRING ? &r->strings : f.number == PROFILE_MAPPING ? &r->mappings :
				  f.number == PROFILE_LOCATION ? &r->locations : f.number == PROFILE_FUNCTION ? &r->functions :
				  f.number == PROFILE_SAMPLE_TYPE ? &r->types : NULL;

		if (t)
			err = table_add(t, &f.bytes);
		else if (f.number == PROFILE_TIME_NANOS)
			r->meta->start_unix_ns = f.value;
		else if (f.number == PROFILE_DURATION_NANOS)
			r->meta->duration_s = (double)f.value / 1e9;
	}
	if (msg.err)
		return damaged(r, "byte", msg.pos);
	for (msg = profile; !err && pb_next(&msg, &f);)
		if (f.number == PROFILE_COMMENT)
			err = add_comments(r, &f);
	if (!err)
		err = check_ids(r, &r->mappings, "mapping");
	if (!err)
		err = check_ids(r, &r->locations, "location");
	if (!err)
		err = check_ids(r, &r->functions, "function");
	return err;
}

static int read_types(struct reader *r)
{
	if (r->types.n > 1 && string_is(r, number(r->types.at[1], TYPE_TYPE), "off_cpu")) {
		r->off_cpu = true;
	} else if (!r->types.n || !string_is(r, number(r->types.at[0], TYPE_UNIT), "count")) {
		snprintf(r->why->text, sizeof(r->why->text), "a pprof profile, but not of samples or off-CPU time");
		return -EINVAL;
	}
	strcpy(r->meta->unit, r->off_cpu ? "microseconds" : "samples");
	return 0;
}

/* Comments are "KEY=VALUE"; what profile.proto has a field for is not among them. */
static void read_comments(struct reader *r)
{
	struct stacks_meta *m = r->meta;
	char text[512], digits[32];

	for (size_t i = 0; i < r->comments.n; i++) {
		const struct bytes *c = &r->comments.at[i];

		text_clean(text, sizeof(text), c->len ? (const char *)c->base : "", c->len, 0);
		if (sscanf(text, "host=%255[^\n]", m->host) == 1 || sscanf(text, "event=%63[^\n]", m->event) == 1)
			continue;
		if (sscanf(text, "lost=%31s", digits) == 1)
			num_u64(digits, 0, UINT64_MAX, &m->lost);
		else if (sscanf(text, "hz=%31s", digits) == 1)
			m->hz = strtod(digits, NULL);
	}
}

/* ---- Locations ---- */

static const char *module_name(const struct reader *r, uint64_t mapping, enum stack_kind kind, char path[NAME_BYTES])
{
	const struct bytes *m = entry(&r->mappings, mapping);
	const char *slash;

	if (kind == STACK_KERNEL)
		return "[kernel]";
	if (!m)
		return kind == STACK_JIT ? "[jit]" : "[unknown]";
	string(r, number(*m, MAPPING_FILE), path, NAME_BYTES);
	slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static int push_frame(struct reader *r, uint64_t mapping, char name[NAME_BYTES], size_t len, bool inlined)
{
	enum stack_kind kind = stack_kind_of_name(name, &len);
	char path[NAME_BYTES];

	if (inlined && kind == STACK_USER)
		kind = STACK_INLINED;
	if (vec_reserve(&r->frames, &r->frames_cap, r->nframes + 1, sizeof(*r->frames)))
		return -ENOMEM;
	return stackset_frame(r->ss, name, len, module_name(r, mapping, kind, path), kind, &r->frames[r->nframes++]);
}

/* A location that nobody has named. */
static int push_nameless(struct reader *r, uint64_t mapping, uint64_t address)
{
	const struct bytes *m = entry(&r->mappings, mapping);
	char name[NAME_BYTES] = "[unknown]", path[NAME_BYTES];

	if (m)
		snprintf(name, sizeof(name), "[%.1024s+0x%" PRIx64 "]", module_name(r, mapping, STACK_USER, path),
			 address - number(*m, MAPPING_START) + number(*m, MAPPING_OFFSET));
	return push_frame(r, mapping, name, strlen(name), false);
}

static int push_line(struct reader *r, uint64_t mapping, struct bytes line, bool inlined)
{
	const struct bytes *function = entry(&r->functions, number(line, LINE_FUNCTION));
	char name[NAME_BYTES];
	size_t len;

	if (!function)
		return damaged(r, "no function", number(line, LINE_FUNCTION));
	len = string(r, number(*function, FUNCTION_NAME), name, sizeof(name));
	if (!strcmp(name, "[no stack]"))
		return 0;	/* only so that pprof's tables have a row for it */
	return push_frame(r, mapping, name, len, inlined);
}

static int resolve(struct reader *r, uint64_t id, struct location *ret)
{
	struct bytes msg = r->locations.at[id - 1], line = bytes_of(NULL, 0, false);
	uint64_t mapping = number(msg, LOCATION_MAPPING);
	bool any = false;
	struct pb_field f;
	int err = 0;

	*ret = (struct location){ .from = r->nframes, .known = true };
	while (!err && pb_next(&msg, &f)) {
		if (f.number != LOCATION_LINE)
			continue;
		if (any)	/* there is one more, so that one is inlined into it */
			err = push_line(r, mapping, line, true);
		line = f.bytes;
		any = true;
	}
	if (msg.err)
		return damaged(r, "location", id);
	if (!err)
		err = any ? push_line(r, mapping, line, false) : push_nameless(r, mapping, number(msg, LOCATION_ADDRESS));
	ret->n = (uint32_t)(r->nframes - ret->from);
	return err;
}

/* ---- Samples ---- */

struct sample {
	char comm[64], stop[32];
	uint32_t pid;
	uint64_t values[2];
	size_t n;			/* frames, from the end of reader.path to its begin */
	bool user;
};

static int add_location(struct reader *r, struct sample *s, uint64_t id)
{
	struct location *l;
	int err = 0;

	if (!entry(&r->locations, id))
		return damaged(r, "no location", id);
	l = &r->resolved[id - 1];
	if (!l->known)
		err = resolve(r, id, l);
	if (err)
		return err;
	if (s->n + l->n > READ_STACKS_DEPTH)
		return damaged(r, "a stack of more frames than", READ_STACKS_DEPTH);
	if (l->n > r->budget)
		return damaged(r, "more frames than its size explains, at location", id);
	r->budget -= l->n;
	for (uint32_t i = 0; i < l->n; i++) {
		uint32_t frame = r->frames[l->from + i];

		r->path[READ_STACKS_DEPTH - s->n++] = frame;
		s->user |= stackset_frame_kind(r->ss, frame) != STACK_KERNEL;
	}
	return 0;
}

static void read_label(const struct reader *r, struct sample *s, struct bytes label)
{
	uint64_t key = number(label, LABEL_KEY), str = number(label, LABEL_STR);

	if (string_is(r, key, "comm"))
		string(r, str, s->comm, sizeof(s->comm));
	else if (string_is(r, key, "pid"))
		s->pid = (uint32_t)number(label, LABEL_NUM);
	else if (string_is(r, key, "incomplete"))
		string(r, str, s->stop, sizeof(s->stop));
}

static int read_fields(struct reader *r, struct sample *s, struct bytes msg)
{
	struct pb_field f;
	uint64_t value;
	size_t n = 0;
	int err = 0;

	while (!err && pb_next(&msg, &f)) {
		if (f.number == SAMPLE_LABEL)
			read_label(r, s, f.bytes);
		while (!err && f.number == SAMPLE_LOCATION && pb_next_number(&f, &value))
			err = add_location(r, s, value);
		while (!err && f.number == SAMPLE_VALUE && n < 2 && pb_next_number(&f, &value))
			s->values[n++] = value;
		msg.err |= f.bytes.err;
	}
	return err ? err : msg.err ? damaged(r, "sample at byte", msg.pos) : 0;
}

static int add_sample(struct reader *r, struct bytes msg)
{
	struct sample s = { .comm = "[unknown]" };
	char marker[64];
	int err = read_fields(r, &s, msg);

	if (err)
		return err;
	if (*s.stop) {
		snprintf(marker, sizeof(marker), "[incomplete:%s]", s.stop);
		err = stackset_frame(r->ss, marker, strlen(marker), "", STACK_NOTE, &r->path[READ_STACKS_DEPTH - s.n++]);
		if (err)
			return err;
	}
	if (s.user || *s.stop)
		r->meta->user_stacks += s.values[0];
	if (s.user && !*s.stop)
		r->meta->complete += s.values[0];
	return stackset_add(r->ss, s.comm, s.pid, r->path + READ_STACKS_DEPTH + 1 - s.n, s.n, r->side,
			    r->off_cpu ? s.values[1] / 1000 : s.values[0]);
}

static int read_profile(struct reader *r, struct bytes profile)
{
	struct pb_field f;
	int err = read_tables(r, profile);

	if (!err)
		err = read_types(r);
	if (err)
		return err;
	read_comments(r);
	r->budget = (uint64_t)profile.len * FRAMES_A_BYTE + FRAMES_SPARE;
	if (r->budget > FRAMES_MAX)
		r->budget = FRAMES_MAX;
	r->resolved = calloc(r->locations.n + 1, sizeof(*r->resolved));
	if (!r->resolved)
		return -ENOMEM;
	while (!err && pb_next(&profile, &f))
		if (f.number == PROFILE_SAMPLE)
			err = add_sample(r, f.bytes);
	return err;
}

int read_pprof(struct bytes packed, struct stackset *ss, enum stack_side side, struct stacks_meta *meta, struct read_error *why)
{
	struct reader *r = calloc(1, sizeof(*r));
	uint8_t *buf = NULL;
	size_t len = 0;
	int err;

	if (!r)
		return -ENOMEM;
	*r = (struct reader){ .ss = ss, .side = side, .meta = meta, .why = why };
	err = gunzip(&packed, UNPACKED_MAX, &buf, &len);
	if (err == -EINVAL)
		snprintf(why->text, sizeof(why->text), "damaged gzip data");
	if (!err)
		err = read_profile(r, bytes_of(buf, len, false));
	free(buf);
	free(r->strings.at);
	free(r->mappings.at);
	free(r->locations.at);
	free(r->functions.at);
	free(r->types.at);
	free(r->comments.at);
	free(r->resolved);
	free(r->frames);
	free(r);
	return err;
}
