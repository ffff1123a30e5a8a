/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The main process's side of the worker that reads foreign ELF files for names
 * (symtab/elf_worker.h). It waits for an answer within limits. Answers are checked and not trusted
 * beyond that. A child that dies, hangs or sends invalid answers is ended, and the next file gets a
 * new one.
 *
 * If waiting would exceed the allowance (worker/allowance.h), the answer is -EAGAIN, and the
 * question can be repeated later. One thread only.
 */
#ifndef SFBPF_SYMTAB_ELF_READER_H
#define SFBPF_SYMTAB_ELF_READER_H

#include "symtab/elf_worker.h"
#include "symtab/symtab.h"
#include "worker/worker.h"

#define ELF_DEMANGLE_CPU_NS (10 * NUM_MS) /* most names take microseconds */
#define ELF_SLOW_FILE	    4
#define ELF_SLOW_USER	    8
#define ELF_SLOW_KEPT	    64 /* slow names remembered; the oldest is dropped first */

/* Where names come from. */
struct elf_source {
	uint32_t file; /* a number that is unique to the file */
	uint32_t owner;
};

struct elf_reader {
	struct worker worker;
	struct allowance *allowance;
	struct elf_answer answer;
	struct elf_slow_name {
		struct elf_source from;
		uint64_t at_ns; /* 0: free */
	} slow[ELF_SLOW_KEPT];
	size_t next_slow;
};

/*
 * child: elf_worker_main, except in tests. allowance must outlive the reader; its totals count what
 * happens. The owner of the reader ends its worker.
 */
void elf_reader_init(struct elf_reader *r, struct fork_server *server, fork_child_fn child,
		     struct allowance *allowance);
/*
 * 0 or -errno. -EAGAIN: try later. -ECHILD: the file crashes its reader. -ETIMEDOUT. Otherwise the
 * error that the child sent. r NULL: -ENOENT. fd: a regular file; its position changes.
 */
int elf_reader_facts(struct elf_reader *r, int fd, struct elf_facts *ret);
int elf_reader_ids(struct elf_reader *r, int fd, struct module_ids *ret);
/* Where threads have the variable ELF_TLS_NAME. -ENOENT: the file does not define it. */
int elf_reader_tls(struct elf_reader *r, int fd, struct elf_tls *ret);
int elf_reader_crc(struct elf_reader *r, int fd, uint32_t *ret);
int elf_reader_digest(struct elf_reader *r, int fd, uint64_t *ret);
/*
 * Checks the file of a module after something was read from it. 0: the bytes are those that
 * processes have executed under its id. -ESTALE: the file has other bytes. -EAGAIN: try later.
 */
int elf_reader_check(struct elf_reader *r, struct module *m);
/* debug_fd -1: none. If (*ret)->debug_fd is set, the table has taken over debug_fd. */
int elf_reader_symbols(struct elf_reader *r, int fd, int debug_fd, struct symtab **ret);
/*
 * The instructions of a function. The caller frees *ret. Further errors: -ENOTSUP: no disassembler
 * for this machine; -ENOENT: no such code in the file.
 */
int elf_reader_code(struct elf_reader *r, int fd, const struct elf_code *what,
		    struct elf_instruction **ret, uint32_t *ret_n);
/*
 * The instructions of at most ELF_STEPS_MOST bytes of code (symtab/elf_steps.h). The caller frees
 * *ret. Further errors: as of elf_reader_code.
 */
int elf_reader_steps(struct elf_reader *r, int fd, const struct elf_code *what, uint32_t **ret,
		     uint32_t *ret_n);
/*
 * The source lines and inlined functions of a Go program at n file offsets, at most
 * GO_PLACES_ASKED. The caller frees *ret. Further error: -ENOENT: it is none.
 */
int elf_reader_go(struct elf_reader *r, int fd, const uint64_t *offsets, size_t n,
		  struct go_places *ret);
/*
 * The places to probe in a file (elf_probes_read). The caller frees *ret with elf_probes_free.
 * Further error: -E2BIG: there are too many.
 */
int elf_reader_probes(struct elf_reader *r, int fd, enum elf_probes_of what, const char *pattern,
		      struct elf_probes *ret);
/*
 * The linker's names of functions at n file offsets, at most GO_PLACES_ASKED, as of
 * elf_linked_read. The caller frees *ret.
 */
int elf_reader_linked(struct elf_reader *r, int fd, const uint64_t *offsets, size_t n,
		      struct go_places *ret);
/* The variable at an address, as of elf_data_name, in buf. */
int elf_reader_data(struct elf_reader *r, int fd, uint64_t offset, uint64_t distance, char *buf,
		    size_t cap);
/*
 * The name of a function in that table, as elf_reader_demangle shows it. file: as in elf_source.
 * With -EAGAIN, buf has the name as linked, or is empty.
 */
int elf_reader_name(struct elf_reader *r, int fd, uint32_t file, const struct symtab *t,
		    const struct symtab_hit *hit, char *buf, size_t cap);
/*
 * Writes raw to buf as clean text, demangled if it is mangled. A name that takes the child more
 * than ELF_DEMANGLE_CPU_NS of CPU time stays mangled. After ELF_SLOW_FILE such names within a
 * minute, all names of that file stay mangled; after ELF_SLOW_USER, all names of that user except
 * root. false: the name may be demangled later. r NULL: the name stays as it is.
 */
bool elf_reader_demangle(struct elf_reader *r, struct elf_source from, const char *raw, char *buf,
			 size_t cap);

#endif
