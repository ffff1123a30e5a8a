/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/gunzip.h"
#include "base/strpool.h"
#include "base/text.h"
#include "base/vec.h"
#include "out/recording_internal.h"
#include "prof/wait_notes.h"

/* Bytes of a file unpack to 3 to 20 bytes */
#define UNPACKED_SPARE	(32u << 20)
#define UNPACKED_A_BYTE 64
#define UNPACKED_MAX	(1ull << 30)
/*
 * The bytes of names that the stacks of a file may stand for: one byte can be a frame with a long
 * name and many inlined functions. Real files need 20 times their unpacked size.
 */
#define NAMES_A_BYTE	256
#define NAMES_SPARE	(64u << 20)
#define TEXT_MAX	4096
#define SECONDS_MAX	1e9

int recording_damaged(struct recording_reader *r, const char *what, uint64_t number)
{
	snprintf(r->why->text, sizeof(r->why->text), "damaged recording: %s %" PRIu64, what,
		 number);
	return -EINVAL;
}

/* ---- Strings and numbers ---- */

static int add_string(struct recording_reader *r, struct bytes s)
{
	if (vec_reserve(&r->strings, &r->strings_cap, r->nstrings + 1, sizeof(*r->strings)))
		return -ENOMEM;
	r->strings[r->nstrings++] = s;
	return 0;
}

/* "": there is no such string */
static struct bytes raw_string(const struct recording_reader *r, uint64_t number)
{
	return number && number <= r->nstrings ? r->strings[number - 1] : bytes_of("", 0, false);
}

/* Each text has the limit that it has where names are read. */
static const size_t text_max[TEXTS] = { 2 * SYM_NAME_MAX + 64, 900, SYM_NAME_MAX, 1024 };

/* Clean text, valid until the next one of its kind */
static const char *text_of(struct recording_reader *r, enum text kind, uint64_t number)
{
	struct bytes s = raw_string(r, number);

	text_clean(r->text[kind], text_max[kind], (const char *)s.base, s.len, 0);
	return r->text[kind];
}

/* Text that stays. NULL: none, or out of memory */
static const char *kept_text(struct recording_reader *r, uint64_t number)
{
	const char *s = text_of(r, TEXT_NAME, number);
	uint32_t id;

	return !*s || strpool_intern(r->rec->texts, s, strlen(s), &id)
		       ? NULL
		       : strpool_str(r->rec->texts, id);
}

void recording_comm(const struct recording_reader *r, char ret[SF_COMM], uint64_t number)
{
	struct bytes s = raw_string(r, number);
	size_t n = s.len < SF_COMM - 1 ? s.len : SF_COMM - 1;

	memset(ret, 0, SF_COMM);
	if (n)
		memcpy(ret, s.base, n);
}

static double double_of(uint64_t bits)
{
	double d;

	memcpy(&d, &bits, sizeof(d));
	return isfinite(d) && d >= 0 && d <= SECONDS_MAX ? d : 0;
}

bool recording_next(struct pb_field *f, uint64_t *ret, size_t n, bool *ret_bad)
{
	for (size_t i = 0; i < n; i++) {
		if (!pb_next_number(f, &ret[i])) {
			*ret_bad |= i || f->bytes.err;
			return false;
		}
	}
	return true;
}

int recording_numbers(struct recording_reader *r, struct bytes msg, uint64_t *ret, uint32_t n,
		      const char *what)
{
	struct pb_field f;

	memset(ret, 0, n * sizeof(*ret));
	while (pb_next(&msg, &f))
		if (f.number < n)
			ret[f.number] = f.value;
	return msg.err ? recording_damaged(r, what, 0) : 0;
}

/* ---- Meta ---- */

