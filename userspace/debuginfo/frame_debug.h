/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inlined frames and source lines of frames in files. The frames are collected first. Then each
 * file is read once, in workers: the table of a Go program (symtab/go_places.h), which also a
 * stripped one has, answers for Go's functions, and DWARF, of the file or its debug file, for all
 * others (dwarf_worker.h).
 */
#ifndef SFBPF_DEBUGINFO_FRAME_DEBUG_H
#define SFBPF_DEBUGINFO_FRAME_DEBUG_H

#include "debuginfo/debug_file.h"
#include "debuginfo/dwarf_worker.h"
#include "files/module.h"

struct frame_debug;

struct frame_debug *frame_debug_new(void); /* NULL: out of memory */
void frame_debug_free(struct frame_debug *fd);
/* pid is a process that has the file mapped. 0 or -ENOMEM. */
int frame_debug_want(struct frame_debug *fd, uint32_t module, uint64_t offset, uint32_t pid);

struct frame_debug_opts {
	struct elf_reader *reader;
	struct path_opener *paths;
	bool inlined, lines;
	bool go; /* Go's functions have both, and start lines, whatever the two say */
	struct debug_fetch fetch;
	/* Limits for files of root and the caller (struct allowance); other files have less time */
	struct dwarf_limits limits;
	/* A dwarf_emit_fn for one offset in m. */
	int (*found)(void *ctx, struct module *m, uint64_t offset, const struct dwarf_frame *frames,
		     size_t n);
	/*
	 * Called for a file whose DWARF could not be read completely. err as from dwarf_work. May
	 * be NULL.
	 */
	void (*failed)(void *ctx, const struct module *m, int err);
	void *ctx;
};

/*
 * Reads what opts want of all frames collected since the last call. *ret_files: number of files
 * that have debug information, or Go's. 0 or -ENOMEM.
 */
int frame_debug_read(struct frame_debug *fd, struct modules *ms,
		     const struct frame_debug_opts *opts, unsigned int *ret_files);

#endif
