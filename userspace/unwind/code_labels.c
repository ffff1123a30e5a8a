/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/code_labels.h"

#include <stdlib.h>
#include <string.h>

#include "base/u64s.h"
#include "base/vec.h"

#define DATA_MAX	(32ull << 20) /* bytes of one segment; larger ones are left out */
#define LABELS_MAX	(1u << 20)
#define DATA_LABELS_MAX (8u << 20)
#define LEA_BYTES	7 /* a lea with a REX prefix, relative to rip */

static int add(void *fn, uint64_t addr)
{
	struct code_fn *f = fn;
	int err;

	if (!code_text_of(f, addr) || f->nlabels > LABELS_MAX)
		return 0;
	err = vec_reserve(&f->labels, &f->labels_cap, f->nlabels + 1, sizeof(*f->labels));
	if (!err)
		f->labels[f->nlabels++] = addr;
	return err;
}

/* The addends of a file's relocations are its addresses where it may be mapped anywhere. */
static int add_addend(void *ctx, const Elf64_Rela *r)
{
	const struct code_fn *f = ctx;
	const uint64_t relative = f->img->machine == EM_X86_64 ? R_X86_64_RELATIVE
							       : R_AARCH64_RELATIVE;

	return ELF64_R_TYPE(r->r_info) == relative ? add(ctx, (uint64_t)r->r_addend) : 0;
}

int code_each_word(const struct elf_image *img, int (*note)(void *ctx, uint64_t word), void *ctx)
{
	int err = 0;

	for (uint32_t i = 0; i < img->nphdrs && !err; i++) {
		const struct elf_phdr *ph = &img->phdrs[i];
		struct elf_blob data = { 0 };

		if (ph->type != PT_LOAD || ph->flags & PF_X || ph->filesz > DATA_MAX ||
		    elf_image_read(img, ph->offset, ph->filesz, &data))
			continue;
		while (!err && bytes_left(&data.view) >= 8)
			err = note(ctx, bytes_u64(&data.view));
		elf_blob_free(&data);
	}
	return err;
}

static size_t sort_unique(uint64_t *v, size_t n)
{
	size_t kept = 0;

	if (n)
		qsort(v, n, sizeof(*v), u64_compare);
	for (size_t i = 0; i < n; i++)
		if (!i || v[i] != v[i - 1])
			v[kept++] = v[i];
	return kept;
}

int code_labels_load(struct code_fn *f)
{
	int err;

	if (f->has_labels)
		return 0;
	f->has_labels = true;
	/* A word that looks like an address is one in a file that cannot be relocated. */
	err = f->img->type == ET_EXEC ? code_each_word(f->img, add, f)
				      : elf_image_each_rela(f->img, add_addend, f);
	if (f->nlabels > LABELS_MAX)
		f->nlabels = 0;
	f->nlabels = sort_unique(f->labels, f->nlabels);
	return err;
}

static int add_data_labels(struct code_fn *f, const struct code_text *t)
{
	struct bytes code = bytes_sub(&t->blob.view, 0, t->end - t->start);
	const uint8_t *at = bytes_here(&code);
	int err = 0;

	for (size_t i = 0; i + LEA_BYTES <= code.len && !err; i++) {
		uint64_t to;
		int32_t by;

		if ((at[i] & 0xfb) != 0x48 || at[i + 1] != 0x8d || (at[i + 2] & 0xc7) != 0x05)
			continue;
		memcpy(&by, at + i + 3, 4);
		to = t->start + i + LEA_BYTES + (uint64_t)(int64_t)by;
		if (code_text_of(f, to) || f->ndata_labels > DATA_LABELS_MAX)
			continue;
		err = vec_reserve(&f->data_labels, &f->data_labels_cap, f->ndata_labels + 1,
				  sizeof(*f->data_labels));
		if (!err)
			f->data_labels[f->ndata_labels++] = to;
	}
	return err;
}

int code_labels_load_data(struct code_fn *f)
{
	int err = 0;

	if (f->has_data_labels || f->img->machine != EM_X86_64)
		return 0;
	f->has_data_labels = true;
	for (size_t i = 0; i < f->ntexts && !err; i++)
		err = add_data_labels(f, &f->texts[i]);
	if (f->ndata_labels > DATA_LABELS_MAX)
		f->ndata_labels = 0;
	f->ndata_labels = sort_unique(f->data_labels, f->ndata_labels);
	return err;
}

bool code_is_data_label(const struct code_fn *f, uint64_t addr)
{
	size_t i = u64_first_from(f->data_labels, f->ndata_labels, addr);

	return i < f->ndata_labels && f->data_labels[i] == addr;
}
