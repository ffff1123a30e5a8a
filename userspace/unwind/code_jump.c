/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/code_jump.h"

#include <errno.h>
#include <string.h>

#include "base/vec.h"

#define ENTRIES_MAX 8192
#define DATA_MAX    (64u << 20) /* bytes of a segment that are read to find jump tables */

/* The segment that holds the address. 1, 0: none, -ENOMEM. */
static int data_of(struct code_fn *f, uint64_t addr, struct bytes *ret, uint64_t *ret_start)
{
	const struct code_text *t = code_text_of(f, addr);
	size_t room = sizeof(f->data) / sizeof(f->data[0]);
	int err;

	if (t) {
		*ret = t->blob.view;
		*ret_start = t->start;
		return 1;
	}
	for (size_t i = 0; i < f->ndata; i++)
		if (addr >= f->data[i].start &&
		    addr - f->data[i].start < f->data[i].blob.view.len) {
			*ret = f->data[i].blob.view;
			*ret_start = f->data[i].start;
			return 1;
		}
	for (uint32_t i = 0; i < f->img->nphdrs && f->ndata < room; i++) {
		const struct elf_phdr *ph = &f->img->phdrs[i];
		struct code_data *d = &f->data[f->ndata];

		if (ph->type != PT_LOAD || addr < ph->vaddr || addr - ph->vaddr >= ph->filesz ||
		    ph->filesz > DATA_MAX)
			continue;
		err = elf_image_read(f->img, ph->offset, ph->filesz, &d->blob);
		if (err)
			return err == -ENOMEM ? err : 0;
		d->start = ph->vaddr;
		f->ndata++;
		*ret = d->blob.view;
		*ret_start = d->start;
		return 1;
	}
	return 0;
}

int code_jump_entry(struct code_fn *f, const struct code_val *v, unsigned int i,
		    uint64_t *ret_target)
{
	const uint64_t addr = (uint64_t)v->off + (uint64_t)i * v->size;
	struct bytes data;
	uint64_t start, entry;
	int more;

	if (i >= ENTRIES_MAX)
		return 0;
	more = data_of(f, addr, &data, &start);
	if (more <= 0)
		return more;
	bytes_seek(&data, addr - start);
	switch (v->size) {
	case 1:
		entry = v->is_signed ? (uint64_t)bytes_s8(&data) : bytes_u8(&data);
		break;
	case 2:
		entry = v->is_signed ? (uint64_t)bytes_s16(&data) : bytes_u16(&data);
		break;
	case 4:
		entry = v->is_signed ? (uint64_t)bytes_s32(&data) : bytes_u32(&data);
		break;
	default:
		entry = bytes_u64(&data);
	}
	*ret_target = v->sym + (entry << v->shift);
	return !data.err && code_text_of(f, *ret_target) && !(*ret_target % f->arch->align);
}

int code_jump_known(struct code_fn *f, uint64_t at, struct code_val *v)
{
	for (size_t i = 0; i < f->njumps; i++) {
		if (f->jumps[i].at != at)
			continue;
		if (v->kind != VAL_TARGET || !v->n)
			*v = f->jumps[i].table;
		return 0;
	}
	/* Those of 8 bytes may be one word, a pointer to another function. */
	if (v->kind != VAL_TARGET || v->size == 8)
		return 0;
	if (vec_reserve(&f->jumps, &f->jumps_cap, f->njumps + 1, sizeof(*f->jumps)))
		return -ENOMEM;
	f->jumps[f->njumps++] = (struct code_jump){ at, *v };
	return 0;
}

bool code_jump_to_resolver(const struct code_fn *f, uint64_t slot)
{
	const struct elf_shdr *got = elf_image_section(f->img, ".got.plt");

	if (!got)
		got = elf_image_section(f->img, ".got");
	return got && slot == got->addr + 16;
}
