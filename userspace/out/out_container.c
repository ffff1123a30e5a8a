/* SPDX-License-Identifier: BSD-2-Clause */
/* Container ids of the processes in a report, looked up once each. */
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "base/idmap.h"
#include "base/text.h"
#include "base/vec.h"
#include "out/out.h"

struct out_containers {
	struct idmap known;	       /* pid, cgroup id -> ids */
	char (*ids)[CONTAINER_ID_MAX]; /* "": none */
	size_t cap;
};

struct out_containers *out_containers_new(void)
{
	return calloc(1, sizeof(struct out_containers));
}

void out_containers_free(struct out_containers *oc)
{
	if (!oc)
		return;
	idmap_free(&oc->known);
	free(oc->ids);
	free(oc);
}

const char *out_container(struct out_containers *oc, const struct profile_stack *s)
{
	size_t before = oc->known.n;
	struct container c;
	uint32_t id;

	if (vec_reserve(&oc->ids, &oc->cap, before + 1, sizeof(*oc->ids)) ||
	    idmap_get(&oc->known, s->pid, s->cgroup_id, &id))
		return NULL;
	if (id == before) {
		*oc->ids[id] = 0;
		if (container_of_process(s->pid, s->cgroup_id, &c))
			text_clean(oc->ids[id], sizeof(oc->ids[id]), c.id, strlen(c.id), 0);
	}
	return *oc->ids[id] ? oc->ids[id] : NULL;
}
