/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The run of every tool that samples: record, offcpu, top and the agent. stages_run() has the order
 * of its stages:
 *
 *   prepare     files and processes that must not inherit the session's priority
 *   open        BPF and the tables of mapped files; nothing is attached
 *   opened      who takes the records, and which capabilities stay
 *   start       gives up privileges, then attaches
 *   signals     SIGINT, SIGTERM and SIGHUP end the run from now on, but not the process
 *   begin       the command, the terminal, threads
 *   wait, tick  alternate, with a poll of the ring between them
 *   end         stops the session, if what is left in the kernel matters; the result
 *
 * A stage that fails prints its error and ends the run, with its exit code. Whoever calls
 * stages_run() closes the session.
 */
#ifndef SFBPF_TOOLS_STAGES_H
#define SFBPF_TOOLS_STAGES_H

#include "tools/session.h"

struct stages {
	/*
	 * The signals stage comes first: whatever is in `prepare` must be closed. Otherwise signals
	 * end the process until it samples, because libbpf restarts a verification that a signal
	 * interrupts.
	 */
	bool early_signals;
	/* These three return 0, or the exit code after printing the error. */
	int (*prepare)(void *tool);
	int (*opened)(void *tool);
	int (*begin)(void *tool);
	/* Returns how long the poll may wait for samples, ms; -1: the run is over. */
	int (*wait)(void *tool);
	int (*tick)(void *tool); /* 0, an exit code, or -errno: samples could not be read */
	/* Called once for each run that began. err: what tick or the poll returned, or 0 */
	int (*end)(void *tool, int err); /* err, or if that is 0, the exit code */
};

/* 0 or the exit code. opts: not read before `prepare` has returned. */
int stages_run(const struct stages *st, void *tool, struct session *s,
	       const struct collector_opts *opts);

#endif
