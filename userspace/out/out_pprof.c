/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * profile.proto of pprof, compressed with gzip.
 *
 * Mappings: one for each executable segment that frames lie in, with path, build-id and file
 * offset. Frames are positions in a file, not in the address space of a process. So each file gets
 * a range of addresses: address = BASE + file offset, memory_start = BASE + offset of the segment.
 * Tools that look up symbols by mapping expect this, also for fixed-address executables. Kernel
 * frames have their real addresses, in [kernel.kallsyms]. Code without a file has its address and
 * no mapping.
 *
 * Code of Go has inlined functions, lines and start lines, which `go build -pgo` requires, also
 * without --inline and --lines (out_format.go_lines).
 *
 * Functions have no system_name: pprof takes a name that equals it for one that is not demangled,
 * and cuts what looks like parameters, such as "<module> (a.py)".
 *
 * Values: samples, and with a clock event also CPU time at the period; off-CPU: samples and
 * nanoseconds. Labels: comm, pid, tid, cgroup_id, container (its id, if the process is in one),
 * container.name if that is known, and `incomplete` with the stop reason if the user part did not
 * reach its outermost frame; the agent's also have those of their service (out_report.labels) in
 * place of cgroup_id and the container's; off-CPU also `state`, `waker` (its comm) and
 * `waker_stack`. Values without a field in profile.proto are comments, as KEY=VALUE: host, event,
 * hz, lost, command.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/gzip.h"
#include "base/idmap.h"
#include "base/kernel_word.h"
#include "base/pb.h"
#include "base/strpool.h"
#include "base/text.h"
#include "base/vec.h"
#include "elf/elf_image.h"
#include "out/out.h"
#include "prof/pprof_fields.h"
#include "prof/stackset.h"
#include "prof/wait_notes.h"

/* An address above fixed-address executables, below the usual mappings */
#define FIRST_BASE   0x100000000000ull
#define BASE_ALIGN   0x200000ull
#define KERNEL_START 0xffff000000000000ull
#define NO_MAPPING   UINT32_MAX
/* These stand in place of a symbol: NOTE + enum wait_note, NOTE_GROUP + the number of an event */
#define NOTE	     (UINT32_MAX - WAIT_NOTES - SF_EVENTS)
#define NOTE_GROUP   (NOTE + WAIT_NOTES)

struct file { /* a module that frames lie in */
	const struct module_code *code;
	uint32_t ncode;
	uint64_t base;
};

struct mapping {
	const struct module *m; /* NULL: the kernel */
	uint64_t start, limit, offset;
	bool named; /* one of its frames was named by a symbol */
};

struct pprof {
	const struct out_report *r;
	struct pb pb;
	struct strpool *strings;
	struct idmap file_ids; /* module id -> files */
	struct file *files;
	size_t files_cap;
	struct idmap mapping_ids; /* module id, segment's offset -> mappings */
	struct mapping *mappings;
	size_t mappings_cap;
	struct out_containers *containers;
	struct idmap locations; /* mapping << 32 | symbol, address */
	struct idmap functions; /* name, file */
	uint64_t *ids;		/* scratch: a sample's locations */
	size_t ids_cap;
	char *text; /* scratch: a waker's stack */
	size_t text_len, text_cap;
	uint64_t next_base, period; /* period in nanoseconds; 0: values are only samples */
	int err;		    /* first failure; the output is then discarded */
};

static uint64_t string_id(struct pprof *w, const char *s)
{
	uint32_t id = 0;

	if (strpool_intern(w->strings, s, strlen(s), &id))
		w->err = -ENOMEM;
	return id;
}

static uint64_t clean_string_id(struct pprof *w, const char *s)
{
	char buf[4096];

	text_clean(buf, sizeof(buf), s, strlen(s), 0);
	return string_id(w, buf);
}

static uint64_t path_id(struct pprof *w, const char *path)
{
	char buf[4096];

	redact_paths(w->r->opts.redact, path, buf, sizeof(buf));
	return clean_string_id(w, buf);
}

/* ---- Mappings ---- */

static struct file *file_of(struct pprof *w, struct module *m)
{
	size_t before = w->file_ids.n;
	struct file *f;
	uint64_t end;
	uint32_t id;

