/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SFBPF_TOOLS_CGROUP_H
#define SFBPF_TOOLS_CGROUP_H

#include <stdint.h>

/* A cgroup v2 directory (path, absolute or below the mount point) or id -> id and depth below the root. 0 or an exit code, said why. */
int cgroup_resolve(const char *arg, uint64_t *ret_id, int *ret_level);

#endif
