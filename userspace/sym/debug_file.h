/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a stripped file's symbols and DWARF are kept: in a file of their own, or packed inside it.
 *
 *   /usr/lib/debug/.build-id/ab/cdef....debug		the same build-id
 *   .gnu_debuglink NAME: beside the file, in .debug/ beside it, in /usr/lib/debug/PATH/
 *							the same build-id, or without one the right CRC
 *   a server, if we were told to ask one		the same build-id
 *   .gnu_debugdata in the file itself			xz-compressed ELF (with liblzma); symbols only
 *
 * Looked for in our own file system first, then in that of a process that has the file mapped: containers
 * bring their own. The latter's owner may put there what he likes, so a name from it is his word.
 */
#ifndef SFBPF_SYM_DEBUG_FILE_H
#define SFBPF_SYM_DEBUG_FILE_H

#include "elf/elf_image.h"

struct debug_file {
	struct elf_image img;
	int fd;			/* -1: none */
	void *mem;		/* instead of fd; malloc'ed */
	size_t mem_size;
	char *path;		/* of fd; NULL: it is not known */
	bool foreign;		/* path is below the process's root, and who made it is not trusted */
};

/* A debug file by build-id from somewhere else: an fd or -errno. */
struct debug_fetch {
	int (*fn)(void *ctx, const uint8_t *build_id, size_t len);	/* NULL: there is no such place */
	void *ctx;
};

struct debug_query {
	const struct elf_image *img;
	const char *path;	/* as the process sees it; NULL: not known */
	uint32_t pid;		/* 0: only our own file system */
	struct debug_fetch fetch;
};

/* The one with .symtab. 0 with *ret to be closed; -ENOENT: there is none. */
int debug_file_find(const struct debug_query *q, struct debug_file *ret);
/* The one with .debug_info; not asked for if img has it itself (debug_file_has_dwarf). */
int debug_file_find_dwarf(const struct debug_query *q, struct debug_file *ret);
/* What .gnu_debugaltlink of q->img names (dwz); q->path is that of the file with the link. */
int debug_file_find_alt(const struct debug_query *q, struct debug_file *ret);
bool debug_file_has_dwarf(const struct elf_image *img);
void debug_file_close(struct debug_file *d);	/* also a zeroed one with fd -1 */

/* Whether the process has another root directory than we have. */
bool debug_file_own_root(uint32_t pid);

#endif
