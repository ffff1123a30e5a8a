/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * AutoFDO's profile for gcc (gcc/auto-profile.c), version 2, that of GCC 12. Numbers are 32 bits in
 * native byte order. Counts are two of them, the low one first.
 *
 *   file       magic, version, 0, then sections: tag, length, content. GCC ignores the lengths
 *   names      number, strings; a string is its bytes with the NUL, which the length before it
 *              counts
 *   functions  number, functions: count of the beginning, instance
 *   instance   name, number of lines, number of inlined ones,
 *              lines: site, number of targets (none here), count
 *              inlined: site, instance
 *   modules    number: 0
 *
 * GCC ignores discriminators, so the lines here have none.
 */
#include <errno.h>
#include <string.h>

#include "report/pgo_lines.h"

#define MAGIC	      0x67636461u /* "gcda" */
#define VERSION	      2
#define TAG_NAMES     0xaa000000u
#define TAG_FUNCTIONS 0xac000000u
#define TAG_MODULES   0xae000000u

static void discriminator(uint32_t raw, uint32_t *ret, uint32_t *ret_duplicates)
{
	(void)raw;
	*ret = 0;
	*ret_duplicates = 1;
}

static void put(FILE *f, uint32_t v)
{
	fwrite(&v, sizeof(v), 1, f);
}

static void put_count(FILE *f, uint64_t v)
{
	put(f, (uint32_t)v);
	put(f, (uint32_t)(v >> 32));
}

static void put_names(FILE *f, const struct pgo_lines *l)
{
	put(f, TAG_NAMES);
	put(f, 0);
	put(f, strpool_count(l->names));
	for (uint32_t i = 0; i < strpool_count(l->names); i++) {
		const char *s = strpool_str(l->names, i);
		uint32_t len = (uint32_t)strlen(s) + 1;

		put(f, len);
		fwrite(s, 1, len, f);
	}
}

static uint32_t count_items(const struct pgo_lines *l, uint32_t node, uint32_t inlined)
{
	uint32_t n = 0;

	for (uint32_t i = l->first[node]; i < l->first[node + 1]; i++)
		n += l->items[i].inlined == inlined;
	return n;
}

/* Chains of inlined functions have at most DWARF_MAX_CHAIN nodes. */
static void put_instance(FILE *f, const struct pgo_lines *l, uint32_t node)
{
	put(f, l->nodes[node].name);
	put(f, count_items(l, node, 0));
	put(f, count_items(l, node, 1));
	for (uint32_t i = l->first[node]; i < l->first[node + 1]; i++) {
		if (l->items[i].inlined)
			continue;
		put(f, l->items[i].site);
		put(f, 0);
		put_count(f, l->lines[l->items[i].index].count);
	}
	for (uint32_t i = l->first[node]; i < l->first[node + 1]; i++) {
		if (!l->items[i].inlined)
			continue;
		put(f, l->items[i].site);
		put_instance(f, l, l->items[i].index);
	}
}

int pgo_write_gcc(struct pgo *p, FILE *f)
{
	struct pgo_lines l = { 0 };
	int err = pgo_lines_read(p, discriminator, &l);

	if (!err) {
		put(f, MAGIC);
		put(f, VERSION);
		put(f, 0);
		put_names(f, &l);
		put(f, TAG_FUNCTIONS);
		put(f, 0);
		put(f, (uint32_t)l.nfunctions);
		for (size_t i = 0; i < l.nfunctions; i++) {
			put_count(f, l.nodes[l.functions[i]].head);
			put_instance(f, &l, l.functions[i]);
		}
		put(f, TAG_MODULES);
		put(f, 0);
		put(f, 0);
	}
	pgo_lines_free(&l);
	return err ? err : ferror(f) ? -EIO : 0;
}