/* One event has no name of its own among the stacks. */
static int read_events(struct recording_reader *r, struct bytes msg)
{
	struct out_opts *opts = &r->rec->report.opts;
	struct pb_field f;

	opts->ngroups = 0;
	while (pb_next(&msg, &f)) {
		const char *name;

		if (f.number != META_GROUPS)
			continue;
		name = kept_text(r, f.value);
		if (!name || opts->ngroups == SF_EVENTS)
			return recording_damaged(r, "event", f.value);
		r->rec->groups[opts->ngroups++] = name;
	}
	opts->groups = opts->ngroups ? r->rec->groups : NULL;
	return 0;
}

static int read_meta(struct recording_reader *r, struct bytes msg)
{
	struct recording *rec = r->rec;
	uint64_t v[META_UNIT + 1], flags;
	int err = recording_numbers(r, msg, v, META_UNIT + 1, "meta");

	if (!err)
		err = read_events(r, msg);
	if (err)
		return err;
	flags = v[META_FLAGS];
	if (flags > RECORDING_FLAGS || v[META_BY] > OUT_BY_CONTAINER ||
	    v[META_WALL] > OUT_WALL_ROOT)
		return recording_damaged(r, "options", flags);
	rec->meta = (struct out_meta){
		.event = kept_text(r, v[META_EVENT]),
		.hz = double_of(v[META_HZ]),
		.host = kept_text(r, v[META_HOST]),
		.command = kept_text(r, v[META_COMMAND]),
		.command_line = kept_text(r, v[META_COMMAND_LINE]),
		.kernel = kept_text(r, v[META_KERNEL]),
		.start_unix_ns = v[META_START],
	};
	rec->report.opts.user_only = flags & RECORDING_USER_ONLY;
	rec->report.opts.kernel_only = flags & RECORDING_KERNEL_ONLY;
	rec->report.opts.usec = flags & RECORDING_USEC;
	rec->report.opts.unit = kept_text(r, v[META_UNIT]);
	rec->report.opts.by = (enum out_by)v[META_BY];
	rec->report.opts.wall = (enum out_wall)v[META_WALL];
	rec->report.apart = flags & RECORDING_APART;
	if (!rec->meta.event)
		return recording_damaged(r, "event", v[META_EVENT]);
	if (flags & RECORDING_WAKERS && !rec->wakers && !(rec->wakers = profile_new()))
		return -ENOMEM;
	return 0;
}

int recording_array(struct recording_reader *r, struct pb_field *f, uint64_t *to, size_t n)
{
	bool bad = false;

	for (size_t i = 0; i < n; i++)
		to[i] = 0;
	for (size_t i = 0; i < n && recording_next(f, &to[i], 1, &bad); i++)
		;
	return bad ? recording_damaged(r, "account", f->number) : 0;
}

static int read_stats(struct recording_reader *r, struct bytes msg)
{
	struct run_stats *st = &r->rec->stats;
	uint64_t v[STATS_WITHOUT_USER + 1];
	int err = recording_numbers(r, msg, v, STATS_WITHOUT_USER + 1, "account");
	struct pb_field f;

	if (err)
		return err;
	st->duration_s = double_of(v[STATS_DURATION]);
	st->samples = v[STATS_SAMPLES];
	st->account.user_total = v[STATS_USER_TOTAL];
	st->account.samples_without_user = v[STATS_WITHOUT_USER];
	st->offcpu = v[STATS_OFFCPU];
	st->off_sampled_ns = v[STATS_OFF_SAMPLED];
	st->off_lost_ns = v[STATS_OFF_LOST];
	while (!err && pb_next(&msg, &f)) {
		if (f.number == STATS_STOPS)
			err = recording_array(r, &f, st->account.stops, SF_STOP_MAX);
		else if (f.number == STATS_LOST)
			err = recording_array(r, &f, st->lost, SF_LOST_MAX);
		else if (f.number == STATS_OFF_NS)
			err = recording_array(r, &f, st->off_ns, SF_OFF_STATES);
	}
	return err;
}

/* ---- Modules, symbols and frames ---- */

