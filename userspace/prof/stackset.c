/* SPDX-License-Identifier: BSD-2-Clause */
#include "prof/stackset.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "prof/wait_notes.h"

int stackset_init(struct stackset *ss)
{
	uint32_t root;

	*ss = (struct stackset){ .strings = strpool_new() };
	/* STACK_ROOT */
	if (ss->strings && idmap_get(&ss->nodes, UINT64_MAX, UINT64_MAX, &root) == 0 &&
	    vec_reserve(&ss->latest, &ss->latest_cap, 1, sizeof(*ss->latest)) == 0) {
		memset(ss->latest, 0, ss->latest_cap * sizeof(*ss->latest));
		return 0;
	}
	stackset_free(ss);
	return -ENOMEM;
}

void stackset_free(struct stackset *ss)
{
	if (ss->strings)
		strpool_free(ss->strings);
	idmap_free(&ss->frames);
	idmap_free(&ss->groups);
	idmap_free(&ss->nodes);
	idmap_free(&ss->leaves);
	free(ss->latest);
	free(ss->values);
	*ss = (struct stackset){ 0 };
}

int stackset_module(struct stackset *ss, const char *module, uint32_t *ret)
{
	if (ss->no_modules)
		module = "";
	return strpool_intern(ss->strings, module, strlen(module), ret);
}

/* Replaces a name as ss->renames says. */
static int rename_string(struct stackset *ss, uint32_t *name)
{
	struct stack_renames *r = ss->renames;
	const char *s = strpool_str(ss->strings, *name), *to = s;
	size_t had;

	if (!r || !r->n)
		return 0;
	had = r->cap;
	if (vec_reserve(&r->known, &r->cap, (size_t)*name + 1, sizeof(*r->known)))
		return -ENOMEM;
	memset(r->known + had, 0, (r->cap - had) * sizeof(*r->known));
	if (!r->known[*name]) {
		for (size_t i = 0; i < r->n && to == s; i++)
			if (!fnmatch(r->list[i].from, s, 0))
				to = r->list[i].to;
		if (strpool_intern(ss->strings, to, strlen(to), &r->known[*name]))
			return -ENOMEM;
		r->known[*name]++;
	}
	*name = r->known[*name] - 1;
	return 0;
}

int stackset_frame_of(struct stackset *ss, uint32_t name, uint32_t module, enum stack_kind kind,
		      uint32_t *ret)
{
	if (rename_string(ss, &name))
		return -ENOMEM;
	return idmap_get(&ss->frames, (uint64_t)name << 32 | module, kind, ret);
}

int stackset_frame(struct stackset *ss, const char *name, size_t len, const char *module,
		   enum stack_kind kind, uint32_t *ret)
{
	uint32_t name_id, module_id;

	if (strpool_intern(ss->strings, name, len, &name_id) ||
	    stackset_module(ss, module, &module_id))
		return -ENOMEM;
	return stackset_frame_of(ss, name_id, module_id, kind, ret);
}

int stackset_no_place(struct stackset *ss, enum stack_kind kind, const char *why, uint32_t *ret)
{
	return stackset_frame(ss, "", 0, why, kind, ret);
}

int stackset_place(struct stackset *ss, const char *name, const char *build_id, uint64_t offset,
		   uint32_t *ret)
{
	char text[32];

	if (*build_id && !strcmp(build_id, ss->file->build_id)) {
		snprintf(text, sizeof(text), "%" PRIx64, offset);
		return stackset_frame(ss, text, strlen(text), STACK_PLACE, STACK_USER, ret);
	}
	if (strcmp(name, ss->file->name) != 0)
		return stackset_no_place(ss, STACK_USER, STACK_ELSEWHERE, ret);
	if (!*build_id)
		return stackset_no_place(ss, STACK_USER, STACK_NO_ADDRESS, ret);
	return stackset_frame(ss, build_id, strlen(build_id), STACK_OTHER_BUILD, STACK_USER, ret);
}

