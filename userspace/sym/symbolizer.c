/* SPDX-License-Identifier: BSD-2-Clause */
#include "sym/symbolizer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/idmap.h"
#include "base/strpool.h"
#include "base/text.h"
#include "base/slots.h"
#include "base/vec.h"
#include "elf/elf_image.h"
#include "sym/elf_symtab.h"
#include "sym/frame_debug.h"
#include "sym/perf_map.h"
#include "sym/sym_names.h"

/*
 * What the cache is keyed by: a frame's place (module << 43 | offset), a symbol of a module's table, or a
 * kernel address. The top bits keep the three apart.
 */
#define KEY_SYMBOL (1ull << 61)
#define KEY_KERNEL (1ull << 63)
#define PATH_SHOWN 1024	/* bytes of a source file's path, with its NUL */
#define MODULE_SHOWN 900	/* bytes of a module's name, with its NUL: "[...+0x...]" still fits SYM_NAME_MAX */
#define TABLES_MAX (32u << 20)	/* bytes of symbol tables */
#define CACHE_MAX (128u << 10)	/* entries; then it starts afresh, so that a long run stays small */

struct symbol {
	uint32_t name, module;	/* ids in the two pools */
	uint32_t function;	/* in names: without line and mark of inlining */
	uint32_t file, line;	/* in names; only if lines are shown. "" (SYM_UNKNOWN's), 0: not known */
	uint32_t inlined;
};

struct chain {			/* what one place stands for */
	uint32_t at, n;		/* in chain_ids; innermost first, the function itself last */
};

struct cached {
	uint64_t key;
	uint32_t id1;		/* symbol id + 1, 0: free */
};

struct symbolizer {
	struct modules *ms;
	struct elf_reader *reader;
	struct path_opener *paths;
	uint64_t uses;		/* of tables */
	struct strpool *names, *modules;
	struct symbol *symbols;
	size_t n, cap;
	struct slots slots;	/* of symbols */
	struct cached *cache;	/* a power of two, at most half full */
	size_t ncache, cache_slots;
	struct perf_maps *jit;
	struct frame_debug *debug;
	struct idmap chain_of;	/* module << SF_FRAME_MODULE_SHIFT | offset -> chains */
	struct chain *chains;
	size_t chains_cap;
	uint32_t *chain_ids;
	size_t nchain_ids, chain_ids_cap;
	bool show_lines;
	struct debug_fetch fetch;
	symbolizer_kernel_fn kernel_fn;
	void *kernel_ctx;
	enum redact redact;
	char raw[SYMTAB_NAME_MAX], name[SYM_NAME_MAX], module[MODULE_SHOWN];	/* scratch */
};

#define NO_FILE 0u	/* the empty name, which is interned first */

/* Stands in module.symbols for "tried, and there is nothing". */
static const char no_table;

/* ---- Symbols ---- */

static uint64_t hash_symbol(const struct symbol *s)
{
	return hash_mix(s->name, (uint64_t)s->file << 32 | s->module);
}

static uint64_t hash_of(const void *ctx, size_t id)
{
	return hash_symbol(&((const struct symbolizer *)ctx)->symbols[id]);
}

static int intern_symbol(struct symbolizer *sz, const struct symbol *s, uint32_t *ret)
{
	size_t at;

	if (slots_reserve(&sz->slots, sz->n, hash_of, sz))
		return -ENOMEM;
	slots_each(&sz->slots, hash_symbol(s), at) {
		if (memcmp(&sz->symbols[sz->slots.ids[at] - 1], s, sizeof(*s)) == 0) {
			*ret = sz->slots.ids[at] - 1;
			return 0;
		}
	}
	if (sz->n >= UINT32_MAX - 1 || vec_reserve(&sz->symbols, &sz->cap, sz->n + 1, sizeof(*sz->symbols)))
		return -ENOMEM;
	sz->symbols[sz->n] = *s;
	*ret = (uint32_t)sz->n++;
	sz->slots.ids[at] = *ret + 1;
	return 0;
}

static int intern_name(struct symbolizer *sz, const char *name, uint32_t *ret)
{
	return strpool_intern(sz->names, name, strlen(name), ret);
}

static int intern(struct symbolizer *sz, const char *name, const char *module, uint32_t *ret)
{
	struct symbol s = { .file = NO_FILE };

	if (intern_name(sz, name, &s.name) || strpool_intern(sz->modules, module, strlen(module), &s.module))
		return -ENOMEM;
	s.function = s.name;
	return intern_symbol(sz, &s, ret);
}