static int read_code(struct recording_reader *r, struct module *m, struct pb_field *f)
{
	struct module_code code[MODULE_MAX_CODE];
	uint64_t v[3];
	bool bad = false;
	uint32_t n = 0;

	while (n < MODULE_MAX_CODE && recording_next(f, v, 3, &bad))
		code[n++] = (struct module_code){ v[0], v[1], v[2] };
	return bad ? recording_damaged(r, "code of file", m->id) : module_set_code(m, code, n);
}

static int read_module(struct recording_reader *r, struct bytes msg)
{
	uint64_t v[MODULE_SIZE + 1];
	int err = recording_numbers(r, msg, v, MODULE_SIZE + 1, "file");
	struct bytes path = raw_string(r, v[MODULE_PATH]);
	struct pb_field f;
	struct module *m;

	if (err)
		return err;
	if (v[MODULE_ID] > SF_FRAME_MODULE_MASK ||
	    modules_find(r->rec->modules, (uint32_t)v[MODULE_ID]))
		return recording_damaged(r, "file", v[MODULE_ID]);
	m = modules_get(r->rec->modules, (uint32_t)v[MODULE_ID]);
	if (!m)
		return -ENOMEM;
	snprintf(r->text[0], TEXT_MAX, "%.*s", path.len < TEXT_MAX ? (int)path.len : TEXT_MAX,
		 (const char *)path.base);
	if (*r->text[0])
		module_set_path(m, r->text[0]);
	m->size = v[MODULE_SIZE];
	while (!err && pb_next(&msg, &f)) {
		if (f.number == MODULE_CODE)
			err = read_code(r, m, &f);
		if (f.number != MODULE_BUILD_ID || f.bytes.len > sizeof(m->build_id))
			continue;
		memcpy(m->build_id, f.bytes.base, f.bytes.len);
		m->build_id_len = (uint32_t)f.bytes.len;
	}
	if (!err && !m->code)
		err = module_set_code(m, NULL, 0);
	m->known = KNOWN_TABLES;
	return err;
}

static int read_symbols(struct recording_reader *r, struct pb_field *f)
{
	uint64_t v[SYMBOL_NUMBERS];
	bool bad = false;

	while (recording_next(f, v, SYMBOL_NUMBERS, &bad)) {
		struct symbolizer_symbol s = { .name = text_of(r, TEXT_NAME, v[0]),
					       .module = text_of(r, TEXT_MODULE, v[1]),
					       .function = text_of(r, TEXT_FUNCTION, v[2]),
					       .file = text_of(r, TEXT_FILE, v[3]),
					       .line = (uint32_t)v[4],
					       .start_line = (uint32_t)v[5] };
		size_t n = r->nsymbols;

		if (vec_reserve(&r->symbols, &r->symbols_cap, n + 1, sizeof(*r->symbols)) ||
		    vec_reserve(&r->lengths, &r->lengths_cap, n + 1, sizeof(*r->lengths)) ||
		    symbolizer_restore(r->rec->symbols, &s, &r->symbols[n]))
			return -ENOMEM;
		r->lengths[n] = (uint32_t)(16 + strlen(s.name) + strlen(s.module) + strlen(s.file));
		r->nsymbols++;
	}
	return bad ? recording_damaged(r, "symbol", r->nsymbols) : 0;
}

static int read_frames(struct recording_reader *r, struct pb_field *f)
{
	uint64_t v[2];
	bool bad = false;

	while (recording_next(f, v, 2, &bad)) {
		size_t n = r->nframes;

		if (v[1] >= r->nsymbols || (SF_FRAME_KIND(v[0]) == SF_FRAME_LANG &&
					    SF_FRAME_LANGUAGE(v[0]) >= SF_LANG_MAX))
			return recording_damaged(r, "frame", n);
		if (vec_reserve(&r->words, &r->words_cap, n + 1, sizeof(*r->words)) ||
		    vec_reserve(&r->ids, &r->ids_cap, n + 1, sizeof(*r->ids)) ||
		    vec_reserve(&r->costs, &r->costs_cap, n + 1, sizeof(*r->costs)))
			return -ENOMEM;
		r->words[n] = v[0];
		r->ids[n] = r->symbols[v[1]];
		r->costs[n] = r->lengths[v[1]];
		r->nframes++;
	}
	return bad ? recording_damaged(r, "frame", r->nframes) : 0;
}

