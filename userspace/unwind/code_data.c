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

static int add(void *ctx, uint64_t addr)
{
	struct code_binary *bin = ctx;
	int err;

	if (!code_text_of(bin, addr) || bin->nlabels > LABELS_MAX)
		return 0;
	err = vec_reserve(&bin->labels, &bin->labels_cap, bin->nlabels + 1, sizeof(*bin->labels));
	if (!err)
		bin->labels[bin->nlabels++] = addr;
	return err;
}

/* The addends of a file's relocations are its addresses where it may be mapped anywhere. */
static int add_addend(void *ctx, const Elf64_Rela *r)
{
	const struct code_binary *bin = ctx;
	const uint64_t relative = bin->img->machine == EM_X86_64 ? R_X86_64_RELATIVE
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

int code_labels_load(struct code_binary *bin)
{
	int err;

	if (bin->has_labels)
		return 0;
	bin->has_labels = true;
	/* A word that looks like an address is one in a file that cannot be relocated. */
	err = bin->img->type == ET_EXEC ? code_each_word(bin->img, add, bin)
					: elf_image_each_rela(bin->img, add_addend, bin);
	if (bin->nlabels > LABELS_MAX)
		bin->nlabels = 0;
	bin->nlabels = sort_unique(bin->labels, bin->nlabels);
	return err;
}

static int add_data_labels(struct code_binary *bin, const struct code_text *t)
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
		if (code_text_of(bin, to) || bin->ndata_labels > DATA_LABELS_MAX)
			continue;
		err = vec_reserve(&bin->data_labels, &bin->data_labels_cap, bin->ndata_labels + 1,
				  sizeof(*bin->data_labels));
		if (!err)
			bin->data_labels[bin->ndata_labels++] = to;
	}
	return err;
}

int code_labels_load_data(struct code_binary *bin)
{
	int err = 0;

	if (bin->has_data_labels || bin->img->machine != EM_X86_64)
		return 0;
	bin->has_data_labels = true;
	for (size_t i = 0; i < bin->ntexts && !err; i++)
		err = add_data_labels(bin, &bin->texts[i]);
	if (bin->ndata_labels > DATA_LABELS_MAX)
		bin->ndata_labels = 0;
	bin->ndata_labels = sort_unique(bin->data_labels, bin->ndata_labels);
	return err;
}

bool code_is_data_label(const struct code_binary *bin, uint64_t addr)
{
	size_t i = u64_first_from(bin->data_labels, bin->ndata_labels, addr);

	return i < bin->ndata_labels && bin->data_labels[i] == addr;
}
