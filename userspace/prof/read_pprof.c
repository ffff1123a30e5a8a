/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads profile.proto as written by out/out_pprof.c. Tables may appear anywhere among the samples,
 * so there are two passes: one finds the tables, one adds up the samples. Assumptions: ids of
 * locations, functions and mappings are 1, 2, 3, ...; the first value counts samples, or it or the
 * second one is off-CPU time.
 *
 * A few bytes can stand for many: gzip compresses up to a thousandfold, and one byte can name a
 * location with many inlined functions. So all work is charged against a limit in proportion to the
 * size of the file (reader.work), which bounds time and memory. Each message is parsed once:
 * otherwise references to it could make its padding be parsed often.
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
#include "prof/pprof_fields.h"
#include "prof/read_stacks.h"

/* A byte of real files unpacks to 5 to 10 bytes, to 60 where stacks are deep and recursive. */
#define UNPACKED_SPARE	(32u << 20)
#define UNPACKED_A_BYTE 64
#define UNPACKED_MAX	(256u << 20)
#define NAME_BYTES	2048
#define COMMENTS_MAX	64
#define KERNEL_MAPPING	"[kernel.kallsyms]"

/* Units of about 10 ns. Real files need a quarter of it, to three quarters with deep stacks. */
#define WORK_A_BYTE 12
#define WORK_SPARE  (16u << 20)
/* Work of operations; in addition 1 for each frame and each byte of a name */
enum { WORK_FIELD = 1, WORK_ENTRY = 8, WORK_LOOKUP = 12, WORK_NEW = 32 };

/* More than all numbers of fields of mappings, locations and functions that are read */
enum { ENTRY_FIELDS = 7 };

/* Entries of a repeated message, indexed by id - 1. */
struct table {
	struct bytes *at;
	size_t n, cap;
};

struct mapping {
	uint64_t start, offset, file, build_id;
	/* String id of the file's name without directories; the same as a module of the set */
	uint32_t name, module;
	bool known;
};

struct function {
	uint64_t name;
	uint32_t name_id, hash;
	enum stack_kind kind;
	bool known;
	bool none; /* "[no stack]", which is not a frame: see locate() in out_pprof.c */
};

/* frames[from, from + n): the innermost inlined function first, the containing function last */
struct location {
	size_t from;
	uint32_t n;
	bool known;
};

struct reader {
	struct stackset *ss;
	enum stack_side side;
	struct stacks_meta *meta;
	struct read_error *why;
	struct table strings, mappings, locations, functions, types;
	uint64_t comments[COMMENTS_MAX]; /* ids of strings */
	size_t ncomments;
	struct mapping *mapping; /* these three are indexed by id - 1 */
	struct function *function;
	struct location *location;
	uint8_t *keys; /* enum label_key of a string, by id */
	uint32_t *frames;
	size_t nframes, frames_cap;
	uint64_t work; /* work that is still allowed */
	uint64_t allowed;
	size_t value; /* which value of a sample counts */
	bool off_cpu;
	uint32_t path[READ_STACKS_DEPTH + 2];
};

static int damaged(struct reader *r, const char *what, uint64_t number)
{
	snprintf(r->why->text, sizeof(r->why->text), "damaged profile: %s %" PRIu64, what, number);
	return -EINVAL;
}

/* Charges work. False: less was left; then nothing is left. */
static bool pay(struct reader *r, uint64_t work)
{
	bool can = work <= r->work;

	r->work = can ? r->work - work : 0;
	return can;
}

static int too_much(struct reader *r)
{
	snprintf(r->why->text, sizeof(r->why->text),
		 "stands for more frames, names and labels than a packed file of its size may "
		 "(%" PRIu64 " in all); JSON has no such limit",
		 r->allowed);
	return -EINVAL;
}

/* Calls pb_next and charges for it. Sets the error of msg when no work is left. */
static bool next_field(struct reader *r, struct bytes *msg, struct pb_field *ret)
{
	msg->err |= !pay(r, WORK_FIELD);
	return pb_next(msg, ret);
}

/* The error: damage, unless the work is used up. */
static int damaged_or_spent(struct reader *r, const char *what, uint64_t number)
{
	return r->work ? damaged(r, what, number) : too_much(r);
}

