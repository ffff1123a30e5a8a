/* SPDX-License-Identifier: BSD-2-Clause */
/* Schema 1 of out/out_json.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "base/text.h"
#include "base/vec.h"
#include "prof/read_stacks.h"

#define SCHEMA	   1
#define NAME_BYTES 2048

/* The stack of a thread, or of its waker. */
struct part {
	char comm[64], process[64], stop[32];
	uint32_t pid;
	uint32_t frames[READ_STACKS_DEPTH + 1]; /* [0] is not used */
	size_t n;
};

struct stack {
	struct part own, waker;
	struct stack_labels labels;
	bool has_waker, deep;
	char state, wall[32], event[256];
	uint64_t count, samples;
	uint32_t path[2 * READ_STACKS_DEPTH + 6];
	size_t n;
};

/* A frame, as it is read. */
struct frame {
	char name[NAME_BYTES], shown[NAME_BYTES], module[NAME_BYTES], kind[16];
	uint64_t module_id, offset;
	bool has_id;
};

struct reader {
	struct json_reader j;
	struct stackset *ss;
	enum stack_side side;
	struct stacks_meta *meta;
	uint64_t schema;
	struct stack s;
	/* The files that may be stackset.file, by id */
	struct idmap file_ids;
	struct file {
		uint32_t name, build_id; /* strings */
	} * files;
	size_t files_cap;
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
		else if (!strcmp(key, "command"))
			copy_clean(r, m->command, sizeof(m->command));
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
	return !strcmp(kind, "kernel")	  ? STACK_KERNEL
	       : !strcmp(kind, "inlined") ? STACK_INLINED
	       : !strcmp(kind, "jit")	  ? STACK_JIT
					  : STACK_USER;
}

static int add_place(struct reader *r, const struct frame *f, uint32_t *ret)
{
	uint32_t file;

	if (!strcmp(f->kind, "kernel"))
		return stackset_no_place(r->ss, STACK_KERNEL, STACK_ELSEWHERE, ret);
	if (strcmp(f->kind, "user") != 0)
		return stackset_no_place(r->ss, STACK_USER, STACK_ELSEWHERE, ret);
	if (!f->has_id)
		return stackset_place(r->ss, f->module, "", 0, ret);
	if (!idmap_find(&r->file_ids, f->module_id, 0, &file))
		return stackset_no_place(r->ss, STACK_USER, STACK_ELSEWHERE, ret);
	return stackset_place(r->ss, strpool_str(r->ss->strings, r->files[file].name),
			      strpool_str(r->ss->strings, r->files[file].build_id), f->offset, ret);
}

static int add_frame(struct reader *r, const struct frame *f, uint32_t *ret)
{
	enum stack_kind said, is = kind_named(f->kind);
	size_t len = strlen(f->name), bare = len;

	said = stack_kind_of_name(f->name, &bare);
	return stackset_frame(r->ss, f->name, is == said ? bare : len, f->module, is, ret);
}

static void read_frame(struct reader *r, struct part *p)
{
	struct frame f;
	const char *key;

	if (!json_enter(&r->j, '{'))
		return;
	f.name[0] = f.shown[0] = f.module[0] = f.kind[0] = 0;
	f.has_id = false;
	f.offset = 0;
	while ((key = json_key(&r->j))) {
		if (!strcmp(key, "name"))
			copy_clean(r, f.name, sizeof(f.name));
		else if (!strcmp(key, "shown") && r->ss->choice.lines)
			copy_clean(r, f.shown, sizeof(f.shown));
		else if (!strcmp(key, "module"))
			copy_clean(r, f.module, sizeof(f.module));
		else if (!strcmp(key, "kind"))
			copy_clean(r, f.kind, sizeof(f.kind));
		else if (!strcmp(key, "module_id") && (f.has_id = true))
			f.module_id = json_unsigned(&r->j);
		else if (!strcmp(key, "offset"))
			f.offset = json_unsigned(&r->j);
		else
			json_skip(&r->j);
	}
	if (p->n > READ_STACKS_DEPTH) {
		r->s.deep = true;
		return;
	}
	if (*f.shown)
		strcpy(f.name, f.shown);
	/* The function that it is inlined into has its place, too. */
	if (r->ss->file && !strcmp(f.kind, "inlined"))
		return;
	if (r->ss->file ? add_place(r, &f, &p->frames[p->n++])
			: add_frame(r, &f, &p->frames[p->n++]))
		r->err = -ENOMEM;
}

