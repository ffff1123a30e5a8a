/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LLVM's sample profile as text (llvm/ProfileData/SampleProfReader.h):
 *
 *   main:184019:0          function: total samples: samples of its beginning
 *    4: 534                line, from that at which the function starts: samples
 *    4.2: 534              with a discriminator
 *    10: inlined:1000      a function that is inlined at a line: its total, and its lines below,
 *     1: 1000              by one more space
 *
 * Names are linkage names. The clang that uses the profile looks for functions by them.
 */
#include <errno.h>
#include <inttypes.h>

#include "report/pgo_lines.h"

/*
 * The parts of LLVM's discriminators (llvm/IR/DebugInfoMetadata.h): the base, the number of copies
 * of the code, and which copy it is. Each is 1 bit (0), 7 or 14 bits.
 */
static uint32_t part_of(uint32_t d)
{
	if (d & 1)
		return 0;
	d >>= 1;
	return d & 0x20 ? (d >> 1 & 0xfe0) | (d & 0x1f) : d & 0x1f;
}

static uint32_t after_part(uint32_t d)
{
	return d & 1 ? d >> 1 : d >> (d & 0x40 ? 14 : 7);
}

static void discriminator(uint32_t raw, uint32_t *ret, uint32_t *ret_duplicates)
{
	uint32_t duplicates = part_of(after_part(raw));

	*ret = raw ? part_of(raw) : 0;
	*ret_duplicates = raw && duplicates ? duplicates : 1;
}

static void put_node(FILE *f, const struct pgo_lines *l, uint32_t node, int depth);

static void put_item(FILE *f, const struct pgo_lines *l, const struct pgo_item *item, int depth)
{
	const struct pgo_node *inlined = item->inlined ? &l->nodes[item->index] : NULL;

	if (inlined && !inlined->total && l->first[item->index] == l->first[item->index + 1])
		return;
	fprintf(f, "%*s%u", depth, "", PGO_SITE_LINE(item->site));
	if (PGO_SITE_DISCRIMINATOR(item->site))
		fprintf(f, ".%u", PGO_SITE_DISCRIMINATOR(item->site));
	if (!inlined) {
		fprintf(f, ": %" PRIu64 "\n", l->lines[item->index].count);
		return;
	}
	fprintf(f, ": %s:%" PRIu64 "\n", strpool_str(l->names, inlined->name), inlined->total);
	put_node(f, l, item->index, depth + 1);
}

/* Chains of inlined functions have at most DWARF_MAX_CHAIN nodes. */
static void put_node(FILE *f, const struct pgo_lines *l, uint32_t node, int depth)
{
	for (uint32_t i = l->first[node]; i < l->first[node + 1]; i++)
		put_item(f, l, &l->items[i], depth);
}

int pgo_write_clang(struct pgo *p, FILE *f)
{
	struct pgo_lines l = { 0 };
	int err = pgo_lines_read(p, discriminator, &l);

	for (size_t i = 0; i < l.nfunctions && !err; i++) {
		const struct pgo_node *n = &l.nodes[l.functions[i]];

		fprintf(f, "%s:%" PRIu64 ":%" PRIu64 "\n", strpool_str(l.names, n->name), n->total,
			n->head);
		put_node(f, &l, l.functions[i], 1);
	}
	pgo_lines_free(&l);
	return err ? err : ferror(f) ? -EIO : 0;
}
