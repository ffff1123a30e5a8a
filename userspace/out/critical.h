/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The critical path of a thread: what its elapsed time was spent on, also in other threads.
 *
 * The problem: a thread that waits does nothing, so its own stacks say where it waited, not why for
 * so long. The idea: while it waited, the thread that woke it did something. The path has that
 * thread's running time, and its waits in turn, in place of the wait. So each moment of the elapsed
 * time is given to exactly one stack, and the sum is the elapsed time.
 *
 *   thread A  ====run====|............wait.............|--CPU--|==run==
 *                                                      ^ woken by B
 *   thread B             ...|=======run=======|..wait..|
 *                                             ^ woken by a timer
 *   path      A runs     B's wait  B runs      timer    A wants a CPU, A runs
 *
 * A stack of the path is the stack in which A waited, a frame that says what linked the two
 * ("[woken by B]"), then B's stack, and so on. Waits and wake-ups are measured; samples divide the
 * running time between two waits among stacks.
 */
#ifndef SFBPF_OUT_CRITICAL_H
#define SFBPF_OUT_CRITICAL_H

#include "out/out.h"
#include "prof/stackset.h"

#define CRITICAL_DEPTH 16 /* threads that a path goes through at most */

struct critical_sums {
	uint64_t elapsed_ns;   /* the thread's */
	uint64_t unknown_ns;   /* waits whose waker is not known */
	uint64_t interrupt_ns; /* waits that an interrupt ended */
	uint64_t unsampled_ns; /* running time between two waits without a sample */
};

/*
 * The path of thread `tid` from begin to end (CLOCK_MONOTONIC; end 0: its last sample or wait). r:
 * a report with a timeline that has the waits of all threads, and with wakers; its profile keeps
 * threads apart. ret: initialised and empty; the values are microseconds. 0; -ENOENT: nothing is
 * known of the thread; -ENOMEM.
 */
int critical_path(const struct out_report *r, uint32_t tid, uint64_t begin_ns, uint64_t end_ns,
		  struct stackset *ret, struct critical_sums *ret_sums);
/* Writes the path as the format does. 0 or -errno. */
int critical_write(const struct out_report *r, const struct stackset *path,
		   const struct out_format *format, FILE *f);

#endif
