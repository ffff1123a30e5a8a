/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * OTLP profiles, opentelemetry-proto 1.10 and 1.11 ("v1development", alpha): ExportProfilesServiceRequest. One ResourceProfiles
 * a target, one Profile in it, one dictionary a request. A window is cut into as many requests as its size needs.
 *
 * What receivers want beyond the specification: element 0 of every table is present and empty (also link_table's);
 * resource attributes use plain key and string_value; resource, scope and period_type are present; one value a sample. Blocked time
 * has an empty period_type, by which receivers tell it from CPU time.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/body.h"
#include "base/idmap.h"
#include "base/pb.h"
#include "base/strpool.h"
#include "base/text.h"
#include "base/vec.h"

/* Field numbers, by message. */
enum {
	REQUEST_RESOURCE_PROFILES = 1, REQUEST_DICTIONARY = 2,
	RESOURCE_PROFILES_RESOURCE = 1, RESOURCE_PROFILES_SCOPE_PROFILES = 2,
	SCOPE_PROFILES_SCOPE = 1, SCOPE_PROFILES_PROFILES = 2,
	RESOURCE_ATTRIBUTES = 1,
	SCOPE_NAME = 1, SCOPE_VERSION = 2,
	PROFILE_SAMPLE_TYPE = 1, PROFILE_SAMPLES = 2, PROFILE_TIME = 3, PROFILE_DURATION = 4, PROFILE_PERIOD_TYPE = 5,
	PROFILE_PERIOD = 6, PROFILE_ID = 7,
	VALUE_TYPE_TYPE = 1, VALUE_TYPE_UNIT = 2,
	SAMPLE_STACK = 1, SAMPLE_ATTRIBUTES = 2, SAMPLE_VALUES = 4,
	DICT_MAPPING = 1, DICT_LOCATION = 2, DICT_FUNCTION = 3, DICT_LINK = 4, DICT_STRING = 5, DICT_ATTRIBUTE = 6,
	DICT_STACK = 7, DICT_TABLES = 8,
	MAPPING_START = 1, MAPPING_LIMIT = 2, MAPPING_OFFSET = 3, MAPPING_FILENAME = 4, MAPPING_ATTRIBUTES = 5,
	LOCATION_MAPPING = 1, LOCATION_ADDRESS = 2, LOCATION_LINES = 3, LOCATION_ATTRIBUTES = 4,
	LINE_FUNCTION = 1,
	FUNCTION_NAME = 1, FUNCTION_SYSTEM_NAME = 2,
	STACK_LOCATIONS = 1,
	ATTRIBUTE_KEY = 1, ATTRIBUTE_VALUE = 2,
	KEY_VALUE_KEY = 1, KEY_VALUE_VALUE = 2,
	ANY_STRING = 1, ANY_INT = 3,
};

#define KERNEL_START 0xffff000000000000ull

struct file_code {
	const struct module_code *code;
	uint32_t n;
	uint32_t looks;			/* the same for files that look the same in a mapping: copies, and what replaced them */
};

struct otlp {
	const struct encode_input *in;
	body_fn fn;
	void *ctx;
	struct strpool *strings, *stacks;	/* stacks: by their packed location indices, which hold no 0 byte */
	size_t string_bytes;
	struct pb tables[DICT_TABLES];		/* elements, by the dictionary's field number */
	struct pb resources;			/* ResourceProfiles that are done */
	struct idmap functions, mappings, locations, attributes, files;
	struct file_code *code;			/* by files' id */
	struct strpool *looks;
	size_t code_cap;
	struct idmap samples;			/* of the current Profile: stack << 32 | comm's attribute, pid's attribute */
	uint64_t *values;
	size_t values_cap;
	struct pb packed;			/* scratch */
	uint64_t request_samples;
	uint8_t id[16];
	uint32_t nprofiles;
	int err;
};

/* ---- Tables ---- */

static uint32_t string_id(struct otlp *o, const char *s)
{
	size_t len = strlen(s), before = strpool_count(o->strings);
	uint32_t id = 0;

	if (strpool_intern(o->strings, s, len, &id))
		o->err = -ENOMEM;
	else if (id == before)
		o->string_bytes += len + 3;
	return id;
}

/* The id of a table's element; true if it is new and must be written. Ids start at 1: element 0 is empty. */
static bool element(struct otlp *o, struct idmap *map, uint64_t a, uint64_t b, uint32_t *ret)
{
	size_t before = map->n;

	*ret = 0;
	if (idmap_get(map, a, b, ret)) {
		o->err = -ENOMEM;
		return false;
	}
	return (*ret)++ == before;
}

static void put_any(struct pb *pb, uint32_t field, const char *text, uint64_t number)
{
	size_t at = pb_begin(pb, field);

	if (text)
		pb_bytes_always(pb, ANY_STRING, text, strlen(text));
	else
		pb_u64(pb, ANY_INT, number);
	pb_end(pb, at);
}

/* text, or number if it is NULL. */
static uint32_t attribute_id(struct otlp *o, const char *key, const char *text, uint64_t number)
{
	struct pb *pb = &o->tables[DICT_ATTRIBUTE];
	uint64_t key_id = string_id(o, key);
	uint32_t id;
	size_t at;

	/* A text is known by its place in the string table, where it then also is. */
	if (!element(o, &o->attributes, key_id << 1 | (text != NULL), text ? string_id(o, text) : number, &id))
		return id;
	at = pb_begin(pb, DICT_ATTRIBUTE);
	pb_u64(pb, ATTRIBUTE_KEY, key_id);
	put_any(pb, ATTRIBUTE_VALUE, text, number);
	pb_end(pb, at);
	return id;
}

/* Of one name there is one: which file it is in, the mapping says. */
static uint32_t function_id(struct otlp *o, const char *name)
{
	struct pb *pb = &o->tables[DICT_FUNCTION];
	uint32_t id, name_id = string_id(o, name);
	size_t at;

	if (!element(o, &o->functions, name_id, 0, &id))
		return id;
	at = pb_begin(pb, DICT_FUNCTION);
	pb_u64(pb, FUNCTION_NAME, name_id);
	pb_u64(pb, FUNCTION_SYSTEM_NAME, name_id);
	pb_end(pb, at);
	return id;
}

static uint32_t build_id_attribute(struct otlp *o, const struct module *m)
{
	char hex[2 * sizeof(m->build_id) + 1] = "";

	for (size_t i = 0; i < m->build_id_len && i < sizeof(m->build_id); i++)
		sprintf(hex + 2 * i, "%02x", m->build_id[i]);
	return *hex ? attribute_id(o, "process.executable.build_id.gnu", hex, 0) : 0;
}

struct range {
	uint64_t start, limit, offset;
};

static void put_mapping(struct otlp *o, const struct range *r, const char *name, uint64_t attribute)
{
	struct pb *pb = &o->tables[DICT_MAPPING];
	uint32_t name_id = string_id(o, name);
	size_t at = pb_begin(pb, DICT_MAPPING);

	pb_u64(pb, MAPPING_START, r->start);
	pb_u64(pb, MAPPING_LIMIT, r->limit);
	pb_u64(pb, MAPPING_OFFSET, r->offset);
	pb_u64(pb, MAPPING_FILENAME, name_id);
	if (attribute)
		pb_packed(pb, MAPPING_ATTRIBUTES, &attribute, 1);
	pb_end(pb, at);
}

static uint32_t kernel_mapping(struct otlp *o, uint64_t addr)
{
	struct range r = { addr < KERNEL_START ? 0 : KERNEL_START, ~(MODULE_PAGE - 1), 0 };
	uint32_t id;

	if (element(o, &o->mappings, UINT64_MAX, r.start, &id))
		put_mapping(o, &r, "[kernel]", 0);
	return id;
}

static void shown_path(const struct otlp *o, const struct module *m, char *ret, size_t cap)
{
	char shown[4096];

	redact_paths((enum redact)o->in->cfg->redact, m->path ? m->path : "", shown, sizeof(shown));
	text_clean(ret, cap, shown, strlen(shown), 0);
}

/* Two files of one path, build-id and layout are one: no table may have an element twice. */
static uint32_t looks_of(struct otlp *o, const struct module *m, const struct file_code *f)
{
	char text[4096 + 2 * sizeof(m->build_id) + 64 * (MODULE_MAX_CODE + 1)];
	size_t len;
	uint32_t id = 0;

	shown_path(o, m, text, 4096);
	len = strlen(text);
	len += (size_t)sprintf(text + len, "\n%" PRIx64 ":", (uint64_t)m->size);
	for (uint32_t i = 0; i < f->n; i++)
		len += (size_t)sprintf(text + len, "%" PRIx64 ",%" PRIx64 ",%" PRIx64 ":", f->code[i].off, f->code[i].vaddr, f->code[i].size);
	for (size_t i = 0; i < m->build_id_len && i < sizeof(m->build_id); i++)
		len += (size_t)sprintf(text + len, "%02x", m->build_id[i]);
	if (strpool_intern(o->looks, text, len, &id))
		o->err = -ENOMEM;
	return id;
}

static const struct file_code *code_of(struct otlp *o, struct module *m)
{
	size_t before = o->files.n;
	uint32_t id;

	if (idmap_get(&o->files, m->id, 0, &id) || vec_reserve(&o->code, &o->code_cap, o->files.n, sizeof(*o->code))) {
		o->err = -ENOMEM;
		return NULL;
	}
	if (id == before) {
		o->code[id].code = symbolizer_code(o->in->symbols, m, &o->code[id].n);
		o->code[id].looks = looks_of(o, m, &o->code[id]);
	}
	return &o->code[id];
}

static void new_mapping(struct otlp *o, const struct module *m, const struct range *r)
{
	char clean[4096];

	shown_path(o, m, clean, sizeof(clean));
	put_mapping(o, r, clean, build_id_attribute(o, m));
}

/* The file's mapping, as if it were mapped where it was linked to be; *ret_addr: the frame's address there. */
static uint32_t user_mapping(struct otlp *o, uint64_t word, uint64_t *ret_addr)
{
	uint32_t kind = SF_FRAME_KIND(word), id;
	struct module *m = kind == SF_FRAME_ROW || kind == SF_FRAME_NOROW ? modules_find(o->in->modules, SF_FRAME_MODULE(word)) : NULL;
	uint64_t off = SF_FRAME_OFFSET(word);
	const struct module_code *code;
	const struct file_code *f;
	struct range r = { 0, off + 1, 0 };

	*ret_addr = m ? off : kind == SF_FRAME_JIT ? SF_FRAME_JIT_ADDR(word) : SF_FRAME_ADDR(word);
	if (!m || m->state == MODULE_LOADING || !(f = code_of(o, m)))
		return 0;
	code = module_code_at(f->code, f->n, off);
	if (code) {
		*ret_addr = code->vaddr + (off - code->off);
		r = (struct range){ code->vaddr, code->vaddr + ((code->size + MODULE_PAGE - 1) & ~(MODULE_PAGE - 1)), code->off };
	} else if (off < m->size) {
		r.limit = m->size;
	}
	if (element(o, &o->mappings, f->looks, r.offset, &id))
		new_mapping(o, m, &r);
	return id;
}

static uint32_t location_id(struct otlp *o, uint32_t mapping, uint64_t addr, uint32_t function, const char *type)
{
	struct pb *pb = &o->tables[DICT_LOCATION];
	uint64_t attribute;
	uint32_t id;
	size_t at, line;

	if (!element(o, &o->locations, (uint64_t)mapping << 32 | function, addr, &id))
		return id;
	attribute = type ? attribute_id(o, "profile.frame.type", type, 0) : 0;
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

static uint32_t frame_location(struct otlp *o, const struct profile_frame *f)
{
	bool by_backend = o->in->cfg->symbols == AGENT_SYMBOLS_NONE;
	uint32_t mapping, function;
	uint64_t addr = f->word;

	if (f->kernel) {
		mapping = kernel_mapping(o, addr);
		by_backend = false;	/* no backend knows where this boot put the kernel */
	} else {
		mapping = user_mapping(o, f->word, &addr);
	}
	function = by_backend && mapping ? 0 : function_id(o, symbolizer_name(o->in->symbols, f->symbol));
	return location_id(o, mapping, addr, function, f->kernel ? "kernel" : mapping ? "native" : NULL);
}

static uint32_t note_location(struct otlp *o, const char *note)
{
	return location_id(o, 0, 0, function_id(o, note), NULL);
}

static uint32_t stack_id(struct otlp *o, const struct body_stack *st)
{
	size_t before = strpool_count(o->stacks), at;
	uint64_t location;
	uint32_t id = 0;

	o->packed.len = 0;
	for (size_t i = 0; i < st->frames.n; i++) {
		location = frame_location(o, &st->frames.list[i]);
		pb_varint(&o->packed, location);
	}
	if (*st->note)
		pb_varint(&o->packed, note_location(o, st->note));
	if (!st->frames.n && !*st->note)
		pb_varint(&o->packed, note_location(o, "[no stack]"));
	if (o->packed.err || strpool_intern(o->stacks, (const char *)o->packed.buf, o->packed.len, &id)) {
		o->err = -ENOMEM;
		return 0;
	}
	if (id == before) {
		at = pb_begin(&o->tables[DICT_STACK], DICT_STACK);
		pb_bytes(&o->tables[DICT_STACK], STACK_LOCATIONS, o->packed.buf, o->packed.len);
		pb_end(&o->tables[DICT_STACK], at);
	}
	return id + 1;
}

/* ---- Profiles ---- */

static void put_type(struct pb *pb, uint32_t field, uint32_t type, uint32_t unit)
{
	size_t at = pb_begin(pb, field);

	pb_u64(pb, VALUE_TYPE_TYPE, type);
	pb_u64(pb, VALUE_TYPE_UNIT, unit);
	pb_end(pb, at);
}

static void put_label(void *ctx, const char *name, const char *value)
{
	struct pb *pb = ctx;
	size_t at = pb_begin(pb, RESOURCE_ATTRIBUTES);

	pb_str(pb, KEY_VALUE_KEY, name);
	put_any(pb, KEY_VALUE_VALUE, value, 0);
	pb_end(pb, at);
}

static void put_samples(struct otlp *o)
{
	struct pb *pb = &o->resources;

	for (size_t i = 0; i < o->samples.n; i++) {
		uint64_t attributes[2] = { o->samples.keys[i].a & UINT32_MAX, o->samples.keys[i].b };
		size_t at = pb_begin(pb, PROFILE_SAMPLES);

		pb_u64(pb, SAMPLE_STACK, o->samples.keys[i].a >> 32);
		pb_packed(pb, SAMPLE_ATTRIBUTES, attributes, attributes[1] ? 2 : 1);
		pb_packed(pb, SAMPLE_VALUES, &o->values[i], 1);
		pb_end(pb, at);
	}
}

static void put_types(struct otlp *o, enum window_kind kind)
{
	bool clock = out_is_clock(o->in->meta);
	struct pb *pb = &o->resources;

	if (kind == WINDOW_OFF_CPU)
		put_type(pb, PROFILE_PERIOD_TYPE, 0, 0);
	else if (clock)
		put_type(pb, PROFILE_PERIOD_TYPE, string_id(o, "cpu"), string_id(o, "nanoseconds"));
	else
		put_type(pb, PROFILE_PERIOD_TYPE, string_id(o, o->in->meta->event), string_id(o, "count"));
	pb_u64(pb, PROFILE_PERIOD, clock && kind == WINDOW_CPU ? (uint64_t)(1e9 / o->in->window->hz + 0.5) : 0);
}

static void put_profile(struct otlp *o, enum window_kind kind)
{
	const struct window *w = o->in->window;
	struct pb *pb = &o->resources;
	uint8_t id[16];
	size_t at = pb_begin(pb, SCOPE_PROFILES_PROFILES);

	if (kind == WINDOW_OFF_CPU)
		put_type(pb, PROFILE_SAMPLE_TYPE, string_id(o, "off_cpu"), string_id(o, "nanoseconds"));
	else
		put_type(pb, PROFILE_SAMPLE_TYPE, string_id(o, "samples"), string_id(o, "count"));
	put_samples(o);
	pb_fixed64(pb, PROFILE_TIME, w->start_unix_ns);
	pb_u64(pb, PROFILE_DURATION, w->duration_ns);
	put_types(o, kind);
	memcpy(id, o->id, sizeof(id));
	id[14] ^= (uint8_t)(o->nprofiles >> 8);
	id[15] ^= (uint8_t)o->nprofiles++;
	pb_bytes(pb, PROFILE_ID, id, sizeof(id));
	pb_end(pb, at);
}

static void end_group(struct otlp *o, const struct window_group *g)
{
	const struct target *t = targets_at(o->in->window->targets, g->target);
	struct pb *pb = &o->resources;
	size_t rp, sp, at;

	if (!o->samples.n)
		return;
	rp = pb_begin(pb, REQUEST_RESOURCE_PROFILES);
	at = pb_begin(pb, RESOURCE_PROFILES_RESOURCE);
	body_labels(o->in, t, put_label, pb);
	pb_end(pb, at);
	sp = pb_begin(pb, RESOURCE_PROFILES_SCOPE_PROFILES);
	at = pb_begin(pb, SCOPE_PROFILES_SCOPE);
	pb_str(pb, SCOPE_NAME, "sfbpf");
	pb_str(pb, SCOPE_VERSION, SFBPF_VERSION);
	pb_end(pb, at);
	put_profile(o, g->kind);
	pb_end(pb, sp);
	pb_end(pb, rp);
	idmap_free(&o->samples);
	o->samples = (struct idmap){ 0 };
}

static void add_sample(struct otlp *o, enum window_kind kind, const struct body_stack *st)
{
	char comm[64];
	uint32_t stack, comm_attr, pid_attr, id;
	size_t before = o->samples.n;

	text_clean(comm, sizeof(comm), *st->s.comm ? st->s.comm : "[unknown]", *st->s.comm ? strlen(st->s.comm) : 9, 0);
	stack = stack_id(o, st);
	comm_attr = attribute_id(o, "thread.name", comm, 0);
	pid_attr = st->s.pid && o->in->cfg->label_pid ? attribute_id(o, "process.pid", NULL, st->s.pid) : 0;
	if (idmap_get(&o->samples, (uint64_t)stack << 32 | comm_attr, pid_attr, &id) ||
	    vec_reserve(&o->values, &o->values_cap, o->samples.n, sizeof(*o->values))) {
		o->err = -ENOMEM;
		return;
	}
	if (id == before)
		o->values[id] = 0;
	o->values[id] += window_value(kind, &st->s);
	o->request_samples += st->s.count;
}

/* ---- Requests ---- */

static void begin_request(struct otlp *o)
{
	for (uint32_t t = DICT_MAPPING; t < DICT_TABLES; t++) {
		o->tables[t].len = 0;
		if (t != DICT_STRING)
			pb_bytes_always(&o->tables[t], t, "", 0);
	}
	o->resources.len = 0;
	strpool_free(o->strings);
	strpool_free(o->stacks);
	o->strings = strpool_new();
	o->stacks = strpool_new();
	if (!o->strings || !o->stacks)
		o->err = -ENOMEM;
	else
		string_id(o, "");
	struct idmap *maps[] = { &o->functions, &o->mappings, &o->locations, &o->attributes };

	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
		idmap_free(maps[i]);
		*maps[i] = (struct idmap){ 0 };
	}
	o->string_bytes = o->request_samples = o->nprofiles = 0;
	body_new_id(o->id);
}

static size_t estimate(const struct otlp *o)
{
	size_t sum = o->resources.len + o->string_bytes + 24 * o->samples.n;

	for (uint32_t t = DICT_MAPPING; t < DICT_TABLES; t++)
		sum += o->tables[t].len;
	return sum;
}

static int end_request(struct otlp *o)
{
	struct pb *pb = &o->resources;
	uint8_t *data;
	size_t at;

	if (o->err || !o->nprofiles)
		return o->err;
	at = pb_begin(pb, REQUEST_DICTIONARY);
	for (uint32_t t = DICT_MAPPING; t < DICT_TABLES; t++) {
		if (t == DICT_STRING)
			for (uint32_t id = 0; id < strpool_count(o->strings); id++)
				pb_bytes_always(pb, DICT_STRING, strpool_str(o->strings, id), strlen(strpool_str(o->strings, id)));
		else
			pb_raw(pb, o->tables[t].buf, o->tables[t].len);
		if (o->tables[t].err)
			return o->tables[t].err;
	}
	pb_end(pb, at);
	if (pb->err)
		return pb->err;
	data = pb->buf;
	at = pb->len;
	*pb = (struct pb){ 0 };
	return body_emit(o->in, BODY_OTLP, o->in->cfg->gzip, data, at, o->request_samples, o->id, o->fn, o->ctx);
}

static int encode(struct otlp *o)
{
	const struct window *w = o->in->window;
	struct body_stack st = { 0 };
	int rc = 0;

	begin_request(o);
	for (size_t g = 0; g < w->ngroups && !rc && !o->err; g++) {
		const struct window_group *group = &w->groups[g];

		for (size_t i = 0; i < profile_count(group->profile) && !rc && !o->err; i++) {
			if (body_stack(o->in, group->profile, i, &st)) {
				o->err = -ENOMEM;
				break;
			}
			add_sample(o, group->kind, &st);
			if (estimate(o) < o->in->cfg->request_bytes)
				continue;
			end_group(o, group);
			rc = end_request(o);
			begin_request(o);
		}
		end_group(o, group);
	}
	free(st.frames.list);
	return rc ? rc : end_request(o);
}

int body_otlp(const struct encode_input *in, body_fn fn, void *ctx)
{
	struct otlp o = { .in = in, .fn = fn, .ctx = ctx, .looks = strpool_new() };
	int rc = o.looks ? encode(&o) : -ENOMEM;

	for (uint32_t t = 0; t < DICT_TABLES; t++)
		pb_free(&o.tables[t]);
	pb_free(&o.resources);
	pb_free(&o.packed);
	strpool_free(o.strings);
	strpool_free(o.stacks);
	strpool_free(o.looks);
	idmap_free(&o.functions);
	idmap_free(&o.mappings);
	idmap_free(&o.locations);
	idmap_free(&o.attributes);
	idmap_free(&o.files);
	idmap_free(&o.samples);
	free(o.code);
	free(o.values);
	return rc;
}
