/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packed tables as bytes: on their way to and from a disk (unwind/table_cache.h), and from the process that made them
 * (unwind/table_child.h). Who reads them need not trust who wrote them: nothing but the checks here stands between the two and the BPF
 * program.
 */
#ifndef SFBPF_UNWIND_TABLE_ENTRY_H
#define SFBPF_UNWIND_TABLE_ENTRY_H

#include "base/digest.h"
#include "unwind/pack.h"

/* Hands requests on to another space and remembers the pieces, so that they can be written. */
struct table_pieces {
	const struct pack_space *inner;
	struct table_piece { const void *mem; uint32_t size, loc; } *pieces;
	size_t n, cap;
};

struct pack_space table_pieces_space(struct table_pieces *p);
void table_pieces_free(struct table_pieces *p);

/* What an entry is, beside its tables. */
struct table_entry_mark {
	struct digest_value of;			/* what the tables were made from */
	const struct digest_key *sign;		/* NULL: unsigned */
};

/*
 * What pack_file made by way of the pieces, to fd from where it stands. 0 and the number of bytes; -EINVAL: a piece was not recorded; -E2BIG: more than
 * an entry may hold; -ENOMEM, -EIO.
 */
int table_entry_write(int fd, const struct table_entry_mark *mark, const struct pack_result *packed, struct table_pieces *pieces,
		      uint64_t *ret_bytes);
/*
 * As pack_file, from the first `size` bytes of fd. Each byte is read once and checked where it then stays, so it does not matter if the
 * file changes meanwhile. -EBADMSG: it is no such entry, or damaged; -ENOSPC, -ENOMEM. With no `sign`, `of` is not looked at.
 */
int table_entry_read(int fd, uint64_t size, const struct table_entry_mark *mark, const struct pack_space *space, struct pack_result *ret);

#endif
