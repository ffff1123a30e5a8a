/* SPDX-License-Identifier: BSD-2-Clause */
#include "symtab/elf_data.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "elf/elf_symbol.h"
#include "symtab/sym_names.h"

#define NAME_MOST 4096	    /* bytes of a symbol's name that are read */
#define PAGE_MASK 0xffffull /* segments are mapped from the start of a page: 64 KB at most */

/*
 * The address that the file says. A mapping begins up to a page before its segment. False: the
 * mapping is not one of a segment with code.
 */
static bool address_of(const struct elf_image *img, uint64_t offset, uint64_t distance,
		       uint64_t *ret)
{
	for (uint32_t i = 0; i < img->nphdrs; i++) {
		const struct elf_phdr *p = &img->phdrs[i];

		if (p->type != PT_LOAD || !(p->flags & PF_X) || offset < (p->offset & ~PAGE_MASK) ||
		    offset >= p->offset + p->filesz)
			continue;
		*ret = p->vaddr - p->offset + offset + distance;
		return true;
	}
	return false;
}

static bool in_segments(const struct elf_image *img, uint64_t addr)
{
	for (uint32_t i = 0; i < img->nphdrs; i++)
		if (img->phdrs[i].type == PT_LOAD && addr >= img->phdrs[i].vaddr &&
		    addr - img->phdrs[i].vaddr < img->phdrs[i].memsz)
			return true;
	return false;
}

/* Finds the smallest object that holds the address. 0; -ENOENT: none does; -EIO, -ENOMEM. */
static int find_object(const struct elf_image *img, uint32_t type, uint64_t addr,
		       char name[NAME_MOST], uint64_t *ret_start)
{
	const struct elf_shdr *sec = elf_image_section_of_type(img, type);
	struct elf_blob table = { 0 }, strings = { 0 };
	uint64_t least = UINT64_MAX;
	struct elf_symbol sym;
	int err;

	if (!sec || sec->link >= img->nshdrs)
		return -ENOENT;
	err = elf_image_section_bytes(img, sec, &table);
	if (!err)
		err = elf_image_section_bytes(img, &img->shdrs[sec->link], &strings);
	while (!err && elf_symbol_next(&table.view, &sym)) {
		const char *text;

		if (ELF64_ST_TYPE(sym.info) != STT_OBJECT || sym.section == SHN_UNDEF ||
		    addr < sym.addr || addr - sym.addr >= sym.size || sym.size >= least)
			continue;
		text = elf_symbol_name(strings.view, sym.name, NAME_MOST);
		if (!text)
			continue;
		memcpy(name, text, strlen(text) + 1);
		*ret_start = sym.addr;
		least = sym.size;
	}
	elf_blob_free(&table);
	elf_blob_free(&strings);
	if (err)
		return err == -ENOMEM ? err : -EIO;
	return least < UINT64_MAX ? 0 : -ENOENT;
}

int elf_data_name(const struct elf_image *img, uint64_t offset, uint64_t distance, char *ret,
		  size_t cap)
{
	char raw[NAME_MOST];
	uint64_t addr, start;
	size_t len;
	int err;

	if (!address_of(img, offset, distance, &addr) || !in_segments(img, addr))
		return -ENOENT;
	err = find_object(img, SHT_SYMTAB, addr, raw, &start);
	if (err == -ENOENT)
		err = find_object(img, SHT_DYNSYM, addr, raw, &start);
	if (err == -ENOENT) {
		snprintf(ret, cap, "+0x%" PRIx64, addr);
		return 0;
	}
	if (err)
		return err;
	len = sym_is_mangled(raw) ? sym_demangle(raw, ret, cap) : 0;
	if (!len)
		len = text_clean(ret, cap, raw, strlen(raw), 0);
	if (addr > start && len < cap)
		snprintf(ret + len, cap - len, "+0x%" PRIx64, addr - start);
	return 0;
}