/* ---- Tables ---- */

static int table_add(struct table *t, const struct bytes *entry)
{
	if (vec_reserve(&t->at, &t->cap, t->n + 1, sizeof(*t->at)))
		return -ENOMEM;
	t->at[t->n++] = *entry;
	return 0;
}

/*
 * Reads the fields of msg with numbers below n into ret. The last value of a field counts; a
 * missing field is 0.
 */
static void read_numbers(struct reader *r, struct bytes msg, uint64_t *ret, uint32_t n)
{
	struct pb_field f;

	memset(ret, 0, n * sizeof(*ret));
	while (next_field(r, &msg, &f))
		if (f.number < n)
			ret[f.number] = f.value;
}

static uint64_t number(struct reader *r, struct bytes msg, uint32_t field)
{
	uint64_t values[ENTRY_FIELDS];

	read_numbers(r, msg, values, ENTRY_FIELDS);
	return values[field];
}

/* The id of an entry, which comes first in all known files. */
static uint64_t entry_id(struct reader *r, struct bytes msg)
{
	struct bytes whole = msg;
	struct pb_field f;

	return next_field(r, &msg, &f) && f.number == ENTRY_ID ? f.value
							       : number(r, whole, ENTRY_ID);
}

/* "" if there is no such string. */
static struct bytes raw_string(const struct reader *r, uint64_t id)
{
	return id < r->strings.n && r->strings.at[id].len ? r->strings.at[id]
							  : bytes_of("", 0, false);
}

/* Copies a string, cleaned. */
static size_t string(const struct reader *r, uint64_t id, char *dst, size_t cap)
{
	struct bytes s = raw_string(r, id);

	return text_clean(dst, cap, (const char *)s.base, s.len, 0);
}

static bool string_is(const struct reader *r, uint64_t id, const char *want)
{
	struct bytes s = raw_string(r, id);

	return s.len == strlen(want) && memcmp(s.base, want, s.len) == 0;
}

/* The names of all functions are searched soon. */
static void fetch_names(const struct reader *r)
{
	for (enum strpool_stage stage = 0; stage < STRPOOL_STAGES; stage++)
		for (size_t i = 0; i < r->functions.n; i++)
			strpool_fetch(r->ss->strings, r->function[i].hash, stage);
}

static int parse_entries(struct reader *r)
{
	uint64_t v[ENTRY_FIELDS];
	struct bytes name;

	r->mapping = calloc(r->mappings.n + 1, sizeof(*r->mapping));
	r->function = calloc(r->functions.n + 1, sizeof(*r->function));
	r->location = calloc(r->locations.n + 1, sizeof(*r->location));
	r->keys = calloc(r->strings.n + 1, 1);
	if (!r->keys || !r->mapping || !r->function || !r->location)
		return -ENOMEM;
	for (size_t i = 0; i < r->mappings.n; i++) {
		read_numbers(r, r->mappings.at[i], v, ENTRY_FIELDS);
		if (v[ENTRY_ID] != i + 1)
			return damaged_or_spent(r, "mapping", i + 1);
		r->mapping[i] = (struct mapping){ .start = v[MAPPING_START],
						  .offset = v[MAPPING_OFFSET],
						  .file = v[MAPPING_FILE],
						  .build_id = v[MAPPING_BUILD_ID] };
	}
	for (size_t i = 0; i < r->locations.n; i++)
		if (entry_id(r, r->locations.at[i]) != i + 1)
			return damaged_or_spent(r, "location", i + 1);
	for (size_t i = 0; i < r->functions.n; i++) {
		read_numbers(r, r->functions.at[i], v, ENTRY_FIELDS);
		if (v[ENTRY_ID] != i + 1)
			return damaged_or_spent(r, "function", i + 1);
		name = raw_string(r, v[FUNCTION_NAME]);
		r->function[i] = (struct function){
			.name = v[FUNCTION_NAME],
			.hash = strpool_hash((const char *)name.base, name.len),
		};
	}
	fetch_names(r);
	return 0;
}

