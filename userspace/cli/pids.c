/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/pids.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/num.h"
#include "base/vec.h"

#define SEPARATORS ", \t\n"

struct pids {
	uint32_t *ids;
	size_t n, cap;
};

static int add(struct pids *p, uint64_t id)
{
	int err = vec_reserve(&p->ids, &p->cap, p->n + 1, sizeof(*p->ids));

	if (!err)
		p->ids[p->n++] = (uint32_t)id;
	return err;
}

static bool has_name(const char *pid, const char *name)
{
	char path[64], text[PATH_MAX];
	const char *slash;
	ssize_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%.20s/comm", pid);
	f = fopen(path, "re");
	if (!f || !fgets(text, sizeof(text), f))
		*text = 0;
	if (f)
		fclose(f);
	text[strcspn(text, "\n")] = 0;
	if (!strcmp(text, name))
		return true;
	snprintf(path, sizeof(path), "/proc/%.20s/exe", pid);
	n = readlink(path, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = 0;
	slash = strrchr(text, '/');
	return slash && !strcmp(slash + 1, name);
}

static int add_named(struct pids *p, const char *name)
{
	size_t before = p->n;
	struct dirent *e;
	int err = 0;
	DIR *d = opendir("/proc");
	uint64_t id;

	while (d && !err && (e = readdir(d)))
		if (!num_u64(e->d_name, 1, INT32_MAX, &id) && id != (uint64_t)getpid() &&
		    has_name(e->d_name, name))
			err = add(p, id);
	if (d)
		closedir(d);
	return err ? err : p->n == before ? -ESRCH : 0;
}

/* Whether nothing stands before, between or after commas. */
static bool has_empty_item(const char *list)
{
	bool in_item = false;

	for (; *list; list++) {
		if (*list == ',' && !in_item)
			return true;
		if (*list == ',')
			in_item = false;
		else if (!strchr(SEPARATORS, *list))
			in_item = true;
	}
	return !in_item;
}

int pids_parse(const char *list, uint32_t **ret, size_t *ret_n)
{
	char *copy = strdup(list), *state, *word = copy ? strtok_r(copy, SEPARATORS, &state) : NULL;
	int err = !copy ? -ENOMEM : has_empty_item(list) ? -EINVAL : 0;
	struct pids p = { 0 };
	uint64_t id;

	for (; word && !err; word = strtok_r(NULL, SEPARATORS, &state)) {
		if (!num_u64(word, 1, INT32_MAX, &id))
			err = add(&p, id);
		else if (strchr(word, '/') || strspn(word, "0123456789-") == strlen(word))
			err = -EINVAL;
		else
			err = add_named(&p, word);
	}
	free(copy);
	if (err) {
		free(p.ids);
		return err;
	}
	*ret = p.ids;
	*ret_n = p.n;
	return 0;
}
