/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/target.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/container_name.h"
#include "base/idmap.h"
#include "base/text.h"
#include "base/vec.h"

#define MAX_CGROUPS 16384
#define MAX_TARGETS 2048

struct targets {
	char service[TARGET_TEXT];
	struct container_names *containers;
	struct idmap cgroups; /* cgroup id -> index into by_cgroup */
	uint32_t *by_cgroup;
	size_t by_cgroup_cap;
	struct target *list;
	size_t n, cap;
	struct pod_names *names; /* target.names is an index into these plus 1 */
	size_t nnames, names_cap;
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

/* "pod" at the beginning or behind '-': "kubepods" contains it, too, but no uid. */
static const char *find_pod(const char *s, size_t len)
{
	for (size_t i = 0; i + 3 <= len; i++)
		if ((!i || s[i - 1] == '-') && s[i] == 'p' && s[i + 1] == 'o' && s[i + 2] == 'd')
			return s + i;
	return NULL;
}

/*
 * Parses "...-pod0a1b_..." or "pod0a1b-...": systemd replaces '-' inside a part of a name with '_'.
 */
static void take_pod(struct target *t, const char *s, size_t len)
{
	const char *pod = find_pod(s, len);
	size_t n;

	if (!pod)
		return;
	n = strspn(pod + 3, "0123456789abcdefABCDEF-_");
	if (n > len - (size_t)(pod + 3 - s) || n < 8 || n >= TARGET_TEXT)
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
	const char *last = "", *s = path;
	size_t last_len = 0, len = 0;
	struct container c;
	bool kube = false;

	*ret = (struct target){ 0 };
	for (; *s; s += len) {
		s += strspn(s, "/");
		len = strcspn(s, "/");
		if (!len)
			break;
		/* The name is "kubelet-kubepods.slice" in kind. */
		kube |= memmem(s, len, "kubepods", 8) != NULL;
		take_unit(ret, s, len);
		if (kube)
			take_pod(ret, s, len);
		last = s;
		last_len = len;
	}
	if (container_of_path(path, &c))
		copy_clean(ret->container, c.id, strlen(c.id));
	if (*ret->container || *ret->pod)
		snprintf(ret->service, sizeof(ret->service), "unknown_service");
	if (!*ret->service && last_len)
		copy_clean(ret->service, last, last_len);
	if (!*ret->service)
		snprintf(ret->service, sizeof(ret->service), "%s", default_service);
}

/* ---- Cgroup ids ---- */

/* Where there are `most` targets, it finds those that there are, and adds none. */
static int add_target(struct targets *t, const struct target *one, size_t most, uint32_t *ret)
{
	for (size_t i = 0; i < t->n; i++) {
		if (!memcmp(&t->list[i], one, sizeof(*one))) {
			*ret = (uint32_t)i;
			return 0;
		}
	}
	if (t->n >= most || vec_reserve(&t->list, &t->cap, t->n + 1, sizeof(*t->list)))
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
	t->n = t->nnames = 0;
	target_parse("/", t->service, &first);
	add_target(t, &first, MAX_TARGETS, &index);
}

struct targets *targets_new(const char *default_service, struct container_names *containers)
{
	struct targets *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->containers = containers;
	copy_clean(t->service, default_service, strlen(default_service));
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
	idmap_free(&t->cgroups);
	free(t->by_cgroup);
	free(t->list);
	free(t->names);
	free(t);
}

/* The index plus 1; 0: there are too many, or there is no memory. */
static uint32_t add_names(struct targets *t, const struct pod_names *names)
{
	for (size_t i = 0; i < t->nnames; i++)
		if (!memcmp(&t->names[i], names, sizeof(*names)))
			return (uint32_t)i + 1;
	if (t->nnames >= MAX_TARGETS ||
	    vec_reserve(&t->names, &t->names_cap, t->nnames + 1, sizeof(*t->names)))
		return 0;
	t->names[t->nnames++] = *names;
	return (uint32_t)t->nnames;
}

/* What the runtime calls the container of a cgroup. */
static void name_container(struct targets *t, const char *path, struct target *ret)
{
	const struct container_name *name;
	struct pod_names names = { 0 };
	struct container c;

	if (!container_of_path(path, &c))
		return;
	name = container_names_get(t->containers, &c);
	if (*name->name) {
		copy_clean(ret->container_name, name->name, strlen(name->name));
		memcpy(ret->service, ret->container_name, TARGET_TEXT);
	}
	if (!*name->pod)
		return;
	snprintf(names.pod, sizeof(names.pod), "%s", name->pod);
	snprintf(names.space, sizeof(names.space), "%s", name->space);
	text_clean(names.container, sizeof(names.container), name->name, strlen(name->name), 0);
	ret->names = add_names(t, &names);
}

uint32_t targets_of(struct targets *t, uint64_t cgroup_id)
{
	size_t before = t->cgroups.n;
	struct target one;
	char path[4096];
	uint32_t id;

	if (idmap_find(&t->cgroups, cgroup_id, 0, &id))
		return t->by_cgroup[id];
	if (!cgroup_id || before >= MAX_CGROUPS ||
	    vec_reserve(&t->by_cgroup, &t->by_cgroup_cap, before + 1, sizeof(*t->by_cgroup)) ||
	    idmap_get(&t->cgroups, cgroup_id, 0, &id))
		return 0;
	t->by_cgroup[id] = 0;
	if (cgroup_path_of_id(cgroup_id, path, sizeof(path))) {
		target_parse(path, t->service, &one);
		name_container(t, path, &one);
		if (add_target(t, &one, MAX_TARGETS, &t->by_cgroup[id]))
			t->by_cgroup[id] = 0;
	}
	return t->by_cgroup[id];
}

static void replace(char *text, const char *with)
{
	if (*with)
		memcpy(text, with, TARGET_TEXT);
}

uint32_t targets_with(struct targets *t, uint32_t index, const struct target *names)
{
	struct target one = *targets_at(t, index);
	uint32_t ret;

	replace(one.service, names->service);
	replace(one.space, names->space);
	replace(one.version, names->version);
	replace(one.instance, names->instance);
	replace(one.environment, names->environment);
	return add_target(t, &one, MAX_TARGETS / 2, &ret) ? index : ret;
}

uint32_t targets_in_pod(struct targets *t, uint32_t index, const struct pod_names *names)
{
	struct target one = *targets_at(t, index);
	const struct pod_names *before = targets_names(t, &one);
	struct pod_names all = *names;
	uint32_t ret;

	if (!*all.container && before)
		memcpy(all.container, before->container, sizeof(all.container));
	one.names = add_names(t, &all);
	if (*all.service || *all.container) {
		memset(one.service, 0, sizeof(one.service));
		snprintf(one.service, sizeof(one.service), "%s",
			 *all.service ? all.service : all.container);
	}
	return !one.names || add_target(t, &one, MAX_TARGETS / 2, &ret) ? index : ret;
}

const struct pod_names *targets_names(const struct targets *t, const struct target *one)
{
	return one->names && one->names <= t->nnames ? &t->names[one->names - 1] : NULL;
}

const struct target *targets_at(const struct targets *t, uint32_t index)
{
	return &t->list[index < t->n ? index : 0];
}

void targets_trim(struct targets *t)
{
	if (t->cgroups.n > MAX_CGROUPS / 2 || t->n >= MAX_TARGETS / 2)
		start_afresh(t);
}