bool stackset_is_place(const struct stackset *ss, uint32_t frame, uint64_t *ret_offset)
{
	if (strcmp(stackset_frame_module(ss, frame), STACK_PLACE) != 0)
		return false;
	*ret_offset = strtoull(stackset_frame_name(ss, frame), NULL, 16);
	return true;
}

/* Consecutive stacks are similar, so the child that was used last is tried first. */
static int descend(struct stackset *ss, uint32_t *node, uint32_t frame)
{
	uint32_t next = ss->latest[*node];
	size_t before = ss->latest_cap;

	if (!next || ss->nodes.keys[next].b != frame) {
		if (idmap_get(&ss->nodes, *node, frame, &next) ||
		    vec_reserve(&ss->latest, &ss->latest_cap, ss->nodes.n, 4))
			return -ENOMEM;
		memset(ss->latest + before, 0, (ss->latest_cap - before) * 4);
		ss->latest[*node] = next;
		ss->lookups++;
	}
	*node = next;
	return 0;
}

static int stackset_path_from(struct stackset *ss, uint32_t from, const uint32_t *frames, size_t n,
			      uint32_t *ret_node)
{
	*ret_node = from;
	for (size_t i = 0; i < n; i++)
		if (descend(ss, ret_node, frames[i]))
			return -ENOMEM;
	return 0;
}

int stackset_path(struct stackset *ss, const uint32_t *frames, size_t n, uint32_t *ret_node)
{
	return stackset_path_from(ss, STACK_ROOT, frames, n, ret_node);
}

static int log_value(struct stackset *ss, uint32_t leaf, uint64_t value)
{
	struct stack_log *log = ss->log;

	if (vec_reserve(&log->list, &log->cap, log->n + 1, sizeof(*log->list)))
		return -ENOMEM;
	log->list[log->n++] = (struct stack_logged){ leaf, value };
	return 0;
}

static int add_leaf(struct stackset *ss, const char *comm, uint32_t pid, uint32_t node,
		    enum stack_side side, uint64_t value)
{
	uint32_t comm_id, group, leaf;
	size_t before = ss->leaves.n;

	if (value > UINT64_MAX - ss->totals[side])
		return -EOVERFLOW;
	if (strpool_intern(ss->strings, comm, strlen(comm), &comm_id) ||
	    rename_string(ss, &comm_id) || idmap_get(&ss->groups, comm_id, pid, &group) ||
	    idmap_get(&ss->leaves, node, group, &leaf) ||
	    vec_reserve(&ss->values, &ss->values_cap, ss->leaves.n, sizeof(*ss->values)))
		return -ENOMEM;
	if (leaf == before)
		memset(ss->values[leaf], 0, sizeof(ss->values[leaf]));
	ss->added = leaf;
	if (ss->log)
		return log_value(ss, leaf, value);
	ss->values[leaf][side] += value;
	ss->totals[side] += value;
	return 0;
}

int stackset_add(struct stackset *ss, const char *comm, uint32_t pid, const uint32_t *frames,
		 size_t n, enum stack_side side, uint64_t value)
{
	uint32_t node;
	int err = stackset_path(ss, frames, n, &node);

	return err ? err : add_leaf(ss, comm, pid, node, side, value);
}

