/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inlined frames and source lines of frames in files: which are wanted is gathered first, then each file's DWARF is
 * read once, in a process of its own (dwarf_worker.h). The DWARF is that of the mapped file or of its debug file.
 */
#ifndef SFBPF_SYM_FRAME_DEBUG_H
#define SFBPF_SYM_FRAME_DEBUG_H

#include "elf/module.h"
#include "sym/debug_file.h"
#include "sym/dwarf_worker.h"

struct frame_debug;

struct frame_debug *frame_debug_new(void);	/* NULL: out of memory */
void frame_debug_free(struct frame_debug *fd);
/* pid is a process that has the file mapped. 0 or -ENOMEM. */
int frame_debug_want(struct frame_debug *fd, uint32_t module, uint64_t offset, uint32_t pid);

struct frame_debug_opts {
	struct elf_reader *reader;
	struct path_opener *paths;
	bool inlined, lines;
	struct debug_fetch fetch;
	struct dwarf_limits limits;
	/* As dwarf_emit_fn, of a place. */
	int (*found)(void *ctx, struct module *m, uint64_t offset, const struct dwarf_frame *frames, size_t n);
	/* A file whose DWARF could not be read to its end; err as of dwarf_work. NULL: nobody wants to know. */
	void (*failed)(void *ctx, const struct module *m, int err);
	void *ctx;
};

/* Reads what was wanted since the last time. *ret_files of them had DWARF. 0 or -ENOMEM. */
int frame_debug_read(struct frame_debug *fd, struct modules *ms, const struct frame_debug_opts *opts, unsigned int *ret_files);

#endif
