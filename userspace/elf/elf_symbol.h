/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the entries of a symbol table one after the other (System V gABI, chapter 4). */
#ifndef SFBPF_ELF_ELF_SYMBOL_H
#define SFBPF_ELF_ELF_SYMBOL_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"

struct elf_symbol {
	uint32_t name; /* where the name is in the string table */
	uint8_t info;
	uint16_t section;
	uint64_t addr, size;
};

/* False: the end of the table. */
static inline bool elf_symbol_next(struct bytes *table, struct elf_symbol *ret)
{
	if (bytes_left(table) < sizeof(Elf64_Sym))
		return false;
	ret->name = bytes_u32(table);
	ret->info = bytes_u8(table);
	bytes_skip(table, 1);
	ret->section = bytes_u16(table);
	ret->addr = bytes_u64(table);
	ret->size = bytes_u64(table);
	return true;
}

/* The name; NULL: it is empty, has `most` bytes or more, or is not in the table. */
static inline const char *elf_symbol_name(struct bytes strings, uint32_t at, size_t most)
{
	const char *name;

	bytes_seek(&strings, at);
	name = bytes_str(&strings);
	return strings.err || !*name || strnlen(name, most) >= most ? NULL : name;
}

#endif
