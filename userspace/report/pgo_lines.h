/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How often the source lines of a program ran, by function and by what was inlined into it: what
 * sample profiles of compilers hold.
 *
 * A sample says that time was spent at an instruction. Compilers ask how often code ran. All
 * instructions of a block run equally often. So each of them has the mean of the samples of its
 * block, times PGO_SCALE. A line has the most that one of its instructions has, as in AutoFDO.
 */
#ifndef SFBPF_REPORT_PGO_LINES_H
#define SFBPF_REPORT_PGO_LINES_H

#include "base/idmap.h"
#include "base/strpool.h"
#include "report/pgo.h"

#define PGO_NO_NODE UINT32_MAX

/*
 * A line of code in its function: the distance from the line at which the function starts, modulo
 * 2^16, and the discriminator.
 */
#define PGO_SITE(line, discriminator) ((uint32_t)(line) << 16 | ((discriminator)&0xffff))
#define PGO_SITE_LINE(site)	      ((site) >> 16)
#define PGO_SITE_DISCRIMINATOR(site)  ((site)&0xffff)

/* A function, or one that is inlined at a site of its parent. */
struct pgo_node {
	uint32_t parent, site, name; /* parent: PGO_NO_NODE: a function */
	uint64_t total;		     /* the sum of its lines and of what is inlined into it */
	uint64_t head;		     /* the count of the beginning of a function */
};

struct pgo_line {
	uint32_t node, site;
	uint64_t count;
};

/* A line, or a node that is inlined at a site. */
struct pgo_item {
	uint32_t node, site;
	uint32_t inlined; /* bool */
	uint32_t index;	  /* into lines, or into nodes */
};

struct pgo_lines {	       /* zeroed: empty */
	struct strpool *names; /* linkage names */
	struct idmap node_ids, line_ids;
	struct pgo_node *nodes; /* a parent comes before its children */
	struct pgo_line *lines;
	size_t nodes_cap, lines_cap;
	/* What nodes have, by node and site. Those of node i begin at items[first[i]] */
	struct pgo_item *items;
	uint32_t *first;
	uint32_t *functions; /* nodes without a parent, those with most samples first */
	size_t nfunctions;
};

/* How a compiler's discriminator is used; duplicates: by how many copies the code was replaced. */
typedef void pgo_discriminator_fn(uint32_t raw, uint32_t *ret, uint32_t *ret_duplicates);

/*
 * Reads the debug information of what was sampled, and sets p->used. 0; EXIT_FAILED after
 * complaining; -ENOMEM. pgo_lines_free in either case.
 */
int pgo_lines_read(struct pgo *p, pgo_discriminator_fn *discriminator, struct pgo_lines *ret);
void pgo_lines_free(struct pgo_lines *l);

#endif
