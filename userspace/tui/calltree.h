/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The selected stacks as one tree. Top-down: commands, then frames from the outermost one. Zoomed
 * into a function: only its callees. Bottom-up: leaf functions, and below each its callers. Zoomed
 * into a function: only its callers. A node is identified across refreshes by its path, a hash of
 * the names from the root.
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

/* LABEL_PROCESS: the name of a process. LABEL_COMM: of a thread. */
enum calltree_label { LABEL_SYMBOL, LABEL_PROCESS, LABEL_COMM, LABEL_STOP };

struct calltree_node {
	uint64_t path;
	uint64_t self, total;
	uint32_t id;			    /* symbol, id for calltree_comm, or enum sf_stop */
	uint32_t parent, first_child, next; /* CALLTREE_NONE: none */
	uint32_t nchildren;
	uint16_t depth; /* root: 0 */
	uint8_t label;	/* enum calltree_label: the meaning of id */
	bool found;	/* scratch space for searches */
};

enum calltree_order { CALLTREE_TOP_DOWN, CALLTREE_BOTTOM_UP };

struct calltree {
	struct calltree_node *nodes; /* [CALLTREE_ROOT] exists after calltree_build */
	size_t n, cap;
	bool cut; /* too many nodes: some stacks are truncated */
	struct calltree_scratch *scratch;
};

/* Into *t, zeroed before its first use. 0 or -ENOMEM (t is then empty). */
int calltree_build(struct calltree *t, struct profile *p, struct symbolizer *sz,
		   const struct selection *sel, enum calltree_order order);
void calltree_free(struct calltree *t);
/* Stores at most cap indices of a node's children, most samples first. Returns their number. */
size_t calltree_children(const struct calltree *t, uint32_t node, uint32_t *ret, size_t cap);
/* The name of a process or thread as the kernel reported it: foreign bytes */
const char *calltree_comm(const struct calltree *t, uint32_t id);

#endif
