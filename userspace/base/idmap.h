/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Maps pairs of words to dense ids: equal pairs have equal ids, 0, 1, 2, ... in order of insertion.
 */
#ifndef SFBPF_BASE_IDMAP_H
#define SFBPF_BASE_IDMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slots.h"

struct idmap_key {
	uint64_t a, b;
};

struct idmap {			/* zeroed: empty */
	struct idmap_key *keys; /* index: id */
	size_t n, cap;
	struct slots slots;
};

/* Gets the id of a pair. A new pair gets the id map->n. 0 or -ENOMEM. */
int idmap_get(struct idmap *map, uint64_t a, uint64_t b, uint32_t *ret);
/* false: the pair has no id */
bool idmap_find(const struct idmap *map, uint64_t a, uint64_t b, uint32_t *ret);
void idmap_reset(struct idmap *map); /* makes it empty and keeps the memory */
void idmap_free(struct idmap *map);
size_t idmap_bytes(const struct idmap *map); /* bytes of memory */

#endif
