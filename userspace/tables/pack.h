/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows -> the tables that BPF searches (layout: bpf/border/sfbpf_shared.h, "Tables").
 *
 * Rows come in ascending address order and are written page by page (64 KiB of file offsets), so
 * that packing a library of a million rows needs memory for one page only. The caller provides the
 * memory of the tables (struct pack_space).
 */
#ifndef SFBPF_TABLES_PACK_H
#define SFBPF_TABLES_PACK_H

#include "border/sfbpf_shared.h"
#include "files/module.h"
#include "readers/row_stream.h"

/* Space for tables: at most SF_CHUNK bytes, 16-byte aligned. NULL: full. *ret_loc is never 0. */
struct pack_space {
	void *(*alloc)(void *ctx, uint32_t size, uint32_t *ret_loc);
	void *ctx;
};

struct pack_result {
	struct sf_module tables;     /* state is left to the caller */
	struct sf_lang lang;	     /* valid with SF_MODULE_LANG in tables.flags */
	uint8_t language;	     /* enum sf_language; set by table_entry_load alone */
	struct module_range *ranges; /* malloc'ed: code not described by .eh_frame */
	uint32_t nranges;
	uint64_t rows, rules, bytes;
	uint64_t lost_rows; /* rows that had no room (pack.c) */
};

/*
 * Packs all rows of the file. 0; -ENODATA: it has no rows; -ENOSPC: alloc had no room; -E2BIG: the
 * tables would be larger than the file, which is never true of real files; -ENOMEM. After a failure
 * the memory that was allocated remains with the allocator, unused.
 */
int pack_file(struct unwind_file *file, const struct pack_space *space, struct pack_result *ret,
	      struct diag *diag);

#endif