static int read_inlined(struct recording_reader *r, struct pb_field *f)
{
	uint64_t v[2], symbol;
	bool bad = false;
	int err = 0;

	while (!err && recording_next(f, v, 2, &bad)) {
		size_t n = 0;

		if (v[0] >= r->nframes || !v[1] || v[1] >= SF_MAX_USER)
			return recording_damaged(r, "inlined functions of frame", v[0]);
		for (; n < v[1] && recording_next(f, &symbol, 1, &bad) && symbol < r->nsymbols;
		     n++) {
			r->stack_ids[n] = r->symbols[symbol];
			r->costs[v[0]] += r->lengths[symbol];
		}
		if (n < v[1])
			return recording_damaged(r, "inlined functions of frame", v[0]);
		r->stack_ids[n] = r->ids[v[0]];
		err = symbolizer_restore_inlined(r->rec->symbols, r->words[v[0]], r->stack_ids,
						 n + 1);
	}
	return err ? err : bad ? recording_damaged(r, "inlined functions", 0) : 0;
}

/* ---- Stacks ---- */

/* Charges for the names of frames that a stack shows. */
static bool pay(struct recording_reader *r, uint64_t bytes)
{
	bool can = bytes <= r->names;

	r->names = can ? r->names - bytes : 0;
	return can;
}

static int read_stack_frames(struct recording_reader *r, struct pb_field *f, size_t *ret_n)
{
	bool bad = false;
	uint64_t number;
	size_t n = 0;

	for (; recording_next(f, &number, 1, &bad); n++) {
		if (n >= SF_MAX_USER + SF_MAX_KERNEL || number >= r->nframes)
			return recording_damaged(r, "frame", number);
		if (!pay(r, r->costs[number])) {
			snprintf(r->why->text, sizeof(r->why->text),
				 "stands for more names than a recording of its size may");
			return -EINVAL;
		}
		recording_sample(r)->frames[n] = r->words[number];
		r->stack_ids[n] = r->ids[number];
	}
	*ret_n = n;
	return bad ? recording_damaged(r, "frames of a stack", n) : 0;
}

/* A waker refers to earlier ones only, and a chain has a limit. */
static int note_depth(struct recording_reader *r, size_t at, uint64_t waker)
{
	uint8_t depth = waker ? (uint8_t)(r->depths[waker - 1] + 1) : 1;

	if (depth > SF_OFF_CHAIN)
		return recording_damaged(r, "waker", at);
	if (vec_reserve(&r->depths, &r->depths_cap, at + 1, sizeof(*r->depths)))
		return -ENOMEM;
	r->depths[at] = depth;
	return 0;
}

static int add_stack(struct recording_reader *r, struct profile *p, const uint64_t *v, size_t n)
{
	struct profile_times t = { .count = v[STACK_COUNT],
				   .weight = v[STACK_WEIGHT],
				   .waker = (uint32_t)v[STACK_WAKER_AT],
				   .state = (uint8_t)v[STACK_STATE],
				   .group = (uint8_t)v[STACK_GROUP] };
	struct sf_sample *s = recording_sample(r);
	size_t before = profile_count(p), at;
	int err;

	s->pid = (uint32_t)v[STACK_PID];
	s->tid = (uint32_t)v[STACK_TID];
	s->cgroup_id = v[STACK_CGROUP];
	s->n_user = (uint16_t)v[STACK_N_USER];
	s->n_kernel = (uint16_t)(n - v[STACK_N_USER]);
	s->stop = (uint8_t)v[STACK_STOP];
	s->flags = (uint8_t)v[STACK_FLAGS];
	s->lang_stop = (uint8_t)v[STACK_LANG_STOP];
	recording_comm(r, s->comm, v[STACK_COMM]);
	err = profile_add_times(p, s, &t, &at);
	if (err == -EINVAL || (!err && at != before))
		return recording_damaged(r, "stack", before);
	return err ? err : profile_set_symbols(p, at, r->stack_ids);
}

