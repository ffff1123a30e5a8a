/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One pass over a window's samples: the tables behind the list views (functions, processes with their thread
 * names, modules) for the stacks that are selected, and the trust figures for all of them. Like prof/topview, with
 * what only the live views need: a selection, kernel shares, the hottest function of a process, the tables of a module.
 * `self` is where the leaf was, `total` where any frame was, counted once a stack.
 */
#ifndef SFBPF_TUI_CENSUS_H
#define SFBPF_TUI_CENSUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "prof/profile.h"
#include "tui/selection.h"

struct census_function {
	uint32_t symbol;
	const char *name, *module;	/* the symbolizer's */
	uint64_t self, total;
	uint64_t kernel;		/* of total: taken in kernel mode */
};

struct census_process {			/* a process, or one thread name of it */
	uint32_t pid;
	uint32_t names;			/* different thread names seen */
	char comm[SF_COMM];		/* as the kernel gave it: foreign bytes; the one with the most samples */
	uint64_t comm_self;		/* samples under that name */
	uint64_t self, kernel, user_stacks, complete;
	uint32_t hottest;		/* symbol with the most self samples */
	uint64_t hottest_self;
};

struct census_module {			/* a mapped file, or a name without one: [kernel], [jit], ... */
	const struct module *file;	/* NULL: a name */
	const char *name;		/* the symbolizer's; NULL: a file without samples, named by file->name */
	uint32_t index;			/* symbolizer_module_index, if it has samples */
	uint64_t self, total;
	uint64_t user_stacks, complete;	/* stacks through it, and the complete ones of them */
	uint64_t ended[SF_STOP_MAX];	/* incomplete stacks whose last frame lies in it, by reason */
};

struct census {
	struct census_function *functions;
	struct census_process *processes;
	struct census_process *threads;	/* thread names; by pid, most samples first */
	struct census_module *modules;
	size_t nfunctions, nprocesses, nthreads, nmodules;
	uint64_t sum;			/* samples selected: 100 % */
	struct {			/* of the whole window, or of the CPU, whatever else is selected */
		uint64_t samples, kernel, user_stacks, complete, stops[SF_STOP_MAX];
	} all;
	struct census_scratch *scratch;
};

enum { CENSUS_FUNCTIONS = 1, CENSUS_PROCESSES = 2, CENSUS_MODULES = 4 };

/*
 * Into *c, zeroed before its first use; memory is reused. tables: those that are wanted, the others come out empty (sum and
 * all are always there). Only threads are in order. 0 or -ENOMEM (c is then empty).
 */
int census_build(struct census *c, struct profile *p, struct symbolizer *sz, const struct modules *ms,
		 const struct selection *sel, unsigned int tables);
void census_free(struct census *c);
/* The reason that most stacks ended for in this module; SF_STOP_COMPLETE: none did. */
uint8_t census_worst_stop(const struct census_module *m);

#endif
