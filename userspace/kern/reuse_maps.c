/* SPDX-License-Identifier: BSD-2-Clause */
#include "kern/reuse_maps.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

/*
 * The map with the same name. Maps of globals have their object's name as a prefix, up to the first
 * dot.
 */
static const struct bpf_map *same_map(const struct bpf_object *obj, const struct bpf_map *map)
{
	const char *dot = strchr(bpf_map__name(map), '.');
	struct bpf_map *m;

	bpf_object__for_each_map(m, obj)
	{
		const char *its_dot = strchr(bpf_map__name(m), '.');

		if (dot && its_dot ? !strcmp(dot, its_dot)
				   : !strcmp(bpf_map__name(map), bpf_map__name(m)))
			return m;
	}
	return NULL;
}

int reuse_maps(struct bpf_object *to, const struct bpf_object *from)
{
	const struct bpf_map *first;
	struct bpf_map *map;
	int err = 0;

	bpf_object__for_each_map(map, to)
	{
		if (strstr(bpf_map__name(map), ".rodata"))
			continue;
		first = same_map(from, map);
		if (!err)
			err = first ? bpf_map__reuse_fd(map, bpf_map__fd(first)) : -ENOENT;
	}
	return err;
}
