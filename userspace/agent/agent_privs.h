/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Drops privileges before the BPF programs are loaded and attached. The threads that handle new
 * files and CPUs keep: BPF (new table chunks), PERFMON (CPUs that come online, kernel names),
 * SYS_PTRACE, CHECKPOINT_RESTORE and DAC_READ_SEARCH (mapped files, cgroup names), SYSLOG. The
 * threads that use the network keep none.
 */
#ifndef SFBPF_AGENT_AGENT_PRIVS_H
#define SFBPF_AGENT_AGENT_PRIVS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * user: the user to become; NULL: keep the current one. Must be called before any thread is
 * created. 0, or -errno with a message.
 */
int privs_drop(const char *user, char *err, size_t cap);
/* Makes system calls that the agent does not need fail, in all threads. 0 or -errno. */
int privs_filter(void);
/* The ids of a user, to change the owner of the spool before privs_drop. 0 or -ENOENT. */
int privs_user(const char *user, uid_t *uid, gid_t *gid);

#endif
