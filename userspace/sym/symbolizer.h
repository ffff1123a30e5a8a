/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of frames: frame words in, symbol ids out. A symbol is a (name, module name) pair. Ids are
 * small and dense, so they can index arrays. Names are as in folded lines:
 *
 *   malloc                a function
 *   memcpy@plt            a PLT stub
 *   [libfoo.so.1+0x1a2b]  no symbol; the file offset at which the function begins, as unwind tables
 *                         say; without them that of the frame word
 *   [unknown]             no module
 *   vfs_read_[k]          kernel
 *   [unknown]_[j]         code without a file (JIT)
 *   JS:*parse_[j]         the same, named in perf-PID.map or jit-PID.dump
 *   push_back_[i]         inlined into the next
 *   main (main.c:12)      with lines
 *   Parser.feed (html.py)  a frame of a language; with lines (html.py:12)
 *   [python]              the same, if its name could not be read
 *
 * The symbol table of a module is read from its file when the first of its frames is named. One
 * thread only.
 */
#ifndef SFBPF_SYM_SYMBOLIZER_H
#define SFBPF_SYM_SYMBOLIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/redact.h"
#include "debuginfo/debug_file.h"
#include "files/module.h"
#include "jit/jit_files.h"
#include "languages/lang_codes.h"
#include "symtab/elf_code.h"

#define SYM_UNKNOWN  0u /* "[unknown]"; also the result when memory runs out */
#define SYM_NO_STACK 1u /* "[no stack]", for samples without frames */
#define SYM_EXEC     2u /* "[exec]": SF_FRAME_EXEC */
#define SYM_BRIDGE   3u /* "[jit]": SF_FRAME_BRIDGE */

struct symbolizer;

/* ms must outlive the symbolizer. NULL: out of memory. */
struct symbolizer *symbolizer_new(struct modules *ms);
void symbolizer_free(struct symbolizer *sz);
/*
 * Frees the symbols of a module and closes its file. From then on, its frames without a name are
 * shown by offset.
 */
void symbolizer_forget(struct symbolizer *sz, struct module *m);
/*
 * A source of kernel names: writes "name" or "name [module]" of the function at addr. false:
 * unknown. Without a source all kernel names are unknown.
 */
typedef bool (*symbolizer_kernel_fn)(void *ctx, uint64_t addr, char *ret, size_t cap);
void symbolizer_set_kernel_names(struct symbolizer *sz, symbolizer_kernel_fn fn, void *ctx);
/*
 * The reader of files, and the opener of files that are not mapped. They must outlive the
 * symbolizer. Without them, names are offsets.
 */
void symbolizer_set_reader(struct symbolizer *sz, struct elf_reader *reader,
			   struct path_opener *paths);
/* The code of languages, which must outlive the symbolizer; without it, it has no names. */
void symbolizer_set_codes(struct symbolizer *sz, const struct lang_codes *codes);
/*
 * Which paths to show in names that processes gave to their own code. Call it before the first
 * lookup.
 */
void symbolizer_set_redact(struct symbolizer *sz, enum redact which);

/* The executable segments of a module, *ret_n of them; valid as long as the module. */
const struct module_code *symbolizer_code(const struct symbolizer *sz, struct module *m,
					  uint32_t *ret_n);
/* What identifies its contents; valid as long as the module. NULL: not known, perhaps later. */
const struct module_ids *symbolizer_ids(const struct symbolizer *sz, struct module *m);

/* A function in a file; the caller frees `code`. */
struct symbolizer_code {
	uint32_t module;     /* its id */
	uint64_t start, end; /* file offsets; end: of what `code` has */
	uint64_t addr;	     /* address of the start, as the file says */
	bool cut;	     /* the function is longer */
	struct elf_instruction *code;
	uint32_t n;
};

/*
 * The instructions of the function of a user frame. 0; -ENOENT: not code of a file that has a
 * function there; else as elf_reader_code. Even then *ret has the function, unless start is end.
 */
int symbolizer_disassemble(struct symbolizer *sz, uint64_t frame, uint32_t pid,
			   struct symbolizer_code *ret);

/*
 * *ret_final (may be NULL) is false if the same frame may get a better name later: its file is not
 * loaded yet, or reading was put off because other files took too long (symtab/elf_reader.h). Such
 * a result must not be cached.
 */
