/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The real user ids of processes, from /proc/PID/status, read once for each pair of process and
 * thread name: a reused pid rarely has the same thread name.
 */
#ifndef SFBPF_PROF_PROCESS_USERS_H
#define SFBPF_PROF_PROCESS_USERS_H

#include <stdint.h>

struct process_users;

struct process_users *process_users_new(void); /* NULL: out of memory */
void process_users_free(struct process_users *pu);
/*
 * comm: a thread name of the process. PROCESS_NO_USER (base/process.h): the process ended before
 * the first call, or memory ran out.
 */
uint32_t process_users_get(struct process_users *pu, uint32_t pid, const char *comm);

#endif
