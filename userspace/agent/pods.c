/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/pods.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "base/json_read.h"
#include "base/text.h"
#include "base/vec.h"

/* A node has a few hundred pods. An entry takes more memory than the text that makes it. */
#define MAX_PODS       4096
#define MAX_CONTAINERS 16384
#define UID_TEXT       64

struct container_entry {
	char id[CONTAINER_ID_MAX];
	char name[POD_LABEL];
	uint32_t pod;
};

struct pod_entry {
	char uid[UID_TEXT];
	struct pod_names names;
};

struct pods {
	struct pod_entry *list;
	size_t n, cap;
	struct container_entry *containers; /* sorted by id */
	size_t ncontainers, containers_cap;
};

struct parser {
	struct json_reader j;
	const struct agent_config *cfg;
	struct pods *pods;
	struct pod_entry pod; /* the current one */
	bool listed;	      /* there was a list */
	int err;
};

static void take_text(struct parser *p, char *dst, size_t cap)
{
	const char *s = json_string(&p->j);

	memset(dst, 0, cap);
	text_clean(dst, cap, s, strlen(s), 0);
}

static void take_labels(struct parser *p)
{
	const struct agent_pairs *keys = &p->cfg->pod_keys;
	char value[POD_LABEL];
	const char *key;

	if (!json_enter(&p->j, '{'))
		return;
	while ((key = json_key(&p->j))) {
		take_text(p, value, sizeof(value));
		if (!strcmp(p->j.key, p->cfg->service_label))
			memcpy(p->pod.names.service, value, sizeof(value));
		for (size_t i = 0; i < keys->n && i < POD_LABELS; i++)
			if (!strcmp(p->j.key, keys->list[i].value))
				memcpy(p->pod.names.labels[i], value, sizeof(value));
	}
}

static void take_metadata(struct parser *p)
{
	const char *key;

	if (!json_enter(&p->j, '{'))
		return;
	while ((key = json_key(&p->j))) {
		if (!strcmp(key, "name"))
			take_text(p, p->pod.names.pod, sizeof(p->pod.names.pod));
		else if (!strcmp(key, "namespace"))
			take_text(p, p->pod.names.space, sizeof(p->pod.names.space));
		else if (!strcmp(key, "uid"))
			take_text(p, p->pod.uid, sizeof(p->pod.uid));
		else if (!strcmp(key, "labels"))
			take_labels(p);
		else
			json_skip(&p->j);
	}
}

static void take_spec(struct parser *p)
{
	const char *key;

	if (!json_enter(&p->j, '{'))
		return;
	while ((key = json_key(&p->j))) {
		if (!strcmp(key, "nodeName"))
			take_text(p, p->pod.names.node, sizeof(p->pod.names.node));
		else
			json_skip(&p->j);
	}
}

/* "containerd://ID": the id; "": not such a text. */
static void take_id(struct parser *p, char id[CONTAINER_ID_MAX])
{
	static const char digits[] = "0123456789abcdef";
	const char *s = json_string(&p->j), *at = strstr(s, "://");
	size_t len;

	memset(id, 0, CONTAINER_ID_MAX);
	at = at ? at + 3 : "";
	len = strlen(at);
	if (len < CONTAINER_ID_MAX && strspn(at, digits) == len)
		memcpy(id, at, len);
}

static void add_container(struct parser *p, const struct container_entry *c)
{
	struct pods *all = p->pods;

	if (!*c->id || !*c->name || all->ncontainers >= MAX_CONTAINERS)
		return;
	if (vec_reserve(&all->containers, &all->containers_cap, all->ncontainers + 1,
			sizeof(*all->containers))) {
		p->err = -ENOMEM;
		return;
	}
	all->containers[all->ncontainers++] = *c;
}

static void take_containers(struct parser *p)
{
	const char *key;

	if (!json_enter(&p->j, '['))
		return;
	while (json_element(&p->j)) {
		struct container_entry c = { .pod = (uint32_t)p->pods->n };

		if (!json_enter(&p->j, '{'))
			continue;
		while ((key = json_key(&p->j))) {
			if (!strcmp(key, "name"))
				take_text(p, c.name, sizeof(c.name));
			else if (!strcmp(key, "containerID"))
				take_id(p, c.id);
			else
				json_skip(&p->j);
		}
		add_container(p, &c);
	}
}

