/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a stripped file's symbols and DWARF are kept: in a file of their own. One child opens it (sym/path_opener.h), another one reads it (sym/elf_reader.h).
 *
 *   /usr/lib/debug/.build-id/ab/cdef....debug		the same build-id
 *   .gnu_debuglink NAME: beside the file, in .debug/ beside it, in /usr/lib/debug/PATH/
 *							the same build-id, or without one the right CRC
 *   a server, if we were told to ask one		the same build-id
 *
 * Looked for in our own file system first, then in that of a process that has the file mapped: containers
 * bring their own. The latter's owner may put there what he likes, so a name from it is his word.
 */
#ifndef SFBPF_SYM_DEBUG_FILE_H
#define SFBPF_SYM_DEBUG_FILE_H

#include "sym/elf_reader.h"
#include "sym/path_opener.h"

struct debug_file {
	int fd;			/* -1: none */
	char *path;		/* NULL: it is not known */
	bool foreign;		/* path is below the process's root, and who made it is not trusted */
	struct elf_facts facts;
};

/* A debug file by build-id from somewhere else: an fd or -errno. */
struct debug_fetch {
	int (*fn)(void *ctx, const uint8_t *build_id, size_t len);	/* NULL: there is no such place */
	void *ctx;
};

struct debug_query {
	struct elf_reader *reader;
	struct path_opener *paths;	/* NULL: there are no debug files but fetched ones */
	const struct elf_facts *facts;	/* of the file whose debug file is wanted */
	const char *path;	/* as the process sees it; NULL: not known */
	uint32_t owner;		/* of the mapped file, who may have arranged what is beside it */
	uint32_t pid;		/* 0: only our own file system */
	struct debug_fetch fetch;
};

/* The one with .symtab. 0 with *ret to be closed; -ENOENT: there is none; -EAGAIN: it may be had later. */
int debug_file_find(const struct debug_query *q, struct debug_file *ret);
/* The one with .debug_info; not asked for if the file has it itself. */
int debug_file_find_dwarf(const struct debug_query *q, struct debug_file *ret);
/* What .gnu_debugaltlink names (dwz); q->path is that of the file with the link. */
int debug_file_find_alt(const struct debug_query *q, struct debug_file *ret);
void debug_file_close(struct debug_file *d);	/* also a zeroed one with fd -1 */

/* The process's root directory (O_PATH) if it is another one than ours; else -ENOENT, or as path_open. */
int debug_file_root(struct path_opener *paths, uint32_t pid);
/* Whether there is just that file at a path of ours. fd: an open file. */
bool debug_file_is_at(struct path_opener *paths, const char *path, int fd);

#endif
