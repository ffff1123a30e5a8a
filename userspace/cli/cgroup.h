/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SFBPF_CLI_CGROUP_H
#define SFBPF_CLI_CGROUP_H

#include <stdint.h>

/*
 * Finds a cgroup v2 by its path (absolute, or relative to the mount point) or its id. Stores its id
 * and its depth below the root. 0, or an exit code after printing the error.
 */
int cgroup_resolve(const char *arg, uint64_t *ret_id, uint32_t *ret_level);

#endif
