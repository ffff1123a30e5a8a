/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf/go_table.h"

#include <errno.h>
#include <string.h>

#define TABLE_MAX (256u << 20) /* bytes; kubelet has 30 MB */

#define MAGIC_116 0xfffffffau
#define MAGIC_118 0xfffffff0u
#define MAGIC_120 0xfffffff1u

#define HEADER_TEXT 24	/* bytes: where the address of the text is, since 1.18 */
#define MODULE_TEXT 176 /* bytes: where runtime.moduledata has it, since 1.26 */

static bool has_magic(uint32_t magic)
{
	return magic == MAGIC_116 || magic == MAGIC_118 || magic == MAGIC_120;
}

/*
 * The system's linker puts the table of a position-independent program anywhere in .data.rel.ro.
 * Moves `all` to the first header: magic, 0, the size of an instruction and that of a pointer.
 */
static bool search_header(struct bytes *all)
{
	for (; bytes_left(all) >= 8; bytes_skip(all, 8)) {
		const uint8_t *at = bytes_here(all);
		struct bytes b = *all;

		if (at[1] == 0xff && at[2] == 0xff && at[3] == 0xff && has_magic(bytes_u32(&b)) &&
		    !at[4] && !at[5] && (at[6] == 1 || at[6] == 4) && at[7] == 8)
			return true;
	}
	return false;
}

const struct elf_shdr *go_table_section(const struct elf_image *img)
{
	const struct elf_shdr *s = elf_image_section(img, ".gopclntab");

	if (!s)
		s = elf_image_section(img, ".data.rel.ro.gopclntab");
	if (!s && elf_image_section(img, ".note.go.buildid"))
		s = elf_image_section(img, ".data.rel.ro");
	return s;
}

/* Sets blob, offset, addr and size. */
static int find_table(const struct elf_image *img, struct go_table *t)
{
	const struct elf_shdr *s = go_table_section(img);
	int err;

	if (!s || s->size > TABLE_MAX || s->flags & SHF_COMPRESSED)
		return -ENOENT;
	err = elf_image_section_bytes(img, s, &t->blob);
	if (err)
		return err;
	if (!strcmp(s->name, ".data.rel.ro") && !search_header(&t->blob.view))
		return -ENOENT;
	t->offset = s->offset + t->blob.view.pos;
	t->addr = s->addr + t->blob.view.pos;
	t->size = bytes_left(&t->blob.view);
	t->blob.view = bytes_sub(&t->blob.view, t->blob.view.pos, t->size);
	return 0;
}

/* The word at the address after relocation: its addend, if it has a relative one. 0: unknown. */
static uint64_t relocated(const struct elf_image *img, uint64_t addr)
{
	const struct elf_shdr *s = elf_image_section(img, ".rela.dyn");
	const uint64_t relative = img->machine == EM_AARCH64 ? R_AARCH64_RELATIVE
							     : R_X86_64_RELATIVE;
	struct elf_blob blob = { 0 };
	uint64_t ret = 0;

	if (!s || s->flags & SHF_COMPRESSED || elf_image_section_bytes(img, s, &blob))
		return 0;
	while (!ret && bytes_left(&blob.view) >= sizeof(Elf64_Rela)) {
		uint64_t at = bytes_u64(&blob.view), info = bytes_u64(&blob.view),
			 addend = bytes_u64(&blob.view);

		if (at == addr && ELF64_R_TYPE(info) == relative)
			ret = addend;
	}
	elf_blob_free(&blob);
	return ret;
}

/* The word at a place of the file, relocated if it is 0 there. */
static uint64_t word_of(const struct elf_image *img, uint64_t offset, uint64_t addr)
{
	struct elf_blob blob = { 0 };
	uint64_t ret = 0;

	if (!elf_image_read(img, offset, 8, &blob))
		ret = bytes_u64(&blob.view);
	elf_blob_free(&blob);
	return ret ? ret : relocated(img, addr);
}

/*
 * The address that entries are relative to. It is not always .text's: in programs with C code, the
 * C library's start comes first.
 */
static uint64_t find_text(const struct elf_image *img, const struct go_table *t)
{
	const struct elf_shdr *text = elf_image_section(img, ".text");
	const struct elf_shdr *module = elf_image_section(img, ".go.module");
	uint64_t ret = word_of(img, t->offset + HEADER_TEXT, t->addr + HEADER_TEXT);

	if (!ret && module && module->type != SHT_NOBITS && module->size >= MODULE_TEXT + 8)
		ret = word_of(img, module->offset + MODULE_TEXT, module->addr + MODULE_TEXT);
	return ret || !text ? ret : text->addr;
}

