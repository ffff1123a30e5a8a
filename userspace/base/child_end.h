/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a child that may be waiting in the kernel for a file system that does not answer: it cannot be killed until that does. */
#ifndef SFBPF_BASE_CHILD_END_H
#define SFBPF_BASE_CHILD_END_H

#include <stdbool.h>
#include <sys/types.h>

/* Waits for it, ms at most. false: it is not gone. *ret_status: wait(2)'s; -1: not known. */
bool child_wait(pid_t pid, int ms, int *ret_status);
/* Kills it and waits for as long as that takes, unless it waits for others. As child_wait. */
bool child_kill(pid_t pid, int *ret_status);

#endif
