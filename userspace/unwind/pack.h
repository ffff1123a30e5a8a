/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows -> the tables that BPF searches (layout: bpf/sfbpf_shared.h, "Tables").
 *
 * Rows come in ascending address order and are written page by page (64 KiB of file offsets), so that
 * packing a library of a million rows needs one page of memory. Where the bytes go is the
 * caller's business: chunk memory in production, malloc in tests.
 */
#ifndef SFBPF_UNWIND_PACK_H
#define SFBPF_UNWIND_PACK_H

#include "elf/module.h"
#include "sfbpf_shared.h"
#include "unwind/row_stream.h"

/* Space for tables: at most SF_CHUNK bytes, 16-byte aligned. NULL: full. *ret_loc is never 0. */
struct pack_space {
	void *(*alloc)(void *ctx, uint32_t size, uint32_t *ret_loc);
	void *ctx;
};

struct pack_result {
	struct sf_module tables;	/* state is left to the caller */
	struct module_range *sframe;	/* malloc'ed: code described by .sframe */
	uint32_t nsframe;
	uint64_t rows, rules, bytes;
	uint64_t lost_rows;		/* rules or directory full: these became gaps */
};

/*
 * All rows of the file. 0; -ENODATA: there are none; -ENOSPC: alloc had no room; -E2BIG: the tables would be larger
 * than the file, which no real one's are; -ENOMEM. On failure what was allocated stays with the allocator, unused.
 */
int pack_file(struct unwind_file *file, const struct pack_space *space, struct pack_result *ret, struct diag *diag);

#endif
