/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/otlp_dict.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"
#include "languages/lang.h"

/* Field numbers, by message. */
enum {
	DICT_MAPPING = 1,
	DICT_LOCATION = 2,
	DICT_FUNCTION = 3,
	DICT_LINK = 4,
	DICT_STRING = 5,
	DICT_ATTRIBUTE = 6,
	DICT_STACK = 7,
	MAPPING_START = 1,
	MAPPING_LIMIT = 2,
	MAPPING_OFFSET = 3,
	MAPPING_FILENAME = 4,
	MAPPING_ATTRIBUTES = 5,
	LOCATION_MAPPING = 1,
	LOCATION_ADDRESS = 2,
	LOCATION_LINES = 3,
	LOCATION_ATTRIBUTES = 4,
	LINE_FUNCTION = 1,
	FUNCTION_NAME = 1,
	FUNCTION_FILENAME = 3,
	LINK_TRACE = 1,
	LINK_SPAN = 2,
	STACK_LOCATIONS = 1,
	ATTRIBUTE_KEY = 1,
	ATTRIBUTE_VALUE = 2,
	ANY_STRING = 1,
	ANY_INT = 3,
};

#define KERNEL_START	 0xffff000000000000ull
#define MAX_MAPPING_ATTR 3

/* ---- Life ---- */

void otlp_dict_begin(struct otlp_dict *d, const struct encode_input *in)
{
	d->in = in;
	d->texts = strpool_new();
	if (!d->texts)
		d->err = -ENOMEM;
	otlp_dict_reset(d);
}

void otlp_dict_free(struct otlp_dict *d)
{
	for (uint32_t t = 0; t < OTLP_DICT_TABLES; t++)
		pb_free(&d->tables[t]);
	pb_free(&d->packed);
	strpool_free(d->strings);
	strpool_free(d->texts);
	strpool_free(d->mapped);
	strpool_free(d->stacks);
	idmap_free(&d->functions);
	idmap_free(&d->locations);
	idmap_free(&d->attributes);
	idmap_free(&d->files);
	idmap_free(&d->links);
	kernel_map_free(&d->kernel);
	free(d->code);
}

static void empty(struct otlp_dict *d, struct strpool **at)
{
	strpool_free(*at);
	*at = strpool_new();
	if (!*at)
		d->err = -ENOMEM;
}

void otlp_dict_reset(struct otlp_dict *d)
{
	for (uint32_t t = DICT_MAPPING; t < OTLP_DICT_TABLES; t++) {
		d->tables[t].len = 0;
		if (t != DICT_STRING)
			pb_bytes_always(&d->tables[t], t, "", 0);
	}
	empty(d, &d->strings);
	empty(d, &d->mapped);
	empty(d, &d->stacks);
	idmap_reset(&d->functions);
	idmap_reset(&d->locations);
	idmap_reset(&d->attributes);
	idmap_reset(&d->links);
	d->string_bytes = 0;
	d->request++;
	if (!d->err)
		otlp_string(d, "");
}

size_t otlp_dict_size(const struct otlp_dict *d)
{
	size_t sum = d->string_bytes;

	for (uint32_t t = DICT_MAPPING; t < OTLP_DICT_TABLES; t++)
		sum += d->tables[t].len;
	return sum;
}

void otlp_dict_put(struct otlp_dict *d, struct pb *pb)
{
	for (uint32_t t = DICT_MAPPING; t < OTLP_DICT_TABLES; t++) {
		if (d->tables[t].err)
			d->err = d->tables[t].err;
		if (t != DICT_STRING)
			pb_raw(pb, d->tables[t].buf, d->tables[t].len);
		for (uint32_t id = 0; t == DICT_STRING && id < strpool_count(d->strings); id++)
			pb_bytes_always(pb, DICT_STRING, strpool_str(d->strings, id),
					strlen(strpool_str(d->strings, id)));
	}
}

/* ---- Strings and attributes ---- */

/* True: s is new in the pool. */
static bool intern(struct otlp_dict *d, struct strpool *sp, const char *s, size_t len,
		   uint32_t *ret)
{
	uint32_t before = strpool_count(sp);

	*ret = 0;
	if (strpool_intern(sp, s, len, ret)) {
		d->err = -ENOMEM;
		return false;
	}
	return *ret == before;
}

uint32_t otlp_string(struct otlp_dict *d, const char *s)
{
	size_t len = strlen(s);
	uint32_t id;

	if (intern(d, d->strings, s, len, &id))
		d->string_bytes += len + 3;
	return id;
}

