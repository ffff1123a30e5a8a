/* SPDX-License-Identifier: BSD-2-Clause */
#include "symtab/elf_symtab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/radix.h"
#include "symtab/symtab_builder.h"

/* ---- Where code is ---- */

static int compare_range(const void *a, const void *b)
{
	const struct code_range *x = a, *y = b;

	return x->off < y->off ? -1 : x->off > y->off;
}

static int find_code(struct builder *b)
{
	const struct elf_image *img = b->img;
	uint32_t i;

	for (i = 0; i < img->nphdrs && b->nsegs < SYMTAB_MAX_CODE; i++) {
		const struct elf_phdr *ph = &img->phdrs[i];

		if (ph->type == PT_LOAD && ph->flags & PF_X && ph->filesz)
			b->segs[b->nsegs++] = (struct code_range){ ph->offset, ph->vaddr,
								   ph->filesz };
	}
	b->areas = calloc((size_t)img->nshdrs + SYMTAB_MAX_CODE, sizeof(*b->areas));
	if (!b->areas)
		return -ENOMEM;
	for (i = 0; i < img->nshdrs; i++) {
		const struct elf_shdr *s = &img->shdrs[i];

		if (s->flags & SHF_EXECINSTR && s->type != SHT_NOBITS && s->size &&
		    s->size <= UINT64_MAX - s->offset)
			b->areas[b->nareas++] = (struct code_range){ s->offset, s->addr, s->size };
	}
	for (i = 0; i < b->nsegs && !img->nshdrs; i++)
		b->areas[b->nareas++] = b->segs[i];
	if (b->nareas)
		qsort(b->areas, b->nareas, sizeof(*b->areas), compare_range);
	return 0;
}

/* The end of the section around off, or 0. */
static uint64_t area_end(const struct builder *b, uint64_t off)
{
	/* Areas before lo start at or below off, those from hi on above it */
	uint32_t lo = 0, hi = b->nareas;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (b->areas[mid].off <= off)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || off - b->areas[lo - 1].off >= b->areas[lo - 1].size)
		return 0;
	return b->areas[lo - 1].off + b->areas[lo - 1].size;
}

/* ---- Choosing between names ---- */

/* Mapping symbols: $x, $d, $d.12 (AAELF64 4.6.9). Swift's names begin with $s. */
static bool is_mapping(const uint8_t *name, size_t len)
{
	return len > 1 && name[0] == '$' && (name[1] == 'x' || name[1] == 'd') &&
	       (len == 2 || name[2] == '.');
}

/*
 * Bits 15..12: leading underscores; 11..0: 4095 - length. Less is better. UINT16_MAX: not a name:
 * mapping symbols and assembler-local labels.
 */
static uint16_t rank_of(struct bytes name)
{
	const uint8_t *p = name.base;
	size_t len = strnlen((const char *)p, name.len), under = 0;

	if (!len || is_mapping(p, len) || (len > 1 && p[0] == '.' && p[1] == 'L'))
		return UINT16_MAX;
	while (under < len && under < 14 && p[under] == '_')
		under++;
	return (uint16_t)(under << 12 | (4095 - (len < 4095 ? len : 4095)));
}

static bool has_rival(const struct builder *b, size_t i)
{
	return (i && b->cands[i - 1].off == b->cands[i].off) ||
	       (i + 1 < b->n && b->cands[i + 1].off == b->cands[i].off);
}

/* keys: name << 32 | candidate. Sorting them reads the string table once, in order. */
static int rank_names(struct builder *b, uint64_t *keys, size_t n)
{
	struct name_window w = { .table = -1 };
	struct bytes name;
	int err = radix_sort(keys, n, sizeof(*keys));

	for (size_t i = 0; i < n && !err; i++) {
		struct cand *c = &b->cands[(uint32_t)keys[i]];

		err = name_window_at(&w, b, c->name, &name);
		if (err)
			break;
		c->rank = rank_of(name);
		if (!c->notype && !c->ifunc && !c->plt)
			c->kin = builder_kin((const char *)name.base,
					     strnlen((const char *)name.base, name.len));
	}
	elf_blob_free(&w.blob);
	return err;
}

/* Names are read only where they decide: between aliases, and between labels and functions. */
static int rank_candidates(struct builder *b)
{
	uint64_t *keys = malloc((b->n ? b->n : 1) * sizeof(*keys));
	size_t n = 0;
	int err;

	if (!keys)
		return -ENOMEM;
	for (size_t i = 0; i < b->n; i++)
		if (b->cands[i].notype || has_rival(b, i))
			keys[n++] = (uint64_t)b->cands[i].name << 32 | i;
	err = rank_names(b, keys, n);
	free(keys);
	return err;
}

/* See elf_symtab.h for the order. */
static bool is_better(const struct cand *a, const struct cand *b)
{
	if ((a->rank == UINT16_MAX) != (b->rank == UINT16_MAX))
		return b->rank == UINT16_MAX;
	if (a->notype != b->notype)
		return b->notype;
	if (a->ifunc != b->ifunc)
		return b->ifunc;
	if (!a->size != !b->size)
		return !b->size;
	if (a->rank >> 12 != b->rank >> 12)
		return a->rank >> 12 < b->rank >> 12;
	if (a->bind != b->bind)
		return a->bind < b->bind;
	if (a->rank != b->rank)
		return a->rank < b->rank;
	return a->name < b->name;
}