/* Keeps a file that has the name or the build-id of stackset.file. */
static int add_file(struct reader *r, uint64_t id, const char *name, const char *build_id)
{
	struct strpool *strings = r->ss->strings;
	struct file file;
	uint32_t index;

	if (strcmp(name, r->ss->file->name) != 0 && strcmp(build_id, r->ss->file->build_id) != 0)
		return 0;
	if (strpool_intern(strings, name, strlen(name), &file.name) ||
	    strpool_intern(strings, build_id, strlen(build_id), &file.build_id) ||
	    idmap_get(&r->file_ids, id, 0, &index) ||
	    vec_reserve(&r->files, &r->files_cap, r->file_ids.n, sizeof(*r->files)))
		return -ENOMEM;
	r->files[index] = file;
	return 0;
}

static void read_file(struct reader *r)
{
	char name[NAME_BYTES] = "", build_id[sizeof(r->ss->file->build_id)] = "";
	uint64_t id = 0;
	const char *key;

	if (!json_enter(&r->j, '{'))
		return;
	while ((key = json_key(&r->j))) {
		if (!strcmp(key, "id"))
			id = json_unsigned(&r->j);
		else if (!strcmp(key, "name"))
			copy_clean(r, name, sizeof(name));
		else if (!strcmp(key, "build_id"))
			copy_clean(r, build_id, sizeof(build_id));
		else
			json_skip(&r->j);
	}
	r->err = add_file(r, id, name, build_id);
}

static void read_list(struct reader *r, void (*read)(struct reader *r))
{
	if (json_enter(&r->j, '['))
		while (!r->err && json_element(&r->j))
			read(r);
}

/* False: key does not belong to a part. */
static bool read_part(struct reader *r, struct part *p, const char *key)
{
	if (!strcmp(key, "comm")) {
		copy_clean(r, p->comm, sizeof(p->comm));
	} else if (!strcmp(key, "process")) {
		copy_clean(r, p->process, sizeof(p->process));
	} else if (!strcmp(key, "stop")) {
		copy_clean(r, p->stop, sizeof(p->stop));
	} else if (!strcmp(key, "pid")) {
		p->pid = (uint32_t)json_unsigned(&r->j);
	} else if (!strcmp(key, "frames")) {
		if (json_enter(&r->j, '['))
			while (json_element(&r->j) && !r->err)
				read_frame(r, p);
	} else {
		return false;
	}
	return true;
}

static void part_reset(struct part *p)
{
	*p->stop = *p->process = 0;
	strcpy(p->comm, "[unknown]");
	p->pid = 0;
	p->n = 1;
}

static bool is_incomplete(const struct part *p)
{
	return *p->stop && strcmp(p->stop, "complete") != 0 && strcmp(p->stop, "bridged") != 0;
}

static void add_note(struct reader *r, const char *text)
{
	if (stackset_frame(r->ss, text, strlen(text), "", STACK_NOTE, &r->s.path[r->s.n++]))
		r->err = -ENOMEM;
}

static void add_part(struct reader *r, const struct part *p)
{
	char marker[64];

	snprintf(marker, sizeof(marker), "[incomplete:%s]", p->stop);
	if (is_incomplete(p))
		add_note(r, marker);
	memcpy(r->s.path + r->s.n, p->frames + 1, (p->n - 1) * sizeof(p->frames[0]));
	r->s.n += p->n - 1;
}

