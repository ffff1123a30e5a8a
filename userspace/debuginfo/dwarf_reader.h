/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inlined frames and source lines of many addresses at once, from DWARF 2 to 5 (libdw, including
 * split units, dwz files and compressed sections).
 *
 * One pass goes over the compilation units. The ranges of a unit say which of the addresses it
 * holds (clang and rustc write no .debug_aranges). Only units with at least one address are read
 * further, once each. Nothing is cached.
 *
 * libdw is not safe on hostile bytes. Call this in a process that may crash or hang
 * (dwarf_worker.h).
 */
#ifndef SFBPF_DEBUGINFO_DWARF_READER_H
#define SFBPF_DEBUGINFO_DWARF_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DWARF_MAX_CHAIN 128 /* frames of one address; deeper inlining is cut at the outer end */

struct dwarf_job {
	int fd;	    /* the file with .debug_info */
	int alt_fd; /* the file that .gnu_debugaltlink names; -1: none */
	/* What to produce; without `inlined`, frames have no names */
	bool inlined, lines;
	const uint64_t *addrs; /* virtual addresses, ascending */
	size_t n;
	/* Only dwarf_work uses these: */
	bool foreign; /* it is from a foreign file system, whose root user has no rights here */
	int root_fd;  /* root directory of that file system (O_PATH); -1: unknown, or ours */
};

struct dwarf_frame {
	/* Linkage name (mangled), or else the source name; NULL: unknown */
	const char *name;
	const char *file;    /* NULL: unknown */
	uint32_t line;	     /* 0: unknown */
	uint32_t start_line; /* the line at which the function begins; 0: unknown */
	/* What tells pieces of code apart that have one line; 0: none. As the compiler wrote it */
	uint32_t discriminator;
};

/*
 * frames[0] is the code at addrs[i]. It is inlined into frames[1], and so on. The last one is the
 * function itself. Called at most once for each address, in any order. Strings are valid during the
 * call. A result other than 0 ends the read.
 */
typedef int (*dwarf_emit_fn)(void *ctx, size_t i, const struct dwarf_frame *frames, size_t n);

bool dwarf_supported(void); /* built with libdw */
/*
 * 0; -ENOENT: the file has no DWARF; -ENOTSUP: built without libdw; -ENOMEM; or the result of emit.
 */
int dwarf_read(const struct dwarf_job *job, dwarf_emit_fn emit, void *ctx);

#endif