uint32_t symbolizer_user(struct symbolizer *sz, uint64_t frame, uint32_t pid, bool *ret_final);
uint32_t symbolizer_kernel(struct symbolizer *sz, uint64_t addr);
/*
 * Call it with the user frames of a running process as they arrive: some names can be read after
 * its end only if it was seen before. [from_ns, to_ns]: when they were taken, CLOCK_MONOTONIC.
 * Returns the epoch that its JIT frames must carry (SF_FRAME_IN_EPOCH) to be named as of that time;
 * 0: none.
 */
uint32_t symbolizer_see(struct symbolizer *sz, const uint64_t *frames, size_t n, uint32_t pid,
			uint64_t from_ns, uint64_t to_ns);

/*
 * Inlined frames and lines, for reports. First collect the frames, then read them for all of
 * them at once, which may take seconds of disk reads. From then on the symbol of a collected frame
 * includes its line, and symbolizer_inlined returns the frames inlined there. Symbols returned
 * before do not change.
 */
struct symbolizer_debug {
	bool inlined, lines;
	/*
	 * Go's functions have both, which cost little to read; names have lines only with `lines`
	 */
	bool go;
	/*
	 * Called for a file whose DWARF could not be read completely: -ETIMEDOUT, -ECHILD (damaged,
	 * or too large). May be NULL
	 */
	void (*failed)(void *ctx, const struct module *m, int err);
	bool (*stopped)(void); /* whether to stop reading files; NULL: never */
};
int symbolizer_want_debug(struct symbolizer *sz, uint64_t frame, uint32_t pid); /* 0 or -ENOMEM */
/* *ret_files: number of files with debug information. 0 or -ENOMEM. */
int symbolizer_read_debug(struct symbolizer *sz, const struct symbolizer_debug *opts,
			  unsigned int *ret_files);
/*
 * The number of frames inlined at a frame. *ret: their symbols, innermost first, valid until the
 * next symbolizer_read_debug.
 */
size_t symbolizer_inlined(const struct symbolizer *sz, uint64_t frame, const uint32_t **ret);
/*
 * A source of debug files that this machine does not have. It is used when the first name of a file
 * is needed, and may take minutes.
 */
void symbolizer_set_fetch(struct symbolizer *sz, const struct debug_fetch *fetch);

/* A symbol whose parts are known without its file; clean text, "" and 0: unknown */
struct symbolizer_symbol {
	const char *name, *module, *function, *file;
	uint32_t line, start_line;
};
/* The id of such a symbol; equal symbols have one id. 0 or -ENOMEM. */
int symbolizer_restore(struct symbolizer *sz, const struct symbolizer_symbol *from, uint32_t *ret);
/*
 * What symbolizer_inlined returns for a frame in a file: n - 1 symbols, then the function itself.
 * 0 or -ENOMEM.
 */
int symbolizer_restore_inlined(struct symbolizer *sz, uint64_t frame, const uint32_t *ids,
			       size_t n);

/*
 * Clean UTF-8 (base/text.h), valid until symbolizer_free. It may contain ';', which folded output
 * replaces.
 */
const char *symbolizer_name(const struct symbolizer *sz, uint32_t id);
/* The name without line and "_[i]". */
const char *symbolizer_function(const struct symbolizer *sz, uint32_t id);
/* *ret_file: the path as the compiler recorded it; "" with line 0 if unknown or not requested. */
uint32_t symbolizer_line(const struct symbolizer *sz, uint32_t id, const char **ret_file);
/* The line at which the function begins; 0: unknown or not requested. */
uint32_t symbolizer_start_line(const struct symbolizer *sz, uint32_t id);
/* "libc.so.6", "[vdso]", "[kernel]", "[ext4]", "[jit]", "[unknown]" */
const char *symbolizer_module(const struct symbolizer *sz, uint32_t id);
/*
 * Equal for two symbols if and only if their module names are equal. Dense, below
 * symbolizer_module_count.
 */
uint32_t symbolizer_module_index(const struct symbolizer *sz, uint32_t id);
const char *symbolizer_module_name(const struct symbolizer *sz, uint32_t module_index);
uint32_t symbolizer_module_count(const struct symbolizer *sz);
uint32_t symbolizer_count(const struct symbolizer *sz); /* all ids are below this */
size_t symbolizer_bytes(const struct symbolizer *sz);	/* includes all tables and caches */

#endif