	if (idmap_get(&w->file_ids, m->id, 0, &id) ||
	    vec_reserve(&w->files, &w->files_cap, w->file_ids.n, sizeof(*w->files))) {
		w->err = -ENOMEM;
		return NULL;
	}
	f = &w->files[id];
	if (id < before)
		return f;
	*f = (struct file){ .base = w->next_base };
	f->code = symbolizer_code(w->r->symbols, m, &f->ncode);
	end = m->size;
	for (uint32_t i = 0; i < f->ncode; i++)
		if (f->code[i].off + f->code[i].size > end)
			end = f->code[i].off + f->code[i].size;
	if (end > SF_FRAME_OFFSET_MASK)
		end = SF_FRAME_OFFSET_MASK;
	w->next_base += (end + 2 * BASE_ALIGN) & ~(BASE_ALIGN - 1);
	return f;
}

static uint32_t add_mapping(struct pprof *w, uint64_t module, const struct mapping *map)
{
	size_t before = w->mapping_ids.n;
	uint32_t id;

	if (idmap_get(&w->mapping_ids, module, map->offset, &id) ||
	    vec_reserve(&w->mappings, &w->mappings_cap, w->mapping_ids.n, sizeof(*w->mappings))) {
		w->err = -ENOMEM;
		return NO_MAPPING;
	}
	if (id == before)
		w->mappings[id] = *map;
	return id;
}

/* The mapping of a user frame; *ret_address: its address there. */
static uint32_t place_user(struct pprof *w, uint64_t frame, uint64_t *ret_address)
{
	uint32_t kind = SF_FRAME_KIND(frame);
	struct module *m = kind == SF_FRAME_ROW || kind == SF_FRAME_NOROW
				   ? modules_find(w->r->modules, SF_FRAME_MODULE(frame))
				   : NULL;
	uint64_t off = SF_FRAME_OFFSET(frame);
	struct mapping map = { .m = m };
	const struct module_code *code;
	const struct file *f;

	*ret_address = m		       ? off
		       : kind == SF_FRAME_LANG ? 0 /* the function and its line say it */
		       : kind == SF_FRAME_JIT  ? SF_FRAME_JIT_ADDR(frame)
					       : SF_FRAME_ADDR(frame);
	if (!m || m->known == KNOWN_ID)
		return NO_MAPPING;
	f = file_of(w, m);
	if (!f)
		return NO_MAPPING;
	*ret_address = f->base + off;
	map.start = f->base;
	map.limit = f->base + (off < m->size ? m->size : off + 1);
	code = module_code_at(f->code, f->ncode, off);
	if (code) {
		map.offset = code->off;
		map.start = f->base + map.offset;
		map.limit = map.start + ((code->size + MODULE_PAGE - 1) & ~(MODULE_PAGE - 1));
	}
	return add_mapping(w, m->id, &map);
}

static uint32_t place_kernel(struct pprof *w, uint64_t addr)
{
	/* The kernel is not limited to the upper half of the address space on s390x. */
	struct mapping map = { .start = addr < KERNEL_START ? 0 : KERNEL_START,
			       .limit = ~(MODULE_PAGE - 1) };

	return add_mapping(w, UINT32_MAX + 1ull + (addr < KERNEL_START), &map);
}

static void put_mapping(struct pprof *w, uint32_t id)
{
	const struct mapping *map = &w->mappings[id];
	const struct module *m = map->m;
	uint8_t build_id[sizeof(m->build_id)];
	size_t n = m ? m->build_id_len
		     : elf_notes_file_build_id("/sys/kernel/notes", build_id, sizeof(build_id)),
	       at;
	char hex[2 * sizeof(build_id) + 1] = "";

	if (m)
		memcpy(build_id, m->build_id, sizeof(build_id));
	for (size_t i = 0; i < n && i < sizeof(build_id); i++)
		snprintf(hex + 2 * i, 3, "%02x", build_id[i]);
	at = pb_begin(&w->pb, PROFILE_MAPPING);
	pb_u64(&w->pb, ENTRY_ID, (uint64_t)id + 1);
	pb_u64(&w->pb, MAPPING_START, map->start);
	pb_u64(&w->pb, MAPPING_LIMIT, map->limit);
	pb_u64(&w->pb, MAPPING_OFFSET, map->offset);
	pb_u64(&w->pb, MAPPING_FILE,
	       m ? path_id(w, m->path ? m->path : "") : string_id(w, "[kernel.kallsyms]"));
	pb_u64(&w->pb, MAPPING_BUILD_ID, string_id(w, hex));
	pb_u64(&w->pb, MAPPING_HAS_FUNCTIONS, map->named);
	pb_end(&w->pb, at);
}