/* Out of memory a frame is unknown rather than lost. */
static uint32_t symbol_or_unknown(struct symbolizer *sz, const char *name, const char *module)
{
	uint32_t id;

	return intern(sz, name, module, &id) ? SYM_UNKNOWN : id;
}

/* ---- The cache ---- */

static bool cache_get(const struct symbolizer *sz, uint64_t key, uint32_t *ret)
{
	if (!sz->ncache)
		return false;
	for (size_t at = hash_u64(key) & (sz->cache_slots - 1); sz->cache[at].id1; at = (at + 1) & (sz->cache_slots - 1)) {
		if (sz->cache[at].key == key) {
			*ret = sz->cache[at].id1 - 1;
			return true;
		}
	}
	return false;
}

static int cache_grow(struct symbolizer *sz)
{
	size_t n = sz->cache_slots ? sz->cache_slots * 2 : 1024;
	struct cached *cache = calloc(n, sizeof(*cache));

	if (!cache)
		return -ENOMEM;
	for (size_t i = 0; i < sz->cache_slots; i++) {
		size_t at = hash_u64(sz->cache[i].key) & (n - 1);

		if (!sz->cache[i].id1)
			continue;
		while (cache[at].id1)
			at = (at + 1) & (n - 1);
		cache[at] = sz->cache[i];
	}
	free(sz->cache);
	sz->cache = cache;
	sz->cache_slots = n;
	return 0;
}

/* key must not be in it yet. */
static void cache_put(struct symbolizer *sz, uint64_t key, uint32_t id)
{
	size_t at;

	if (sz->ncache >= CACHE_MAX) {
		memset(sz->cache, 0, sz->cache_slots * sizeof(*sz->cache));
		sz->ncache = 0;
	}
	if (sz->ncache * 2 >= sz->cache_slots && cache_grow(sz))
		return;
	for (at = hash_u64(key) & (sz->cache_slots - 1); sz->cache[at].id1; at = (at + 1) & (sz->cache_slots - 1))
		;
	sz->cache[at] = (struct cached){ .key = key, .id1 = id + 1 };
	sz->ncache++;
}

/* ---- Life ---- */

struct symbolizer *symbolizer_new(struct modules *ms)
{
	struct symbolizer *sz = calloc(1, sizeof(*sz));
	uint32_t id;

	if (!sz)
		return NULL;
	sz->ms = ms;
	sz->names = strpool_new();
	sz->modules = strpool_new();
	sz->jit = perf_maps_new();
	sz->debug = frame_debug_new();
	if (!sz->names || !sz->modules || !sz->jit || !sz->debug || intern_name(sz, "", &id) || id != NO_FILE || intern(sz, "[unknown]", "[unknown]", &id) || id != SYM_UNKNOWN ||
	    intern(sz, "[no stack]", "[no stack]", &id) || id != SYM_NO_STACK) {
		symbolizer_free(sz);
		return NULL;
	}
	return sz;
}

void symbolizer_set_kernel_names(struct symbolizer *sz, symbolizer_kernel_fn fn, void *ctx)
{
	sz->kernel_fn = fn;
	sz->kernel_ctx = ctx;
}

void symbolizer_set_reader(struct symbolizer *sz, struct elf_reader *reader, struct path_opener *paths)
{
	sz->reader = reader;
	sz->paths = paths;
	perf_maps_set_opener(sz->jit, paths);
}

void symbolizer_set_redact(struct symbolizer *sz, enum redact which)
{
	sz->redact = which;
}

static struct symtab *table_of(const struct module *m)
{
	return m->symbols == &no_table ? NULL : m->symbols;
}

static void free_table(struct module *m)
{
	symtab_free(table_of(m));
	m->symbols = NULL;
}

void symbolizer_forget(struct module *m)
{
	free_table(m);
	module_close_file(m);
}

void symbolizer_free(struct symbolizer *sz)
{
	if (!sz)
		return;
	for (uint32_t i = 0; sz->ms && i < modules_count(sz->ms); i++)
		if (modules_at(sz->ms, i))
			free_table(modules_at(sz->ms, i));
	perf_maps_free(sz->jit);
	frame_debug_free(sz->debug);
	idmap_free(&sz->chain_of);
	free(sz->chains);
	free(sz->chain_ids);
	strpool_free(sz->names);
	strpool_free(sz->modules);
	free(sz->symbols);
	slots_free(&sz->slots);
	free(sz->cache);
	free(sz);
}