/* A comment is a number, or several of them packed. Our files have at most five. */
static void add_comments(struct reader *r, struct pb_field *f)
{
	uint64_t id;

	while (r->ncomments < COMMENTS_MAX && pb_next_number(f, &id))
		r->comments[r->ncomments++] = id;
}

static int read_tables(struct reader *r, struct bytes msg)
{
	struct pb_field f;
	int err = 0;

	while (!err && next_field(r, &msg, &f)) {
		struct table *t = f.number == PROFILE_STRING	    ? &r->strings
				  : f.number == PROFILE_MAPPING	    ? &r->mappings
				  : f.number == PROFILE_LOCATION    ? &r->locations
				  : f.number == PROFILE_FUNCTION    ? &r->functions
				  : f.number == PROFILE_SAMPLE_TYPE ? &r->types
								    : NULL;

		if (t)
			err = pay(r, WORK_ENTRY) ? table_add(t, &f.bytes) : too_much(r);
		else if (f.number == PROFILE_COMMENT)
			add_comments(r, &f);
		else if (f.number == PROFILE_TIME_NANOS)
			r->meta->start_unix_ns = f.value;
		else if (f.number == PROFILE_DURATION_NANOS)
			r->meta->duration_s = (double)f.value / 1e9;
	}
	if (!err && msg.err)
		return damaged_or_spent(r, "byte", msg.pos);
	return err ? err : parse_entries(r);
}

static int read_types(struct reader *r)
{
	/* The samples come first, if they are there (out/out_stacks_pprof.c). */
	size_t last = r->types.n > 1;

	if (r->types.n && string_is(r, number(r, r->types.at[last], TYPE_TYPE), "off_cpu")) {
		r->off_cpu = true;
		r->value = last;
	} else if (!r->types.n || !string_is(r, number(r, r->types.at[0], TYPE_UNIT), "count")) {
		snprintf(r->why->text, sizeof(r->why->text),
			 "a pprof profile, but not of samples or off-CPU time");
		return -EINVAL;
	}
	strcpy(r->meta->unit, r->off_cpu ? "microseconds" : "samples");
	return 0;
}

/* Comments are "KEY=VALUE", for values that have no field in profile.proto. */
static void read_comments(struct reader *r)
{
	struct stacks_meta *m = r->meta;
	char text[512], digits[32];

	for (size_t i = 0; i < r->ncomments; i++) {
		string(r, r->comments[i], text, sizeof(text));
		if (sscanf(text, "host=%255[^\n]", m->host) == 1 ||
		    sscanf(text, "event=%63[^\n]", m->event) == 1 ||
		    sscanf(text, "command=%63[^\n]", m->command) == 1)
			continue;
		if (sscanf(text, "lost=%31s", digits) == 1)
			num_u64(digits, 0, UINT64_MAX, &m->lost);
		else if (sscanf(text, "hz=%31s", digits) == 1)
			m->hz = strtod(digits, NULL);
	}
}

/* ---- Locations ---- */

static int intern(struct reader *r, const char *text, size_t len, uint32_t *ret)
{
	return pay(r, WORK_NEW + len) ? strpool_intern(r->ss->strings, text, len, ret)
				      : too_much(r);
}

static int resolve_mapping(struct reader *r, struct mapping *m)
{
	char path[NAME_BYTES];
	const char *slash, *name;
	int err;

	string(r, m->file, path, sizeof(path));
	slash = strrchr(path, '/');
	name = slash ? slash + 1 : path;
	err = intern(r, name, strlen(name), &m->name);
	if (!err)
		err = stackset_module(r->ss, name, &m->module);
	m->known = !err;
	return err;
}

static int resolve_function(struct reader *r, struct function *f)
{
	char name[NAME_BYTES];
	size_t len = string(r, f->name, name, sizeof(name));
	int err;

	f->none = !strcmp(name, "[no stack]");
	f->kind = stack_kind_of_name(name, &len);
	err = intern(r, name, len, &f->name_id);
	f->known = !err;
	return err;
}

/* mapping NULL: unknown. */
static int push_frame(struct reader *r, const struct mapping *mapping, uint32_t name,
		      enum stack_kind kind)
{
	uint32_t module;
	int err = 0;