static int read_stack(struct recording_reader *r, struct bytes msg, struct profile *p,
		      bool is_waker)
{
	size_t n = 0, at = profile_count(p),
	       wakers = r->rec->wakers ? profile_count(r->rec->wakers) : 0;
	uint64_t v[STACK_GROUP + 1];
	int err = recording_numbers(r, msg, v, STACK_GROUP + 1, "stack");
	struct pb_field f;

	while (!err && pb_next(&msg, &f))
		if (f.number == STACK_FRAMES && !n)
			err = read_stack_frames(r, &f, &n);
	if (err)
		return err;
	if (v[STACK_N_USER] > n || n - v[STACK_N_USER] > SF_MAX_KERNEL ||
	    v[STACK_N_USER] > SF_MAX_USER || v[STACK_WAKER_AT] > wakers ||
	    v[STACK_STOP] >= SF_STOP_MAX || v[STACK_LANG_STOP] >= SF_STOP_MAX ||
	    v[STACK_FLAGS] > UINT8_MAX || v[STACK_STATE] > PROFILE_RUNNING ||
	    (v[STACK_GROUP] && v[STACK_GROUP] >= r->rec->report.opts.ngroups) ||
	    v[STACK_PID] > UINT32_MAX || v[STACK_TID] > UINT32_MAX ||
	    __builtin_add_overflow(r->samples, v[STACK_COUNT], &r->samples) ||
	    __builtin_add_overflow(r->weight, v[STACK_WEIGHT], &r->weight))
		return recording_damaged(r, is_waker ? "waker" : "stack", at);
	if (is_waker)
		err = note_depth(r, at, v[STACK_WAKER_AT]);
	return err ? err : add_stack(r, p, v, n);
}

static int read_process(struct recording_reader *r, struct bytes msg)
{
	uint64_t v[PROCESS_NAME + 1];
	int err = recording_numbers(r, msg, v, PROCESS_NAME + 1, "process");
	char name[SF_COMM];

	recording_comm(r, name, v[PROCESS_NAME]);
	return err ? err : profile_name_process(r->rec->profile, (uint32_t)v[PROCESS_PID], name);
}

static int read_container(struct recording_reader *r, struct bytes msg)
{
	uint64_t v[CONTAINER_IS_GONE + 1];
	int err = recording_numbers(r, msg, v, CONTAINER_IS_GONE + 1, "container");
	struct out_container c = { .gone = v[CONTAINER_IS_GONE] };

	if (err)
		return err;
	snprintf(c.id, sizeof(c.id), "%.*s", (int)sizeof(c.id) - 1,
		 text_of(r, TEXT_NAME, v[CONTAINER_ID]));
	snprintf(c.name, sizeof(c.name), "%.*s", (int)sizeof(c.name) - 1,
		 text_of(r, TEXT_NAME, v[CONTAINER_NAMED]));
	return out_containers_set(r->rec->containers, (uint32_t)v[CONTAINER_PID],
				  v[CONTAINER_CGROUP], &c);
}

/* ---- The file ---- */

static int read_field(struct recording_reader *r, struct pb_field *f)
{
	struct recording *rec = r->rec;

	switch (f->number) {
	case REC_STRING:
		return add_string(r, f->bytes);
	case REC_META:
		return read_meta(r, f->bytes);
	case REC_MODULE:
		return read_module(r, f->bytes);
	case REC_SYMBOLS:
		return read_symbols(r, f);
	case REC_FRAMES:
		return read_frames(r, f);
	case REC_INLINED:
		return read_inlined(r, f);
	case REC_WAKER:
		return rec->wakers ? read_stack(r, f->bytes, rec->wakers, true)
				   : recording_damaged(r, "waker", 0);
	case REC_STACK:
		return read_stack(r, f->bytes, rec->profile, false);
	case REC_PROCESS:
		return read_process(r, f->bytes);
	case REC_CONTAINER:
		return read_container(r, f->bytes);
	case REC_TIMELINE:
		return recording_read_timeline(r, f->bytes);
	case REC_SLICES:
		return recording_read_slices(r, f->bytes);
	case REC_BLOCKS:
		return recording_read_blocks(r, f->bytes);
	case REC_STATS:
		return read_stats(r, f->bytes);
	default:
		return 0;
	}
}