/* ---- Functions and locations ---- */

/* The source line of a symbol, 0 if unknown, and the source file. */
static uint32_t line_of(const struct pprof *w, uint32_t symbol, const char **ret_file)
{
	*ret_file = "";
	return symbol >= NOTE ? 0 : symbolizer_line(w->r->symbols, symbol, ret_file);
}

/* The text of a frame that is no function */
static uint64_t note_id(struct pprof *w, uint32_t note)
{
	return note < NOTE_GROUP ? string_id(w, wait_note_text((enum wait_note)(note - NOTE)))
				 : clean_string_id(w, out_group_frame(w->r, note - NOTE_GROUP));
}

/*
 * The function of a symbol; all its lines, and its inlined copies, share it. A new one is written
 * at once, so no other message may be open.
 */
static uint64_t function_id(struct pprof *w, uint32_t symbol)
{
	size_t before = w->functions.n, at;
	bool real = symbol < NOTE;
	uint64_t name = real ? string_id(w, symbolizer_function(w->r->symbols, symbol))
			     : note_id(w, symbol),
		 path;
	uint32_t id, module = real ? symbolizer_module_index(w->r->symbols, symbol) : UINT32_MAX;
	const char *file;

	line_of(w, symbol, &file);
	path = string_id(w, file);
	/* Functions of the same name in two modules stay separate, like their symbols. */
	if (idmap_get(&w->functions, name << 32 | module, path, &id)) {
		w->err = -ENOMEM;
		return 0;
	}
	if (id == before) {
		at = pb_begin(&w->pb, PROFILE_FUNCTION);
		pb_u64(&w->pb, ENTRY_ID, (uint64_t)id + 1);
		pb_u64(&w->pb, FUNCTION_NAME, name);
		pb_u64(&w->pb, FUNCTION_FILE, path);
		pb_u64(&w->pb, FUNCTION_START_LINE,
		       real ? symbolizer_start_line(w->r->symbols, symbol) : 0);
		pb_end(&w->pb, at);
	}
	return (uint64_t)id + 1;
}

static void put_line(struct pprof *w, uint32_t symbol)
{
	const char *file;
	uint32_t number = line_of(w, symbol, &file);
	uint64_t function = function_id(w, symbol);
	size_t line = pb_begin(&w->pb, LOCATION_LINE);

	pb_u64(&w->pb, LINE_FUNCTION, function);
	pb_u64(&w->pb, LINE_LINE, number);
	pb_end(&w->pb, line);
}

/* word: a user frame, whose inlined functions are included; 0: no inlined functions. */
static uint64_t location_id(struct pprof *w, uint32_t mapping, uint64_t address, uint32_t symbol,
			    uint64_t word)
{
	size_t before = w->locations.n, at, ninlined = 0;
	const uint32_t *inlined;
	uint32_t id;

	if (idmap_get(&w->locations, (uint64_t)mapping << 32 | symbol, address, &id)) {
		w->err = -ENOMEM;
		return 0;
	}
	if (id < before)
		return (uint64_t)id + 1;
	if (mapping != NO_MAPPING && symbolizer_name(w->r->symbols, symbol)[0] != '[')
		w->mappings[mapping].named = true;
	if (word)
		ninlined = symbolizer_inlined(w->r->symbols, word, &inlined);
	for (size_t i = 0; i < ninlined; i++)
		function_id(w, inlined[i]);
	function_id(w, symbol);
	at = pb_begin(&w->pb, PROFILE_LOCATION);
	pb_u64(&w->pb, ENTRY_ID, (uint64_t)id + 1);
	if (mapping != NO_MAPPING)
		pb_u64(&w->pb, LOCATION_MAPPING, (uint64_t)mapping + 1);
	pb_u64(&w->pb, LOCATION_ADDRESS, address);
	for (size_t i = 0; i < ninlined; i++)
		put_line(w, inlined[i]);
	put_line(w, symbol);
	pb_end(&w->pb, at);
	return (uint64_t)id + 1;
}

