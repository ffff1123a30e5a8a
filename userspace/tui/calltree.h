/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The selected stacks as one tree. Top-down: commands, then frames from the root; or, from a function, what it calls.
 * Bottom-up: functions by self, below each its callers; or, from a function, its callers alone.
 * A node is known from refresh to refresh by its path, a hash of the names from the root.
 */
#ifndef SFBPF_TUI_CALLTREE_H
#define SFBPF_TUI_CALLTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "prof/profile.h"
#include "prof/selection.h"

#define CALLTREE_ROOT 0u
#define CALLTREE_NONE UINT32_MAX

enum calltree_label { LABEL_SYMBOL, LABEL_COMM, LABEL_STOP };

struct calltree_node {
	uint64_t path;
	uint64_t self, total;
	uint32_t id;			/* a symbol; index for calltree_comm; enum sf_stop */
	uint32_t parent, first_child, next;	/* CALLTREE_NONE: none */
	uint32_t nchildren;
	uint16_t depth;			/* of the root: 0 */
	uint8_t label;			/* enum calltree_label: what id is */
	bool found;			/* scratch for whoever searches */
};

enum calltree_order { CALLTREE_TOP_DOWN, CALLTREE_BOTTOM_UP };

struct calltree {
	struct calltree_node *nodes;	/* [CALLTREE_ROOT] is there once it is built */
	size_t n, cap;
	bool cut;			/* too many nodes: some stacks end early in the tree */
	struct calltree_scratch *scratch;
};

/* Into *t, zeroed before its first use. 0 or -ENOMEM (t is then empty). */
int calltree_build(struct calltree *t, struct profile *p, struct symbolizer *sz, const struct selection *sel,
		   enum calltree_order order);
void calltree_free(struct calltree *t);
/* Indices of a node's children, most samples first, at most cap of them. Returns their number. */
size_t calltree_children(const struct calltree *t, uint32_t node, uint32_t *ret, size_t cap);
const char *calltree_comm(const struct calltree *t, uint32_t id);	/* as the kernel gave it: foreign bytes */

#endif