static int read_all(struct recording_reader *r, struct bytes msg)
{
	struct recording *rec = r->rec;
	struct pb_field f;
	int err = 0;

	while (!err && pb_next(&msg, &f))
		err = read_field(r, &f);
	if (!err && (msg.err || !rec->meta.event))
		err = recording_damaged(r, "part at byte", msg.pos);
	rec->report.profile = rec->profile;
	rec->report.symbols = rec->symbols;
	rec->report.modules = rec->modules;
	rec->report.wakers = rec->wakers;
	rec->report.containers = rec->containers;
	rec->report.meta = &rec->meta;
	rec->report.stats = &rec->stats;
	return err;
}

static int start(struct recording *rec)
{
	*rec = (struct recording){ .modules = modules_new(),
				   .profile = profile_new(),
				   .containers = out_containers_new(),
				   .texts = strpool_new() };
	rec->symbols = rec->modules ? symbolizer_new(rec->modules) : NULL;
	if (!rec->symbols || !rec->profile || !rec->containers || !rec->texts)
		return -ENOMEM;
	profile_by_thread(rec->profile);
	return 0;
}

int recording_read(struct bytes file, struct recording *ret, struct read_error *why)
{
	struct recording_reader *r = calloc(1, sizeof(*r));
	size_t max = UNPACKED_SPARE + UNPACKED_A_BYTE * file.len, len = 0;
	struct bytes packed;
	uint8_t *buf = NULL;
	int err = start(ret);

	*why = (struct read_error){ 0 };
	if (!r || err) {
		free(r);
		return -ENOMEM;
	}
	r->rec = ret;
	r->why = why;
	if (!bytes_are(&file, 0, RECORDING_MAGIC, RECORDING_MAGIC_LEN)) {
		snprintf(why->text, sizeof(why->text),
			 "a recording of another version of sfbpf, or damaged at its start");
		err = -EINVAL;
	}
	packed = bytes_sub(&file, RECORDING_MAGIC_LEN, file.len - RECORDING_MAGIC_LEN);
	if (!err)
		err = gunzip(&packed, max < UNPACKED_MAX ? max : UNPACKED_MAX, &buf, &len);
	if (err && !*why->text && err != -ENOMEM)
		err = recording_damaged(r,
					err == -EFBIG ? "it unpacks to more bytes than"
						      : "its packing",
					max);
	r->names = NAMES_SPARE + (uint64_t)NAMES_A_BYTE * len;
	if (!err)
		err = read_all(r, bytes_of(buf, len, false));
	free(buf);
	free(r->strings);
	free(r->symbols);
	free(r->lengths);
	free(r->words);
	free(r->ids);
	free(r->costs);
	free(r->depths);
	free(r);
	return err;
}

void recording_free(struct recording *rec)
{
	symbolizer_free(rec->symbols);
	profile_free(rec->profile);
	profile_free(rec->wakers);
	modules_free(rec->modules);
	timeline_free(&rec->times);
	slices_free(&rec->slices);
	out_containers_free(rec->containers);
	out_blocks_free(&rec->blocks);
	free(rec->block_list);
	strpool_free(rec->texts);
	*rec = (struct recording){ 0 };
}

bool recording_is(FILE *f)
{
	int c = getc(f);

	if (c != EOF)
		ungetc(c, f);
	return c == (uint8_t)RECORDING_MAGIC[0];
}
