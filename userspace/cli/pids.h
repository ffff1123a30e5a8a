/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of processes, as -p takes them. */
#ifndef SFBPF_CLI_PIDS_H
#define SFBPF_CLI_PIDS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Ids and names of processes, separated by commas or blanks. A name stands for all processes with
 * that comm or executable. *ret: allocated, may hold an id twice. 0; -EINVAL: not such a list;
 * -ESRCH: a name that no process has; -errno.
 */
int pids_parse(const char *list, uint32_t **ret, size_t *ret_n);

#endif
