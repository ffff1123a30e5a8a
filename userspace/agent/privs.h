/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the agent gives up before its programs are loaded and attached. Kept, by the threads that meet new files and CPUs: BPF (a new
 * chunk of tables), PERFMON (a CPU that comes online, kernel names), SYS_PTRACE, CHECKPOINT_RESTORE and DAC_READ_SEARCH (mapped files, cgroup
 * names), SYSLOG. The threads that talk to the network keep none.
 */
#ifndef SFBPF_AGENT_PRIVS_H
#define SFBPF_AGENT_PRIVS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* user: a name, or NULL to stay who we are. All threads must still be to come. 0 or -errno with a text. */
int privs_drop(const char *user, char *err, size_t cap);
/* System calls that a sampling, sending process has no use for fail from now on, in all threads. 0 or -errno; -ENOSYS: built without. */
int privs_filter(void);
/* Who will own files: to hand over a directory before. 0 or -ENOENT. */
int privs_user(const char *user, uid_t *uid, gid_t *gid);

#endif