/* ---- User frames ---- */

static uint64_t place_of(uint64_t frame)
{
	return (uint64_t)SF_FRAME_MODULE(frame) << SF_FRAME_MODULE_SHIFT | SF_FRAME_OFFSET(frame);
}

/* Also what the module does not know of its code yet. */
static int look_at(const struct symbolizer *sz, struct module *m, struct elf_facts *ret)
{
	struct elf_image img;
	int err;

	if (m->mem && !(err = module_image(m, &img))) {	/* the vDSO: the kernel's */
		elf_facts_read(&img, ret);
		elf_image_close(&img);
	} else {
		err = m->fd < 0 ? -ENOENT : elf_reader_facts(sz->reader, m->fd, ret);
	}
	if (!m->code && err != -EAGAIN && module_set_code(m, ret->code, err ? 0 : ret->ncode))
		err = -ENOMEM;
	return err;
}

static int read_vdso(const struct module *m, struct symtab **ret)
{
	struct elf_image img;
	int err = module_image(m, &img);

	if (err)
		return err;
	err = symtab_build(&img, NULL, UINT32_MAX, ret);
	elf_image_close(&img);
	return err;
}

static int read_table(const struct symbolizer *sz, struct module *m, uint32_t pid, struct symtab **ret)
{
	struct debug_file debug = { .fd = -1 };
	struct elf_facts facts;
	struct debug_query q = { .reader = sz->reader, .paths = sz->paths, .facts = &facts, .path = m->path, .pid = pid, .fetch = sz->fetch };
	int err = look_at(sz, m, &facts);

	if (err)
		return err;
	if (m->mem)
		return read_vdso(m, ret);
	q.owner = patience_owner(m->fd);
	if (!facts.symtab && debug_file_find(&q, &debug) == -EAGAIN)
		return -EAGAIN;
	err = elf_reader_symbols(sz->reader, m->fd, debug.fd, ret);
	if (err && err != -EAGAIN && debug.fd >= 0)	/* it is the debug file that cannot be read */
		err = elf_reader_symbols(sz->reader, m->fd, -1, ret);
	if (!err && (*ret)->debug_fd >= 0)
		debug.fd = -1;
	debug_file_close(&debug);
	return err;
}

/* All tables together have a limit: those that were not used for longest are read again when they are. Not at the end, where that had no end. */
static void make_room(struct symbolizer *sz, const struct module *fresh)
{
	uint64_t sum;

	while (!elf_reader_has_time(sz->reader)) {
		struct module *oldest = NULL;

		sum = 0;
		for (uint32_t i = 0; i < modules_count(sz->ms); i++) {
			struct module *m = modules_at(sz->ms, i);
			const struct symtab *t = m ? table_of(m) : NULL;

			if (!t)
				continue;
			sum += symtab_bytes(t);
			if (m != fresh && (!oldest || t->used < table_of(oldest)->used))
				oldest = m;
		}
		if (sum <= TABLES_MAX || !oldest)
			return;
		free_table(oldest);
	}
}

/* NULL if the file has none or cannot be read. pid is one that has it mapped. *ret_final: it will not be otherwise later. */
static struct symtab *load_table(struct symbolizer *sz, struct module *m, uint32_t pid, bool *ret_final)
{
	struct symtab *t = NULL;

	*ret_final = true;
	if (!m->symbols) {
		int err = read_table(sz, m, pid, &t);

		if (err == -EAGAIN) {
			*ret_final = false;
			return NULL;
		}
		m->symbols = err ? (void *)&no_table : t;
		if (!err)
			make_room(sz, m);
	}
	t = table_of(m);
	if (t)
		t->used = ++sz->uses;
	return t;
}

const struct module_code *symbolizer_code(const struct symbolizer *sz, struct module *m, uint32_t *ret_n)
{
	struct elf_facts facts;

	if (!m->code)
		look_at(sz, m, &facts);
	*ret_n = m->ncode;
	return m->code;
}

/* The module's name as it is shown, in sz->module. " (deleted)" says nothing about the code. */
static const char *display_name(struct symbolizer *sz, const struct module *m)
{
	static const char deleted[] = " (deleted)";
	const char *name = m->name ? m->name : "";
	size_t len = strlen(name);

	if (len > strlen(deleted) && strcmp(name + len - strlen(deleted), deleted) == 0)
		len -= strlen(deleted);
	if (!len)
		return "[unknown]";
	text_clean(sz->module, sizeof(sz->module), name, len, 0);
	return sz->module;
}

