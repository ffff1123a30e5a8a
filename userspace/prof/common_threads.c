/* SPDX-License-Identifier: BSD-2-Clause */
#include "prof/common_threads.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/vec.h"
#include "prof/stackset.h"
#include "prof/thread_names.h"

#define NO_FRAME UINT32_MAX

/* A leaf's frames, root first */
struct path {
	uint32_t *frames;
	size_t n, cap;
};

static int path_of(const struct stackset *ss, size_t leaf, struct path *ret)
{
	uint32_t node = (uint32_t)ss->leaves.keys[leaf].a;
	size_t n = 0;

	for (uint32_t at = node; at != STACK_ROOT; at = (uint32_t)ss->nodes.keys[at].a)
		n++;
	if (vec_reserve(&ret->frames, &ret->cap, n, sizeof(*ret->frames)))
		return -ENOMEM;
	ret->n = n;
	for (uint32_t at = node; at != STACK_ROOT; at = (uint32_t)ss->nodes.keys[at].a)
		ret->frames[--n] = (uint32_t)ss->nodes.keys[at].b;
	return 0;
}

static const struct idmap_key *group_of(const struct stackset *ss, size_t leaf)
{
	return &ss->groups.keys[ss->leaves.keys[leaf].b];
}

/* The thread's name; NULL: it has that of its process. root, first: what the stack begins with */
static const char *thread_of(const struct stackset *ss, uint32_t root, uint32_t first)
{
	if (ss->choice.by == STACK_BY_THREAD)
		return strpool_str(ss->strings, root);
	return first != NO_FRAME && stackset_frame_kind(ss, first) == STACK_NOTE
		       ? stackset_frame_name(ss, first)
		       : NULL;
}

static uint32_t first_frame(const struct stackset *ss, size_t leaf)
{
	const struct idmap_key *node = &ss->nodes.keys[ss->leaves.keys[leaf].a];

	if (ss->leaves.keys[leaf].a == STACK_ROOT)
		return NO_FRAME;
	while (node->a != STACK_ROOT)
		node = &ss->nodes.keys[node->a];
	return (uint32_t)node->b;
}

/* *ret_any: whether any thread gets another name */
static int collect(const struct stackset *ss, struct thread_names *ret, bool *ret_any)
{
	int err = 0;

	*ret_any = false;
	for (size_t l = 0; l < ss->leaves.n && !err; l++) {
		const struct idmap_key *group = group_of(ss, l);
		const char *name;

		if (!group->b)
			continue;
		name = thread_of(ss, (uint32_t)group->a, first_frame(ss, l));
		if (name)
			err = thread_names_add(ret, (uint32_t)group->b, name);
	}
	for (size_t i = 0; i < ret->common.n; i++)
		*ret_any |= ret->counts[i] >= THREADS_ALIKE;
	return err;
}

/* Adds a leaf of ss to *to, whose strings and frames are those of ss. */
static int add(struct stackset *to, const struct stackset *ss, size_t leaf, struct path *path,
	       const struct thread_names *names)
{
	const struct idmap_key *group = group_of(ss, leaf);
	char common[THREAD_NAME_MAX], root[STACK_TEXT_MAX];
	const char *name;
	int err = path_of(ss, leaf, path);

	if (err)
		return err;
	snprintf(root, sizeof(root), "%s", strpool_str(to->strings, (uint32_t)group->a));
	name = thread_of(to, (uint32_t)group->a, path->n ? path->frames[0] : NO_FRAME);
	if (name && thread_names_common(names, (uint32_t)group->b, name, common)) {
		if (to->choice.by == STACK_BY_THREAD)
			snprintf(root, sizeof(root), "%s", common);
		else
			err = stackset_frame(to, common, strlen(common), "", STACK_NOTE,
					     &path->frames[0]);
	}
	for (int side = 0; side < STACK_SIDES && !err; side++)
		if (ss->values[leaf][side])
			err = stackset_add(to, root, (uint32_t)group->b, path->frames, path->n,
					   (enum stack_side)side, ss->values[leaf][side]);
	return err;
}

/* Strings and frames have one owner at a time. */
static void move_names(struct stackset *from, struct stackset *to)
{
	to->strings = from->strings;
	to->frames = from->frames;
	from->strings = NULL;
	from->frames = (struct idmap){ 0 };
}

static int rename_all(struct stackset *ss, struct path *path, const struct thread_names *names)
{
	struct stackset to;
	int err = stackset_init(&to);

	if (err)
		return err;
	strpool_free(to.strings);
	to.choice = ss->choice;
	move_names(ss, &to);
	for (size_t l = 0; l < ss->leaves.n && !err; l++)
		err = add(&to, ss, l, path, names);
	if (err) {
		move_names(&to, ss);
		stackset_free(&to);
		return err;
	}
	to.no_modules = ss->no_modules;
	to.renames = ss->renames;
	to.log = ss->log;
	stackset_free(ss);
	*ss = to;
	return 0;
}

int stackset_common_threads(struct stackset *ss)
{
	struct thread_names names = { 0 };
	struct path path = { 0 };
	bool any;
	int err = collect(ss, &names, &any);

	if (!err && any)
		err = rename_all(ss, &path, &names);
	thread_names_free(&names);
	free(path.frames);
	return err;
}