static void add_stack(struct reader *r)
{
	struct stack *s = &r->s;
	const char *comm = *s->own.comm ? s->own.comm : "[unknown]";
	const struct stack_choice *c = &r->ss->choice;
	char buf[STACK_LABEL_BYTES];
	const char *root;

	if (!stack_choice_takes(c, &s->labels, comm))
		return;
	if (*s->own.stop) {
		r->meta->user_stacks += s->samples;
		r->meta->complete += is_incomplete(&s->own) ? 0 : s->samples;
	}
	s->n = 0;
	root = c->by == STACK_BY_PROCESS && *s->own.process
		       ? s->own.process
		       : stack_choice_root(c, &s->labels, comm, r->meta->host, buf);
	if (root != comm && (c->by != STACK_BY_PROCESS || strcmp(comm, root) != 0))
		add_note(r, comm);
	if (*s->event)
		add_note(r, s->event);
	add_part(r, &s->own);
	if (*s->wall)
		add_note(r, s->wall);
	else if (s->state == 'R')
		add_note(r, STACK_RUNNABLE);
	if (s->has_waker) {
		add_note(r, STACK_WAKER_MARK);
		add_note(r, *s->waker.comm ? s->waker.comm : "[unknown]");
		add_part(r, &s->waker);
	}
	if (!r->err)
		r->err = stackset_add(r->ss, root, s->own.pid, s->path, s->n, r->side, s->count);
}

static void read_waker(struct reader *r)
{
	const char *key;

	r->s.has_waker = json_enter(&r->j, '{'); /* null: unknown */
	while (r->s.has_waker && (key = json_key(&r->j)))
		if (!read_part(r, &r->s.waker, key))
			json_skip(&r->j);
}

static void read_label(struct reader *r, const char *name)
{
	struct stack_choice *c = &r->ss->choice;
	char value[STACK_LABEL_BYTES];

	if (!stack_choice_wants(c, name, strlen(name))) {
		json_skip(&r->j);
		return;
	}
	copy_clean(r, value, sizeof(value));
	stack_choice_label(c, &r->s.labels, name, value);
}

static void read_labels(struct reader *r)
{
	const char *key;

	if (!json_enter(&r->j, '{'))
		return;
	while ((key = json_key(&r->j)))
		read_label(r, key);
}

static void read_stack(struct reader *r)
{
	struct stack *s = &r->s;
	const char *key;

	part_reset(&s->own);
	part_reset(&s->waker);
	s->labels = (struct stack_labels){ 0 };
	s->count = s->samples = 0;
	s->state = s->wall[0] = s->event[0] = 0;
	s->has_waker = s->deep = false;
	if (!json_enter(&r->j, '{'))
		return;
	while ((key = json_key(&r->j))) {
		if (!strcmp(key, "count"))
			s->count = json_unsigned(&r->j);
		else if (!strcmp(key, "samples"))
			s->samples = json_unsigned(&r->j);
		else if (!strcmp(key, "state"))
			s->state = *json_string(&r->j);
		else if (!strcmp(key, "event"))
			copy_clean(r, s->event, sizeof(s->event));
		else if (!strcmp(key, "wall"))
			copy_clean(r, s->wall, sizeof(s->wall));
		else if (!strcmp(key, "waker"))
			read_waker(r);
		else if (!strcmp(key, "labels"))
			read_labels(r);
		else if (!strcmp(key, "container_name"))
			read_label(r, STACK_LABEL_CONTAINER);
		else if (!read_part(r, &s->own, key))
			json_skip(&r->j);
	}
	if (s->deep)
		r->j.bytes.err = true;
	if (!r->err && !r->j.bytes.err)
		add_stack(r);
}

int read_json(struct bytes text, struct stackset *ss, enum stack_side side,
	      struct stacks_meta *meta, struct read_error *why)
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
			else if (!strcmp(key, "modules") && ss->file)
				read_list(r, read_file);
			else if (!strcmp(key, "stacks"))
				read_list(r, read_stack);
			else
				json_skip(&r->j);
		}
	}
	err = r->err;
	if (!err && (r->j.bytes.err || r->schema != SCHEMA)) {
		if (r->j.bytes.err)
			snprintf(why->text, sizeof(why->text), "byte %zu: damaged JSON",
				 r->j.bytes.pos);
		else
			snprintf(why->text, sizeof(why->text),
				 "JSON, but not a profile of schema %d", SCHEMA);
		err = -EINVAL;
	}
	json_reader_free(&r->j);
	idmap_free(&r->file_ids);
	free(r->files);
	free(r);
	return err;
}
