/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frame words in, symbol ids out.
 *
 * The names of a module are megabytes in a file that another user may have written, and a report
 * needs a few hundred of them. So symbol tables are read by a worker, on the first frame that needs
 * them, and kept up to TABLES_MAX; each name is kept once, for ever, under an id that never changes
 * its meaning.
 *
 *   frame word --cache--> id                       CACHE_MAX places; emptied when full
 *       |                  ^
 *       v                  |
 *   kind of the word:      intern (name, module, file, line) -> symbols[id]
 *     row, no row      -> the module's table, or [file+offset]
 *     kernel           -> kernel_fn
 *     jit              -> perf maps and jitdumps of the process (perf_map.h)
 *     code of a language -> lang_codes.h
 *     with lines, inlined -> frame_debug.h, in the owner's rights
 *
 * Invariants:
 *
 *   - A lookup always has a result. What cannot be known, or fits nowhere, has a name that says so.
 *   - A name is of the bytes that ran. If two names are possible, neither is shown.
 *   - Only final names are cached. A name that may come later is looked up again.
 */
#include "sym/symbolizer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/text.h"
#include "base/vec.h"
#include "elf/elf_image.h"
#include "sym/symbolizer_internal.h"
#include "symtab/elf_ids.h"
#include "symtab/elf_symtab.h"

#define TABLES_MAX (32u << 20) /* bytes of symbol tables */
/* entries; a full cache is emptied, which bounds memory in long runs */
#define CACHE_MAX  (128u << 10)

#define IN_FILE(kind) ((kind) == SF_FRAME_ROW || (kind) == SF_FRAME_NOROW)

#define NO_FILE 0u /* the empty name, which is interned first */

/* ---- Symbols ---- */

static uint64_t hash_symbol(const struct symbol *s)
{
	return hash_mix((uint64_t)s->line << 32 | s->name, (uint64_t)s->file << 32 | s->module);
}

static uint64_t hash_of(const void *ctx, size_t id)
{
	return hash_symbol(&((const struct symbolizer *)ctx)->symbols[id]);
}

int symbolizer_intern_symbol(struct symbolizer *sz, const struct symbol *s, uint32_t *ret)
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
	if (sz->n >= UINT32_MAX - 1 ||
	    vec_reserve(&sz->symbols, &sz->cap, sz->n + 1, sizeof(*sz->symbols)))
		return -ENOMEM;
	sz->symbols[sz->n] = *s;
	*ret = (uint32_t)sz->n++;
	sz->slots.ids[at] = *ret + 1;
	return 0;
}

int symbolizer_intern_name(struct symbolizer *sz, const char *name, uint32_t *ret)
{
	return strpool_intern(sz->names, name, strlen(name), ret);
}

static int intern(struct symbolizer *sz, const char *name, const char *module, uint32_t *ret)
{
	struct symbol s = { .file = NO_FILE };

	if (symbolizer_intern_name(sz, name, &s.name) ||
	    strpool_intern(sz->modules, module, strlen(module), &s.module))
		return -ENOMEM;
	s.function = s.name;
	return symbolizer_intern_symbol(sz, &s, ret);
}

/* Makes a frame unknown rather than lost if memory runs out. */
static uint32_t symbol_or_unknown(struct symbolizer *sz, const char *name, const char *module)
{
	uint32_t id;

	return intern(sz, name, module, &id) ? SYM_UNKNOWN : id;
}

/* ---- The cache ---- */

bool symbolizer_cache_get(const struct symbolizer *sz, uint64_t key, uint32_t *ret)
{
	uint32_t at;

	if (!idmap_find(&sz->cached, key, 0, &at))
		return false;
	*ret = sz->cached_ids[at];
	return true;
}

void symbolizer_cache_put(struct symbolizer *sz, uint64_t key, uint32_t id)
{
	uint32_t at;

	if (sz->cached.n >= CACHE_MAX)
		idmap_reset(&sz->cached);
	if (!vec_reserve(&sz->cached_ids, &sz->cached_cap, sz->cached.n + 1,
			 sizeof(*sz->cached_ids)) &&
	    !idmap_get(&sz->cached, key, 0, &at))
		sz->cached_ids[at] = id;
}

