/* SPDX-License-Identifier: BSD-2-Clause */
/* Containers of the processes in a report, looked up once each. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/container_name.h"
#include "base/idmap.h"
#include "base/text.h"
#include "base/vec.h"
#include "out/out.h"

struct out_containers {
	struct idmap known; /* pid, cgroup id -> list */
	struct out_container *list;
	size_t cap;
	struct container_names *names;
};

struct out_containers *out_containers_new(void)
{
	struct out_containers *oc = calloc(1, sizeof(*oc));

	if (oc)
		oc->names = container_names_of_host();
	return oc;
}

void out_containers_free(struct out_containers *oc)
{
	if (!oc)
		return;
	container_names_free(oc->names);
	idmap_free(&oc->known);
	free(oc->list);
	free(oc);
}

struct out_containers *out_containers_of(const struct out_report *r)
{
	return r->containers ? r->containers : out_containers_new();
}

void out_containers_done(const struct out_report *r, struct out_containers *oc)
{
	if (oc != r->containers)
		out_containers_free(oc);
}

static void look_up(struct out_containers *oc, const struct profile_stack *s,
		    struct out_container *ret)
{
	struct container c;

	*ret = (struct out_container){ 0 };
	switch (container_of_process(s->pid, s->cgroup_id, &c)) {
	case CONTAINER_GONE:
		ret->gone = true;
		break;
	case CONTAINER_NONE:
		break;
	case CONTAINER_FOUND:
		text_clean(ret->id, sizeof(ret->id), c.id, strlen(c.id), 0);
		container_name_text(container_names_get(oc->names, &c), ret->name);
		break;
	}
}

/* The place of a process, which is new if it is *ret_before. 0 or -ENOMEM */
static int place_of(struct out_containers *oc, uint32_t pid, uint64_t cgroup_id, size_t *ret_before,
		    uint32_t *ret)
{
	*ret_before = oc->known.n;
	return vec_reserve(&oc->list, &oc->cap, oc->known.n + 1, sizeof(*oc->list)) ||
			       idmap_get(&oc->known, pid, cgroup_id, ret)
		       ? -ENOMEM
		       : 0;
}

int out_containers_set(struct out_containers *oc, uint32_t pid, uint64_t cgroup_id,
		       const struct out_container *c)
{
	size_t before;
	uint32_t id;

	if (place_of(oc, pid, cgroup_id, &before, &id))
		return -ENOMEM;
	oc->list[id] = *c;
	return 0;
}

const struct out_container *out_container(struct out_containers *oc, const struct profile_stack *s)
{
	static const struct out_container none = { .gone = true };
	size_t before;
	uint32_t id;

	if (place_of(oc, s->pid, s->cgroup_id, &before, &id))
		return &none;
	if (id == before)
		look_up(oc, s, &oc->list[id]);
	return &oc->list[id];
}

char *out_container_root(struct out_containers *oc, const struct profile_stack *s, char *dst)
{
	const struct out_container *c = out_container(oc, s);

	if (*c->name)
		strcpy(dst, c->name);
	else if (*c->id)
		snprintf(dst, CONTAINER_TEXT, "%.12s", c->id);
	else
		strcpy(dst, c->gone && s->pid ? "[unknown]" : "[host]");
	return dst;
}