/* Makes the leaves anew, as two of them may become one. */
int stackset_rename_groups(struct stackset *ss, const uint32_t *to)
{
	struct idmap leaves = { 0 };
	uint64_t(*values)[STACK_SIDES] = NULL;
	size_t cap = 0;
	uint32_t leaf, group;
	int err = 0;

	for (size_t l = 0; l < ss->leaves.n && !err; l++) {
		struct idmap_key key = ss->groups.keys[ss->leaves.keys[l].b];
		size_t had = leaves.n;

		err = idmap_get(&ss->groups, to[key.a], key.b, &group);
		if (!err)
			err = idmap_get(&leaves, ss->leaves.keys[l].a, group, &leaf);
		if (!err)
			err = vec_reserve(&values, &cap, leaves.n, sizeof(*values));
		for (int side = 0; side < STACK_SIDES && !err; side++)
			values[leaf][side] = (leaf == had ? 0 : values[leaf][side]) +
					     ss->values[l][side];
	}
	if (err) {
		idmap_free(&leaves);
		free(values);
		return err;
	}
	idmap_free(&ss->leaves);
	free(ss->values);
	ss->leaves = leaves;
	ss->values = values;
	ss->values_cap = cap;
	return 0;
}

size_t stackset_bytes(const struct stackset *ss)
{
	return strpool_bytes(ss->strings) + idmap_bytes(&ss->frames) + idmap_bytes(&ss->groups) +
	       idmap_bytes(&ss->nodes) + idmap_bytes(&ss->leaves) +
	       ss->latest_cap * sizeof(*ss->latest) + ss->values_cap * sizeof(*ss->values);
}

const char *stackset_frame_name(const struct stackset *ss, uint32_t frame)
{
	return strpool_str(ss->strings, (uint32_t)(ss->frames.keys[frame].a >> 32));
}

const char *stackset_frame_module(const struct stackset *ss, uint32_t frame)
{
	return strpool_str(ss->strings, (uint32_t)ss->frames.keys[frame].a);
}

enum stack_kind stackset_frame_kind(const struct stackset *ss, uint32_t frame)
{
	return (enum stack_kind)ss->frames.keys[frame].b;
}

static const char *const suffixes[STACK_KINDS] = { "", "_[k]", "_[i]", "_[j]", "" };

const char *stack_kind_suffix(enum stack_kind kind)
{
	return suffixes[kind];
}

static bool is(const char *name, size_t len, const char *what)
{
	return len == strlen(what) && memcmp(name, what, len) == 0;
}

enum stack_kind stack_kind_of_name(const char *name, size_t *len)
{
	static const char incomplete[] = "[incomplete:";

	for (int kind = STACK_KERNEL; kind <= STACK_JIT; kind++) {
		if (*len > 4 && memcmp(name + *len - 4, suffixes[kind], 4) == 0) {
			*len -= 4;
			return (enum stack_kind)kind;
		}
	}
	if (is(name, *len, STACK_WAKER_MARK))
		return STACK_NOTE;
	if (!*len || *name != '[') /* all others begin with it */
		return STACK_USER;
	for (int i = 0; i < WAIT_NOTES; i++)
		if (is(name, *len, wait_note_text((enum wait_note)i)))
			return STACK_NOTE;
	return *len >= strlen(incomplete) && memcmp(name, incomplete, strlen(incomplete)) == 0
		       ? STACK_NOTE
		       : STACK_USER;
}

/* ---- Copies ---- */

#define NOT_YET UINT32_MAX

static int copy_string(struct stackset *dst, const struct stackset *src, uint32_t id, uint32_t *ret)
{
	const char *s = strpool_str(src->strings, id);

	return strpool_intern(dst->strings, s, strlen(s), ret);
}

/* The frame of src in dst; frames[] has those that were copied. */
static int copy_frame(struct stackset *dst, const struct stackset *src, uint32_t frame,
		      uint32_t *frames)
{
	const struct idmap_key *key = &src->frames.keys[frame];
	uint32_t name, module;

	if (frames[frame] != NOT_YET)
		return 0;
	if (copy_string(dst, src, (uint32_t)(key->a >> 32), &name) ||
	    copy_string(dst, src, (uint32_t)key->a, &module))
		return -ENOMEM;
	return stackset_frame_of(dst, name, module, (enum stack_kind)key->b, &frames[frame]);
}

