/* SPDX-License-Identifier: BSD-2-Clause */
#include "tui/cgroup_name.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/container_name.h"
#include "base/hash.h"
#include "base/text.h"

/* A power of two. A new name replaces the first of CROWD neighbours if none of them is free. */
#define SLOTS 16384
#define CROWD 8

struct name {
	uint32_t pid;
	char comm[16];
	char text[96];
};

struct cgroup_names {
	struct container_names *containers;
	struct name slots[SLOTS + CROWD];
};

struct cgroup_names *cgroup_names_new(void)
{
	struct cgroup_names *cn = calloc(1, sizeof(*cn));

	if (cn)
		cn->containers = container_names_of_host();
	return cn;
}

void cgroup_names_free(struct cgroup_names *cn)
{
	if (cn)
		container_names_free(cn->containers);
	free(cn);
}

const char *cgroup_name_short(struct container_names *containers, const char *path, char *dst,
			      size_t cap)
{
	const char *last = strrchr(path, '/');
	struct container c;
	char text[CONTAINER_TEXT];

	last = last && last[1] ? last + 1 : path;
	if (!container_of_path(path, &c))
		snprintf(text, sizeof(text), "%.*s", (int)sizeof(text) - 1, last);
	else if (!*container_name_text(container_names_get(containers, &c), text))
		snprintf(text, sizeof(text), "%s:%.12s", c.runtime, c.id);
	text_clean(dst, cap, text, strlen(text), 0);
	return dst;
}

const char *cgroup_name_parse(struct container_names *containers, const char *text, char *dst,
			      size_t cap)
{
	char best[1024] = "", path[1024];

	while (*text) {
		size_t len = strcspn(text, "\n");
		const char *colon = memchr(text, ':', len), *second = NULL;

		if (colon)
			second = memchr(colon + 1, ':', len - (size_t)(colon + 1 - text));
		if (second) {
			snprintf(path, sizeof(path), "%.*s", (int)(text + len - second - 1),
				 second + 1);
			if (strcmp(path, "/") && (!*best || !strncmp(text, "0::", 3)))
				memcpy(best, path, sizeof(best));
		}
		text += len + (text[len] == '\n');
	}
	return cgroup_name_short(containers, *best ? best : "/", dst, cap);
}

static bool read_cgroup(uint32_t pid, char *dst, size_t cap)
{
	char path[64];
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%u/cgroup", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	n = fread(dst, 1, cap - 1, f);
	dst[n] = 0;
	fclose(f);
	return n > 0;
}

const char *cgroup_names_get(struct cgroup_names *cn, uint32_t pid, const char *comm)
{
	struct name *first, *name;
	char text[4096];

	if (!cn)
		return "";
	first = name = &cn->slots[hash_u64(pid) & (SLOTS - 1)];
	for (int i = 0; i < CROWD; i++) {
		if (first[i].pid == pid && !strncmp(first[i].comm, comm, sizeof(first[i].comm)))
			return first[i].text;
		if (!first[i].pid && name->pid)
			name = &first[i];
	}
	*name = (struct name){ .pid = pid };
	memcpy(name->comm, comm, strnlen(comm, sizeof(name->comm)));
	if (read_cgroup(pid, text, sizeof(text)))
		cgroup_name_parse(cn->containers, text, name->text, sizeof(name->text));
	return name->text;
}
