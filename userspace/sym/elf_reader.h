/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Our end of the process that reads foreign ELF files for names (sym/elf_child.h). A question is waited for, within limits. What comes
 * is not believed further than it is checked. A child that dies, hangs or says nonsense is ended, and there is another one for the next file.
 *
 * Where waiting would take too large a part of the time (sym/patience.h) the answer is -EAGAIN, and the file can be asked about later. One thread only.
 */
#ifndef SFBPF_SYM_ELF_READER_H
#define SFBPF_SYM_ELF_READER_H

#include "base/fork_server.h"
#include "sym/elf_facts.h"
#include "sym/patience.h"
#include "sym/symtab.h"

struct elf_reader;

struct elf_reader_totals {
	uint64_t died, late;	/* children: that ended or said nonsense; that took too long for a file */
	uint64_t failed;	/* questions without an answer because of that */
	uint64_t deferred;	/* because others had taken too long */
	uint64_t cut;		/* functions without a name because their file has too many */
	uint64_t cpu_ns;	/* of all children */
};

/* child: elf_child_main, but in tests. patience must outlive it. NULL: out of memory. */
struct elf_reader *elf_reader_new(struct fork_server *server, fork_child_fn child, struct patience *patience);
void elf_reader_free(struct elf_reader *r);
bool elf_reader_has_time(const struct elf_reader *r);	/* its patience is unhurried; r NULL: false */
/*
 * 0 or -errno: -EAGAIN, later; -ECHILD, the file breaks its reader; -ETIMEDOUT; else what the child said. r NULL: -ENOENT. fd: a regular file,
 * whose position is no longer what it was.
 */
int elf_reader_facts(struct elf_reader *r, int fd, struct elf_facts *ret);
int elf_reader_crc(struct elf_reader *r, int fd, uint32_t *ret);
/* debug_fd -1: none; else it belongs to the table if (*ret)->debug_fd is set. */
int elf_reader_symbols(struct elf_reader *r, int fd, int debug_fd, struct symtab **ret);
/* The name of a function of such a table; cap: SYMTAB_NAME_MAX or more. */
int elf_reader_name(struct elf_reader *r, int fd, const struct symtab *t, const struct symtab_hit *hit, char *buf, size_t cap);
/* Ends the child if it has had nothing to do for some seconds. To be called now and then. */
void elf_reader_rest(struct elf_reader *r);
void elf_reader_totals(const struct elf_reader *r, struct elf_reader_totals *ret);

#endif