/* nodes[] is nonzero for the nodes to copy; it becomes their ids in dst. */
static int copy_nodes(struct stackset *dst, const struct stackset *src, uint32_t *nodes,
		      uint32_t *frames)
{
	for (size_t i = src->nodes.n - 1; i > 0; i--) /* children come after their parents */
		if (nodes[i])
			nodes[src->nodes.keys[i].a] = 1;
	nodes[STACK_ROOT] = STACK_ROOT;
	for (size_t i = 1; i < src->nodes.n; i++) {
		const struct idmap_key *key = &src->nodes.keys[i];
		uint32_t node = nodes[key->a];

		if (!nodes[i])
			continue;
		if (copy_frame(dst, src, (uint32_t)key->b, frames) ||
		    stackset_path_from(dst, node, &frames[key->b], 1, &nodes[i]))
			return -ENOMEM;
	}
	return 0;
}

static int copy_leaf(struct stackset *dst, const struct idmap_key *group,
		     const struct stackset *src, uint32_t node, const uint64_t values[STACK_SIDES])
{
	const char *comm = strpool_str(src->strings, (uint32_t)group->a);
	int err = 0;

	for (int side = 0; side < STACK_SIDES && !err; side++)
		if (values[side])
			err = add_leaf(dst, comm, (uint32_t)group->b, node, (enum stack_side)side,
				       values[side]);
	return err;
}

int stackset_copy(struct stackset *dst, const struct stackset *src,
		  const uint64_t (*values)[STACK_SIDES])
{
	uint32_t *nodes = calloc(src->nodes.n, sizeof(*nodes)),
		 *frames = malloc((src->frames.n + 1) * sizeof(*frames));
	int err = nodes && frames ? 0 : -ENOMEM;

	if (!err) {
		memset(frames, 0xff, (src->frames.n + 1) * sizeof(*frames));
		for (size_t l = 0; l < src->leaves.n; l++)
			if (values[l][STACK_AFTER] || values[l][STACK_BEFORE])
				nodes[src->leaves.keys[l].a] = 1;
		err = copy_nodes(dst, src, nodes, frames);
	}
	for (size_t l = 0; l < src->leaves.n && !err; l++)
		err = copy_leaf(dst, &src->groups.keys[src->leaves.keys[l].b], src,
				nodes[src->leaves.keys[l].a], values[l]);
	free(nodes);
	free(frames);
	return err;
}

/* ---- What readers take ---- */

bool stack_choice_wants(const struct stack_choice *c, const char *name, size_t len)
{
	if (c->by == STACK_BY_LABEL && is(name, len, c->by_label))
		return true;
	for (size_t i = 0; i < c->n; i++)
		if (is(name, len, c->labels[i].name))
			return true;
	return false;
}

void stack_choice_label(struct stack_choice *c, struct stack_labels *l, const char *name,
			const char *value)
{
	if (c->by == STACK_BY_LABEL && !strcmp(name, c->by_label)) {
		c->found |= 1u << c->n;
		snprintf(l->by, sizeof(l->by), "%s", value);
	}
	for (size_t i = 0; i < c->n; i++) {
		if (strcmp(name, c->labels[i].name) != 0)
			continue;
		c->found |= 1u << i;
		if (!strcmp(value, c->labels[i].value))
			l->match |= 1u << i;
	}
}

bool stack_choice_takes(const struct stack_choice *c, const struct stack_labels *l,
			const char *comm)
{
	return l->match == (1u << c->n) - 1 && (!c->comm || !strcmp(comm, c->comm));
}

const char *stack_choice_root(const struct stack_choice *c, const struct stack_labels *l,
			      const char *comm, const char *host, char buf[STACK_LABEL_BYTES])
{
	if (c->by == STACK_BY_HOST)
		return *host ? host : c->host ? c->host : "[no host]";
	if (c->by != STACK_BY_LABEL)
		return comm;
	if (*l->by)
		return l->by;
	snprintf(buf, STACK_LABEL_BYTES, "[no %.200s]", c->by_label);
	return buf;
}
