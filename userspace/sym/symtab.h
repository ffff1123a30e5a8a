/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions of one file: 16 bytes each, by file offset (that is what frame words carry), and their names. Made from an ELF file by
 * sym/elf_symtab.h, in a child; our own process takes it from a memfd and believes nothing of it.
 */
#ifndef SFBPF_SYM_SYMTAB_H
#define SFBPF_SYM_SYMTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYMTAB_NAME_MAX 4096		/* bytes of a name, with its NUL; longer ones are cut */
#define SYMTAB_MAX_BYTES (12u << 20)	/* of a table, with its names: node's has 6.5 MB */
#define SYMTAB_PLT 0x80000000u		/* in symtab_sym.size */

struct symtab_sym {
	uint64_t off;
	uint32_t size;		/* bytes; SYMTAB_PLT */
	uint32_t name;		/* offset in names */
};

struct symtab {
	struct symtab_sym *syms;	/* by off, no two equal */
	char *names;			/* the first one is "", the last one ends */
	uint32_t n, names_len;
	uint32_t cut;			/* functions left out because there was no more room */
	uint64_t used;			/* when, as who keeps it counts */
};

struct symtab_hit {
	uint32_t index;		/* of the symbol in this table */
	uint64_t start, size;	/* file offset, bytes */
	bool plt;		/* its name is that of the function it jumps to */
};

void symtab_free(struct symtab *t);
bool symtab_find(const struct symtab *t, uint64_t offset, struct symtab_hit *ret);
/* As in the file, but without a symbol version ("@GLIBC_2.2.5"). Bytes without the NUL, or -ENOENT. */
int symtab_name(const struct symtab *t, const struct symtab_hit *hit, char *buf, size_t cap);
bool symtab_at(const struct symtab *t, uint32_t index, struct symtab_hit *ret);
size_t symtab_bytes(const struct symtab *t);

/* To a file, at its position. 0 or -errno. */
int symtab_write(const struct symtab *t, int fd);
/* From the start of a file, that many functions and bytes of names. 0; -EBADMSG: that is no table; -ENOMEM. */
int symtab_read(int fd, uint32_t n, uint32_t names_len, struct symtab **ret);

#endif