/* ---- Creating and freeing ---- */

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
	if (!sz->names || !sz->modules || !sz->jit || !sz->debug ||
	    symbolizer_intern_name(sz, "", &id) || id != NO_FILE ||
	    intern(sz, "[unknown]", "[unknown]", &id) || id != SYM_UNKNOWN ||
	    intern(sz, "[no stack]", "[no stack]", &id) || id != SYM_NO_STACK ||
	    intern(sz, "[exec]", "[exec]", &id) || id != SYM_EXEC ||
	    intern(sz, "[jit]", "[jit]", &id) || id != SYM_BRIDGE) {
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

void symbolizer_set_reader(struct symbolizer *sz, struct elf_reader *reader,
			   struct path_opener *paths)
{
	sz->reader = reader;
	sz->paths = paths;
	perf_maps_set_opener(sz->jit, paths);
}

void symbolizer_set_redact(struct symbolizer *sz, enum redact which)
{
	sz->redact = which;
}

/* NULL: the symbols were not read (!m->has_symbols), or the file has none. */
static struct symtab *table_of(const struct symbolizer *sz, const struct module *m)
{
	return m->index < sz->ntables ? sz->tables[m->index] : NULL;
}

static void free_table(struct symbolizer *sz, struct module *m)
{
	symtab_free(table_of(sz, m));
	if (m->index < sz->ntables)
		sz->tables[m->index] = NULL;
	m->has_symbols = false;
}

/* Keeps t; NULL: the file has no symbols. Out of memory, the result is the same as for NULL. */
static struct symtab *keep_table(struct symbolizer *sz, struct module *m, struct symtab *t)
{
	size_t want = m->index + 1ul;

	m->has_symbols = true;
	if (t && want > sz->ntables) {
		if (vec_reserve(&sz->tables, &sz->tables_cap, want, sizeof(*sz->tables))) {
			symtab_free(t);
			return NULL;
		}
		memset(sz->tables + sz->ntables, 0, (want - sz->ntables) * sizeof(*sz->tables));
		sz->ntables = want;
	}
	if (t)
		sz->tables[m->index] = t;
	return t;
}

void symbolizer_forget(struct symbolizer *sz, struct module *m)
{
	free_table(sz, m);
	module_close_file(m);
}

void symbolizer_free(struct symbolizer *sz)
{
	if (!sz)
		return;
	for (size_t i = 0; i < sz->ntables; i++)
		symtab_free(sz->tables[i]);
	free(sz->tables);
	perf_maps_free(sz->jit);
	frame_debug_free(sz->debug);
	idmap_free(&sz->chain_of);
	free(sz->chains);
	free(sz->chain_ids);
	strpool_free(sz->names);
	strpool_free(sz->modules);
	free(sz->symbols);
	slots_free(&sz->slots);
	idmap_free(&sz->cached);
	free(sz->cached_ids);
	free(sz);
}

/* ---- User frames ---- */

/* Reads the facts of the file, and sets the code ranges of the module if they are unknown. */
static int read_facts(const struct symbolizer *sz, struct module *m, struct elf_facts *ret)
{
	struct elf_image img;
	int err;

	if (m->mem && !(err = module_image(m, &img))) { /* the vDSO, which comes from the kernel */
		elf_facts_read(&img, ret);
		elf_image_close(&img);
	} else {
		err = m->fd < 0 ? -ENOENT : elf_reader_facts(sz->reader, m->fd, ret);
		if (!err)
			err = elf_reader_check(sz->reader, m);
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

static int read_table(const struct symbolizer *sz, struct module *m, uint32_t pid,
		      struct symtab **ret)
{
	struct debug_file debug = { .fd = -1 };
	struct elf_facts facts;
	struct debug_query q = { .reader = sz->reader,
				 .paths = sz->paths,
				 .facts = &facts,
				 .path = m->path,
				 .pid = pid,
				 .fetch = sz->fetch };
	int err = read_facts(sz, m, &facts);

	if (err)
		return err;
	if (m->mem)
		return read_vdso(m, ret);
	q.owner = allowance_owner(m->fd);
	if (!facts.symtab && debug_file_find(&q, &debug) == -EAGAIN)
		return -EAGAIN;
	err = elf_reader_symbols(sz->reader, m->fd, debug.fd, ret);
	/* The debug file may be the one that cannot be read: try without it */
	if (err && err != -EAGAIN && debug.fd >= 0)
		err = elf_reader_symbols(sz->reader, m->fd, -1, ret);
	if (!err && (*ret)->debug_fd >= 0)
		debug.fd = -1;
	debug_file_close(&debug);
	if (!err && (err = elf_reader_check(sz->reader, m))) {
		symtab_free(*ret);
		*ret = NULL;
	}
	return err;
}

/*
 * Limits the memory of all tables together. The least recently used tables are freed, and read
 * again when needed. At the end of a run none is freed, so that each is read at most once then.
 */
static void make_room(struct symbolizer *sz, const struct module *fresh)
{
	struct allowance *p = sz->reader ? sz->reader->allowance : NULL;
	uint64_t sum;

	while (!p || !allowance_ending(p)) {
		struct module *oldest = NULL;

		sum = 0;
		for (uint32_t i = 0; i < modules_count(sz->ms); i++) {
			struct module *m = modules_at(sz->ms, i);
			const struct symtab *t = m ? table_of(sz, m) : NULL;

			if (!t)
				continue;
			sum += symtab_bytes(t);
			if (m != fresh && (!oldest || t->used < table_of(sz, oldest)->used))
				oldest = m;
		}
		if (sum <= TABLES_MAX || !oldest)
			return;
		free_table(sz, oldest);
	}
}

/*
 * NULL: the file has no symbols, or cannot be read. pid is a process that has it mapped.
 * *ret_final: the result will not change later.
 */
static struct symtab *load_table(struct symbolizer *sz, struct module *m, uint32_t pid,
				 bool *ret_final)
{
	struct symtab *t = NULL;

	*ret_final = true;
	if (!m->has_symbols) {
		int err = read_table(sz, m, pid, &t);

		if (err == -EAGAIN) {
			*ret_final = false;
			return NULL;
		}
		if (keep_table(sz, m, err ? NULL : t))
			make_room(sz, m);
	}
	t = table_of(sz, m);
	if (t)
		t->used = ++sz->uses;
	return t;
}

const struct module_code *symbolizer_code(const struct symbolizer *sz, struct module *m,
					  uint32_t *ret_n)
{
	struct elf_facts facts;

	if (!m->code)
		read_facts(sz, m, &facts);
	*ret_n = m->ncode;
	return m->code;
}

const struct module_ids *symbolizer_ids(const struct symbolizer *sz, struct module *m)
{
	struct module_ids ids = { .hashed = 0 };
	struct elf_image img;
	int err;

	if (m->ids)
		return m->ids;
	if (m->mem && !(err = module_image(m, &img))) {
		err = elf_ids_read_mem(m->mem, m->size, &img, &ids);
		elf_image_close(&img);
	} else {
		err = m->fd < 0 ? -ENOENT : elf_reader_ids(sz->reader, m->fd, &ids);
		if (!err && (err = elf_reader_check(sz->reader, m)))
			ids = (struct module_ids){ .hashed = 0 };
	}
	/* A file that cannot be read is not asked again. */
	if (err == -EAGAIN || !(m->ids = malloc(sizeof(*m->ids))))
		return NULL;
	*m->ids = ids;
	return m->ids;
}

int symbolizer_disassemble(struct symbolizer *sz, uint64_t frame, uint32_t pid,
			   struct symbolizer_code *ret)
{
	bool in_file = IN_FILE(SF_FRAME_KIND(frame)), is_final;
	struct module *m = in_file ? modules_find(sz->ms, SF_FRAME_MODULE(frame)) : NULL;
	const struct symtab *t = m && m->known >= KNOWN_FILE ? load_table(sz, m, pid, &is_final)
							     : NULL;
	const struct module_code *code;
	struct symtab_hit hit;
	struct elf_code what;
	uint32_t n;

	*ret = (struct symbolizer_code){ .module = SF_FRAME_MODULE(frame) };
	if (!t || !symtab_find(t, SF_FRAME_OFFSET(frame), &hit) || !hit.size)
		return -ENOENT;
	code = symbolizer_code(sz, m, &n);
	code = module_code_at(code, n, hit.start);
	ret->cut = hit.size > ELF_CODE_MOST;
	what.off = hit.start;
	what.size = ret->cut ? ELF_CODE_MOST : (uint32_t)hit.size;
	what.addr = code ? code->vaddr + (hit.start - code->off) : hit.start;
	ret->start = what.off;
	ret->end = what.off + what.size;
	ret->addr = what.addr;
	if (m->fd < 0 || elf_reader_check(sz->reader, m))
		return -ENOENT;
	return elf_reader_code(sz->reader, m->fd, &what, &ret->code, &ret->n);
}

/* The name of the module as shown, in sz->module. */
static const char *display_name(struct symbolizer *sz, const struct module *m)
{
	const char *name = m->name ? m->name : "";
	size_t len = strlen(name);

	if (!len)
		return "[unknown]";
	text_clean(sz->module, sizeof(sz->module), name, len, 0);
	return sz->module;
}

/* "[libfoo.so.1+0x1a2b]". The brackets of "[vdso]" are not repeated. */
static uint32_t name_by_offset(struct symbolizer *sz, const struct module *m, uint64_t offset)
{
	const char *shown = display_name(sz, m);
	size_t len = strlen(shown);

	if (!m->name || !*m->name)
		return SYM_UNKNOWN;
	if (shown[0] == '[' && shown[len - 1] == ']')
		snprintf(sz->name, sizeof(sz->name), "[%.*s+0x%" PRIx64 "]", (int)len - 2,
			 shown + 1, offset);
	else
		snprintf(sz->name, sizeof(sz->name), "[%s+0x%" PRIx64 "]", shown, offset);
	return symbol_or_unknown(sz, sz->name, shown);
}

bool symbolizer_demangle(struct symbolizer *sz, const struct module *m, const char *raw, char *ret,
			 size_t cap)
{
	struct elf_source from = { .file = m ? m->id : 0 };

	if (m && m->fd >= 0 && sym_is_mangled(raw))
		from.owner = allowance_owner(m->fd);
	return elf_reader_demangle(sz->reader, from, raw, ret, cap);
}

uint32_t symbolizer_by_symbol(struct symbolizer *sz, struct module *m, uint64_t offset,
			      uint32_t pid, bool *ret_final)
{
	const struct symtab *t = load_table(sz, m, pid, ret_final);
	struct symtab_hit hit;
	uint64_t key, place;
	uint32_t id, len;
	bool debug;
	int err;

	if (!t || !symtab_find(t, offset, &hit))
		return name_by_offset(sz, m, offset);
	key = KEY_SYMBOL | (uint64_t)m->id << SF_FRAME_MODULE_SHIFT | hit.index;
	if (symbolizer_cache_get(sz, key, &id))
		return id;
	err = elf_reader_name(sz->reader, m->fd, m->id, t, &hit, sz->name,
			      sizeof(sz->name) - sizeof("@plt"));
	if (!err && symtab_name_place(t, &hit, &place, &len, &debug) &&
	    (err = elf_reader_check(sz->reader, m)))
		*sz->name = 0;
	/* Do not try again for each of its functions. */
	if (err == -ETIMEDOUT || err == -ECHILD || err == -ESTALE) {
		free_table(sz, m);
		m->has_symbols = true;
	}
	*ret_final = err != -EAGAIN;
	if (err == -ENOENT)
		return name_by_offset(sz, m, hit.start);
	if (!*sz->name)
		return name_by_offset(sz, m, offset);
	if (hit.plt)
		strcat(sz->name, "@plt");
	id = symbol_or_unknown(sz, sz->name, display_name(sz, m));
	if (*ret_final)
		symbolizer_cache_put(sz, key, id);
	return id;
}

/* The file with the names may still grow, so only a name is final. */
static uint32_t name_jit(struct symbolizer *sz, uint64_t frame, uint32_t pid, bool *ret_final)
{
	const char *name = perf_maps_find(sz->jit, pid, SF_FRAME_JIT_ADDR(frame),
					  SF_FRAME_JIT_EPOCH(frame));
	size_t len;

	*ret_final = name != NULL;
	if (!name)
		return symbol_or_unknown(sz, "[unknown]_[j]", "[jit]");
	redact_paths(sz->redact, name, sz->raw, sizeof(sz->raw));
	len = text_clean(sz->name, sizeof(sz->name) - strlen("_[j]"), sz->raw, strlen(sz->raw), 0);
	strcpy(sz->name + len, "_[j]");
	return symbol_or_unknown(sz, sz->name, "[jit]");
}

uint32_t symbolizer_see(struct symbolizer *sz, const uint64_t *frames, size_t n, uint32_t pid,
			uint64_t from_ns, uint64_t to_ns)
{
	for (size_t i = 0; i < n; i++)
		if (SF_FRAME_KIND(frames[i]) == SF_FRAME_JIT)
			return perf_maps_see(sz->jit, pid, from_ns, to_ns);
	return 0;
}

static uint32_t name_in_file(struct symbolizer *sz, uint64_t frame, uint32_t pid, bool *ret_final)
{
	struct module *m = modules_find(sz->ms, SF_FRAME_MODULE(frame));
	uint64_t offset = SF_FRAME_OFFSET(frame);
	uint64_t key = symbolizer_place(frame);
	const struct chain *c = symbolizer_chain(sz, frame);
	uint32_t id;
	uint8_t known;

	if (c)
		return sz->chain_ids[c->at + c->n - 1];
	if (symbolizer_cache_get(sz, key, &id))
		return id;
	known = m ? m->known : KNOWN_ID;
	if (known < KNOWN_FILE) {
		*ret_final = false;
		return known == KNOWN_PATH ? name_by_offset(sz, m, offset) : SYM_UNKNOWN;
	}
	id = symbolizer_by_symbol(sz, m, offset, pid, ret_final);
	if (*ret_final)
		symbolizer_cache_put(sz, key, id);
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
	case SF_FRAME_LANG:
		id = symbolizer_lang(sz, frame);
		break;
	default:
		id = frame == SF_FRAME_EXEC	? SYM_EXEC
		     : frame == SF_FRAME_BRIDGE ? SYM_BRIDGE
						: SYM_UNKNOWN;
		break;
	}
	if (ret_final)
		*ret_final = is_final;
	return id;
}

/* ---- Kernel frames ---- */

/*
 * Gets the name from the kernel, in buf. *ret_module points to the part after the space, if there
 * is one.
 */
static const char *ask_kernel_name(struct symbolizer *sz, uint64_t addr, char *buf, size_t cap,
				   const char **ret_module)
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
	bool is_final;
	uint32_t id;

	if (symbolizer_cache_get(sz, KEY_KERNEL | addr, &id))
		return id;
	name = ask_kernel_name(sz, addr, asked, sizeof(asked), &module);
	is_final = symbolizer_demangle(sz, NULL, name ? name : "[unknown]", sz->name,
				       sizeof(sz->name) - sizeof("_[k]"));
	strcat(sz->name, "_[k]");
	text_clean(sz->module, sizeof(sz->module), module, strlen(module), 0);
	id = symbol_or_unknown(sz, sz->name, sz->module);
	if (is_final)
		symbolizer_cache_put(sz, KEY_KERNEL | addr, id);
	return id;
}

/* ---- Properties of symbols ---- */

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

uint32_t symbolizer_start_line(const struct symbolizer *sz, uint32_t id)
{
	return sz->symbols[id].start_line;
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
	size_t sum = sizeof(*sz) + strpool_bytes(sz->names) + strpool_bytes(sz->modules) +
		     sz->cap * sizeof(*sz->symbols) + slots_bytes(&sz->slots) +
		     idmap_bytes(&sz->cached) + sz->cached_cap * sizeof(*sz->cached_ids);

	sum += perf_maps_bytes(sz->jit) + sz->chains_cap * sizeof(*sz->chains) +
	       sz->chain_ids_cap * sizeof(*sz->chain_ids) + idmap_bytes(&sz->chain_of);
	for (uint32_t i = 0; i < modules_count(sz->ms); i++) {
		const struct module *m = modules_at(sz->ms, i);

		if (m && table_of(sz, m))
			sum += symtab_bytes(table_of(sz, m));
	}
	return sum;
}
