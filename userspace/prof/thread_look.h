/* SPDX-License-Identifier: BSD-2-Clause */
/* A thread by the id that its process knows. */
#ifndef SFBPF_PROF_THREAD_LOOK_H
#define SFBPF_PROF_THREAD_LOOK_H

#include <stdint.h>

#include "border/sfbpf_shared.h"

/*
 * Finds the thread that has the id `tid` in the PID namespace of process pid, and its name; pid 0:
 * the id is of the initial namespace. Returns the id in the initial namespace; 0: unknown, as a
 * thread that is gone from another namespace. comm: "": the thread is gone.
 */
uint32_t thread_look(uint32_t pid, uint32_t tid, char comm[SF_COMM]);

#endif
