/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by symbolizer.c and symbolizer_lines.c. */
#ifndef SFBPF_SYM_SYMBOLIZER_INTERNAL_H
#define SFBPF_SYM_SYMBOLIZER_INTERNAL_H

#include "base/idmap.h"
#include "base/slots.h"
#include "base/strpool.h"
#include "debuginfo/frame_debug.h"
#include "jit/perf_map.h"
#include "sym/symbolizer.h"
#include "symtab/sym_names.h"
#include "symtab/symtab.h"

/*
 * Keys of the cache. A key is the place of a frame (see symbolizer_place), a symbol in the table of
 * a module, a mangled name from DWARF (which stands for a name, not for a symbol), or a kernel
 * address. The top bits keep them apart.
 */
#define KEY_SYMBOL  (1ull << 61)
#define KEY_MANGLED (1ull << 62)
#define KEY_KERNEL  (1ull << 63)

/* Bytes of the name of a module, with its NUL: "[...+0x...]" still fits into SYM_NAME_MAX */
#define MODULE_SHOWN 900

struct symbol {
	uint32_t name, module; /* ids in the two pools */
	uint32_t function;     /* id in names: without line and "_[i]" */
	/* file: in names. Only if lines were read; "" and 0: unknown */
	uint32_t file, line, start_line;
	uint32_t inlined;
};

struct chain {		/* the frames of one place */
	uint32_t at, n; /* place in chain_ids; innermost first, the function itself last */
};

struct symbolizer {
	struct modules *ms;
	struct elf_reader *reader;
	struct path_opener *paths;
	/* Tables by module.index. NULL: no symbols, or not read (module.has_symbols) */
	struct symtab **tables;
	size_t ntables, tables_cap;
	uint64_t uses; /* counts uses of tables */
	struct strpool *names, *modules;
	struct symbol *symbols;
	size_t n, cap;
	struct slots slots;  /* index of symbols */
	struct idmap cached; /* KEY_... -> cached_ids */
	uint32_t *cached_ids;
	size_t cached_cap;
	struct perf_maps *jit;
	struct frame_debug *debug;
	struct idmap chain_of; /* module << SF_FRAME_MODULE_SHIFT | offset -> chains */
	struct chain *chains;
	size_t chains_cap;
	uint32_t *chain_ids;
	size_t nchain_ids, chain_ids_cap;
	bool show_lines; /* names have them */
	struct debug_fetch fetch;
	symbolizer_kernel_fn kernel_fn;
	void *kernel_ctx;
	enum redact redact;
	const struct lang_codes *codes;
	char raw[SYMTAB_NAME_MAX], name[SYM_NAME_MAX], module[MODULE_SHOWN]; /* scratch */
};

/* module << SF_FRAME_MODULE_SHIFT | offset */
static inline uint64_t symbolizer_place(uint64_t frame)
{
	return (uint64_t)SF_FRAME_MODULE(frame) << SF_FRAME_MODULE_SHIFT | SF_FRAME_OFFSET(frame);
}

/* 0 or -ENOMEM. */
int symbolizer_intern_name(struct symbolizer *sz, const char *name, uint32_t *ret);
int symbolizer_intern_symbol(struct symbolizer *sz, const struct symbol *s, uint32_t *ret);
bool symbolizer_cache_get(const struct symbolizer *sz, uint64_t key, uint32_t *ret);
/* key must not be in the cache yet. Out of memory, the next lookup of the key is another miss. */
void symbolizer_cache_put(struct symbolizer *sz, uint64_t key, uint32_t id);
/* Calls elf_reader_demangle. m NULL: a name of the kernel. */
bool symbolizer_demangle(struct symbolizer *sz, const struct module *m, const char *raw, char *ret,
			 size_t cap);
/* The symbol of an offset from the symbol table of m, without DWARF. */
uint32_t symbolizer_by_symbol(struct symbolizer *sz, struct module *m, uint64_t offset,
			      uint32_t pid, bool *ret_final);
/* The symbol of a frame of a language (symbolizer_lang.c). */
uint32_t symbolizer_lang(struct symbolizer *sz, uint64_t frame);
/* The frames that DWARF has for a frame word; NULL: none were read. */
const struct chain *symbolizer_chain(const struct symbolizer *sz, uint64_t frame);

#endif