/*
 * Sets *ret to the id of a table element. True: it is new and must be written. Ids start at 1
 * because element 0 is empty.
 */
static bool element(struct otlp_dict *d, struct idmap *map, uint64_t a, uint64_t b, uint32_t *ret)
{
	size_t before = map->n;

	*ret = 0;
	if (idmap_get(map, a, b, ret)) {
		d->err = -ENOMEM;
		return false;
	}
	return (*ret)++ == before;
}

void otlp_any(struct pb *pb, uint32_t field, const char *text, uint64_t number)
{
	size_t at = pb_begin(pb, field);

	if (text)
		pb_bytes_always(pb, ANY_STRING, text, strlen(text));
	else
		pb_u64(pb, ANY_INT, number);
	pb_end(pb, at);
}

uint32_t otlp_attribute(struct otlp_dict *d, const char *key, const char *text, uint64_t number)
{
	struct pb *pb = &d->tables[DICT_ATTRIBUTE];
	uint64_t key_id = otlp_string(d, key);
	uint32_t id, text_id;
	size_t at;

	/* The text itself is not in the table of strings: nothing there refers to it. */
	if (text) {
		intern(d, d->texts, text, strlen(text), &text_id);
		number = text_id;
	}
	if (!element(d, &d->attributes, key_id << 1 | (text != NULL), number, &id))
		return id;
	at = pb_begin(pb, DICT_ATTRIBUTE);
	pb_u64(pb, ATTRIBUTE_KEY, key_id);
	otlp_any(pb, ATTRIBUTE_VALUE, text, number);
	pb_end(pb, at);
	return id;
}

uint32_t otlp_link(struct otlp_dict *d, uint32_t link)
{
	struct pb *pb = &d->tables[DICT_LINK];
	uint64_t ids[SF_LINK_WORDS];
	uint32_t id;
	size_t at;

	if (!element(d, &d->links, link, 0, &id))
		return id;
	window_link(d->in->window, link, ids);
	at = pb_begin(pb, DICT_LINK);
	pb_bytes(pb, LINK_TRACE, ids, 2 * sizeof(*ids));
	pb_bytes(pb, LINK_SPAN, ids + 2, sizeof(*ids));
	pb_end(pb, at);
	return id;
}

/* ---- Mappings ---- */

struct mapping {
	uint64_t start, limit, offset;
	const char *name;
	uint64_t attributes[MAX_MAPPING_ATTR];
	size_t n; /* attributes */
};

static void add_id(struct otlp_dict *d, struct mapping *m, const char *key, const char *text)
{
	if (*text && m->n < MAX_MAPPING_ATTR)
		m->attributes[m->n++] = otlp_attribute(d, key, text, 0);
}

static void add_hex_id(struct otlp_dict *d, struct mapping *m, const char *key, const uint8_t *id,
		       size_t len)
{
	char hex[2 * 64 + 1] = "";

	for (size_t i = 0; i < len && i < 64; i++)
		sprintf(hex + 2 * i, "%02x", id[i]);
	add_id(d, m, key, hex);
}

static const char gnu_key[] = "process.executable.build_id.gnu";

/* Mappings with equal contents are one: of copies, and of files that replaced others. */
static uint32_t mapping_id(struct otlp_dict *d, const struct mapping *m)
{
	struct pb *pb = &d->tables[DICT_MAPPING];
	uint32_t name_id = otlp_string(d, m->name), id;
	char text[24 * (MAX_MAPPING_ATTR + 4)];
	size_t len, at;

	len = (size_t)sprintf(text, "%" PRIx64 ",%" PRIx64 ",%" PRIx64 ",%x", m->start, m->limit,
			      m->offset, name_id);
	for (size_t i = 0; i < m->n; i++)
		len += (size_t)sprintf(text + len, ",%" PRIx64, m->attributes[i]);
	if (!intern(d, d->mapped, text, len, &id))
		return id + 1;
	at = pb_begin(pb, DICT_MAPPING);
	pb_u64(pb, MAPPING_START, m->start);
	pb_u64(pb, MAPPING_LIMIT, m->limit);
	pb_u64(pb, MAPPING_OFFSET, m->offset);
	pb_u64(pb, MAPPING_FILENAME, name_id);
	if (m->n)
		pb_packed(pb, MAPPING_ATTRIBUTES, m->attributes, m->n);
	pb_end(pb, at);
	return id + 1;
}