/* "[libfoo.so.1+0x1a2b]"; "[vdso]" keeps its own brackets out of it. */
static uint32_t name_by_offset(struct symbolizer *sz, const struct module *m, uint64_t offset)
{
	const char *shown = display_name(sz, m);
	size_t len = strlen(shown);

	if (!m->name || !*m->name)
		return SYM_UNKNOWN;
	if (shown[0] == '[' && shown[len - 1] == ']')
		snprintf(sz->name, sizeof(sz->name), "[%.*s+0x%" PRIx64 "]", (int)len - 2, shown + 1, offset);
	else
		snprintf(sz->name, sizeof(sz->name), "[%s+0x%" PRIx64 "]", shown, offset);
	return symbol_or_unknown(sz, sz->name, shown);
}

static uint32_t name_by_symbol(struct symbolizer *sz, struct module *m, uint64_t offset, uint32_t pid, bool *ret_final)
{
	const struct symtab *t = load_table(sz, m, pid, ret_final);
	struct symtab_hit hit;
	uint64_t key;
	uint32_t id;
	size_t len;
	int err;

	if (!t || !symtab_find(t, offset, &hit))
		return name_by_offset(sz, m, offset);
	key = KEY_SYMBOL | (uint64_t)m->id << SF_FRAME_MODULE_SHIFT | hit.index;
	if (cache_get(sz, key, &id))
		return id;
	err = elf_reader_name(sz->reader, m->fd, t, &hit, sz->raw, sizeof(sz->raw));
	if (err == -ETIMEDOUT || err == -ECHILD) {	/* not once for each of its functions */
		free_table(m);
		m->symbols = (void *)&no_table;
	}
	if (err) {
		*ret_final = err != -EAGAIN;
		return name_by_offset(sz, m, offset);
	}
	len = sym_demangle(sz->raw, sz->name, sizeof(sz->name) - sizeof("@plt"));
	if (hit.plt)
		strcpy(sz->name + len, "@plt");
	id = symbol_or_unknown(sz, sz->name, display_name(sz, m));
	cache_put(sz, key, id);
	return id;
}

/* The file of names may still grow, so only a name is final. */
static uint32_t name_jit(struct symbolizer *sz, uint64_t frame, uint32_t pid, bool *ret_final)
{
	const char *name = perf_maps_find(sz->jit, pid, SF_FRAME_JIT_ADDR(frame), SF_FRAME_JIT_EPOCH(frame));
	size_t len;

	*ret_final = name != NULL;
	if (!name)
		return symbol_or_unknown(sz, "[unknown]_[j]", "[jit]");
	redact_paths(sz->redact, name, sz->raw, sizeof(sz->raw));
	len = text_clean(sz->name, sizeof(sz->name) - strlen("_[j]"), sz->raw, strlen(sz->raw), 0);
	strcpy(sz->name + len, "_[j]");
	return symbol_or_unknown(sz, sz->name, "[jit]");
}

uint32_t symbolizer_see(struct symbolizer *sz, const uint64_t *frames, size_t n, uint32_t pid, uint64_t time_ns)
{
	for (size_t i = 0; i < n; i++)
		if (SF_FRAME_KIND(frames[i]) == SF_FRAME_JIT)
			return perf_maps_see(sz->jit, pid, time_ns);
	return 0;
}

/* ---- Inlined frames and lines ---- */

static const struct chain *find_chain(const struct symbolizer *sz, uint64_t frame)
{
	uint32_t kind = SF_FRAME_KIND(frame), id;

	if (!sz->chain_of.n || (kind != SF_FRAME_ROW && kind != SF_FRAME_NOROW) || !idmap_find(&sz->chain_of, place_of(frame), 0, &id))
		return NULL;
	return &sz->chains[id];
}

