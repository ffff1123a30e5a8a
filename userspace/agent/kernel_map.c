/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/kernel_map.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "elf/elf_image.h"

static struct kernel_part *add(struct kernel_map *map, const char *name)
{
	struct kernel_part *p;

	if (vec_reserve(&map->parts, &map->cap, map->n + 1, sizeof(*map->parts)))
		return NULL;
	p = &map->parts[map->n++];
	*p = (struct kernel_part){ .start = 0 };
	snprintf(p->name, sizeof(p->name), "[%.60s]", name);
	return p;
}

static int by_start(const void *a, const void *b)
{
	const struct kernel_part *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Lines of /proc/modules: name, size, references, users, state, address. */
static void read_modules(struct kernel_map *map)
{
	char path[300], line[4096], name[61];
	uint64_t size, start;
	struct kernel_part *p;
	FILE *f;

	snprintf(path, sizeof(path), "%s/proc/modules", map->root ? map->root : "");
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%60s %" SCNu64 " %*s %*s %*s 0x%" SCNx64, name, &size, &start) !=
			    3 ||
		    !start || !size || start + size < start || !(p = add(map, name)))
			continue;
		p->start = start;
		p->limit = start + size;
	}
	if (f)
		fclose(f);
	if (map->n > 1)
		qsort(map->parts + 1, map->n - 1, sizeof(*map->parts), by_start);
}

static void ask_id(const struct kernel_map *map, struct kernel_part *p)
{
	const char *root = map->root ? map->root : "";
	int len = (int)strlen(p->name) - 2; /* length without the brackets */
	char path[300];

	p->asked = true;
	if (p->limit)
		snprintf(path, sizeof(path), "%s/sys/module/%.*s/notes/.note.gnu.build-id", root,
			 len, p->name + 1);
	else
		snprintf(path, sizeof(path), "%s/sys/kernel/notes", root);
	p->id_len = elf_notes_file_build_id(path, p->id, sizeof(p->id));
}

const struct kernel_part *kernel_map_at(struct kernel_map *map, uint64_t addr)
{
	size_t lo = 1, hi;
	struct kernel_part *p;

	if (!map->n && add(map, "kernel"))
		read_modules(map);
	if (!map->n) {
		snprintf(map->none.name, sizeof(map->none.name), "[kernel]");
		return &map->none;
	}
	for (hi = map->n; lo < hi;) {
		size_t mid = (lo + hi) / 2;

		if (map->parts[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	p = &map->parts[lo - 1];
	if (addr >= p->limit)
		p = &map->parts[0];
	if (!p->asked)
		ask_id(map, p);
	return p;
}

void kernel_map_free(struct kernel_map *map)
{
	free(map->parts);
	*map = (struct kernel_map){ .n = 0 };
}
