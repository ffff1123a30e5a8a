/* SPDX-License-Identifier: BSD-2-Clause */
#include "prof/stackset.h"

#include <errno.h>
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

int stackset_frame_of(struct stackset *ss, uint32_t name, uint32_t module, enum stack_kind kind,
		      uint32_t *ret)
{
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

int stackset_path(struct stackset *ss, const uint32_t *frames, size_t n, uint32_t *ret_node)
{
	*ret_node = STACK_ROOT;
	for (size_t i = 0; i < n; i++)
		if (descend(ss, ret_node, frames[i]))
			return -ENOMEM;
	return 0;
}

int stackset_add(struct stackset *ss, const char *comm, uint32_t pid, const uint32_t *frames,
		 size_t n, enum stack_side side, uint64_t value)
{
	uint32_t node, comm_id, group, leaf;
	size_t before = ss->leaves.n;

	if (value > UINT64_MAX - ss->totals[side])
		return -EOVERFLOW;
	if (stackset_path(ss, frames, n, &node) ||
	    strpool_intern(ss->strings, comm, strlen(comm), &comm_id) ||
	    idmap_get(&ss->groups, comm_id, pid, &group) ||
	    idmap_get(&ss->leaves, node, group, &leaf) ||
	    vec_reserve(&ss->values, &ss->values_cap, ss->leaves.n, sizeof(*ss->values)))
		return -ENOMEM;
	if (leaf == before)
		memset(ss->values[leaf], 0, sizeof(ss->values[leaf]));
	ss->values[leaf][side] += value;
	ss->totals[side] += value;
	return 0;
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
	for (int i = 0; i < WAIT_NOTES; i++)
		if (is(name, *len, wait_note_text((enum wait_note)i)))
			return STACK_NOTE;
	return *len >= strlen(incomplete) && memcmp(name, incomplete, strlen(incomplete)) == 0
		       ? STACK_NOTE
		       : STACK_USER;
}
