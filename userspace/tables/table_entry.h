/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packed tables as bytes, on their way from the process that made them (tables/table_worker.h) to
 * the one that publishes them. The reader does not trust the writer: no other checks stand between
 * the writer and the BPF program.
 */
#ifndef SFBPF_TABLES_TABLE_ENTRY_H
#define SFBPF_TABLES_TABLE_ENTRY_H

#include "tables/pack.h"

/* Passes allocations on to `inner` and records them, so that they can be written. */
struct table_pieces {
	const struct pack_space *inner;
	struct table_piece {
		const void *mem;
		uint32_t size, loc;
	} * pieces;
	size_t n, cap;
};

struct pack_space table_pieces_space(struct table_pieces *p);
void table_pieces_free(struct table_pieces *p);

/*
 * Writes what pack_file allocated through the pieces to fd, from its file offset on. 0 and the
 * number of bytes; -EINVAL: a piece was not recorded; -E2BIG: more than an entry may hold; -ENOMEM,
 * -EIO.
 */
int table_entry_write(int fd, const struct pack_result *packed, struct table_pieces *pieces,
		      uint64_t *ret_bytes);
/*
 * Does what pack_file does, from the first `size` bytes of fd. Each byte is read once, to its final
 * place, and checked there, so that a writer that changes the file meanwhile gains nothing.
 * -EBADMSG: not an entry, or damaged; -ENOSPC, -ENOMEM.
 */
int table_entry_read(int fd, uint64_t size, const struct pack_space *space,
		     struct pack_result *ret);

#endif