static void take_status(struct parser *p)
{
	const char *key;

	if (!json_enter(&p->j, '{'))
		return;
	while ((key = json_key(&p->j))) {
		if (!strcmp(key, "containerStatuses") || !strcmp(key, "initContainerStatuses") ||
		    !strcmp(key, "ephemeralContainerStatuses"))
			take_containers(p);
		else
			json_skip(&p->j);
	}
}

static void take_pod(struct parser *p)
{
	struct pods *all = p->pods;
	size_t containers = all->ncontainers;
	const char *key;

	p->pod = (struct pod_entry){ 0 };
	if (!json_enter(&p->j, '{'))
		return;
	while ((key = json_key(&p->j))) {
		if (!strcmp(key, "metadata"))
			take_metadata(p);
		else if (!strcmp(key, "spec"))
			take_spec(p);
		else if (!strcmp(key, "status"))
			take_status(p);
		else
			json_skip(&p->j);
	}
	if (!*p->pod.names.pod || !*p->pod.uid || all->n >= MAX_PODS) {
		all->ncontainers = containers;
		return;
	}
	if (vec_reserve(&all->list, &all->cap, all->n + 1, sizeof(*all->list))) {
		p->err = -ENOMEM;
		return;
	}
	all->list[all->n++] = p->pod;
}

static void take_list(struct parser *p)
{
	const char *key;

	if (!json_enter(&p->j, '{'))
		return;
	while ((key = json_key(&p->j))) {
		/* "items" of no pods is null */
		if (strcmp(key, "items")) {
			json_skip(&p->j);
			continue;
		}
		p->listed = true;
		if (json_enter(&p->j, '['))
			while (!p->err && json_element(&p->j))
				take_pod(p);
		if (p->err)
			return;
	}
}

static int by_id(const void *a, const void *b)
{
	const struct container_entry *x = a, *y = b;

	return strcmp(x->id, y->id);
}

int pods_parse(const char *text, size_t len, const struct agent_config *cfg, struct pods **ret)
{
	struct parser p = { .cfg = cfg, .pods = calloc(1, sizeof(*p.pods)) };

	*ret = NULL;
	if (!p.pods)
		return -ENOMEM;
	json_reader_init(&p.j, text, len);
	take_list(&p);
	if (!p.err && (p.j.bytes.err || !p.listed))
		p.err = -EINVAL;
	json_reader_free(&p.j);
	if (p.err) {
		pods_free(p.pods);
		return p.err;
	}
	if (p.pods->ncontainers)
		qsort(p.pods->containers, p.pods->ncontainers, sizeof(*p.pods->containers), by_id);
	*ret = p.pods;
	return 0;
}

void pods_free(struct pods *p)
{
	if (!p)
		return;
	free(p->list);
	free(p->containers);
	free(p);
}

enum pods_found pods_find(const struct pods *p, const char *container, const char *uid,
			  struct pod_names *ret)
{
	struct container_entry key = { 0 }, *c = NULL;

	if (!p)
		return PODS_NONE;
	if (*container && strlen(container) < sizeof(key.id) && p->ncontainers) {
		strcpy(key.id, container);
		c = bsearch(&key, p->containers, p->ncontainers, sizeof(key), by_id);
	}
	if (c) {
		*ret = p->list[c->pod].names;
		memcpy(ret->container, c->name, sizeof(c->name));
		return PODS_CONTAINER;
	}
	for (size_t i = 0; i < p->n && *uid; i++) {
		if (!strcmp(p->list[i].uid, uid)) {
			*ret = p->list[i].names;
			return PODS_POD;
		}
	}
	return PODS_NONE;
}

size_t pods_count(const struct pods *p)
{
	return p ? p->n : 0;
}

size_t pods_containers(const struct pods *p)
{
	return p ? p->ncontainers : 0;
}
