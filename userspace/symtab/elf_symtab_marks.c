/* SPDX-License-Identifier: BSD-2-Clause */
/* Marks after names that would mislead alone (elf_symtab.h). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "symtab/symtab_builder.h"

static int compare_u32(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static int add_mark(struct builder *b, uint64_t off, uint32_t others)
{
	if (vec_reserve(&b->marks, &b->marks_cap, b->nmarks + 1, sizeof(*b->marks)))
		return -ENOMEM;
	b->marks[b->nmarks++] = (struct mark){ off, others };
	return 0;
}

int builder_mark(struct builder *b, const struct cand *group, size_t n, const struct cand *best)
{
	bool resolver = best->ifunc;
	uint32_t *kins, others = 0;
	size_t k = 0;

	/* _Z3foov.resolver is shown as the function. In C, the suffix is shown. */
	for (size_t i = 0; i < n && best->kin; i++)
		resolver |= group[i].ifunc;
	if (resolver)
		return add_mark(b, best->off, 0);
	if (!best->kin || n < 2)
		return 0;
	kins = malloc(n * sizeof(*kins));
	if (!kins)
		return -ENOMEM;
	/* Folded functions have one size. One without code may have the address of the next. */
	for (size_t i = 0; i < n; i++)
		if (group[i].kin && group[i].kin != best->kin && group[i].size == best->size)
			kins[k++] = group[i].kin;
	if (k)
		qsort(kins, k, sizeof(*kins), compare_u32);
	for (size_t i = 0; i < k; i++)
		others += !i || kins[i] != kins[i - 1];
	free(kins);
	return others ? add_mark(b, best->off, others) : 0;
}

const struct mark *builder_find_mark(const struct builder *b, uint64_t off)
{
	size_t lo = 0, hi = b->nmarks; /* marks before lo are below off, those from hi on are not */

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (b->marks[mid].off < off)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < b->nmarks && b->marks[lo].off == off ? &b->marks[lo] : NULL;
}

size_t builder_marked_name(const struct mark *m, const char *name, size_t len, char *ret)
{
	char text[32] = " [resolver]";
	size_t n;

	if (m->others)
		snprintf(text, sizeof(text), " [+%u]", m->others);
	n = strlen(text);
	if (len > SYMTAB_NAME_MAX - 1 - n)
		len = SYMTAB_NAME_MAX - 1 - n;
	memcpy(ret, name, len);
	memcpy(ret + len, text, n);
	return len + n;
}
