/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ends a child that may be blocked in the kernel on a file system that does not answer. Such a
 * child does not exit before the file system answers.
 */
#ifndef SFBPF_WORKER_CHILD_END_H
#define SFBPF_WORKER_CHILD_END_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Kills the child and waits briefly for its exit. false: it has not exited. *ret_status: status of
 * wait(2); -1: unknown.
 */
bool child_kill(pid_t pid, int *ret_status);

#endif
