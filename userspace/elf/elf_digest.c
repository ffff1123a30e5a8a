/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf/elf_digest.h"

#include <string.h>

#include "base/hash.h"

#define PIECE (256u << 10) /* bytes read at a time */

struct digest {
	const struct elf_image *img;
	uint64_t hash, left;
};

static bool add_bytes(struct digest *d, uint64_t at, uint64_t len)
{
	const uint64_t in_file = at < d->img->size ? d->img->size - at : 0;

	if (len > in_file)
		len = in_file;
	if (len > d->left)
		len = d->left;
	d->left -= len;
	for (uint64_t n; len; at += n, len -= n) {
		struct elf_blob blob = { 0 };

		n = len < PIECE ? len : PIECE;
		if (elf_image_read(d->img, at, n, &blob))
			return false;
		d->hash = hash_fold(d->hash, hash_stable(bytes_here(&blob.view), n));
		elf_blob_free(&blob);
	}
	return true;
}

static void add_numbers(struct digest *d, const uint64_t *v, size_t n)
{
	d->hash = hash_fold(d->hash, hash_stable(v, n * sizeof(*v)));
}

static bool has_names(const struct elf_shdr *s)
{
	return s->type == SHT_NOTE || s->type == SHT_SYMTAB || s->type == SHT_DYNSYM ||
	       s->type == SHT_STRTAB || !strcmp(s->name, ".gnu_debugdata") ||
	       !strcmp(s->name, ".gopclntab");
}

uint64_t elf_digest(const struct elf_image *img)
{
	struct digest d = { img, 0, ELF_DIGEST_MOST };

	add_numbers(&d, (const uint64_t[]){ img->size, img->machine, img->entry, img->nshdrs }, 4);
	for (uint32_t i = 0; i < img->nphdrs; i++) {
		const struct elf_phdr *p = &img->phdrs[i];

		add_numbers(&d,
			    (const uint64_t[]){ p->type, p->flags, p->offset, p->vaddr, p->filesz },
			    5);
	}
	for (uint32_t i = 0; i < img->nshdrs; i++) {
		const struct elf_shdr *s = &img->shdrs[i];

		add_numbers(&d,
			    (const uint64_t[]){ s->type, s->flags, s->addr, s->offset, s->size },
			    5);
		if (has_names(s) && !add_bytes(&d, s->offset, s->size))
			return 0;
	}
	if (!img->nshdrs && !add_bytes(&d, 0, img->size))
		return 0;
	return d.hash ? d.hash : 1;
}
