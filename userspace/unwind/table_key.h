/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What packed tables are kept under: the build-id of the file and a keyed digest of everything that the conversion reads of it, where in the
 * file that is, and of the build of sfbpf.
 *
 * Whoever reads the file may be broken by it, and lie. So tables are kept only if they were made from a copy of just those bytes, which
 * were digested as they were copied (table_key_copy), by a process that has read nothing else.
 */
#ifndef SFBPF_UNWIND_TABLE_KEY_H
#define SFBPF_UNWIND_TABLE_KEY_H

#include "base/digest.h"
#include "unwind/row_stream.h"

#define TABLE_KEY_NAME 64	/* two digits for each byte of a build-id of 20, a digest of 8, and more */

struct table_keying {
	struct digest_key key;
	struct digest_value build;	/* of the running program: another build's tables may differ */
	uint64_t min_bytes;		/* of .sframe and .eh_frame: smaller ones are converted as fast as looked up */
};

struct table_key {
	struct digest_value digest;
	uint8_t build_id[20];
	uint32_t build_id_len;
};

/* Of a file in file mode that was found and not yet parsed. False: such a file is not kept (no build-id, small). */
bool table_key_of(const struct table_keying *k, struct unwind_file *f, struct table_key *ret);
/* A new file with these bytes of fd at their places and zeros between, and the digest of it. A descriptor or -errno. */
int table_key_copy(const struct table_keying *k, int fd, const struct elf_reads *reads, struct digest_value *ret);
/* After pack_file: whether the key covers all that the tables were made from. */
bool table_key_covers(const struct unwind_file *f);
void table_key_name(const struct table_key *k, char ret[TABLE_KEY_NAME]);
uint64_t table_bytes(const struct unwind_file *f);	/* of .sframe and .eh_frame */

#endif
