/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process that reads foreign ELF files for names, and what it and our own process say to each other (sym/elf_reader.h): a message each on a
 * SOCK_SEQPACKET socket. It remembers nothing of a file. As unwind/table_child.h it has no rights: what a file can do is to end it, and to
 * have its own functions named wrongly.
 */
#ifndef SFBPF_SYM_ELF_CHILD_H
#define SFBPF_SYM_ELF_CHILD_H

#include "sym/elf_facts.h"
#include "sym/symtab.h"

enum elf_question {
	ELF_FACTS = 1,
	ELF_CRC,		/* of all its bytes, as .gnu_debuglink has it */
	ELF_SYMBOLS,		/* its table, in the memfd */
	ELF_NAME,		/* the string that begins at `off` */
};

/* Comes with two descriptors: the file and, if `debug`, its debug file; else the same again. */
struct elf_ask {
	uint32_t question;
	uint32_t debug, all_names;	/* bools; all_names: names cannot be asked for later */
	uint64_t off;
	uint32_t len;		/* bytes that there may be; below SYMTAB_NAME_MAX */
};

struct elf_answer {
	uint32_t question;
	int32_t err;		/* 0 or -errno */
	uint32_t crc;
	uint32_t n, names_len, cut;	/* struct symtab's */
	struct string_table str[2];
	union {
		struct elf_facts facts;
		char name[SYMTAB_NAME_MAX];	/* as symtab_name */
	};
};

#define ELF_NAMES_ALONG (512u << 10)	/* bytes: of 10,000 to 20,000 functions */
#define ELF_CHILD_MEMORY (256u << 20)	/* bytes, beyond what it starts with */

/* A fork_child_fn. */
void elf_child_main(int sock, int mem);

#endif
