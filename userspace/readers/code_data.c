/* SPDX-License-Identifier: BSD-2-Clause */
#include "readers/code_data.h"

#include <errno.h>
#include <stdlib.h>

#include "base/u64s.h"

/* Bytes of one segment; larger ones are left out */
#define TABLES_MAX (64u << 20)
#define WORDS_MAX  (32ull << 20)
#define LABELS_MAX (1u << 20)

int code_data_at(struct code_data *d, uint64_t addr, struct bytes *ret, uint64_t *ret_start)
{
	const size_t room = sizeof(d->segments) / sizeof(d->segments[0]);
	int err;

	for (size_t i = 0; i < d->nsegments; i++)
		if (addr >= d->segments[i].start &&
		    addr - d->segments[i].start < d->segments[i].blob.view.len) {
			*ret = d->segments[i].blob.view;
			*ret_start = d->segments[i].start;
			return 1;
		}
	for (uint32_t i = 0; i < d->img->nphdrs && d->nsegments < room; i++) {
		const struct elf_phdr *ph = &d->img->phdrs[i];
		struct code_segment *s = &d->segments[d->nsegments];

		if (ph->type != PT_LOAD || addr < ph->vaddr || addr - ph->vaddr >= ph->filesz ||
		    ph->filesz > TABLES_MAX)
			continue;
		err = elf_image_read(d->img, ph->offset, ph->filesz, &s->blob);
		if (err)
			return err == -ENOMEM ? err : 0;
		s->start = ph->vaddr;
		d->nsegments++;
		*ret = s->blob.view;
		*ret_start = s->start;
		return 1;
	}
	return 0;
}

uint64_t code_data_resolver(const struct elf_image *img)
{
	const struct elf_shdr *got = elf_image_section(img, ".got.plt");

	if (!got)
		got = elf_image_section(img, ".got");
	return got ? got->addr + 16 : 0;
}

static int add(void *ctx, uint64_t addr)
{
	struct code_data *d = ctx;

	if (!code_text_of(d->bin, addr) || d->nlabels > LABELS_MAX)
		return 0;
	return u64_push(&d->labels, &d->nlabels, &d->labels_cap, addr);
}

/* The addends of a file's relocations are its addresses where it may be mapped anywhere. */
static int add_addend(void *ctx, const Elf64_Rela *r)
{
	const struct code_data *d = ctx;
	const uint64_t relative = d->img->machine == EM_X86_64 ? R_X86_64_RELATIVE
							       : R_AARCH64_RELATIVE;

	return ELF64_R_TYPE(r->r_info) == relative ? add(ctx, (uint64_t)r->r_addend) : 0;
}

int code_each_word(const struct elf_image *img, int (*note)(void *ctx, uint64_t word), void *ctx)
{
	int err = 0;

	for (uint32_t i = 0; i < img->nphdrs && !err; i++) {
		const struct elf_phdr *ph = &img->phdrs[i];
		struct elf_blob data = { 0 };

		if (ph->type != PT_LOAD || ph->flags & PF_X || ph->filesz > WORDS_MAX ||
		    elf_image_read(img, ph->offset, ph->filesz, &data))
			continue;
		while (!err && bytes_left(&data.view) >= 8)
			err = note(ctx, bytes_u64(&data.view));
		elf_blob_free(&data);
	}
	return err;
}

int code_data_labels(struct code_data *d, const uint64_t **ret, size_t *ret_n)
{
	int err = 0;

	/* A word that looks like an address is one in a file that cannot be relocated. */
	if (!d->has_labels) {
		d->has_labels = true;
		err = d->img->type == ET_EXEC ? code_each_word(d->img, add, d)
					      : elf_image_each_rela(d->img, add_addend, d);
		if (d->nlabels > LABELS_MAX)
			d->nlabels = 0;
		d->nlabels = u64_sort_unique(d->labels, d->nlabels);
	}
	*ret = d->labels;
	*ret_n = d->nlabels;
	return err;
}

void code_data_free(struct code_data *d)
{
	for (size_t i = 0; i < d->nsegments; i++)
		elf_blob_free(&d->segments[i].blob);
	free(d->labels);
}
