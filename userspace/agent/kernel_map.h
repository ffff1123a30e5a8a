/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel and its loaded modules: names, addresses and build-ids. */
#ifndef SFBPF_AGENT_KERNEL_MAP_H
#define SFBPF_AGENT_KERNEL_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kernel_part {
	uint64_t start, limit; /* 0: the kernel itself */
	char name[64];	       /* "[kernel]", "[nf_tables]" */
	uint8_t id[20];
	size_t id_len; /* 0: no build-id */
	bool asked;    /* id is what the kernel says */
};

struct kernel_map { /* zeroed: not read */
	/* The kernel first; then modules by address. Not where the kernel hides addresses. */
	struct kernel_part *parts;
	size_t n, cap;
	struct kernel_part none; /* out of memory */
	const char *root;	 /* the directory of /proc and /sys; NULL: / */
};

/* The part that has the address; read when it is first asked for. */
const struct kernel_part *kernel_map_at(struct kernel_map *map, uint64_t addr);
void kernel_map_free(struct kernel_map *map);

#endif
