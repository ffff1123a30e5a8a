/* SPDX-License-Identifier: BSD-2-Clause */
#include "symtab/elf_versions.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

#define VERSIONS_MAX 4096 /* versions of one file; glibc has some 50 */

static void add(struct elf_versions *v, struct bytes strings, uint32_t at)
{
	const char *name;

	bytes_seek(&strings, at);
	name = bytes_str(&strings);
	if (name && *name && v->n < VERSIONS_MAX &&
	    !vec_reserve(&v->names, &v->cap, v->n + 1, sizeof(*v->names)))
		v->names[v->n++] = name;
}

/* The chain of names at `at`: Elf64_Verdaux, or Elf64_Vernaux. */
static void read_names(struct elf_versions *v, struct bytes b, uint64_t at, bool needed,
		       struct bytes strings)
{
	uint32_t name, next = 1;

	while (next && v->n < VERSIONS_MAX) {
		bytes_seek(&b, at + (needed ? offsetof(Elf64_Vernaux, vna_name) : 0));
		name = bytes_u32(&b);
		next = bytes_u32(&b);
		if (b.err)
			return;
		add(v, strings, name);
		at += next;
	}
}

/* A chain of Elf64_Verdef, or of Elf64_Verneed. */
static void read_section(struct elf_versions *v, const struct elf_image *img, bool needed)
{
	const struct elf_shdr *s = elf_image_section_of_type(img, needed ? SHT_GNU_verneed
									 : SHT_GNU_verdef);
	struct elf_blob blob = { 0 };
	uint32_t aux, next = 1;
	uint64_t at = 0;

	if (!s || s->link >= img->nshdrs || elf_image_section_bytes(img, s, &blob))
		return;
	if (elf_image_section_bytes(img, &img->shdrs[s->link], &v->strings[needed]))
		next = 0;
	while (next && v->n < VERSIONS_MAX) {
		struct bytes *b = &blob.view;

		bytes_seek(b, at + (needed ? offsetof(Elf64_Verneed, vn_aux)
					   : offsetof(Elf64_Verdef, vd_aux)));
		aux = bytes_u32(b);
		next = bytes_u32(b);
		if (b->err)
			break;
		read_names(v, *b, at + aux, needed, v->strings[needed].view);
		at += next;
	}
	elf_blob_free(&blob);
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_version(struct elf_versions *v, const struct elf_image *img, const char *name,
		       size_t len)
{
	size_t lo = 0, hi;

	if (!v->read) {
		v->read = true;
		read_section(v, img, false);
		read_section(v, img, true);
		if (v->n)
			qsort(v->names, v->n, sizeof(*v->names), compare);
	}
	hi = v->n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int order = strncmp(v->names[mid], name, len);

		if (!order && !v->names[mid][len])
			return true;
		if (order < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return false;
}

size_t elf_versions_cut(struct elf_versions *v, const struct elf_image *img, const char *name,
			size_t most)
{
	size_t len = strnlen(name, most);
	const char *at = len ? memrchr(name, '@', len) : NULL;
	size_t base = at ? (size_t)(at - name) : 0;

	if (base && !is_version(v, img, at + 1, len - base - 1))
		base = 0;
	if (base > 1 && name[base - 1] == '@')
		base--;
	return base ? base : len;
}

void elf_versions_free(struct elf_versions *v)
{
	elf_blob_free(&v->strings[0]);
	elf_blob_free(&v->strings[1]);
	free(v->names);
}
