/* SPDX-License-Identifier: BSD-2-Clause */
/* Which service or container a process belongs to, from /proc/PID/cgroup: asked for rows that are shown, and kept. */
#ifndef SFBPF_TUI_CGROUP_NAME_H
#define SFBPF_TUI_CGROUP_NAME_H

#include <stddef.h>
#include <stdint.h>

struct cgroup_names;

struct cgroup_names *cgroup_names_new(void);	/* NULL: out of memory */
void cgroup_names_free(struct cgroup_names *cn);
/*
 * Clean and short; "" if it cannot be told, as of a process that had ended before it was first asked for. comm tells a pid's
 * next user from the one before. Valid until the next call.
 */
const char *cgroup_names_get(struct cgroup_names *cn, uint32_t pid, const char *comm);

/* What a /proc/PID/cgroup file says, all of it in text: the v2 path, or the first other one that is not the root. */
const char *cgroup_name_parse(const char *text, char *dst, size_t cap);
/*
 * A path in a few words, cleaned: "/system.slice/nginx.service" is "nginx.service",
 * ".../docker-0123456789abcdef....scope" is "docker:0123456789ab", "/" is "/". Returns dst.
 */
const char *cgroup_name_short(const char *path, char *dst, size_t cap);

#endif
