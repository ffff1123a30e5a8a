/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report --pgo: the samples of one build of a program as a profile for compilers. pgo_samples.c
 * adds up the samples, pgo_<format>.c write them.
 */
#ifndef SFBPF_REPORT_PGO_H
#define SFBPF_REPORT_PGO_H

#include "prof/stackset.h"
#include "report/stacks_io.h"
#include "symtab/elf_reader.h"

enum pgo_drop { /* why samples are left out */
		PGO_KERNEL,
		PGO_OTHER_FILE,
		PGO_OTHER_BUILD,
		PGO_NO_ADDRESS,
		PGO_OTHER_PROGRAM,
		PGO_NO_FUNCTION,
		PGO_NO_LINE,
		PGO_DROPS
};

struct pgo_place {
	uint64_t offset, count; /* byte of the file; samples */
};

struct pgo {
	const char *path; /* the program */
	int fd;
	struct stack_file file;
	struct elf_facts facts;
	struct fork_server *server;
	struct allowance allowance;
	struct elf_reader reader;
	const struct stackset *stacks;
	struct pgo_place *leaves; /* where stacks end in the program, ascending */
	size_t nleaves;
	uint64_t own;  /* samples of the program */
	uint64_t used; /* samples in the output; set by the writer */
	uint64_t dropped[PGO_DROPS];
};

/* A function, and its samples: places[0] up to places[n - 1]. */
struct pgo_part {
	struct symtab_hit hit;
	uint64_t addr; /* the virtual address of its start; 0: it is in no segment */
	const struct pgo_place *places;
	size_t n;
	uint64_t samples;
};

/*
 * A format. `callers`: a stack counts as the program's if any of its frames is; otherwise, if it
 * ends there. write: 0 or -errno, or EXIT_FAILED after complaining.
 */
struct pgo_format {
	const char *name;
	bool callers;
	int (*write)(struct pgo *p, FILE *f);
};

int pgo_write_go(struct pgo *p, FILE *f);
int pgo_write_clang(struct pgo *p, FILE *f);
int pgo_write_gcc(struct pgo *p, FILE *f);
int pgo_write_bolt(struct pgo *p, FILE *f);

/* Opens p->path and sets p->file. 0 or an exit code after complaining; pgo_close in either case. */
int pgo_open(struct pgo *p);
void pgo_close(struct pgo *p);
/*
 * Adds up the samples of p->stacks. callers: as in struct pgo_format. *ret_other: the build-id of
 * another build in them; NULL: there is none. 0 or an exit code after complaining.
 */
int pgo_tally(struct pgo *p, bool callers, const char **ret_other);
/* The function of leaf `from`, with all leaves in it. False: only that leaf, in no function. */
bool pgo_part_from(const struct pgo *p, const struct symtab *t, size_t from, struct pgo_part *ret);
/*
 * Whether to ask the reader again, as it had no time for an answer (-EAGAIN); waits before. *tries
 * is 0 at first.
 */
bool pgo_again(int err, int *tries);
/* report --pgo NAME. paths[0]: the program; the others: recordings. The exit code. */
int pgo_run(struct view *v, const char *name, char **paths, int n);

#endif