/* ---- Samples ---- */

/*
 * Fills w->ids with the locations of stack i, leaf first: kernel part, then user part. Returns
 * their number.
 */
static size_t locate(struct pprof *w, size_t i, const struct profile_stack *s)
{
	const uint32_t *symbols = profile_symbols(w->r->profile, i, w->r->symbols);
	uint32_t state = 0;
	size_t n = 0;

	if (!symbols || vec_reserve(&w->ids, &w->ids_cap, (size_t)s->n_user + s->n_kernel + 3,
				    sizeof(*w->ids))) {
		w->err = -ENOMEM;
		return 0;
	}
	if (w->r->opts.wall || s->state == SF_OFF_R)
		state = NOTE + wait_note_of(s, symbols, w->r->symbols);
	if (state && !out_state_at_root(w->r))
		w->ids[n++] = location_id(w, NO_MAPPING, 0, state, 0);
	for (size_t k = 0; k < s->n_kernel && !w->r->opts.user_only; k++) {
		uint64_t addr = kernel_word_addr(s->frames[s->n_user + k]);

		w->ids[n++] = location_id(w, place_kernel(w, addr), addr, symbols[s->n_user + k],
					  0);
	}
	for (size_t k = 0; k < s->n_user && !w->r->opts.kernel_only; k++) {
		uint64_t addr;
		uint32_t mapping = place_user(w, s->frames[k], &addr);

		w->ids[n++] = location_id(w, mapping, addr, symbols[k], s->frames[k]);
	}
	if (state && out_state_at_root(w->r))
		w->ids[n++] = location_id(w, NO_MAPPING, 0, state, 0);
	if (w->r->opts.groups)
		w->ids[n++] = location_id(w, NO_MAPPING, 0, NOTE_GROUP + s->group, 0);
	/* A sample without a location would be missing in every table of functions. */
	if (!n)
		w->ids[n++] = location_id(w, NO_MAPPING, 0, SYM_NO_STACK, 0);
	return n;
}

static void put_label(struct pprof *w, const char *key, uint64_t str, uint64_t num)
{
	uint64_t key_id = string_id(w, key);
	size_t at = pb_begin(&w->pb, SAMPLE_LABEL);

	pb_u64(&w->pb, LABEL_KEY, key_id);
	pb_u64(&w->pb, LABEL_STR, str);
	pb_u64(&w->pb, LABEL_NUM, num);
	pb_end(&w->pb, at);
}

static void put_text(struct pprof *w, const char *s)
{
	size_t len = strlen(s);

	if (vec_reserve(&w->text, &w->text_cap, w->text_len + len + 2, 1)) {
		w->err = -ENOMEM;
		return;
	}
	if (w->text_len)
		w->text[w->text_len++] = ';';
	memcpy(w->text + w->text_len, s, len + 1);
	w->text_len += len;
}

/* Writes the waker's comm, and all wakers as in folded lines. */
static void put_wakers(struct pprof *w, uint32_t waker)
{
	const struct out_report *r = w->r;
	struct profile_stack s;
	char clean[2048];

	profile_stack(r->wakers, waker - 1, &s);
	put_label(w, "waker", clean_string_id(w, *s.comm ? s.comm : "[unknown]"), 0);
	for (w->text_len = 0; waker; waker = s.waker) {
		const uint32_t *ids = profile_symbols(r->wakers, waker - 1, r->symbols);

		profile_stack(r->wakers, waker - 1, &s);
		if (w->text_len)
			put_text(w, STACK_WAKER_MARK);
		text_clean(clean, sizeof(clean), s.comm, strlen(s.comm), TEXT_FOLDED);
		put_text(w, *clean ? clean : "[unknown]");
		for (size_t k = (size_t)s.n_user + s.n_kernel; ids && k-- > 0;) {
			/* Root first: the user part in reverse, then the kernel part. */
			size_t at = k >= s.n_kernel ? k - s.n_kernel : k + s.n_user;
			const char *name = symbolizer_name(r->symbols, ids[at]);

			if (at < s.n_user ? r->opts.kernel_only : r->opts.user_only)
				continue;
			text_clean(clean, sizeof(clean), name, strlen(name), TEXT_FOLDED);
			put_text(w, clean);
		}
	}
	if (!w->err)
		put_label(w, "waker_stack", string_id(w, w->text), 0);
}