static uint32_t kernel_mapping(struct otlp_dict *d, uint64_t addr)
{
	const struct kernel_part *part = kernel_map_at(&d->kernel, addr);
	struct mapping m = { part->start, part->limit, 0, part->name, { 0 }, 0 };

	if (!part->limit) { /* not a module; some architectures have it in the lower half */
		m.start = addr < KERNEL_START ? 0 : KERNEL_START;
		m.limit = ~(MODULE_PAGE - 1);
	}
	add_hex_id(d, &m, gnu_key, part->id, part->id_len);
	return mapping_id(d, &m);
}

void otlp_path(const struct otlp_dict *d, const char *path, char *ret, size_t cap)
{
	char shown[4096];

	redact_paths(d->in->cfg->redact, path, shown, sizeof(shown));
	text_clean(ret, cap, shown, strlen(shown), 0);
}

static uint32_t file_mapping(struct otlp_dict *d, struct module *mod, const struct mapping *range)
{
	const struct module_ids *ids = symbolizer_ids(d->in->symbols, mod);
	struct mapping m = *range;
	char path[4096];

	otlp_path(d, mod->path, path, sizeof(path));
	m.name = path;
	add_hex_id(d, &m, gnu_key, mod->build_id,
		   mod->build_id_len < sizeof(mod->build_id) ? mod->build_id_len
							     : sizeof(mod->build_id));
	if (ids && ids->hashed) {
		add_id(d, &m, "process.executable.build_id.go", ids->go);
		add_hex_id(d, &m, "process.executable.build_id.htlhash", ids->htlhash,
			   sizeof(ids->htlhash));
	}
	return mapping_id(d, &m);
}

static struct file_code *code_of(struct otlp_dict *d, struct module *m)
{
	size_t before = d->files.n;
	struct file_code *f;
	uint32_t id;

	if (idmap_get(&d->files, m->id, 0, &id) ||
	    vec_reserve(&d->code, &d->code_cap, d->files.n, sizeof(*d->code))) {
		d->err = -ENOMEM;
		return NULL;
	}
	f = &d->code[id];
	if (id == before) {
		*f = (struct file_code){ .request = 0 };
		f->code = symbolizer_code(d->in->symbols, m, &f->n);
	}
	if (f->request != d->request) {
		memset(f->mapping, 0, sizeof(f->mapping));
		f->request = d->request;
	}
	return f;
}

/*
 * The mapping of the offset in the file, as if the file were mapped at its link address. *ret_addr:
 * the address of the offset there. 0: out of memory.
 */
static uint32_t user_mapping(struct otlp_dict *d, struct module *m, uint64_t off,
			     uint64_t *ret_addr)
{
	struct mapping range = { 0, off < m->size ? m->size : off + 1, 0, NULL, { 0 }, 0 };
	struct file_code *f = code_of(d, m);
	const struct module_code *code = f ? module_code_at(f->code, f->n, off) : NULL;
	uint32_t *known;

	*ret_addr = off;
	if (!code)
		return f ? file_mapping(d, m, &range) : 0;
	*ret_addr = code->vaddr + (off - code->off);
	known = &f->mapping[code - f->code];
	range.start = code->vaddr;
	range.limit = code->vaddr + ((code->size + MODULE_PAGE - 1) & ~(MODULE_PAGE - 1));
	range.offset = code->off;
	if (!*known)
		*known = file_mapping(d, m, &range);
	return *known;
}

/* ---- Locations and stacks ---- */

/* One function per name and source file (""); else the mapping tells the file. */
static uint32_t function_id(struct otlp_dict *d, const char *name, const char *file)
{
	struct pb *pb = &d->tables[DICT_FUNCTION];
	uint32_t id, name_id = otlp_string(d, name), file_id = *file ? otlp_string(d, file) : 0;
	size_t at;

	if (!element(d, &d->functions, name_id, file_id, &id))
		return id;
	at = pb_begin(pb, DICT_FUNCTION);
	pb_u64(pb, FUNCTION_NAME, name_id);
	if (file_id)
		pb_u64(pb, FUNCTION_FILENAME, file_id);
	pb_end(pb, at);
	return id;
}

