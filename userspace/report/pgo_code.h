/* SPDX-License-Identifier: BSD-2-Clause */
/* The instructions of the functions of a program that have samples, and how often they ran. */
#ifndef SFBPF_REPORT_PGO_CODE_H
#define SFBPF_REPORT_PGO_CODE_H

#include "report/pgo.h"

#define PGO_SCALE 100 /* the count of a block that has one sample for each instruction */

struct pgo_step {      /* an instruction */
	uint64_t addr; /* its virtual address in the file */
	uint64_t samples;
	uint64_t count; /* PGO_SCALE times the mean of its block */
	size_t block;	/* the index of the first step of its block */
	bool begins_function;
	bool has_line; /* a step of the block that begins here has a line; pgo_lines sets it */
	bool known;    /* false: 0 samples, of a function with few of them, which say nothing */
};

struct pgo_code {		/* zeroed: empty */
	struct pgo_step *steps; /* offsets in the file ascend */
	size_t n, cap;
};

/*
 * Reads the code, and counts the samples of which it has none in p->dropped. 0; EXIT_FAILED after
 * complaining; -ENOMEM. pgo_code_free in either case.
 */
int pgo_code_read(struct pgo *p, struct pgo_code *ret);
void pgo_code_free(struct pgo_code *c);

#endif
