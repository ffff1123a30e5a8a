/* SPDX-License-Identifier: BSD-2-Clause */
/* The service or container of a process, from /proc/PID/cgroup. Names are read once and cached. */
#ifndef SFBPF_TUI_CGROUP_NAME_H
#define SFBPF_TUI_CGROUP_NAME_H

#include <stddef.h>
#include <stdint.h>

struct cgroup_names;
struct container_names;

struct cgroup_names *cgroup_names_new(void); /* NULL: out of memory */
void cgroup_names_free(struct cgroup_names *cn);
/*
 * Sanitised and short; "" if unknown, for example because the process ended before the first call,
 * or without names (NULL). comm detects that a pid was reused. Valid until the next call.
 */
const char *cgroup_names_get(struct cgroup_names *cn, uint32_t pid, const char *comm);

/*
 * The short name from the contents of a /proc/PID/cgroup file: of the v2 path, or of the first v1
 * path other than the root.
 */
const char *cgroup_name_parse(struct container_names *containers, const char *text, char *dst,
			      size_t cap);
/*
 * The short, sanitised form of a path: "/system.slice/nginx.service" becomes "nginx.service",
 * ".../docker-0123456789abcdef....scope" becomes the container's name, "docker:0123456789ab" if
 * that is unknown, "/" stays "/". containers may be NULL. Returns dst.
 */
const char *cgroup_name_short(struct container_names *containers, const char *path, char *dst,
			      size_t cap);

#endif
