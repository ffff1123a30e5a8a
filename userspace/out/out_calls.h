/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The report on slow calls: how long calls took, where slow ones spend more time than typical ones,
 * and the slowest ones each by itself (text and JSON).
 */
#ifndef SFBPF_OUT_OUT_CALLS_H
#define SFBPF_OUT_OUT_CALLS_H

#include "out/out.h"
#include "prof/calls.h"

struct out_calls {
	struct calls_result result;
	const char *what;	/* what is called, as the user wrote it */
	const char *function;	/* its name, with * ? [] as wildcards; NULL: none */
	struct profile *pieces; /* the profile that the pieces of calls refer to */
	uint64_t start_ns;	/* start of the run, CLOCK_MONOTONIC */
};

extern const char *const out_calls_groups[CALLS_GROUPS]; /* "typical", "slow" */

int out_calls_text(const struct out_report *r, FILE *f); /* 0 or -errno */
int out_calls_json(const struct out_report *r, FILE *f);

#endif