static void put_offcpu_labels(struct pprof *w, const struct profile_stack *s)
{
	static const char letters[] = SF_OFF_LETTERS;

	if (s->state < SF_OFF_STATES)
		put_label(w, "state", string_id(w, (char[2]){ letters[s->state] }), 0);
	if (w->r->wakers && s->waker)
		put_wakers(w, s->waker);
}

static void put_labels(struct pprof *w, const struct profile_stack *s)
{
	const struct out_label *list;
	size_t n = w->r->labels->of(w->r->labels->ctx, s->cgroup_id, &list);

	for (size_t i = 0; i < n; i++)
		put_label(w, list[i].name, clean_string_id(w, list[i].value), 0);
}

static void put_id(struct pprof *w, const char *key, const void *id, size_t len)
{
	char hex[33];

	for (size_t i = 0; i < len; i++)
		sprintf(hex + 2 * i, "%02x", ((const uint8_t *)id)[i]);
	put_label(w, key, string_id(w, hex), 0);
}

static void put_link(struct pprof *w, uint32_t link)
{
	uint64_t ids[SF_LINK_WORDS];

	w->r->links->of(w->r->links->ctx, link, ids);
	put_id(w, "trace_id", ids, 2 * sizeof(*ids));
	put_id(w, "span_id", ids + 2, sizeof(*ids));
}

static void put_origin(struct pprof *w, const struct profile_stack *s)
{
	const struct out_container *container;

	if (w->r->links && s->link)
		put_link(w, s->link);
	if (w->r->labels)
		put_labels(w, s);
	if (s->pid || !w->r->opts.any_process)
		put_label(w, "pid", 0, s->pid);
	if (s->tid)
		put_label(w, "tid", 0, s->tid);
	if (w->r->labels)
		return;
	if (s->cgroup_id)
		put_label(w, "cgroup_id", 0, s->cgroup_id);
	container = out_container(w->containers, s);
	if (*container->id)
		put_label(w, "container", string_id(w, container->id), 0);
	if (*container->name)
		put_label(w, "container.name", string_id(w, container->name), 0);
}

/* Samples, and what they count for */
static bool two_values(const struct pprof *w)
{
	return w->period || w->r->opts.usec || w->r->opts.unit;
}

static void put_sample(struct pprof *w, size_t i)
{
	struct profile_stack s;
	uint64_t values[2];
	size_t n, at;

	profile_stack(w->r->profile, i, &s);
	n = locate(w, i, &s);
	values[0] = s.count;
	values[1] = w->period ? s.count * w->period : s.weight;
	at = pb_begin(&w->pb, PROFILE_SAMPLE);
	pb_packed(&w->pb, SAMPLE_LOCATION, w->ids, n);
	pb_packed(&w->pb, SAMPLE_VALUE, values, two_values(w) ? 2 : 1);
	put_label(w, "comm", clean_string_id(w, *s.comm ? s.comm : "[unknown]"), 0);
	if (!w->r->opts.only_comm)
		put_origin(w, &s);
	if (out_incomplete(w->r, &s) && !w->r->opts.only_comm)
		put_label(w, "incomplete", string_id(w, profile_stop_name(s.stop)), 0);
	if (w->r->stats->offcpu && !w->r->opts.only_comm)
		put_offcpu_labels(w, &s);
	pb_end(&w->pb, at);
}

/* ---- The profile ---- */

static void put_type(struct pprof *w, uint32_t field, const char *type, const char *unit)
{
	uint64_t type_id = string_id(w, type), unit_id = string_id(w, unit);
	size_t at = pb_begin(&w->pb, field);

	pb_u64(&w->pb, TYPE_TYPE, type_id);
	pb_u64(&w->pb, TYPE_UNIT, unit_id);
	pb_end(&w->pb, at);
}

