/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/target.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/idmap.h"
#include "base/text.h"
#include "base/vec.h"

#define CONTAINER_DIGITS 32	/* hexadecimal ones from which on a name is a container's id; most have 64 */
#define MAX_CGROUPS 16384
#define MAX_TARGETS 2048
#define FILEID_KERNFS 0xfe	/* linux/exportfs.h: the handle is the 64-bit id */

struct targets {
	char service[TARGET_TEXT];
	int mount;			/* of cgroup v2; -1: none */
	char mount_path[512];
	struct idmap cgroups;		/* cgroup id -> index into by_cgroup */
	uint32_t *by_cgroup;
	size_t by_cgroup_cap;
	struct target *list;
	size_t n, cap;
};

/* ---- Paths ---- */

static void copy_clean(char *dst, const char *src, size_t len)
{
	text_clean(dst, TARGET_TEXT, src, len, 0);
}

static bool ends_with(const char *s, size_t len, const char *suffix)
{
	size_t n = strlen(suffix);

	return len > n && !memcmp(s + len - n, suffix, n);
}

/* The id inside "docker-ID.scope" or "ID"; 0: none. */
static size_t container_id(const char *s, size_t len, const char **ret)
{
	const char *dash = memrchr(s, '-', len);
	size_t n = 0;

	*ret = dash ? dash + 1 : s;
	while (*ret + n < s + len && isxdigit((unsigned char)(*ret)[n]))
		n++;
	return n >= CONTAINER_DIGITS && (*ret + n == s + len || (*ret)[n] == '.') ? n : 0;
}

static void take_container(struct target *t, const char *s, size_t len, const char *parent, size_t parent_len)
{
	const char *id;
	size_t n = container_id(s, len, &id);
	char text[TARGET_TEXT];

	if (!n)
		return;
	copy_clean(t->container, id, n);
	if (id > s)
		snprintf(text, sizeof(text), "%.*s:%.12s", (int)(id - 1 - s > 60 ? 60 : id - 1 - s), s, id);
	else
		snprintf(text, sizeof(text), "%.*s:%.12s", (int)(parent_len ? parent_len > 60 ? 60 : parent_len : 9),
			 parent_len ? parent : "container", id);
	copy_clean(t->service, text, strlen(text));
}

/* "...-pod0a1b_..." or "pod0a1b-...": systemd has no '-' inside of a name's part. */
static void take_pod(struct target *t, const char *s, size_t len)
{
	const char *pod = memmem(s, len, "pod", 3);
	size_t n;

	/* Also "kubepods", whose "pod" is no uid's. */
	while (pod && !(pod == s || pod[-1] == '-'))
		pod = memmem(pod + 1, len - (size_t)(pod + 1 - s), "pod", 3);
	if (!pod || pod + 3 == s + len)
		return;
	n = len - (size_t)(pod + 3 - s);
	if (ends_with(s, len, ".slice"))
		n -= strlen(".slice");
	if (n < 8 || n >= TARGET_TEXT)
		return;
	copy_clean(t->pod, pod + 3, n);
	for (char *c = t->pod; *c; c++)
		if (*c == '_')
			*c = '-';
}

static void take_unit(struct target *t, const char *s, size_t len)
{
	if (ends_with(s, len, ".service")) {
		copy_clean(t->unit, s, len);
		copy_clean(t->service, s, len - strlen(".service"));
	} else if (len > 5 && !memcmp(s, "user-", 5) && ends_with(s, len, ".slice")) {
		copy_clean(t->service, s, len - strlen(".slice"));
	}
}

void target_parse(const char *path, const char *default_service, struct target *ret)
{
	const char *parent = "", *s = path;
	size_t parent_len = 0, len = 0;
	bool kube = false;

	*ret = (struct target){ 0 };
	for (; *s; s += len) {
		s += strspn(s, "/");
		len = strcspn(s, "/");
		if (!len)
			break;
		kube |= !strncmp(s, "kubepods", 8);
		take_unit(ret, s, len);
		if (kube)
			take_pod(ret, s, len);
		take_container(ret, s, len, parent, parent_len);
		parent = s;
		parent_len = len;
	}
	if (*ret->pod)
		snprintf(ret->service, sizeof(ret->service), "pod:%.100s", ret->pod);
	if (!*ret->service && parent_len)
		copy_clean(ret->service, parent, parent_len);
	if (!*ret->service)
		snprintf(ret->service, sizeof(ret->service), "%s", default_service);
}

