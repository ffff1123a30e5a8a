/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf/elf_dynsym.h"

#include <string.h>

#define CHAIN_MAX 64 /* symbols of one hash bucket; linkers make two or three */

static bool read_at(const struct elf_image *img, uint64_t off, uint64_t size, struct elf_blob *ret)
{
	return !elf_image_read(img, off, size, ret);
}

static uint32_t u32_at(const struct elf_image *img, uint64_t off, bool *ok)
{
	struct elf_blob b = { 0 };
	uint32_t v = 0;

	*ok = *ok && read_at(img, off, 4, &b);
	if (*ok)
		v = bytes_u32(&b.view);
	elf_blob_free(&b);
	return v;
}

static bool is_at(const struct elf_image *img, uint64_t off, const char *want)
{
	struct elf_blob b = { 0 };
	bool same = read_at(img, off, strlen(want) + 1, &b) &&
		    bytes_are(&b.view, 0, want, strlen(want) + 1);

	elf_blob_free(&b);
	return same;
}

/* A library of musl is named libc.musl-ARCH.so.1, or libc.so. */
static bool names_musl(const struct elf_image *img, uint64_t off)
{
	struct elf_blob b = { 0 };
	bool musl = read_at(img, off, 9, &b) && bytes_are(&b.view, 0, "libc.musl", 9);

	elf_blob_free(&b);
	return musl || is_at(img, off, "libc.so");
}

static bool read_hash(struct elf_dynsym *d, uint64_t off)
{
	struct elf_blob b = { 0 };
	bool ok = read_at(d->img, off, 16, &b);

	if (ok) {
		d->nbuckets = bytes_u32(&b.view);
		d->first = bytes_u32(&b.view);
		d->nfilter = bytes_u32(&b.view);
		d->shift = bytes_u32(&b.view);
		d->filter = off + 16;
		d->buckets = d->filter + 8ull * d->nfilter;
		d->chains = d->buckets + 4ull * d->nbuckets;
	}
	elf_blob_free(&b);
	return ok && d->nbuckets && d->nfilter && d->shift < 32;
}

bool elf_dynsym_open(struct elf_dynsym *d, const struct elf_image *img)
{
	uint64_t tag, val, symtab = 0, strtab = 0, hash = 0, needed[32], nneeded = 0;
	struct elf_blob dyn = { 0 };

	*d = (struct elf_dynsym){ .img = img };
	d->program = img->type == ET_EXEC || elf_image_segment(img, PT_INTERP);
	if (elf_image_dynamic(img, &dyn))
		return false;
	while (elf_dynamic_next(&dyn.view, &tag, &val)) {
		if (tag == DT_SYMTAB)
			symtab = val;
		else if (tag == DT_STRTAB)
			strtab = val;
		else if (tag == DT_GNU_HASH)
			hash = val;
		else if (tag == DT_FLAGS_1)
			d->program |= (val & DF_1_PIE) != 0;
		else if (tag == DT_NEEDED && nneeded < 32)
			needed[nneeded++] = val;
	}
	elf_blob_free(&dyn);
	if (!elf_image_vaddr_to_offset(img, symtab, &d->symtab) ||
	    !elf_image_vaddr_to_offset(img, strtab, &d->strtab) ||
	    !elf_image_vaddr_to_offset(img, hash, &hash) || !read_hash(d, hash))
		return false;
	for (uint64_t i = 0; i < nneeded; i++)
		d->musl |= needed[i] < img->size && names_musl(img, d->strtab + needed[i]);
	return true;
}

static uint32_t hash_of(const char *name)
{
	uint32_t h = 5381;

	for (; *name; name++)
		h = h * 33 + (uint8_t)*name;
	return h;
}

static bool in_filter(const struct elf_dynsym *d, uint32_t h)
{
	struct elf_blob b = { 0 };
	uint64_t word = 0;

	if (read_at(d->img, d->filter + 8ull * (h / 64 % d->nfilter), 8, &b))
		word = bytes_u64(&b.view);
	elf_blob_free(&b);
	return (word >> (h & 63) & 1) && (word >> (h >> d->shift & 63) & 1);
}

/* Whether symbol i is defined and has that name. */
static bool symbol_is(const struct elf_dynsym *d, uint32_t i, const char *name,
		      struct elf_dynsym_value *ret)
{
	struct elf_blob b = { 0 };
	uint32_t at = 0, section = 0;
	bool ok = read_at(d->img, d->symtab + i * sizeof(Elf64_Sym), sizeof(Elf64_Sym), &b);

	if (ok) {
		at = bytes_u32(&b.view);
		ret->type = ELF64_ST_TYPE(bytes_u8(&b.view));
		bytes_skip(&b.view, 1);
		section = bytes_u16(&b.view);
		ret->addr = bytes_u64(&b.view);
		ret->size = bytes_u64(&b.view);
		ret->index = i;
	}
	elf_blob_free(&b);
	return ok && section != SHN_UNDEF && is_at(d->img, d->strtab + at, name);
}

bool elf_dynsym_find(const struct elf_dynsym *d, const char *name, struct elf_dynsym_value *ret)
{
	uint32_t h = hash_of(name), i, have;
	bool ok = true;

	if (!in_filter(d, h))
		return false;
	i = u32_at(d->img, d->buckets + 4ull * (h % d->nbuckets), &ok);
	if (!ok || i < d->first)
		return false;
	for (uint32_t n = 0; n < CHAIN_MAX; n++, i++) {
		have = u32_at(d->img, d->chains + 4ull * (i - d->first), &ok);
		if (!ok)
			return false;
		if ((have | 1) == (h | 1) && symbol_is(d, i, name, ret))
			return true;
		if (have & 1)
			return false;
	}
	return false;
}
