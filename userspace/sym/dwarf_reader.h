/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inlined frames and source lines of many addresses at once, from DWARF 2 to 5 (libdw; also split units, dwz files and
 * compressed sections).
 *
 * One pass over the compilation units: each unit's own ranges say which of the wanted addresses it has (there is
 * no .debug_aranges in what clang and rustc write), and only units with some are read further, once. Nothing is kept.
 *
 * libdw is not made for files that want to harm it: call this in a process that may die or hang
 * (dwarf_worker.h).
 */
#ifndef SFBPF_SYM_DWARF_READER_H
#define SFBPF_SYM_DWARF_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DWARF_MAX_CHAIN 128	/* frames of one address; deeper inlining is cut at the outer end */

struct dwarf_job {
	int fd;			/* the file with .debug_info */
	int alt_fd;		/* what .gnu_debugaltlink names; -1: none */
	bool inlined, lines;	/* which of them are wanted; without inlined, frames have no names */
	const uint64_t *addrs;	/* virtual addresses, ascending */
	size_t n;
};

struct dwarf_frame {
	const char *name;	/* as linked (mangled), else as written in the source; NULL: unknown */
	const char *file;	/* NULL: unknown */
	uint32_t line;		/* 0: unknown */
};

/*
 * frames[0] is the code at addrs[i], inlined into frames[1], ...; the last one is the function itself. Called at most
 * once for each address, in no order. Strings are valid during the call. Not 0: give up.
 */
typedef int (*dwarf_emit_fn)(void *ctx, size_t i, const struct dwarf_frame *frames, size_t n);

bool dwarf_supported(void);	/* built with libdw */
/* 0; -ENOENT: no DWARF in it; -ENOTSUP: built without libdw; -ENOMEM; what emit returned. */
int dwarf_read(const struct dwarf_job *job, dwarf_emit_fn emit, void *ctx);

#endif