	if (kind != STACK_KERNEL && mapping)
		module = mapping->module;
	else
		err = stackset_module(r->ss,
				      kind == STACK_KERNEL ? "[kernel]"
				      : kind == STACK_JIT  ? "[jit]"
							   : "[unknown]",
				      &module);
	if (err || vec_reserve(&r->frames, &r->frames_cap, r->nframes + 1, sizeof(*r->frames)))
		return -ENOMEM;
	return stackset_frame_of(r->ss, name, module, kind, &r->frames[r->nframes++]);
}

/* A location without a function. */
static int push_nameless(struct reader *r, const struct mapping *m, uint64_t address)
{
	char name[NAME_BYTES] = "[unknown]";
	size_t len;
	uint32_t id;
	enum stack_kind kind;
	int err;

	if (m)
		snprintf(name, sizeof(name), "[%.1024s+0x%" PRIx64 "]",
			 strpool_str(r->ss->strings, m->name), address - m->start + m->offset);
	len = strlen(name);
	kind = stack_kind_of_name(name, &len);
	err = intern(r, name, len, &id);
	return err ? err : push_frame(r, m, id, kind);
}

static int push_line(struct reader *r, const struct mapping *mapping, struct bytes line,
		     bool inlined)
{
	uint64_t id = number(r, line, LINE_FUNCTION);
	struct function *f;
	int err;

	if (!pay(r, WORK_NEW))
		return too_much(r);
	if (!id || id > r->functions.n)
		return damaged(r, "no function", id);
	f = &r->function[id - 1];
	err = f->known ? 0 : resolve_function(r, f);
	if (err || f->none)
		return err;
	return push_frame(r, mapping, f->name_id,
			  inlined && f->kind == STACK_USER ? STACK_INLINED : f->kind);
}

/* Adds the frames of a location's lines. *ret_any: it has lines. */
static int push_lines(struct reader *r, uint64_t id, const struct mapping *mapping, bool *ret_any)
{
	struct bytes msg = r->locations.at[id - 1], line = bytes_of(NULL, 0, false);
	bool any = false;
	struct pb_field f;
	int err = 0;

	while (!err && next_field(r, &msg, &f)) {
		if (f.number != LOCATION_LINE)
			continue;
		if (any) /* another line follows, so the previous one is inlined into it */
			err = push_line(r, mapping, line, true);
		line = f.bytes;
		any = true;
	}
	if (!err && msg.err)
		return damaged_or_spent(r, "location", id);
	*ret_any = any;
	return err || !any ? err : push_line(r, mapping, line, false);
}

/* The place of a location in the file that places are wanted of (stackset.file). */
static int push_place(struct reader *r, const struct mapping *m, uint64_t address)
{
	const char *name = m ? strpool_str(r->ss->strings, m->name) : "";
	char build_id[sizeof(r->ss->file->build_id)] = "";

	if (!pay(r, WORK_NEW))
		return too_much(r);
	if (vec_reserve(&r->frames, &r->frames_cap, r->nframes + 1, sizeof(*r->frames)))
		return -ENOMEM;
	if (!m || !strcmp(name, KERNEL_MAPPING))
		return stackset_no_place(r->ss, m ? STACK_KERNEL : STACK_USER, STACK_ELSEWHERE,
					 &r->frames[r->nframes++]);
	if (address >= m->start)
		string(r, m->build_id, build_id, sizeof(build_id));
	return stackset_place(r->ss, name, build_id, address - m->start + m->offset,
			      &r->frames[r->nframes++]);
}

static int resolve(struct reader *r, uint64_t id, struct location *ret)
{
	uint64_t v[ENTRY_FIELDS];
	struct mapping *m = NULL;
	bool any = false;
	int err = 0;

	read_numbers(r, r->locations.at[id - 1], v, ENTRY_FIELDS);
	if (v[LOCATION_MAPPING] && v[LOCATION_MAPPING] <= r->mappings.n)
		m = &r->mapping[v[LOCATION_MAPPING] - 1];
	if (m && !m->known)
		err = resolve_mapping(r, m);
	*ret = (struct location){ .from = r->nframes };
	if (!err && r->ss->file)
		err = push_place(r, m, v[LOCATION_ADDRESS]);
	else if (!err)
		err = push_lines(r, id, m, &any);
	if (!err && !any && !r->ss->file)
		err = push_nameless(r, m, v[LOCATION_ADDRESS]);
	ret->n = (uint32_t)(r->nframes - ret->from);
	ret->known = !err;
	return err;
}

