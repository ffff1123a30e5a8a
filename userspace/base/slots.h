/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The slots of a hash table whose items are in an array of the caller. Each slot holds the index of
 * an item + 1; 0 means free. Open addressing, at most half full. Single items cannot be removed;
 * slots_reset() removes all.
 *
 * 	if (slots_reserve(&t->slots, t->n, hash_of, t))
 * 		return -ENOMEM;
 * 	slots_each(&t->slots, hash, at)
 * 		if (item t->slots.ids[at] - 1 is the one)
 * 			return it;
 * 	t->slots.ids[at] = ++t->n;
 */
#ifndef SFBPF_BASE_SLOTS_H
#define SFBPF_BASE_SLOTS_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS_FIRST 256

struct slots {	       /* zeroed: empty */
	uint32_t *ids; /* index + 1 */
	size_t n;      /* a power of two, or 0 */
};

/*
 * Visits each slot that may hold an item with that hash. Afterwards `at` is the free slot for a new
 * item. s->n must not be 0.
 */
#define slots_each(s, hash, at) \
	for ((at) = (hash) & ((s)->n - 1); (s)->ids[at]; (at) = ((at) + 1) & ((s)->n - 1))

/* Makes room for one more item than `items`. Growing calls hash() for all of them. 0 or -ENOMEM. */
static inline int slots_reserve(struct slots *s, size_t items,
				uint64_t (*hash)(const void *ctx, size_t i), const void *ctx)
{
	struct slots more = { .n = s->n ? s->n * 2 : SLOTS_FIRST };
	size_t at;

	if (items * 2 < s->n)
		return 0;
	more.ids = calloc(more.n, sizeof(*more.ids));
	if (!more.ids)
		return -ENOMEM;
	for (size_t i = 0; i < items; i++) {
		slots_each(&more, hash(ctx, i), at)
			;
		more.ids[at] = (uint32_t)i + 1;
	}
	free(s->ids);
	*s = more;
	return 0;
}

static inline void slots_reset(struct slots *s) /* keeps the memory */
{
	if (s->n)
		memset(s->ids, 0, s->n * sizeof(*s->ids));
}

static inline void slots_free(struct slots *s)
{
	free(s->ids);
	*s = (struct slots){ 0 };
}

static inline size_t slots_bytes(const struct slots *s)
{
	return s->n * sizeof(*s->ids);
}

#endif
