/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions of a Go program from the table that its runtime prints stack traces with: it stays when symbols are
 * stripped (-ldflags=-s). Layout: Go's src/runtime/symtab.go, of Go 1.16 (magic ..fa), 1.18 (..f0) and 1.20 (..f1).
 *
 *   header	u32 magic, u16 0, u8 instruction size, u8 pointer size, then words of pointer size:
 *		functions, files, [1.18: address of the text], offsets of names, CUs, files, pc values, functions
 *   functions	(entry, offset of its record) of each, and the end of the last one; two words, since 1.18 two u32 with
 *		entries relative to the text
 *   record	entry (word; since 1.18 u32), i32 offset of the name
 */
#include <errno.h>
#include <string.h>

#include "sym/elf_symtab_internal.h"

#define TABLE_MAX (256u << 20)	/* bytes; Kubernetes' kubelet has 30 MB */

struct go_table {
	struct bytes all, functab;
	uint64_t text, count, names;
	bool words;		/* entries are words rather than u32 */
};

static const struct elf_shdr *find_table(const struct elf_image *img)
{
	const struct elf_shdr *s = elf_image_section(img, ".gopclntab");

	return s ? s : elf_image_section(img, ".data.rel.ro.gopclntab");
}

static int read_header(const struct elf_image *img, struct bytes all, struct go_table *t)
{
	const struct elf_shdr *text = elf_image_section(img, ".text");
	uint32_t magic = bytes_u32(&all);
	uint64_t functions;

	*t = (struct go_table){ .all = all, .words = magic == 0xfffffffa };
	bytes_skip(&all, 3);
	if ((magic != 0xfffffffa && magic != 0xfffffff0 && magic != 0xfffffff1) || bytes_u8(&all) != 8)
		return -ENOENT;
	t->count = bytes_u64(&all);
	bytes_skip(&all, 8);
	if (!t->words)
		t->text = bytes_u64(&all);
	/* Position-independent programs, and all from Go 1.26 on, leave it to relocation. */
	if (!t->words && !t->text)
		t->text = text ? text->addr : 0;
	t->names = bytes_u64(&all);
	bytes_skip(&all, 3 * 8);
	functions = bytes_u64(&all);
	if (all.err || t->count > SYMTAB_MAX || functions > all.len || t->names > all.len)
		return -ENOENT;
	t->functab = bytes_sub(&all, functions, all.len - functions);
	return 0;
}

static uint64_t entry_word(const struct go_table *t, struct bytes *b)
{
	return t->words ? bytes_u64(b) : t->text + bytes_u32(b);
}

static int add_functions(struct builder *b, struct go_table *t)
{
	struct bytes at = t->functab;
	uint64_t start = entry_word(t, &at), end;
	int err = 0;

	for (uint64_t i = 0; i < t->count && !err && !at.err; i++, start = end) {
		uint64_t record = t->words ? bytes_u64(&at) : bytes_u32(&at);
		struct bytes fn = t->functab;
		struct cand c = { 0 };

		end = entry_word(t, &at);
		bytes_seek(&fn, record);
		bytes_skip(&fn, t->words ? 8 : 4);
		c.name = bytes_u32(&fn) + 1;	/* see below */
		if (fn.err || at.err || end < start || !builder_code_offset(b, start, &c.off))
			continue;
		c.size = end - start > INT32_MAX ? INT32_MAX : (uint32_t)(end - start);
		err = builder_add(b, &c);
	}
	return err;
}

int builder_read_go(struct builder *b)
{
	const struct elf_shdr *s = find_table(b->img);
	struct elf_blob blob = { 0 };
	struct go_table t;
	int err = 0;

	if (!s || s->size > TABLE_MAX || s->flags & SHF_COMPRESSED || elf_image_section_bytes(b->img, s, &blob))
		return 0;
	if (!read_header(b->img, blob.view, &t)) {
		/* Name 0 means none, but Go's first name is there: the string table starts a byte early. */
		b->str[0] = (struct string_table){ s->offset + t.names - 1, s->size - t.names + 1 };
		if (b->str[0].size > NAME_DYNSTR - 2)
			b->str[0].size = NAME_DYNSTR - 2;
		err = add_functions(b, &t);
	}
	elf_blob_free(&blob);
	return err;
}
