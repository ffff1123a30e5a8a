/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process that reads foreign ELF files for names, and what it and our own process say to each other (sym/elf_reader.h): a message each on a
 * SOCK_SEQPACKET socket. It remembers nothing of a file. As unwind/table_child.h it has no rights: what a file can do is to end it, and to
 * have its own functions named wrongly.
 */
#ifndef SFBPF_SYM_ELF_CHILD_H
#define SFBPF_SYM_ELF_CHILD_H

#include "sym/elf_facts.h"

enum elf_question {
	ELF_FACTS = 1,
	ELF_CRC,		/* of all its bytes, as .gnu_debuglink has it */
	ELF_SYMBOLS,		/* its table, in the memfd */
};

/* Comes with two descriptors: the file and, if `debug`, its debug file; else the same again. */
struct elf_ask {
	uint32_t question;
	uint32_t debug;		/* bool */
};

struct elf_answer {
	uint32_t question;
	int32_t err;		/* 0 or -errno */
	uint32_t crc;
	uint32_t n, names_len, cut;	/* struct symtab's */
	struct elf_facts facts;
};

#define ELF_CHILD_MEMORY (256u << 20)	/* bytes, beyond what it starts with */

/* A fork_child_fn. */
void elf_child_main(int sock, int mem);

#endif
