/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/code_labels.h"

#include <stdlib.h>

#include "base/u64s.h"
#include "base/vec.h"

#define DATA_MAX   (32ull << 20) /* bytes of one segment; larger ones are left out */
#define LABELS_MAX (1u << 20)

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

/* Where a file may be mapped anywhere, the addends of its relocations are its addresses. */
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

int code_labels_load(struct code_fn *f)
{
	size_t n = 0;
	int err;

	if (f->has_labels)
		return 0;
	f->has_labels = true;
	/* In a file that cannot be relocated, a word that looks like an address is one. */
	err = f->img->type == ET_EXEC ? code_each_word(f->img, add, f)
				      : elf_image_each_rela(f->img, add_addend, f);
	if (f->nlabels > LABELS_MAX)
		f->nlabels = 0;
	if (f->nlabels)
		qsort(f->labels, f->nlabels, sizeof(*f->labels), u64_compare);
	for (size_t i = 0; i < f->nlabels; i++)
		if (!i || f->labels[i] != f->labels[i - 1])
			f->labels[n++] = f->labels[i];
	f->nlabels = n;
	return err;
}
