/* SPDX-License-Identifier: BSD-2-Clause */
/* Pairs of words to dense ids: equal pairs have equal ids, 0, 1, 2, ... in order of arrival. */
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
	struct idmap_key *keys;	/* by id */
	size_t n, cap;
	struct slots slots;
};

/* The pair's id; a new one has the id that was map->n before. 0 or -ENOMEM. */
int idmap_get(struct idmap *map, uint64_t a, uint64_t b, uint32_t *ret);
bool idmap_find(const struct idmap *map, uint64_t a, uint64_t b, uint32_t *ret);	/* false: it has none */
void idmap_reset(struct idmap *map);	/* empty, memory kept */
void idmap_free(struct idmap *map);

#endif