/* ---- The table ---- */

/* Takes one symbol per address and drops labels inside functions. extend() sets sizes of 0. */
static int choose(struct builder *b, struct symtab *t)
{
	uint64_t covered = 0; /* sized symbols so far end here at most */
	size_t i = 0;

	while (i < b->n) {
		const struct cand *first = &b->cands[i], *best = first;
		uint64_t off = best->off;

		for (; i < b->n && b->cands[i].off == off; i++)
			if (is_better(&b->cands[i], best))
				best = &b->cands[i];
		if (best->rank == UINT16_MAX ||
		    (best->notype && (off < covered || !area_end(b, off))))
			continue;
		if (off + best->size > covered)
			covered = off + best->size;
		if (builder_mark(b, first, (size_t)(&b->cands[i] - first), best))
			return -ENOMEM;
		t->syms[t->n++] = (struct symtab_sym){ off,
						       best->size | (best->plt ? SYMTAB_PLT : 0),
						       best->name };
	}
	return 0;
}

/* Sizes of symbols without one, each up to the next symbol or the end of the section at most. */
static int extend(struct builder *b, struct symtab *t)
{
	struct extents x;
	uint64_t covered = 0;
	int err = 0;

	if (builder_is_stripped(b))
		builder_tables(b, true);
	extents_open(&x, b);
	for (uint32_t i = 0; i < t->n && !err; i++) {
		struct symtab_sym *s = &t->syms[i];
		uint64_t end = area_end(b, s->off), size = s->size & SYMTAB_SIZE;

		if (!size) {
			if (!end || (i + 1 < t->n && t->syms[i + 1].off < end))
				end = i + 1 < t->n ? t->syms[i + 1].off : s->off + 1;
			if (s->off < covered && covered < end)
				end = covered;
			size = end - s->off < SYMTAB_SIZE ? end - s->off : SYMTAB_SIZE;
			err = extents_find(&x, s->off, size, &size);
			if (err == -ENOENT)
				err = 0;
			s->size |= (uint32_t)size;
		}
		if (s->off + size > covered)
			covered = s->off + size;
	}
	extents_close(&x);
	return err;
}

/* t->syms must have room for it. */
static void add_root(struct symtab *t, const struct root *r)
{
	struct symtab_hit hit;
	uint64_t size = r->size;
	uint32_t at;

	if (symtab_find(t, r->off, &hit)) {
		struct symtab_sym *s = &t->syms[hit.index];

		if (s->off >= r->off || s->off + (s->size & SYMTAB_SIZE) > r->off + r->before)
			return;
		s->size = (uint32_t)(r->off - s->off) | (s->size & SYMTAB_PLT);
	}
	for (at = t->n; at && t->syms[at - 1].off > r->off; at--)
		t->syms[at] = t->syms[at - 1];
	if (at < t->n && t->syms[at + 1].off - r->off < size)
		size = t->syms[at + 1].off - r->off;
	t->syms[at] = (struct symtab_sym){ r->off, (uint32_t)size, r->name };
	t->n++;
}

static int build_table(struct builder *b, uint32_t along, struct symtab *t)
{
	struct root roots[MAX_ROOTS];
	uint32_t nroots;
	int err;

	err = find_code(b);
	if (!err)
		err = builder_read_symbols(b);
	if (!err)
		err = builder_read_sources(b);
	if (!err)
		err = builder_read_plt(b);
	if (err)
		return err;
	err = radix_sort(b->cands, b->n, sizeof(*b->cands));
	if (!err)
		err = rank_candidates(b);
	if (err)
		return err;
	t->syms = malloc((b->n + MAX_ROOTS) * sizeof(*t->syms));
	if (!t->syms)
		return -ENOMEM;
	err = choose(b, t);
	if (!err)
		err = extend(b, t);
	if (err)
		return err;
	nroots = builder_find_roots(b, roots);
	for (uint32_t i = 0; i < nroots; i++)
		add_root(t, &roots[i]);
	err = builder_add_functions(b, t);
	if (err)
		return err;
	free(b->cands);
	b->cands = NULL;
	memcpy(t->str, b->str, sizeof(t->str));
	/* Names that are asked for later would stay as linked. */
	return builder_name_symbols(b, t, b->units.n || b->gnat ? UINT32_MAX : along);
}

int symtab_build(const struct elf_image *img, const struct elf_image *debug, uint32_t along,
		 struct symtab **ret)
{
	struct builder b = { .img = img, .syms = debug ? debug : img };
	struct symtab *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	t->debug_fd = -1;
	/*
	 * Packed symbols would be passed as `debug`. Without it, .gnu_debugdata is damaged or too
	 * large when unpacked.
	 */
	t->cut = !debug && elf_image_section(img, ".gnu_debugdata") &&
		 !elf_image_section_of_type(img, SHT_SYMTAB);
	err = build_table(&b, along, t);
	builder_close_tables(&b);
	elf_versions_free(&b.versions);
	idmap_free(&b.units);
	free(b.sources);
	free(b.marks);
	free(b.areas);
	free(b.cands);
	if (err == -ERANGE || err == -ENOSPC)
		err = -EIO;
	if (err)
		symtab_free(t);
	else
		*ret = t;
	return err;
}
