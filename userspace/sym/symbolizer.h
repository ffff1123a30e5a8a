/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The front door to names: frame words in, symbol ids out. A symbol is a (name, module name) pair; ids are
 * small and dense, so that whoever aggregates can index arrays with them. Names are those of folded lines:
 *
 *   malloc               a function               [libfoo.so.1+0x1a2b]   no symbol; the file offset of the frame word
 *   memcpy@plt           a PLT stub               [unknown]              no module
 *   vfs_read_[k]         kernel                   [unknown]_[j]          code without a file (JIT)
 *   push_back_[i]        inlined into the next   JS:*parse_[j]          the same, named in perf-PID.map or jit-PID.dump
 *   main (main.c:12)     with lines
 *
 * Symbol tables are read from a module's file when its first frame is asked for. One thread only.
 */
#ifndef SFBPF_SYM_SYMBOLIZER_H
#define SFBPF_SYM_SYMBOLIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/redact.h"
#include "elf/module.h"
#include "sym/debug_file.h"

#define SYM_UNKNOWN 0u		/* "[unknown]"; also what is returned when memory runs out */
#define SYM_NO_STACK 1u		/* "[no stack]", for samples without frames */

struct symbolizer;

struct symbolizer *symbolizer_new(struct modules *ms);	/* ms must outlive it; NULL: out of memory */
/* Also frees the symbol tables that hang off the modules. */
void symbolizer_free(struct symbolizer *sz);
/* Frees a module's symbols and closes its file. What has no name by now is shown by its offset from then on. */
void symbolizer_forget(struct module *m);
/* Where kernel names come from: "name" or "name [module]" of the function that holds addr; false: unknown. Without, they are. */
typedef bool (*symbolizer_kernel_fn)(void *ctx, uint64_t addr, char *ret, size_t cap);
void symbolizer_set_kernel_names(struct symbolizer *sz, symbolizer_kernel_fn fn, void *ctx);
/* Who reads files, and who opens those that are not mapped; they must outlive the symbolizer. Without, names in them are offsets. */
void symbolizer_set_reader(struct symbolizer *sz, struct elf_reader *reader, struct path_opener *paths);
/* Names that processes gave their own code may hold paths: which of them are shown. Before the first lookup. */
void symbolizer_set_redact(struct symbolizer *sz, enum redact which);

/* A module's executable segments, as many as *ret_n; valid as long as the module is. */
const struct module_code *symbolizer_code(const struct symbolizer *sz, struct module *m, uint32_t *ret_n);

/*
 * *ret_final (may be NULL) is false if the same frame may get a better name later, because its file is not
 * loaded yet, or others have taken too long to be read (sym/elf_reader.h); such an answer must not be kept.
 */
uint32_t symbolizer_user(struct symbolizer *sz, uint64_t frame, uint32_t pid, bool *ret_final);
uint32_t symbolizer_kernel(struct symbolizer *sz, uint64_t addr);
/*
 * A running process's user frames as they arrive: some names can be had after its end only if it was seen before.
 * Not 0: the epoch that its JIT frames must carry (SF_FRAME_IN_EPOCH) to be named as of time_ns (CLOCK_MONOTONIC).
 */
uint32_t symbolizer_see(struct symbolizer *sz, const uint64_t *frames, size_t n, uint32_t pid, uint64_t time_ns);

/*
 * Inlined frames and lines, for reports: first what is wanted, then all of it at once, which may take seconds and asks the disk.
 * From then on a wanted frame's symbol is that with its line, and symbolizer_inlined has what was inlined there.
 * Symbols that were asked for before stay as they were.
 */
struct symbolizer_debug {
	bool inlined, lines;
	/* A file whose DWARF could not be read to its end: -ETIMEDOUT, -ECHILD (damaged, or too large). NULL: none */
	void (*failed)(void *ctx, const struct module *m, int err);
};
int symbolizer_want_debug(struct symbolizer *sz, uint64_t frame, uint32_t pid);	/* 0 or -ENOMEM */
/* *ret_files had DWARF. 0 or -ENOMEM. */
int symbolizer_read_debug(struct symbolizer *sz, const struct symbolizer_debug *opts, unsigned int *ret_files);
/* How many frames are inlined at a frame; *ret are their symbols, innermost first, valid until the next _read_debug. */
size_t symbolizer_inlined(const struct symbolizer *sz, uint64_t frame, const uint32_t **ret);
/* Debug files that this machine does not have. Asked when a file's first name is; it may take minutes. */
void symbolizer_set_fetch(struct symbolizer *sz, const struct debug_fetch *fetch);

/* Clean UTF-8 (base/text.h), valid until symbolizer_free. ';' may occur: folded output replaces it. */
const char *symbolizer_name(const struct symbolizer *sz, uint32_t id);
/* The same without line and "_[i]". */
const char *symbolizer_function(const struct symbolizer *sz, uint32_t id);
/* *ret_file: its path as the compiler knew it, "" with line 0 if it is not known or not wanted. */
uint32_t symbolizer_line(const struct symbolizer *sz, uint32_t id, const char **ret_file);
/* "libc.so.6", "[vdso]", "[kernel]", "[ext4]", "[jit]", "[unknown]" */
const char *symbolizer_module(const struct symbolizer *sz, uint32_t id);
/* Equal for two symbols iff their module names are equal; dense, < symbolizer_module_count. */
uint32_t symbolizer_module_index(const struct symbolizer *sz, uint32_t id);
const char *symbolizer_module_name(const struct symbolizer *sz, uint32_t module_index);
uint32_t symbolizer_module_count(const struct symbolizer *sz);
uint32_t symbolizer_count(const struct symbolizer *sz);	/* ids handed out are below this */
size_t symbolizer_bytes(const struct symbolizer *sz);	/* with all tables and caches */

#endif
