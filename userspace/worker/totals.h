/* SPDX-License-Identifier: BSD-2-Clause */
/* What happened to the workers and to the questions that they were asked. */
#ifndef SFBPF_WORKER_TOTALS_H
#define SFBPF_WORKER_TOTALS_H

#include <stdint.h>

struct worker_totals {
	/* Workers that ended unexpectedly; workers that missed a deadline and were ended */
	uint64_t died, late;
	uint64_t failed; /* files without tables or names because of a died or late worker */
	/* Questions for names that were put off because earlier ones took too long */
	uint64_t deferred;
	/* Functions left out because their files have too many; JIT files read in part */
	uint64_t cut;
	uint64_t mangled; /* names shown mangled because they take too long to demangle */
	uint64_t changed; /* files that were written before their names were read */
	uint64_t cpu_ns;  /* CPU time of all workers, as of their last answers */
};

static inline uint64_t worker_totals_ended(const struct worker_totals *t)
{
	return t->died + t->late;
}

static inline uint64_t worker_totals_names_lost(const struct worker_totals *t)
{
	return t->deferred + t->cut + t->mangled + t->changed;
}

static inline void worker_totals_add(struct worker_totals *to, const struct worker_totals *more)
{
	to->died += more->died;
	to->late += more->late;
	to->failed += more->failed;
	to->deferred += more->deferred;
	to->cut += more->cut;
	to->mangled += more->mangled;
	to->changed += more->changed;
	to->cpu_ns += more->cpu_ns;
}

#endif