/* sz->name is the function; as it is shown: "push_back (vector.h:120)_[i]". */
static int intern_frame(struct symbolizer *sz, const char *function, uint32_t module, const struct dwarf_frame *f, bool inlined, uint32_t *ret)
{
	const char *file = sz->show_lines && f->file && f->line ? f->file : "", *base;
	char clean[PATH_SHOWN], shown[SYM_NAME_MAX + PATH_SHOWN + 32];
	struct symbol s = { .module = module, .inlined = inlined };

	text_clean(clean, sizeof(clean), file, strlen(file), 0);
	snprintf(shown, sizeof(shown), "%s", function);
	if (*clean) {
		s.line = f->line;
		base = strrchr(clean, '/');
		snprintf(shown + strlen(shown), sizeof(shown) - strlen(shown), " (%.255s:%u)", base && base[1] ? base + 1 : clean, f->line);
	}
	if (inlined)
		strcat(shown, "_[i]");
	return intern_name(sz, function, &s.function) || intern_name(sz, shown, &s.name) || intern_name(sz, clean, &s.file) ||
	       intern_symbol(sz, &s, ret) ? -ENOMEM : 0;
}

/* What the DWARF says of a place: frame_debug's callback. */
static int take_frames(void *ctx, struct module *m, uint64_t offset, const struct dwarf_frame *frames, size_t n)
{
	struct symbolizer *sz = ctx;
	bool is_final;
	uint32_t own = name_by_symbol(sz, m, offset, 0, &is_final), id, at = (uint32_t)sz->nchain_ids;
	size_t before = sz->chain_of.n;
	const char *name;

	if (!sz->show_lines && n == 1 && strpool_str(sz->names, sz->symbols[own].name)[0] != '[')
		return 0;	/* nothing that the symbol does not say */
	if (vec_reserve(&sz->chain_ids, &sz->chain_ids_cap, at + n, sizeof(*sz->chain_ids)) ||
	    vec_reserve(&sz->chains, &sz->chains_cap, before + 1, sizeof(*sz->chains)))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		bool last = i + 1 == n;

		/* The function's own name is that of its symbol, as without DWARF. */
		if (last && (!frames[i].name || strpool_str(sz->names, sz->symbols[own].name)[0] != '['))
			name = strpool_str(sz->names, sz->symbols[own].name);
		else if (frames[i].name && sym_demangle(frames[i].name, sz->name, sizeof(sz->name)))
			name = sz->name;
		else
			name = "[unknown]";
		if (intern_frame(sz, name, sz->symbols[own].module, &frames[i], !last, &sz->chain_ids[at + i]))
			return -ENOMEM;
	}
	if (idmap_get(&sz->chain_of, (uint64_t)m->id << SF_FRAME_MODULE_SHIFT | offset, 0, &id))
		return -ENOMEM;
	if (id == before) {
		sz->chains[id] = (struct chain){ at, (uint32_t)n };
		sz->nchain_ids += n;
	}
	return 0;
}

int symbolizer_want_debug(struct symbolizer *sz, uint64_t frame, uint32_t pid)
{
	uint32_t kind = SF_FRAME_KIND(frame);

	if (kind != SF_FRAME_ROW && kind != SF_FRAME_NOROW)
		return 0;
	return frame_debug_want(sz->debug, SF_FRAME_MODULE(frame), SF_FRAME_OFFSET(frame), pid);
}

int symbolizer_read_debug(struct symbolizer *sz, const struct symbolizer_debug *opts, unsigned int *ret_files)
{
	struct frame_debug_opts o = {
		.reader = sz->reader, .paths = sz->paths, .inlined = opts->inlined, .lines = opts->lines, .fetch = sz->fetch, .limits = DWARF_LIMITS,
		.found = take_frames, .failed = opts->failed, .ctx = sz,
	};

	sz->show_lines = opts->lines;
	return frame_debug_read(sz->debug, sz->ms, &o, ret_files);
}

size_t symbolizer_inlined(const struct symbolizer *sz, uint64_t frame, const uint32_t **ret)
{
	const struct chain *c = find_chain(sz, frame);

	if (!c)
		return 0;
	*ret = sz->chain_ids + c->at;
	return c->n - 1;
}

void symbolizer_set_fetch(struct symbolizer *sz, const struct debug_fetch *fetch)
{
	sz->fetch = *fetch;
}

static uint32_t name_in_file(struct symbolizer *sz, uint64_t frame, uint32_t pid, bool *ret_final)
{
	struct module *m = modules_find(sz->ms, SF_FRAME_MODULE(frame));
	uint64_t offset = SF_FRAME_OFFSET(frame);
	uint64_t key = place_of(frame);
	const struct chain *c = find_chain(sz, frame);
	uint32_t id;
	int state;

	if (c)
		return sz->chain_ids[c->at + c->n - 1];
	if (cache_get(sz, key, &id))
		return id;
	state = m ? m->state : MODULE_LOADING;
	if (state == MODULE_LOADING || state == MODULE_GONE) {
		*ret_final = false;
		return state == MODULE_GONE ? name_by_offset(sz, m, offset) : SYM_UNKNOWN;
	}
	id = name_by_symbol(sz, m, offset, pid, ret_final);
	if (*ret_final)
		cache_put(sz, key, id);
	return id;
}