/* ---- Samples ---- */

struct sample {
	char comm[64], stop[32];
	uint32_t pid;
	uint64_t values[2];
	size_t n; /* frames, stored backwards from the end of reader.path */
	bool user;
	struct stack_labels labels;
};

static int add_location(struct reader *r, struct sample *s, uint64_t id)
{
	struct location *l;
	int err = 0;

	if (!id || id > r->locations.n)
		return damaged(r, "no location", id);
	l = &r->location[id - 1];
	if (!l->known)
		err = resolve(r, id, l);
	if (err)
		return err;
	if (s->n + l->n > READ_STACKS_DEPTH)
		return damaged(r, "a stack of more frames than", READ_STACKS_DEPTH);
	if (!pay(r, 1 + l->n))
		return too_much(r);
	for (uint32_t i = 0; i < l->n; i++) {
		uint32_t frame = r->frames[l->from + i];

		r->path[READ_STACKS_DEPTH + 1 - s->n++] = frame;
		s->user |= stackset_frame_kind(r->ss, frame) != STACK_KERNEL;
	}
	return 0;
}

enum label_key { KEY_NEW, KEY_COMM, KEY_PID, KEY_INCOMPLETE, KEY_WANTED, KEY_OTHER };

/* What a label of that name is for; each name is compared once. */
static enum label_key label_key(struct reader *r, uint64_t id)
{
	struct bytes s = raw_string(r, id);

	if (!s.len)
		return KEY_OTHER;
	if (r->keys[id] == KEY_NEW)
		r->keys[id] = string_is(r, id, "comm")	       ? KEY_COMM
			      : string_is(r, id, "pid")	       ? KEY_PID
			      : string_is(r, id, "incomplete") ? KEY_INCOMPLETE
			      : stack_choice_wants(&r->ss->choice, (const char *)s.base, s.len)
				      ? KEY_WANTED
				      : KEY_OTHER;
	return (enum label_key)r->keys[id];
}

static void read_wanted(struct reader *r, struct sample *s, uint64_t key, uint64_t value)
{
	char text[STACK_LABEL_BYTES], key_text[STACK_LABEL_BYTES];

	string(r, key, key_text, sizeof(key_text));
	string(r, value, text, sizeof(text));
	stack_choice_label(&r->ss->choice, &s->labels, key_text, text);
	pay(r, WORK_ENTRY);
}

static void read_label(struct reader *r, struct sample *s, struct bytes label)
{
	uint64_t v[ENTRY_FIELDS];

	read_numbers(r, label, v, ENTRY_FIELDS);
	switch (label_key(r, v[LABEL_KEY])) {
	case KEY_COMM:
		string(r, v[LABEL_STR], s->comm, sizeof(s->comm));
		break;
	case KEY_PID:
		s->pid = (uint32_t)v[LABEL_NUM];
		break;
	case KEY_INCOMPLETE:
		string(r, v[LABEL_STR], s->stop, sizeof(s->stop));
		break;
	case KEY_WANTED:
		read_wanted(r, s, v[LABEL_KEY], v[LABEL_STR]);
		break;
	default:
		break;
	}
	pay(r, WORK_ENTRY);
}

/* Labels come last, and tell whether the rest of the sample is needed. */
static int read_labels(struct reader *r, struct sample *s, struct bytes msg)
{
	struct pb_field f;

	while (next_field(r, &msg, &f))
		if (f.number == SAMPLE_LABEL)
			read_label(r, s, f.bytes);
	return msg.err ? damaged_or_spent(r, "sample at byte", msg.pos) : 0;
}

