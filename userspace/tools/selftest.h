/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records a thread of the profiler that uses CPU time at the end of a known chain of calls, and
 * checks the stacks.
 */
#ifndef SFBPF_TOOLS_SELFTEST_H
#define SFBPF_TOOLS_SELFTEST_H

#include "kern/collector.h"

struct selftest {
	struct collector_error error;	/* trouble not 0: recording failed */
	struct collector_error blocked; /* error of the off-CPU programs, if recording worked */
	char text[512];			/* the most common reason for a wrong stack */
	unsigned int early;		/* samples taken before the tables were loaded */
	unsigned int judged;		/* all other samples */
	unsigned int known;		/* judged samples that are complete and contain the chain */
};

/* Takes about 0.4 s, and up to 3 s on a very busy machine. */
void selftest_run(struct selftest *ret);

#endif
