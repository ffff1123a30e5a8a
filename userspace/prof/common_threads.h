/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SFBPF_PROF_COMMON_THREADS_H
#define SFBPF_PROF_COMMON_THREADS_H

struct stackset;

/*
 * Gives the threads of a process their common names (thread_names.h): what stacks begin with, if
 * that is a thread (choice.by), else the note after it. Processes are known by their pid only; a
 * stack without one keeps its name. Call it when all stacks were added. 0 or -ENOMEM: nothing has
 * changed.
 */
int stackset_common_threads(struct stackset *ss);

#endif