static int read_fields(struct reader *r, struct sample *s, struct bytes msg)
{
	struct pb_field f;
	uint64_t value;
	size_t n = 0;
	int err = 0;

	while (!err && next_field(r, &msg, &f)) {
		while (!err && f.number == SAMPLE_LOCATION && pb_next_number(&f, &value))
			err = add_location(r, s, value);
		while (!err && f.number == SAMPLE_VALUE && n < 2 && pb_next_number(&f, &value))
			s->values[n++] = value;
		msg.err |= f.bytes.err;
	}
	return err ? err : msg.err ? damaged_or_spent(r, "sample at byte", msg.pos) : 0;
}

static int add_note(struct reader *r, struct sample *s, const char *text)
{
	return stackset_frame(r->ss, text, strlen(text), "", STACK_NOTE,
			      &r->path[READ_STACKS_DEPTH + 1 - s->n++]);
}

/* Adds the stack under the name that it begins with. */
static int add_stack(struct reader *r, struct sample *s)
{
	char buf[STACK_LABEL_BYTES];
	const char *root = stack_choice_root(&r->ss->choice, &s->labels, s->comm, r->meta->host,
					     buf);
	int err = root != s->comm ? add_note(r, s, s->comm) : 0;

	return err ? err
		   : stackset_add(r->ss, root, s->pid, r->path + READ_STACKS_DEPTH + 2 - s->n, s->n,
				  r->side, r->off_cpu ? s->values[r->value] / 1000 : s->values[0]);
}

static int add_sample(struct reader *r, struct bytes msg)
{
	struct sample s = { .comm = "[unknown]" };
	uint64_t lookups = r->ss->lookups;
	char marker[64];
	int err = read_labels(r, &s, msg);

	if (!err && !stack_choice_takes(&r->ss->choice, &s.labels, s.comm))
		return pay(r, WORK_ENTRY) ? 0 : too_much(r);
	if (!err)
		err = read_fields(r, &s, msg);
	if (err)
		return err;
	if (*s.stop) {
		snprintf(marker, sizeof(marker), "[incomplete:%s]", s.stop);
		err = add_note(r, &s, marker);
		if (err)
			return err;
	}
	if (s.user || *s.stop)
		r->meta->user_stacks += s.values[0];
	if (s.user && !*s.stop)
		r->meta->complete += s.values[0];
	err = add_stack(r, &s);
	if (!err && !pay(r, WORK_NEW + WORK_LOOKUP * (r->ss->lookups - lookups)))
		return too_much(r);
	return err;
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
	while (!err && next_field(r, &profile, &f))
		if (f.number == PROFILE_SAMPLE)
			err = add_sample(r, f.bytes);
	return !err && profile.err ? too_much(r) : err;
}

static size_t unpacked_max(size_t packed)
{
	uint64_t max = UNPACKED_SPARE + (uint64_t)packed * UNPACKED_A_BYTE;

	return max < UNPACKED_MAX ? max : UNPACKED_MAX;
}

static void reader_free(struct reader *r)
{
	struct table *t[] = { &r->strings, &r->mappings, &r->locations, &r->functions, &r->types };

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		free(t[i]->at);
	free(r->keys);
	free(r->mapping);
	free(r->function);
	free(r->location);
	free(r->frames);
	free(r);
}

int read_pprof(struct bytes packed, struct stackset *ss, enum stack_side side,
	       struct stacks_meta *meta, struct read_error *why)
{
	struct reader *r = calloc(1, sizeof(*r));
	size_t len = 0, max = unpacked_max(packed.len);
	uint8_t *buf = NULL;
	int err;

	if (!r)
		return -ENOMEM;
	*r = (struct reader){ .ss = ss, .side = side, .meta = meta, .why = why };
	r->work = r->allowed = WORK_SPARE + (uint64_t)packed.len * WORK_A_BYTE;
	err = gunzip(&packed, max, &buf, &len);
	if (err == -EINVAL)
		snprintf(why->text, sizeof(why->text), "damaged gzip data");
	if (err == -EFBIG) {
		snprintf(why->text, sizeof(why->text),
			 "its gzip data unpack to more than %zu bytes, the limit for a file of %zu",
			 max, packed.len);
		err = -EINVAL;
	}
	if (!err)
		err = read_profile(r, bytes_of(buf, len, false));
	free(buf);
	reader_free(r);
	return err;
}
