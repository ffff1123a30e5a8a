/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A profile as tables, made in one pass: functions, processes with their thread names, and modules
 * of the selected stacks; and the completeness of all stacks. `self` counts stacks by their leaf.
 * `total` counts stacks that contain an entry anywhere, once per stack. The self column of each
 * table adds up to `sum`: samples without frames belong to "[no stack]".
 */
#ifndef SFBPF_PROF_CENSUS_H
#define SFBPF_PROF_CENSUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "prof/profile.h"
#include "prof/selection.h"

struct census_function {
	uint32_t symbol;
	const char *name, *module; /* owned by the symbolizer */
	uint64_t self, total;
	uint64_t kernel; /* part of total that was sampled in kernel mode */
};

struct census_task { /* a process, or the threads of one name in it */
	uint32_t pid;
	uint32_t id;	/* thread names: the value of census_hot.thread */
	uint32_t names; /* number of distinct thread names */
	/*
	 * Foreign bytes; of a process: its name, or the thread name with the most samples if it is
	 * unknown or selection.by_thread
	 */
	char comm[SF_COMM];
	uint64_t comm_self; /* samples under that thread name */
	bool named;	    /* comm is the process's own name */
	uint64_t self, kernel, user_stacks, complete;
	uint32_t hottest; /* symbol with the most self samples */
	uint64_t hottest_self;
};

/* A mapped file, or a name without one: [kernel], [jit], ... */
struct census_module {
	const struct module *file; /* NULL: a name */
	/* Owned by the symbolizer; NULL: a file without samples, whose name is file->name */
	const char *name;
	uint32_t index; /* symbolizer_module_index, if it has samples */
	uint64_t self, total;
	/* stacks that pass through it; how many of them are complete */
	uint64_t user_stacks, complete;
	/* Incomplete stacks whose outermost user frame lies in it, by stop reason */
	uint64_t ended[SF_STOP_MAX];
};

struct census {
	struct census_function *functions;
	struct census_task *processes;
	struct census_task *threads; /* thread names; by pid, most samples first */
	struct census_module *modules;
	size_t nfunctions, nprocesses, nthreads, nmodules;
	uint64_t sum; /* samples or weight of the selected stacks: 100 % */
	/* Counts of the window or of the selected CPU, regardless of the rest of the selection */
	struct {
		uint64_t samples, kernel, user_stacks, complete, stops[SF_STOP_MAX];
		/* Indexed by enum sf_language */
		uint64_t lang_stacks[SF_LANG_MAX], lang_complete[SF_LANG_MAX];
	} all;
	struct census_scratch *scratch;
};

/* BY_WEIGHT: self, total, kernel and sum are weights, not numbers of samples. */
enum { CENSUS_FUNCTIONS = 1, CENSUS_PROCESSES = 2, CENSUS_MODULES = 4, CENSUS_BY_WEIGHT = 8 };

/*
 * Builds *c, which must be zeroed before its first use; memory is reused. Tables that are not
 * requested are empty; sum and all are always set. Only threads are sorted. 0, or -ENOMEM: c is
 * then empty.
 */
int census_build(struct census *c, struct profile *p, struct symbolizer *sz,
		 const struct modules *ms, const struct selection *sel, unsigned int tables);
void census_free(struct census *c);

struct census_hot {	 /* self of a function in the threads of one name */
	uint32_t thread; /* census_task.id */
	uint32_t symbol;
	uint64_t self;
};

/*
 * Returns all of them, sorted by thread, then by descending self. The caller frees *ret. 0 or
 * -ENOMEM.
 */
int census_hottest(const struct census *c, struct census_hot **ret, size_t *ret_n);
/* The most frequent stop reason of stacks that ended in m; SF_STOP_COMPLETE: none ended in it. */
uint8_t census_worst_stop(const struct census_module *m);

#endif
