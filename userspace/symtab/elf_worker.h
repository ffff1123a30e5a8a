/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The worker that reads foreign ELF files for names, and the messages between it and the main
 * process (symtab/elf_reader.h): one per SOCK_SEQPACKET message. It keeps no state of a file. Like
 * tables/table_worker.h it has no rights. A hostile file can only crash the worker or give wrong
 * names to its own functions.
 */
#ifndef SFBPF_SYMTAB_ELF_WORKER_H
#define SFBPF_SYMTAB_ELF_WORKER_H

#include <stddef.h>

#include "elf/elf_tls.h"
#include "symtab/elf_code.h"
#include "symtab/elf_facts.h"
#include "symtab/elf_ids.h"
#include "symtab/elf_probes.h"
#include "symtab/elf_steps.h"
#include "symtab/go_places.h"
#include "symtab/symtab.h"

#define ELF_TLS_NAME "otel_thread_ctx_v1" /* the pointer to a thread's context (OTEP 4947) */

enum elf_question {
	ELF_FACTS = 1,
	ELF_CRC,      /* CRC of the whole file, as in .gnu_debuglink */
	ELF_SYMBOLS,  /* its symbol table, in the memfd */
	ELF_NAME,     /* the string that begins at `off` */
	ELF_IDS,      /* what identifies its contents */
	ELF_DEMANGLE, /* the string `raw`; uses no files */
	ELF_CODE,     /* the instructions of `code`, in the memfd */
	ELF_TLS,      /* where threads have the variable ELF_TLS_NAME */
	ELF_DIGEST,   /* elf_digest() */
	ELF_GO,	      /* lines of a Go program at `offsets`, in the memfd */
	ELF_PROBES,   /* places to probe that match `raw`, in the memfd; off: bool, USDT */
	ELF_STEPS,    /* where the instructions of `code` begin, in the memfd */
	ELF_LINKED,   /* linker's names of functions at `offsets`, in the memfd */
	ELF_DATA,     /* the variable at `distance` from the code at `off` (elf_data_name) */
};

/*
 * Comes with two descriptors: the file, and its debug file if `debug`, otherwise the file again.
 * Its length is elf_ask_size.
 */
struct elf_ask {
	uint32_t question;
	/*
	 * bools; all_names: return all names, as they cannot be asked for later; demangle: return
	 * the name as shown (symtab/sym_names.h)
	 */
	uint32_t debug, all_names, demangle;
	uint64_t off, distance;
	struct elf_code code; /* ELF_CODE, ELF_STEPS */
	/*
	 * ELF_NAME: bytes up to the end of the string table, below SYMTAB_NAME_MAX. ELF_DEMANGLE:
	 * and ELF_PROBES: bytes of raw. ELF_GO, ELF_LINKED: bytes of offsets
	 */
	uint32_t len;
	union {
		char raw[SYMTAB_NAME_MAX]; /* a name or a pattern without its NUL */
		uint64_t offsets[GO_PLACES_ASKED];
	};
};

struct elf_answer {
	uint32_t question;
	int32_t err; /* 0 or -errno */
	uint32_t crc;
	uint32_t n, names_len, cut; /* members of struct symtab; ELF_CODE, ELF_STEPS: n
					 * instructions; ELF_GO, ELF_LINKED, ELF_PROBES: n
					 * and the text's bytes; ELF_PROBES: cut: flags */
	struct string_table str[2];
	union {
		struct elf_facts facts;
		struct module_ids ids;
		struct elf_tls tls;
		uint64_t digest;
		/* The text of symtab_name; demangled, ELF_DATA: clean text, below SYM_NAME_MAX */
		char name[SYMTAB_NAME_MAX];
	};
};

#define ELF_NAMES_ALONG	 (512u << 10) /* bytes of names: 10,000 to 20,000 functions */
#define ELF_CHILD_MEMORY (256u << 20) /* bytes, on top of the memory at start */

static inline size_t elf_ask_size(const struct elf_ask *ask)
{
	bool more = ask->question == ELF_DEMANGLE || ask->question == ELF_GO ||
		    ask->question == ELF_LINKED || ask->question == ELF_PROBES;

	return offsetof(struct elf_ask, raw) + (more ? ask->len : 0);
}

/* A fork_child_fn. */
void elf_worker_main(int sock, int mem);

#endif
