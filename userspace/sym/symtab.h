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
#define SYMTAB_MAX_BYTES (16u << 20)	/* of a table, with its names if it has them */
#define SYMTAB_PLT 0x80000000u		/* in symtab_sym.size */

/* Names that are not along: bit 31 says which string table, the rest is the offset in it. */
#define NAME_DYNSTR 0x80000000u
#define NAME_START 0xffffffffu	/* "_start", in no table */
#define NAME_CLONE3 0xfffffffeu	/* "clone3", likewise */
#define NAME_RESTORE_RT 0xfffffffdu
#define NAME_START_CONTEXT 0xfffffffcu
#define NAME_KERNEL_SIGRETURN 0xfffffffbu	/* the last of them */

struct symtab_sym {
	uint64_t off;
	uint32_t size;		/* bytes; SYMTAB_PLT */
	uint32_t name;		/* offset in names; without them, as above */
};

struct string_table {
	uint64_t off, size;	/* inside the file */
};

/*
 * Names are part of small tables. Those of large ones are megabytes, of which a few are ever wanted: these are asked for one by one.
 */
struct symtab {
	struct symtab_sym *syms;	/* by off, no two equal */
	char *names;			/* the first one is "", the last one ends; NULL, 0: they are in the file */
	uint32_t n, names_len;
	struct string_table str[2];	/* .strtab, of the debug file if there is one, and .dynstr; size 0: none */
	int debug_fd;			/* the table's own; -1: none */
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
/* As in the file, but without a symbol version ("@GLIBC_2.2.5"). Bytes without the NUL, or -ENOENT: it has none, or that is in the file. */
int symtab_name(const struct symtab *t, const struct symtab_hit *hit, char *buf, size_t cap);
/* Where it is in the file: at most *ret_len bytes; *ret_debug: in the debug file. false: not there. */
bool symtab_name_place(const struct symtab *t, const struct symtab_hit *hit, uint64_t *ret_off, uint32_t *ret_len, bool *ret_debug);
bool symtab_at(const struct symtab *t, uint32_t index, struct symtab_hit *ret);
const char *symtab_root_name(uint32_t name);	/* NAME_START and the like; NULL: another one */
size_t symtab_bytes(const struct symtab *t);

/* To a file, at its position. 0 or -errno. */
int symtab_write(const struct symtab *t, int fd);
/* From the start of a file; head: n, names_len, str and cut as they shall be. 0; -EBADMSG: that is no table; -ENOMEM. */
int symtab_read(int fd, const struct symtab *head, struct symtab **ret);

#endif
