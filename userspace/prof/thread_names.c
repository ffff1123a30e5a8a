/* SPDX-License-Identifier: BSD-2-Clause */
#include "prof/thread_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Writes N for each number. False: there is none, or the name is too long. */
static bool without_numbers(const char *name, char ret[THREAD_NAME_MAX])
{
	size_t n = 0;
	bool found = false;

	if (strlen(name) >= THREAD_NAME_MAX)
		return false;
	for (; *name; name++) {
		found |= is_digit(*name);
		if (!is_digit(*name))
			ret[n++] = *name;
		else if (!is_digit(name[1]))
			ret[n++] = 'N';
	}
	ret[n] = 0;
	return found;
}

static uint64_t hash_name(const char *name)
{
	return hash_bytes(name, strlen(name));
}

int thread_names_add(struct thread_names *t, uint32_t pid, const char *name)
{
	char common[THREAD_NAME_MAX];
	size_t names = t->names.n, had = t->cap;
	uint32_t id;

	if (!pid || !without_numbers(name, common))
		return 0;
	if (idmap_get(&t->names, pid, hash_name(name), &id))
		return -ENOMEM;
	if (t->names.n == names)
		return 0;
	if (idmap_get(&t->common, pid, hash_name(common), &id) ||
	    vec_reserve(&t->counts, &t->cap, t->common.n, sizeof(*t->counts)))
		return -ENOMEM;
	memset(t->counts + had, 0, (t->cap - had) * sizeof(*t->counts));
	t->counts[id]++;
	return 0;
}

bool thread_names_common(const struct thread_names *t, uint32_t pid, const char *name,
			 char ret[THREAD_NAME_MAX])
{
	uint32_t id;

	return pid && without_numbers(name, ret) &&
	       idmap_find(&t->names, pid, hash_name(name), &id) &&
	       idmap_find(&t->common, pid, hash_name(ret), &id) && t->counts[id] >= THREADS_ALIKE;
}

void thread_names_free(struct thread_names *t)
{
	idmap_free(&t->names);
	idmap_free(&t->common);
	free(t->counts);
	*t = (struct thread_names){ 0 };
}
