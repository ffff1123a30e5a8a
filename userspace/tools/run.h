/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The run of a tool that collects once and writes one result: record, record --wall, offcpu. It
 * goes through stages.h; the tools have hooks for what they do differently.
 */
#ifndef SFBPF_TOOLS_RUN_H
#define SFBPF_TOOLS_RUN_H

#include "tools/oneshot.h"

struct run_hooks {
	const char *things; /* what the messages count: "samples", "blocks" */

	/* Each function may be NULL. check: called when the format is known. 0 or the exit code. */
	int (*check)(struct oneshot *r);
	/* Called when the session is open and nothing is attached. */
	void (*opened)(struct oneshot *r);
	/* Called between polls, after blocks were taken. 0 or -errno. */
	int (*tick)(struct oneshot *r);
	/* Called when all counts are in the profile. 0 or -errno. */
	int (*collected)(struct oneshot *r);
	/* Called with the whole report before it is written. 0 or the exit code. */
	int (*report)(struct oneshot *r, const struct out_report *all);
	/* Says more than the messages on the result. */
	void (*say)(struct oneshot *r, const struct run_stats *st);
};

/*
 * Collects until Ctrl-C, SECONDS, or the end of the targets or of COMMAND, then writes the result
 * and the account. The options are checked. 0, or the exit code after printing the error.
 */
int run_once(struct oneshot *r, const struct run_hooks *hooks);
/* Says what is not on the timeline. */
void run_say_timeline(const struct oneshot *r);
/*
 * Frees and closes everything, also after an error in the options. Returns rc; if that is 0, the
 * exit code of an error of the files, or of the command (see command_finish).
 */
int run_end(struct oneshot *r, int rc);

#endif