uint32_t symbolizer_user(struct symbolizer *sz, uint64_t frame, uint32_t pid, bool *ret_final)
{
	bool is_final = true;
	uint32_t id;

	switch (SF_FRAME_KIND(frame)) {
	case SF_FRAME_ROW:
	case SF_FRAME_NOROW:
		id = name_in_file(sz, frame, pid, &is_final);
		break;
	case SF_FRAME_JIT:
		id = name_jit(sz, frame, pid, &is_final);
		break;
	default:
		id = SYM_UNKNOWN;
		break;
	}
	if (ret_final)
		*ret_final = is_final;
	return id;
}

/* ---- Kernel frames ---- */

/* Asks the kernel itself. buf receives the name; *ret_module points behind it. */
static const char *kernel_name_asked(struct symbolizer *sz, uint64_t addr, char *buf, size_t cap, const char **ret_module)
{
	char *space;

	if (!sz->kernel_fn || !sz->kernel_fn(sz->kernel_ctx, addr, buf, cap))
		return NULL;
	space = strchr(buf, ' ');
	if (space) {
		*space = 0;
		*ret_module = space + 1;
	}
	return buf;
}

uint32_t symbolizer_kernel(struct symbolizer *sz, uint64_t addr)
{
	const char *module = "[kernel]", *name;
	char asked[256];
	uint32_t id;
	size_t len;

	if (cache_get(sz, KEY_KERNEL | addr, &id))
		return id;
	name = kernel_name_asked(sz, addr, asked, sizeof(asked), &module);
	len = sym_demangle(name ? name : "[unknown]", sz->name, sizeof(sz->name) - sizeof("_[k]"));
	strcpy(sz->name + len, "_[k]");
	text_clean(sz->module, sizeof(sz->module), module, strlen(module), 0);
	id = symbol_or_unknown(sz, sz->name, sz->module);
	cache_put(sz, KEY_KERNEL | addr, id);
	return id;
}

/* ---- What ids mean ---- */

const char *symbolizer_name(const struct symbolizer *sz, uint32_t id)
{
	return strpool_str(sz->names, sz->symbols[id].name);
}

const char *symbolizer_function(const struct symbolizer *sz, uint32_t id)
{
	return strpool_str(sz->names, sz->symbols[id].function);
}

uint32_t symbolizer_line(const struct symbolizer *sz, uint32_t id, const char **ret_file)
{
	*ret_file = strpool_str(sz->names, sz->symbols[id].file);
	return sz->symbols[id].line;
}

const char *symbolizer_module(const struct symbolizer *sz, uint32_t id)
{
	return strpool_str(sz->modules, sz->symbols[id].module);
}

uint32_t symbolizer_module_index(const struct symbolizer *sz, uint32_t id)
{
	return sz->symbols[id].module;
}

const char *symbolizer_module_name(const struct symbolizer *sz, uint32_t module_index)
{
	return strpool_str(sz->modules, module_index);
}

uint32_t symbolizer_module_count(const struct symbolizer *sz)
{
	return strpool_count(sz->modules);
}

uint32_t symbolizer_count(const struct symbolizer *sz)
{
	return (uint32_t)sz->n;
}

size_t symbolizer_bytes(const struct symbolizer *sz)
{
	size_t sum = sizeof(*sz) + strpool_bytes(sz->names) + strpool_bytes(sz->modules) + sz->cap * sizeof(*sz->symbols) +
		     slots_bytes(&sz->slots) + sz->cache_slots * sizeof(*sz->cache);

	sum += perf_maps_bytes(sz->jit) + sz->chains_cap * sizeof(*sz->chains) + sz->chain_ids_cap * sizeof(*sz->chain_ids) +
	       sz->chain_of.cap * sizeof(*sz->chain_of.keys) + slots_bytes(&sz->chain_of.slots);
	for (uint32_t i = 0; i < modules_count(sz->ms); i++) {
		const struct module *m = modules_at(sz->ms, i);

		if (m && table_of(m))
			sum += symtab_bytes(table_of(m));
	}
	return sum;
}
