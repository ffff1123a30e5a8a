/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a file can be probed: functions by their names, and USDT probes (section .note.stapsdt: a
 * note of type 3 for each place). The child that reads ELF files (symtab/elf_worker.h) finds them
 * and sends them to the main process.
 */
#ifndef SFBPF_SYMTAB_ELF_PROBES_H
#define SFBPF_SYMTAB_ELF_PROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/elf_image.h"

#define ELF_PROBES_MOST 65536	   /* places of one answer */
#define ELF_PROBES_TEXT (8u << 20) /* bytes of the names of one answer */

enum elf_probes_of {
	ELF_PROBES_FUNCTIONS,
	ELF_PROBES_USDT,
	ELF_PROBES_CALLS, /* functions with their exits (symtab/elf_exits.h) */
};

/* ELF_PROBES_CALLS: what the instruction is. */
enum elf_probe_kind { PROBE_ENTRY, PROBE_EXIT };

struct elf_probe {
	uint64_t off;	    /* the instruction's place in the file */
	uint64_t semaphore; /* USDT: of the counter that turns the probe on, in the file; 0: none */
	uint32_t name, args; /* where these begin in the text; args: "8@%rdi -4@$5" (USDT) */
	uint32_t kind, zero; /* enum elf_probe_kind */
};

struct elf_probes {
	struct elf_probe *v; /* sorted by offset; equal ones differ in kind */
	char *text;	     /* ends with a NUL */
	uint32_t n, text_len;
	bool go; /* a program in Go: its stacks move, and return probes break it */
	/* ELF_PROBES_CALLS: PROBE_EXIT are all exits; else a function may end in another place */
	bool exits_known;
	bool throws; /* the file has code that handles exceptions, which return probes break */
};

/*
 * Finds functions whose name as linked or as shown (symtab/sym_names.h) matches the pattern, with
 * * ? [] as wildcards; or USDT probes that match "PROVIDER:NAME". If none does, text is the nearest
 * name, or "". 0; -E2BIG: there are more than ELF_PROBES_MOST; -ENOMEM, -EIO.
 */
int elf_probes_read(const struct elf_image *img, enum elf_probes_of what, const char *pattern,
		    struct elf_probes *ret);
/* go, exits_known and throws as a number */
uint32_t elf_probes_flags(const struct elf_probes *p);
void elf_probes_set_flags(struct elf_probes *p, uint32_t flags);
/* Writes v, then the text. 0 or -errno. */
int elf_probes_write(const struct elf_probes *p, int fd);
/* Reads what elf_probes_write wrote, and checks it. 0; -EBADMSG: it is not sound; -ENOMEM. */
int elf_probes_take(int fd, uint32_t n, uint32_t text_len, struct elf_probes *ret);
void elf_probes_free(struct elf_probes *p); /* also of a zeroed struct */

#endif
