/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions of one file and their names: 16 bytes for each function, sorted by file offset, as
 * frame words hold file offsets. A child builds the table from an ELF file (symtab/elf_symtab.h).
 * The main process reads it from a memfd and checks all of it.
 */
#ifndef SFBPF_SYMTAB_SYMTAB_H
#define SFBPF_SYMTAB_SYMTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYMTAB_NAME_MAX	 4096	     /* bytes of a name, with its NUL; longer ones are cut */
#define SYMTAB_MAX_BYTES (16u << 20) /* bytes of a table, including names if it has them */

/* The parts of symtab_sym.size */
#define SYMTAB_PLT     0x80000000u
#define SYMTAB_IN_FILE 0x40000000u /* the name is in the file, although the table has names */
#define SYMTAB_SIZE    0x3fffffffu /* the bytes of the function */

/* Names that stay in the file: bit 31 selects the string table, the other bits are the offset. */
#define NAME_DYNSTR	      0x80000000u
#define NAME_START	      0xffffffffu /* "_start", not in any string table */
#define NAME_CLONE3	      0xfffffffeu /* "clone3", likewise */
#define NAME_RESTORE_RT	      0xfffffffdu
#define NAME_START_CONTEXT    0xfffffffcu
#define NAME_KERNEL_SIGRETURN 0xfffffffbu
#define NAME_NONE	      0xfffffffau /* no name: a function that only unwind tables know */
#define NAME_LOWEST	      NAME_NONE

struct symtab_sym {
	uint64_t off;
	uint32_t size; /* bytes, SYMTAB_PLT, SYMTAB_IN_FILE */
	uint32_t name; /* offset in names; if it is in the file, as above */
};

struct string_table {
	uint64_t off, size; /* inside the file */
};

/*
 * Small tables include their names. The names of large tables take megabytes, of which few are
 * needed, so they are read one by one. Only marked names (symtab/elf_symtab.h) are in each table,
 * as they are not in the file as shown.
 */
struct symtab {
	struct symtab_sym *syms; /* sorted by off, no two equal */
	char *names; /* starts with "", ends with a NUL; NULL, 0: the names are in the file */
	uint32_t n, names_len;
	/* .strtab (of the debug file, if there is one) and .dynstr; size 0: none */
	struct string_table str[2];
	int debug_fd; /* owned by the table; -1: none */
	/* Functions left out because the table is full. 1 if packed symbols were not used. */
	uint32_t cut;
	uint64_t used; /* last use, a counter of the owner */
};

struct symtab_hit {
	uint32_t index;	      /* index of the symbol in the table */
	uint64_t start, size; /* file offset, bytes */
	bool plt;	      /* a PLT stub; the name is that of its target */
};

void symtab_free(struct symtab *t);
bool symtab_find(const struct symtab *t, uint64_t offset, struct symtab_hit *ret);
/*
 * The name as in the file, but without a symbol version ("@GLIBC_2.2.5"). Returns the bytes without
 * the NUL; -ENOENT: no name, or the name is in the file.
 */
int symtab_name(const struct symtab *t, const struct symtab_hit *hit, char *buf, size_t cap);
/*
 * Position of the name in the file, and at most how many bytes it has. *ret_debug: it is in the
 * debug file. false: the name is not in the file.
 */
bool symtab_name_place(const struct symtab *t, const struct symtab_hit *hit, uint64_t *ret_off,
		       uint32_t *ret_len, bool *ret_debug);
bool symtab_at(const struct symtab *t, uint32_t index, struct symtab_hit *ret);
/* The text of NAME_START and the like; NULL: any other value */
const char *symtab_root_name(uint32_t name);
size_t symtab_bytes(const struct symtab *t);

/* Writes to fd at its current position. 0 or -errno. */
int symtab_write(const struct symtab *t, int fd);
/*
 * Reads from the start of fd. head: expected n, names_len, str and cut. 0; -EBADMSG: not a valid
 * table; -ENOMEM.
 */
int symtab_read(int fd, const struct symtab *head, struct symtab **ret);

#endif
