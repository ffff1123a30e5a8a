/* SPDX-License-Identifier: BSD-2-Clause */
/* Schema 1 of out/out_json.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "base/text.h"
#include "prof/read_stacks.h"

#define SCHEMA 1
#define NAME_BYTES 2048

struct stack {
	char comm[64], stop[32];
	uint64_t count, samples;
	uint32_t pid;
	uint32_t frames[READ_STACKS_DEPTH + 1];	/* [0]: the marker of an incomplete one */
	size_t n;
	bool deep;
};

struct reader {
	struct json_reader j;
	struct stackset *ss;
	enum stack_side side;
	struct stacks_meta *meta;
	uint64_t schema;
	struct stack s;
	int err;
};

static void copy_clean(struct reader *r, char *dst, size_t cap)
{
	const char *s = json_string(&r->j);

	text_clean(dst, cap, s, strlen(s), 0);
}

static void read_meta(struct reader *r)
{
	struct stacks_meta *m = r->meta;
	const char *key;

	if (!json_enter(&r->j, '{'))
		return;
	while ((key = json_key(&r->j))) {
		if (!strcmp(key, "schema"))
			r->schema = json_unsigned(&r->j);
		else if (!strcmp(key, "host"))
			copy_clean(r, m->host, sizeof(m->host));
		else if (!strcmp(key, "event"))
			copy_clean(r, m->event, sizeof(m->event));
		else if (!strcmp(key, "unit"))
			copy_clean(r, m->unit, sizeof(m->unit));
		else if (!strcmp(key, "hz"))
			m->hz = json_number(&r->j);
		else if (!strcmp(key, "duration_s"))
			m->duration_s = json_number(&r->j);
		else if (!strcmp(key, "start_unix_ns"))
			m->start_unix_ns = json_unsigned(&r->j);
		else if (!strcmp(key, "lost"))
			m->lost = json_unsigned(&r->j);
		else
			json_skip(&r->j);
	}
}

static enum stack_kind kind_named(const char *kind)
{
	return !strcmp(kind, "kernel") ? STACK_KERNEL : !strcmp(kind, "inlined") ? STACK_INLINED :
	       !strcmp(kind, "jit") ? STACK_JIT : STACK_USER;
}

static void read_frame(struct reader *r)
{
	char name[NAME_BYTES] = "", module[NAME_BYTES] = "", kind[16] = "";
	enum stack_kind said, is;
	struct stack *s = &r->s;
	const char *key;
	size_t len, bare;

	if (!json_enter(&r->j, '{'))
		return;
	while ((key = json_key(&r->j))) {
		if (!strcmp(key, "name"))
			copy_clean(r, name, sizeof(name));
		else if (!strcmp(key, "module"))
			copy_clean(r, module, sizeof(module));
		else if (!strcmp(key, "kind"))
			copy_clean(r, kind, sizeof(kind));
		else
			json_skip(&r->j);
	}
	if (s->n > READ_STACKS_DEPTH) {
		s->deep = true;
		return;
	}
	is = kind_named(kind);
	len = bare = strlen(name);
	said = stack_kind_of_name(name, &bare);
	if (stackset_frame(r->ss, name, is == said ? bare : len, module, is, &s->frames[s->n++]))
		r->err = -ENOMEM;
}

static void add_stack(struct reader *r)
{
	struct stack *s = &r->s;
	bool incomplete = *s->stop && strcmp(s->stop, "complete") != 0;
	char marker[64];

	if (*s->stop) {
		r->meta->user_stacks += s->samples;
		r->meta->complete += incomplete ? 0 : s->samples;
	}
	snprintf(marker, sizeof(marker), "[incomplete:%s]", s->stop);
	if (incomplete && stackset_frame(r->ss, marker, strlen(marker), "", STACK_NOTE, &s->frames[0]))
		r->err = -ENOMEM;
	if (!*s->comm)
		strcpy(s->comm, "[unknown]");
	if (!r->err)
		r->err = stackset_add(r->ss, s->comm, s->pid, s->frames + !incomplete, s->n - !incomplete, r->side, s->count);
}

static void read_stack(struct reader *r)
{
	struct stack *s = &r->s;
	const char *key;

	*s->comm = *s->stop = 0;
	s->count = s->samples = s->pid = 0;
	s->n = 1;
	s->deep = false;
	if (!json_enter(&r->j, '{'))
		return;
	while ((key = json_key(&r->j))) {
		if (!strcmp(key, "comm"))
			copy_clean(r, s->comm, sizeof(s->comm));
		else if (!strcmp(key, "stop"))
			copy_clean(r, s->stop, sizeof(s->stop));
		else if (!strcmp(key, "pid"))
			s->pid = (uint32_t)json_unsigned(&r->j);
		else if (!strcmp(key, "count"))
			s->count = json_unsigned(&r->j);
		else if (!strcmp(key, "samples"))
			s->samples = json_unsigned(&r->j);
		else if (strcmp(key, "frames") != 0)
			json_skip(&r->j);
		else if (json_enter(&r->j, '['))
			while (json_element(&r->j) && !r->err)
				read_frame(r);
	}
	if (s->deep)
		r->j.bytes.err = true;
	if (!r->err && !r->j.bytes.err)
		add_stack(r);
}

int read_json(struct bytes text, struct stackset *ss, enum stack_side side, struct stacks_meta *meta, struct read_error *why)
{
	struct reader *r = calloc(1, sizeof(*r));
	const char *key;
	int err;

	if (!r)
		return -ENOMEM;
	r->ss = ss;
	r->side = side;
	r->meta = meta;
	json_reader_init(&r->j, text.base, text.len);
	strcpy(meta->unit, "samples");
	if (json_enter(&r->j, '{')) {
		while (!r->err && (key = json_key(&r->j))) {
			if (!strcmp(key, "meta"))
				read_meta(r);
			else if (strcmp(key, "stacks") != 0)
				json_skip(&r->j);
			else if (json_enter(&r->j, '['))
				while (!r->err && json_element(&r->j))
					read_stack(r);
		}
	}
	err = r->err;
	if (!err && (r->j.bytes.err || r->schema != SCHEMA)) {
		if (r->j.bytes.err)
			snprintf(why->text, sizeof(why->text), "byte %zu: damaged JSON", r->j.bytes.pos);
		else
			snprintf(why->text, sizeof(why->text), "JSON, but not a profile of schema %d", SCHEMA);
		err = -EINVAL;
	}
	json_reader_free(&r->j);
	free(r);
	return err;
}
