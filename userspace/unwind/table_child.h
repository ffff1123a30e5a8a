/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process that reads foreign ELF files and makes their tables, and what it and the loader say to each other (a message
 * each on a SOCK_SEQPACKET socket). It has no capabilities, no other descriptors, bounded memory, and a dozen system calls: what a file can do to it
 * is to end it, and to have its own tables wrong.
 *
 * The first message is struct table_limits. Then for each file: TABLE_FILE with its descriptor; the answer is TABLE_LARGE, or TABLE_KEYED
 * (then comes TABLE_CONVERT or TABLE_SKIP, which has no answer), and at last TABLE_DONE, with an entry (unwind/table_entry.h) in the memfd.
 */
#ifndef SFBPF_UNWIND_TABLE_CHILD_H
#define SFBPF_UNWIND_TABLE_CHILD_H

#include "unwind/table_key.h"

enum table_message { TABLE_FILE = 1, TABLE_CONVERT, TABLE_SKIP, TABLE_LARGE, TABLE_KEYED, TABLE_DONE };

struct table_limits {		/* bytes */
	uint64_t memory;	/* beyond what the child starts with */
	uint64_t entry;
	uint64_t large;		/* bool: it is for large files */
};

struct table_ask {
	uint32_t message;
	uint32_t keyed;			/* bool: TABLE_KEYED is wanted for files that can be kept */
	uint64_t max_bytes;		/* of tables in the file; with more it is TABLE_LARGE, and not read. 0: any */
	struct table_keying keying;
};

struct table_answer {
	uint32_t message;
	int32_t err;			/* TABLE_DONE: 0 or as pack_file and unwind_file_find_fd; -ENODATA: also of another machine */
	uint64_t bytes;			/* of the entry */
	uint64_t malformed;		/* what was wrong with the file and lost */
	uint64_t cpu_ns;
	uint32_t covered;		/* bool: table_key_covers, and nothing was wrong */
	struct table_key key;		/* build-id always; digest with TABLE_KEYED */
	struct elf_reads reads;		/* with TABLE_KEYED: what the digest is of */
};

/* A fork_child_fn. */
void table_child_main(int sock, int mem);
/* Malloc would give back what the next file needs. The child calls it; it is here for what measures the same work in another process. */
void table_child_keep_memory(void);

#endif