/* ---- Cgroup ids ---- */

static void find_mount(struct targets *t)
{
	char line[1024], dir[512], type[64];
	FILE *f = fopen("/proc/self/mounts", "re");

	t->mount = -1;
	while (f && t->mount < 0 && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*s %511s %63s", dir, type) != 2 || strcmp(type, "cgroup2"))
			continue;
		snprintf(t->mount_path, sizeof(t->mount_path), "%s", dir);
		t->mount = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (f)
		fclose(f);
}

static bool path_of(const struct targets *t, uint64_t id, char *ret, size_t cap)
{
	union {
		struct file_handle h;
		char room[sizeof(struct file_handle) + sizeof(id)];
	} u = { .h = { .handle_bytes = sizeof(id), .handle_type = FILEID_KERNFS } };
	size_t skip = strlen(t->mount_path);
	char link[64];
	ssize_t n;
	int fd;

	if (t->mount < 0)
		return false;
	memcpy(u.h.f_handle, &id, sizeof(id));
	fd = open_by_handle_at(t->mount, &u.h, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, ret, cap - 1);
	close(fd);
	if (n < (ssize_t)skip || strncmp(ret, t->mount_path, skip))
		return false;
	ret[n] = 0;
	memmove(ret, ret + skip, (size_t)n - skip + 1);
	return true;
}

static int add_target(struct targets *t, const struct target *one, uint32_t *ret)
{
	for (size_t i = 0; i < t->n; i++) {
		if (!memcmp(&t->list[i], one, sizeof(*one))) {
			*ret = (uint32_t)i;
			return 0;
		}
	}
	if (t->n >= MAX_TARGETS || vec_reserve(&t->list, &t->cap, t->n + 1, sizeof(*t->list)))
		return -ENOMEM;
	t->list[t->n] = *one;
	*ret = (uint32_t)t->n++;
	return 0;
}

static void start_afresh(struct targets *t)
{
	struct target first;
	uint32_t index;

	idmap_free(&t->cgroups);
	t->cgroups = (struct idmap){ 0 };
	t->n = 0;
	target_parse("/", t->service, &first);
	add_target(t, &first, &index);
}

struct targets *targets_new(const char *default_service)
{
	struct targets *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	copy_clean(t->service, default_service, strlen(default_service));
	find_mount(t);
	start_afresh(t);
	if (!t->n) {
		targets_free(t);
		return NULL;
	}
	return t;
}

void targets_free(struct targets *t)
{
	if (!t)
		return;
	if (t->mount >= 0)
		close(t->mount);
	idmap_free(&t->cgroups);
	free(t->by_cgroup);
	free(t->list);
	free(t);
}

uint32_t targets_of(struct targets *t, uint64_t cgroup_id)
{
	size_t before = t->cgroups.n;
	struct target one;
	char path[4096];
	uint32_t id;

	if (!cgroup_id || before >= MAX_CGROUPS || idmap_get(&t->cgroups, cgroup_id, 0, &id) ||
	    vec_reserve(&t->by_cgroup, &t->by_cgroup_cap, t->cgroups.n, sizeof(*t->by_cgroup)))
		return 0;
	if (id == before) {
		t->by_cgroup[id] = 0;
		if (path_of(t, cgroup_id, path, sizeof(path))) {
			target_parse(path, t->service, &one);
			if (add_target(t, &one, &t->by_cgroup[id]))
				t->by_cgroup[id] = 0;
		}
	}
	return t->by_cgroup[id];
}

const struct target *targets_at(const struct targets *t, uint32_t index)
{
	return &t->list[index < t->n ? index : 0];
}

void targets_trim(struct targets *t)
{
	if (t->cgroups.n > MAX_CGROUPS / 2 || t->n > MAX_TARGETS / 2)
		start_afresh(t);
}
