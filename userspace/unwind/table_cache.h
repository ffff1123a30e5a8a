/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packed tables kept in a directory, so that the next start need not convert large files again.
 *
 * An entry is found by what it was made from: build-id, and a keyed digest of everything that the conversion reads (headers,
 * .sframe and .eh_frame, trampolines) and of the build of sfbpf. So a file that claims another one's build-id has another entry, and
 * the same library in ten container images has one. The key is a secret of the directory, whose owner only may enter it.
 */
#ifndef SFBPF_UNWIND_TABLE_CACHE_H
#define SFBPF_UNWIND_TABLE_CACHE_H

#include "unwind/table_entry.h"
#include "unwind/table_key.h"

#define TABLE_CACHE_DIR "/var/cache/sfbpf"

struct table_cache_opts {
	const char *dir;		/* made (0700) if it is not there but its parent is */
	uint64_t max_bytes;		/* of all entries; the ones unused for longest go first */
	uint64_t min_bytes;		/* of .sframe and .eh_frame: smaller ones are converted as fast as looked up */
};

struct table_cache;

/* NULL, and *why in words, unless the directory is ours alone (owner, 0700, no symbolic link). */
struct table_cache *table_cache_open(const struct table_cache_opts *opts, const char **why);
void table_cache_close(struct table_cache *c);	/* also NULL */

const struct table_keying *table_cache_keying(const struct table_cache *c);
/* As pack_file. -ENOENT: there is no entry; -EBADMSG: a damaged one, which is now gone. */
int table_cache_load(struct table_cache *c, const struct table_key *key, const struct pack_space *space, struct pack_result *ret);
/* What pack_file made by way of the pieces, if table_key_covers it. 0, or -errno: then there is no entry, which does no harm. */
int table_cache_store(struct table_cache *c, const struct table_key *key, const struct pack_result *packed, struct table_pieces *pieces);

#endif