static int read_header(const struct elf_image *img, struct go_table *t)
{
	struct bytes all = t->blob.view;
	uint32_t magic = bytes_u32(&all);
	uint64_t functions, pcs;

	t->words = magic == MAGIC_116;
	t->start_line = magic == MAGIC_120;
	bytes_skip(&all, 2);
	t->quantum = bytes_u8(&all);
	if (!has_magic(magic) || bytes_u8(&all) != 8)
		return -ENOENT;
	t->count = bytes_u64(&all);
	bytes_skip(&all, t->words ? 8 : 16);
	t->names = bytes_u64(&all);
	t->units = bytes_u64(&all);
	t->files = bytes_u64(&all);
	pcs = bytes_u64(&all);
	functions = bytes_u64(&all);
	if (all.err || t->count > GO_FUNCS_MAX || functions > all.len || t->names > all.len ||
	    pcs > functions)
		return -ENOENT;
	t->text = t->words ? 0 : find_text(img, t);
	t->functab = bytes_sub(&all, functions, all.len - functions);
	t->pctab = bytes_sub(&all, pcs, all.len - pcs);
	return 0;
}

int go_table_open(const struct elf_image *img, struct go_table *ret)
{
	int err;

	*ret = (struct go_table){ 0 };
	err = find_table(img, ret);
	if (!err)
		err = read_header(img, ret);
	if (err)
		go_table_close(ret);
	return err == -ENOMEM || err == -EIO || !err ? err : -ENOENT;
}

void go_table_close(struct go_table *t)
{
	elf_blob_free(&t->blob);
	*t = (struct go_table){ 0 };
}

static uint64_t entry_word(const struct go_table *t, struct bytes *b)
{
	return t->words ? bytes_u64(b) : t->text + bytes_u32(b);
}

struct bytes go_table_record(const struct go_table *t, uint64_t i)
{
	struct bytes at = t->functab, fn = t->functab;

	bytes_seek(&at, i * (t->words ? 16 : 8) + (t->words ? 8 : 4));
	bytes_seek(&fn, t->words ? bytes_u64(&at) : bytes_u32(&at));
	bytes_skip(&fn, t->words ? 8 : 4);
	fn.err |= at.err;
	return fn;
}

bool go_table_func(const struct go_table *t, uint64_t i, struct go_func *ret)
{
	struct bytes at = t->functab, fn = go_table_record(t, i);

	bytes_seek(&at, i * (t->words ? 16 : 8));
	ret->start = entry_word(t, &at);
	bytes_skip(&at, t->words ? 8 : 4);
	ret->end = entry_word(t, &at);
	ret->name = bytes_u32(&fn);
	bytes_skip(&fn, 8);
	ret->pcsp = bytes_u32(&fn);
	bytes_skip(&fn, t->start_line ? 21 : 17);
	ret->flags = bytes_u8(&fn);
	return !fn.err && !at.err && ret->end >= ret->start;
}

const char *go_table_string(const struct go_table *t, uint64_t offset)
{
	struct bytes at = t->blob.view;

	bytes_seek(&at, offset);
	return bytes_str(&at);
}

const char *go_table_name(const struct go_table *t, const struct go_func *f)
{
	return go_table_string(t, t->names + f->name);
}

struct go_values go_values_at(const struct go_table *t, uint64_t start, uint32_t offset)
{
	struct go_values v = { .at = t->pctab, .pc = start, .value = -1 };

	bytes_seek(&v.at, offset);
	v.at.err |= !offset;
	return v;
}

struct go_values go_heights_of(const struct go_table *t, const struct go_func *f)
{
	return go_values_at(t, f->start, f->pcsp);
}

bool go_values_next(const struct go_table *t, struct go_values *v, uint64_t *ret_start)
{
	uint64_t delta = bytes_uleb(&v->at), bytes;

	if (v->at.err || delta > UINT32_MAX || (!delta && v->started))
		return false;
	v->started = true;
	v->value =
		(int32_t)((uint32_t)v->value + ((uint32_t)(delta >> 1) ^ -(uint32_t)(delta & 1)));
	bytes = bytes_uleb(&v->at);
	if (v->at.err || bytes > UINT32_MAX)
		return false;
	*ret_start = v->pc;
	v->pc += bytes * t->quantum;
	return true;
}