static void put_comments(struct pprof *w)
{
	const struct out_meta *meta = w->r->meta;
	uint64_t ids[6];
	char text[320];
	size_t n = 0;

	ids[n++] = string_id(w, "sfbpf " SFBPF_VERSION);
	snprintf(text, sizeof(text), "host=%s", meta->host ? meta->host : "");
	ids[n++] = clean_string_id(w, text);
	snprintf(text, sizeof(text), "event=%s", meta->event ? meta->event : "");
	ids[n++] = clean_string_id(w, text);
	snprintf(text, sizeof(text), "lost=%" PRIu64, run_lost(w->r->stats));
	ids[n++] = string_id(w, text);
	snprintf(text, sizeof(text), "hz=%g", meta->hz);
	if (meta->hz > 0)
		ids[n++] = string_id(w, text);
	snprintf(text, sizeof(text), "command=%.256s", meta->command ? meta->command : "");
	if (meta->command)
		ids[n++] = clean_string_id(w, text);
	pb_packed(&w->pb, PROFILE_COMMENT, ids, n);
}

static void put_head(struct pprof *w)
{
	const struct out_meta *meta = w->r->meta;

	if (out_is_clock(meta) && !w->r->opts.usec && !w->r->opts.unit)
		w->period = (uint64_t)(1e9 / meta->hz + 0.5);
	put_type(w, PROFILE_SAMPLE_TYPE, "samples", "count");
	if (w->r->opts.usec) {
		put_type(w, PROFILE_SAMPLE_TYPE, "off_cpu", "nanoseconds");
		put_type(w, PROFILE_PERIOD_TYPE, "off_cpu", "nanoseconds");
	} else if (w->r->opts.unit) {
		put_type(w, PROFILE_SAMPLE_TYPE, meta->event, w->r->opts.unit);
		put_type(w, PROFILE_PERIOD_TYPE, meta->event, w->r->opts.unit);
	} else if (w->period) {
		put_type(w, PROFILE_SAMPLE_TYPE, "cpu", "nanoseconds");
		put_type(w, PROFILE_PERIOD_TYPE, "cpu", "nanoseconds");
	} else {
		put_type(w, PROFILE_PERIOD_TYPE, meta->event ? meta->event : "samples", "count");
	}
	pb_u64(&w->pb, PROFILE_PERIOD, w->period);
	pb_u64(&w->pb, PROFILE_TIME_NANOS, meta->start_unix_ns);
	pb_u64(&w->pb, PROFILE_DURATION_NANOS, (uint64_t)(w->r->stats->duration_s * 1e9));
	put_comments(w);
}

static void put_strings(struct pprof *w)
{
	for (uint32_t id = 0; id < strpool_count(w->strings); id++) {
		const char *s = strpool_str(w->strings, id);

		pb_bytes_always(&w->pb, PROFILE_STRING, s, strlen(s));
	}
}

static int write_gzip(const struct pb *pb, int level, FILE *f)
{
	uint8_t *packed;
	size_t len;
	int err = gzip_bytes(pb->buf, pb->len, level ? level : 6, &packed, &len);

	if (err)
		return err;
	fwrite(packed, 1, len, f);
	free(packed);
	return out_finish(f);
}

int out_pprof(const struct out_report *r, FILE *f)
{
	struct pprof w = { .r = r,
			   .strings = strpool_new(),
			   .next_base = FIRST_BASE,
			   .containers = out_containers_of(r) };
	int err = -ENOMEM;

	if (w.strings && w.containers) {
		string_id(&w, ""); /* must have id 0 */
		put_head(&w);
		for (size_t i = 0; i < profile_count(r->profile) && !w.err; i++)
			put_sample(&w, i);
		for (uint32_t i = 0; i < w.mapping_ids.n && !w.err; i++)
			put_mapping(&w, i);
		put_strings(&w);
		err = w.err	 ? w.err
		      : w.pb.err ? w.pb.err
				 : write_gzip(&w.pb, r->opts.gzip_level, f);
	}
	pb_free(&w.pb);
	strpool_free(w.strings);
	out_containers_done(r, w.containers);
	idmap_free(&w.file_ids);
	idmap_free(&w.mapping_ids);
	idmap_free(&w.locations);
	idmap_free(&w.functions);
	free(w.files);
	free(w.mappings);
	free(w.ids);
	free(w.text);
	return err;
}
