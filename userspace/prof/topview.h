/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A profile as sorted tables: functions, processes, modules. `self` is where the leaf was, `total` where any
 * frame was, counted once a stack however often it recurs. The self column of each table adds up to `sum`:
 * samples without frames belong to "[no stack]".
 */
#ifndef SFBPF_PROF_TOPVIEW_H
#define SFBPF_PROF_TOPVIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "prof/profile.h"

enum topview_sort { TOPVIEW_SELF, TOPVIEW_TOTAL };

struct topview_opts {
	bool user_only, kernel_only;	/* the other part's frames are left out */
	bool by_weight;			/* weights instead of sample counts */
	enum topview_sort sort;		/* ties: the other column, then the name */
};

struct topview_function {
	uint32_t symbol;
	const char *name, *module;	/* the symbolizer's */
	uint64_t self, total;
};

struct topview_process {
	uint32_t pid;
	char comm[SF_COMM + 1];		/* foreign bytes */
	uint64_t self;			/* all of it */
	uint64_t kernel;		/* of these: taken in kernel mode */
	uint64_t user_stacks, complete;	/* samples with a user part, and those of them that are complete */
};

struct topview_module {
	const char *name;		/* the symbolizer's */
	uint64_t self, total;
};

struct topview {
	struct topview_function *functions;
	struct topview_process *processes;
	struct topview_module *modules;
	size_t nfunctions, nprocesses, nmodules;
	uint64_t sum;			/* 100 %: samples, or their weight */
	uint64_t samples, user_stacks, complete;
	struct topview_scratch *scratch;
};

/* Into *tv, zeroed before its first use; memory is reused from build to build. 0 or -ENOMEM (tv is then empty). */
int topview_build(struct topview *tv, struct profile *p, struct symbolizer *sz, const struct topview_opts *opts);
void topview_free(struct topview *tv);

static inline double topview_pct(uint64_t part, uint64_t sum)
{
	return sum ? 100.0 * (double)part / (double)sum : 0;
}

#endif
