/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the debug file that holds the symbols and DWARF of a stripped file. One worker opens it
 * (paths/path_opener.h), another reads it (symtab/elf_reader.h). Places, and what must match:
 *
 *   /usr/lib/debug/.build-id/ab/cdef....debug   the build-id
 *   .gnu_debuglink NAME, next to the file, in   the build-id, or the CRC if there is none
 *     .debug/ next to it, or in
 *     /usr/lib/debug/PATH/
 *   a debuginfod server, if enabled             the build-id
 *
 * The search begins in our own file system. It continues in that of a process that has the file
 * mapped, because containers bring their own debug files. A debug file counts only if it belongs
 * to the owner of the mapped file; in our own file system also if it belongs to root or the caller.
 */
#ifndef SFBPF_DEBUGINFO_DEBUG_FILE_H
#define SFBPF_DEBUGINFO_DEBUG_FILE_H

#include "paths/path_opener.h"
#include "symtab/elf_reader.h"

struct debug_file {
	int fd;	    /* -1: none */
	char *path; /* NULL: unknown */
	/* The path is below the process's root, and its content is not trusted */
	bool foreign;
	struct elf_facts facts;
};

/* A hook that gets a debug file by build-id from elsewhere. Returns an fd or -errno. */
struct debug_fetch {
	/* NULL: no hook */
	int (*fn)(void *ctx, const uint8_t *build_id, size_t len);
	void *ctx;
};

struct debug_query {
	struct elf_reader *reader;
	struct path_opener *paths;     /* NULL: only fetched debug files are found */
	const struct elf_facts *facts; /* facts of the file whose debug file is wanted */
	const char *path;	       /* path that the process sees; NULL: unknown */
	uint32_t owner;		       /* owner of the mapped file, who may name its code */
	uint32_t pid;		       /* 0: search only our own file system */
	struct debug_fetch fetch;
};

/*
 * Finds the debug file with .symtab. 0 with *ret to be closed; -ENOENT: there is none; -EAGAIN: try
 * again later.
 */
int debug_file_find(const struct debug_query *q, struct debug_file *ret);
/* Finds the debug file with .debug_info. Not called if the file itself has DWARF. */
int debug_file_find_dwarf(const struct debug_query *q, struct debug_file *ret);
/*
 * Finds the file that .gnu_debugaltlink names (dwz). q->path is the path of the file with the link.
 */
int debug_file_find_alt(const struct debug_query *q, struct debug_file *ret);
void debug_file_close(struct debug_file *d); /* accepts a zeroed struct with fd -1, too */

/*
 * The process's root directory (O_PATH) if it differs from ours; otherwise -ENOENT, or an error of
 * path_open.
 */
int debug_file_root(struct path_opener *paths, uint32_t pid);
/* Whether that path in our own root names the file open as fd. */
bool debug_file_is_at(struct path_opener *paths, const char *path, int fd);

#endif