/* type: the same for all locations of one mapping, address and function. */
static uint32_t location_id(struct otlp_dict *d, uint32_t mapping, uint64_t addr, uint32_t function,
			    const char *type)
{
	struct pb *pb = &d->tables[DICT_LOCATION];
	uint64_t attribute;
	uint32_t id;
	size_t at, line;

	if (!element(d, &d->locations, (uint64_t)mapping << 32 | function, addr, &id))
		return id;
	attribute = type ? otlp_attribute(d, "profile.frame.type", type, 0) : 0;
	at = pb_begin(pb, DICT_LOCATION);
	pb_u64(pb, LOCATION_MAPPING, mapping);
	pb_u64(pb, LOCATION_ADDRESS, addr);
	if (function) {
		line = pb_begin(pb, LOCATION_LINES);
		pb_u64(pb, LINE_FUNCTION, function);
		pb_end(pb, line);
	}
	if (attribute)
		pb_packed(pb, LOCATION_ATTRIBUTES, &attribute, 1);
	pb_end(pb, at);
	return id;
}

/* profile.frame.type of a frame in a file. Names of Rust have a path, those of C have none. */
static const char *file_type(const struct otlp_dict *d, struct module *m, const char *name)
{
	const struct module_ids *ids = symbolizer_ids(d->in->symbols, m);

	if (ids && *ids->go)
		return "go";
	return ids && ids->rust && strstr(name, "::") ? "rust" : "native";
}

static uint32_t kernel_location(struct otlp_dict *d, uint64_t addr, const char *name)
{
	/* Named always: no backend knows the kernel's load address of this boot. */
	return location_id(d, kernel_mapping(d, addr), addr, function_id(d, name, ""), "kernel");
}

/* A frame of a language: the function and its source file say all. */
static uint32_t lang_location(struct otlp_dict *d, const struct profile_frame *f, const char *name)
{
	const char *file;

	symbolizer_line(d->in->symbols, f->symbol, &file);
	return location_id(d, 0, 0, function_id(d, name, file),
			   lang_frame_type(SF_FRAME_LANGUAGE(f->word)));
}

static uint32_t frame_location(struct otlp_dict *d, const struct profile_frame *f)
{
	const char *name = symbolizer_name(d->in->symbols, f->symbol), *type = NULL;
	bool by_backend = d->in->cfg->symbols == AGENT_SYMBOLS_NONE;
	uint32_t kind = SF_FRAME_KIND(f->word), mapping = 0;
	uint64_t addr = SF_FRAME_ADDR(f->word);
	struct module *m;

	if (f->kernel)
		return kernel_location(d, f->word, name);
	if (kind == SF_FRAME_LANG)
		return lang_location(d, f, name);
	m = kind == SF_FRAME_ROW || kind == SF_FRAME_NOROW
		    ? modules_find(d->in->modules, SF_FRAME_MODULE(f->word))
		    : NULL;
	if (m && m->known != KNOWN_ID && m->path) {
		mapping = user_mapping(d, m, SF_FRAME_OFFSET(f->word), &addr);
		type = file_type(d, m, name);
	} else if (m) {
		addr = SF_FRAME_OFFSET(f->word);
	} else if (kind == SF_FRAME_JIT) {
		addr = SF_FRAME_JIT_ADDR(f->word);
		type = !strncmp(name, "JS:", 3) ? "v8js" : NULL;
	}
	return location_id(d, mapping, addr, by_backend && mapping ? 0 : function_id(d, name, ""),
			   type);
}

static uint32_t note_location(struct otlp_dict *d, const char *note)
{
	return location_id(d, 0, 0, function_id(d, note, ""), NULL);
}

uint32_t otlp_stack(struct otlp_dict *d, const struct body_stack *st)
{
	struct pb *pb = &d->tables[DICT_STACK];
	uint32_t id;
	size_t at;

	d->packed.len = 0;
	for (size_t i = 0; i < st->frames.n; i++)
		pb_varint(&d->packed, frame_location(d, &st->frames.list[i]));
	if (*st->note)
		pb_varint(&d->packed, note_location(d, st->note));
	if (!st->frames.n && !*st->note)
		pb_varint(&d->packed, note_location(d, "[no stack]"));
	if (d->packed.err)
		d->err = -ENOMEM;
	if (!d->err && intern(d, d->stacks, (const char *)d->packed.buf, d->packed.len, &id)) {
		at = pb_begin(pb, DICT_STACK);
		pb_bytes(pb, STACK_LOCATIONS, d->packed.buf, d->packed.len);
		pb_end(pb, at);
	}
	return d->err ? 0 : id + 1;
}
