/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds and reads the symbols of a file, and selects the functions (gABI, "Symbol Table", "Dynamic
 * Section").
 */
#include <errno.h>
#include <string.h>

#include "base/vec.h"
#include "border/sfbpf_shared.h"
#include "symtab/symtab_builder.h"

#define CHUNK_SYMS 4096

bool builder_code_offset(const struct builder *b, uint64_t vaddr, uint64_t *ret)
{
	for (uint32_t i = 0; i < b->nsegs; i++) {
		if (vaddr >= b->segs[i].vaddr && vaddr - b->segs[i].vaddr < b->segs[i].size) {
			*ret = vaddr - b->segs[i].vaddr + b->segs[i].off;
			return true;
		}
	}
	return false;
}

bool builder_code_address(const struct builder *b, uint64_t off, uint64_t *ret)
{
	for (uint32_t i = 0; i < b->nsegs; i++) {
		if (off >= b->segs[i].off && off - b->segs[i].off < b->segs[i].size) {
			*ret = off - b->segs[i].off + b->segs[i].vaddr;
			return true;
		}
	}
	return false;
}

int builder_add(struct builder *b, const struct cand *c)
{
	const struct string_table *st = &b->str[c->name & NAME_DYNSTR ? 1 : 0];

	if ((c->name & ~NAME_DYNSTR) >= st->size || c->off > SF_FRAME_OFFSET_MASK)
		return 0;
	if (vec_reserve(&b->cands, &b->cap, b->n + 1, sizeof(*b->cands)))
		return -ENOMEM;
	b->cands[b->n++] = *c;
	return 0;
}

static int add_symbol(struct builder *b, struct bytes *at, uint32_t name_flag)
{
	uint32_t name = bytes_u32(at);
	uint8_t info = bytes_u8(at), type = ELF64_ST_TYPE(info), bind = ELF64_ST_BIND(info);
	uint16_t shndx;
	uint64_t value, size;
	struct cand c = { .notype = type == STT_NOTYPE, .ifunc = type == STT_GNU_IFUNC };

	bytes_skip(at, 1);
	shndx = bytes_u16(at);
	value = bytes_u64(at);
	size = bytes_u64(at);
	if (type == STT_FILE && name && !(name & NAME_DYNSTR) && !name_flag)
		return builder_note_source(b, name);
	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
		return 0;
	if (!name || name & NAME_DYNSTR || shndx == SHN_UNDEF || shndx == SHN_ABS ||
	    shndx == SHN_COMMON || !builder_code_offset(b, value, &c.off))
		return 0;
	c.name = name | name_flag;
	c.size = size > SYMTAB_SIZE ? SYMTAB_SIZE : (uint32_t)size;
	c.bind = bind == STB_LOCAL ? 2 : bind == STB_WEAK ? 1 : 0;
	return builder_add(b, &c);
}

static int read_source(struct builder *b, const struct symbol_source *src)
{
	int err = 0;

	for (uint64_t i = 0; i < src->count && !err; i += CHUNK_SYMS) {
		uint64_t n = src->count - i < CHUNK_SYMS ? src->count - i : CHUNK_SYMS;
		struct elf_blob blob = { 0 };

		err = elf_image_read(src->img, src->off + i * sizeof(Elf64_Sym),
				     n * sizeof(Elf64_Sym), &blob);
		for (uint64_t k = 0; k < n && !err; k++)
			err = add_symbol(b, &blob.view, src->name_flag);
		elf_blob_free(&blob);
	}
	return err;
}

/* Clips a range to the size of the file. */
static uint64_t clip(const struct elf_image *img, uint64_t off, uint64_t size)
{
	if (off >= img->size)
		return 0;
	return size < img->size - off ? size : img->size - off;
}

static struct symbol_source section_source(struct builder *b, uint32_t type)
{
	int table = type == SHT_DYNSYM;
	const struct elf_image *img = table ? b->img : b->syms;
	const struct elf_shdr *s = elf_image_section_of_type(img, type), *str;
	struct symbol_source src = { .img = img, .name_flag = table ? NAME_DYNSTR : 0 };

	if (!s || s->flags & SHF_COMPRESSED || s->link >= img->nshdrs)
		return src;
	str = &img->shdrs[s->link];
	if (str->type != SHT_STRTAB || str->flags & SHF_COMPRESSED)
		return src;
	b->str[table] = (struct string_table){ str->offset, clip(img, str->offset, str->size) };
	src.off = s->offset;
	src.count = clip(img, s->offset, s->size) / sizeof(Elf64_Sym);
	return src;
}

/* ---- Without section headers ---- */

struct dynamic {
	uint64_t symtab, strtab, strsz, hash, gnu_hash, flags_1, soname;
};

static struct dynamic read_dynamic(const struct elf_image *img)
{
	const struct elf_phdr *ph = elf_image_segment(img, PT_DYNAMIC);
	struct elf_blob blob = { 0 };
	struct dynamic d = { 0 };
	uint64_t size, tag, value;

	if (!ph)
		return d;
	size = clip(img, ph->offset, ph->filesz);
	if (size > 65536)
		size = 65536;
	if (elf_image_read(img, ph->offset, size, &blob))
		return d;
	while (elf_dynamic_next(&blob.view, &tag, &value)) {
		switch (tag) {
		case DT_SYMTAB:
			d.symtab = value;
			break;
		case DT_STRTAB:
			d.strtab = value;
			break;
		case DT_STRSZ:
			d.strsz = value;
			break;
		case DT_HASH:
			d.hash = value;
			break;
		case DT_GNU_HASH:
			d.gnu_hash = value;
			break;
		case DT_FLAGS_1:
			d.flags_1 = value;
			break;
		case DT_SONAME:
			d.soname = value;
			break;
		default:
			break;
		}
	}
	elf_blob_free(&blob);
	return d;
}

/* Reads from vaddr up to cap bytes, clipped to the file. */
static int read_at_vaddr(const struct elf_image *img, uint64_t vaddr, uint64_t cap,
			 struct elf_blob *ret)
{
	uint64_t off;

	if (!elf_image_vaddr_to_offset(img, vaddr, &off))
		return -ENOENT;
	return elf_image_read(img, off, clip(img, off, cap), ret);
}

/*
 * DT_HASH holds the number of symbols. With DT_GNU_HASH only, the end of the last chain gives it.
 */
static uint64_t dynsym_count(const struct elf_image *img, const struct dynamic *d)
{
	uint32_t nbuckets, symoffset, bloom, last = 0;
	struct elf_blob blob = { 0 };
	struct bytes b;
	uint64_t count = 0;

	if (d->hash && !read_at_vaddr(img, d->hash, 8, &blob)) {
		bytes_skip(&blob.view, 4);
		count = bytes_u32(&blob.view);
		elf_blob_free(&blob);
		return count;
	}
	if (!d->gnu_hash || read_at_vaddr(img, d->gnu_hash, (uint64_t)SYMTAB_MAX * 8, &blob))
		return 0;
	b = blob.view;
	nbuckets = bytes_u32(&b);
	symoffset = bytes_u32(&b);
	bloom = bytes_u32(&b);
	bytes_skip(&b, 4 + (size_t)bloom * 8);
	for (uint32_t i = 0; i < nbuckets && !b.err; i++) {
		uint32_t first = bytes_u32(&b);

		if (first > last)
			last = first;
	}
	if (!b.err && last >= symoffset) {
		bytes_skip(&b, (size_t)(last - symoffset) * 4);
		for (count = (uint64_t)last + 1; !(bytes_u32(&b) & 1) && !b.err; count++)
			;
	}
	if (b.err)
		count = 0;
	elf_blob_free(&blob);
	return count;
}

static struct symbol_source dynamic_source(struct builder *b)
{
	struct dynamic d = read_dynamic(b->img);
	struct symbol_source src = { .img = b->img, .name_flag = NAME_DYNSTR };
	uint64_t str, count, fit;

	if (!d.symtab || !elf_image_vaddr_to_offset(b->img, d.symtab, &src.off) ||
	    !elf_image_vaddr_to_offset(b->img, d.strtab, &str))
		return src;
	count = dynsym_count(b->img, &d);
	fit = clip(b->img, src.off, UINT64_MAX) / sizeof(Elf64_Sym);
	src.count = count < fit ? count : fit;
	b->str[1] = (struct string_table){ str, clip(b->img, str, d.strsz) };
	return src;
}

bool builder_is_program(const struct builder *b)
{
	if (b->img->type == ET_EXEC)
		return true;
	return b->img->type == ET_DYN && (read_dynamic(b->img).flags_1 & DF_1_PIE);
}

static bool is_named(const struct builder *b, const char *soname, bool whole)
{
	struct dynamic d = read_dynamic(b->img);
	struct elf_blob blob = { 0 };
	const char *name;
	bool same;

	if (!d.soname || d.soname >= d.strsz || d.strtab > UINT64_MAX - d.soname ||
	    read_at_vaddr(b->img, d.strtab + d.soname, 256, &blob))
		return false;
	name = bytes_str(&blob.view);
	same = name && (whole ? strcmp(name, soname) : strncmp(name, soname, strlen(soname))) == 0;
	elf_blob_free(&blob);
	return same;
}

bool builder_is_named(const struct builder *b, const char *soname)
{
	return is_named(b, soname, true);
}

int builder_read_symbols(struct builder *b)
{
	struct symbol_source sym = section_source(b, SHT_SYMTAB);
	struct symbol_source dyn = section_source(b, SHT_DYNSYM);
	int err = 0;

	b->gnat |= is_named(b, "libgnat-", false) || is_named(b, "libgnarl-", false);
	if (!b->img->nshdrs)
		dyn = dynamic_source(b);
	for (int i = 0; i < 2; i++)
		if (b->str[i].size > NAME_DYNSTR - 2)
			b->str[i].size = NAME_DYNSTR - 2;
	/* A hostile file may claim any number. The first SYMTAB_MAX symbols are enough for it. */
	if (sym.count > SYMTAB_MAX)
		sym.count = SYMTAB_MAX;
	if (dyn.count > SYMTAB_MAX)
		dyn.count = SYMTAB_MAX;
	if (sym.count)
		err = read_source(b, &sym);
	if (!err && !b->n)
		err = builder_read_go(b);
	/* .gnu_debugdata has only the symbols that .dynsym lacks. */
	if (!err && (dyn.count > sym.count || !b->n || b->syms != b->img))
		err = read_source(b, &dyn);
	return err;
}
