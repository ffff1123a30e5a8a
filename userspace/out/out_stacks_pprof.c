/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks by name as profile.proto, for `report` and `serve`. They have no addresses: each frame is
 * a location and a function of its own, and each module a mapping without addresses. The labels are
 * comm, the label that stacks begin with, and pid. The value is the first one of the file, so
 * that it can be read back.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/gzip.h"
#include "base/pb.h"
#include "base/vec.h"
#include "out/out.h"
#include "out/out_html.h"
#include "out/out_stacks.h"
#include "prof/pprof_fields.h"

enum { GZIP_LEVEL = 1 };

struct writer {
	const struct stackset *ss;
	struct pb pb;
	struct strpool *strings;
	struct idmap mappings; /* string id of the module */
	uint32_t *ids;	       /* the location of each frame; 0: not written */
	size_t nlocations;
	uint64_t *stack;
	size_t stack_cap;
	uint64_t period;
	bool off_cpu;
	int err;
};

static uint64_t text_id(struct writer *w, const char *s)
{
	uint32_t id = 0;

	if (strpool_intern(w->strings, s, strlen(s), &id))
		w->err = -ENOMEM;
	return id;
}

static uint64_t mapping_of(struct writer *w, uint32_t frame)
{
	const char *module = stackset_frame_module(w->ss, frame);
	uint32_t id;

	/* Code without a file has a name like "[jit]". */
	if (!*module || (*module == '[' && strcmp(module, "[kernel]") != 0))
		return 0;
	if (idmap_get(&w->mappings, text_id(w, module), 0, &id))
		w->err = -ENOMEM;
	return w->err ? 0 : (uint64_t)id + 1;
}

/* The location of a frame, written when it is first met; no other message may be open. */
static uint64_t location_of(struct writer *w, uint32_t frame)
{
	char name[STACK_TEXT_MAX];
	uint64_t id, mapping;
	size_t at, line;

	if (w->ids[frame])
		return w->ids[frame];
	id = w->ids[frame] = (uint32_t)++w->nlocations;
	snprintf(name, sizeof(name), "%s%s", stackset_frame_name(w->ss, frame),
		 stack_kind_suffix(stackset_frame_kind(w->ss, frame)));
	mapping = mapping_of(w, frame);
	at = pb_begin(&w->pb, PROFILE_FUNCTION);
	pb_u64(&w->pb, ENTRY_ID, id);
	pb_u64(&w->pb, FUNCTION_NAME, text_id(w, name));
	pb_end(&w->pb, at);
	at = pb_begin(&w->pb, PROFILE_LOCATION);
	pb_u64(&w->pb, ENTRY_ID, id);
	pb_u64(&w->pb, LOCATION_MAPPING, mapping);
	pb_u64(&w->pb, LOCATION_ADDRESS, id);
	line = pb_begin(&w->pb, LOCATION_LINE);
	pb_u64(&w->pb, LINE_FUNCTION, id);
	pb_end(&w->pb, line);
	pb_end(&w->pb, at);
	return id;
}

static void put_label(struct writer *w, const char *key, const char *str, uint64_t num)
{
	uint64_t key_id = text_id(w, key), str_id = str ? text_id(w, str) : 0;
	size_t at = pb_begin(&w->pb, SAMPLE_LABEL);

	pb_u64(&w->pb, LABEL_KEY, key_id);
	pb_u64(&w->pb, LABEL_STR, str_id);
	pb_u64(&w->pb, LABEL_NUM, num);
	pb_end(&w->pb, at);
}

static void put_sample(struct writer *w, size_t leaf, const char *by)
{
	const struct idmap_key *nodes = w->ss->nodes.keys, *key = &w->ss->leaves.keys[leaf];
	const struct idmap_key *group = &w->ss->groups.keys[key->b];
	uint64_t value = w->ss->values[leaf][STACK_AFTER], values[2] = { value, value * w->period };
	const char *begins = strpool_str(w->ss->strings, (uint32_t)group->a), *comm = NULL;
	char stop[64] = "";
	size_t n = 0, at;

	for (uint64_t node = key->a; node != STACK_ROOT; node = nodes[node].a) {
		uint32_t frame = (uint32_t)nodes[node].b;
		const char *name = stackset_frame_name(w->ss, frame);

		/* A label there, too; see prof/read_pprof.c */
		if (stackset_frame_kind(w->ss, frame) == STACK_NOTE &&
		    sscanf(name, "[incomplete:%63[a-z_]", stop) == 1)
			continue;
		/* The thread's name comes first if stacks begin with a label. */
		if (by && nodes[node].a == STACK_ROOT &&
		    stackset_frame_kind(w->ss, frame) == STACK_NOTE) {
			comm = name;
			continue;
		}
		if (vec_reserve(&w->stack, &w->stack_cap, n + 1, sizeof(*w->stack))) {
			w->err = -ENOMEM;
			return;
		}
		w->stack[n++] = location_of(w, frame);
	}
	if (w->off_cpu)
		values[0] = value * 1000;
	at = pb_begin(&w->pb, PROFILE_SAMPLE);
	pb_packed(&w->pb, SAMPLE_LOCATION, w->stack, n);
	pb_packed(&w->pb, SAMPLE_VALUE, values, w->period ? 2 : 1);
	put_label(w, by ? by : "comm", begins, 0);
	if (comm)
		put_label(w, "comm", comm, 0);
	if (group->b)
		put_label(w, "pid", NULL, group->b);
	if (*stop)
		put_label(w, "incomplete", stop, 0);
	pb_end(&w->pb, at);
}

static void put_type(struct writer *w, uint32_t field, const char *type, const char *unit)
{
	uint64_t type_id = text_id(w, type), unit_id = text_id(w, unit);
	size_t at = pb_begin(&w->pb, field);

	pb_u64(&w->pb, TYPE_TYPE, type_id);
	pb_u64(&w->pb, TYPE_UNIT, unit_id);
	pb_end(&w->pb, at);
}

static void put_comment(struct writer *w, const char *key, const char *value)
{
	char text[320];

	snprintf(text, sizeof(text), "%s=%s", key, value);
	pb_u64(&w->pb, PROFILE_COMMENT, text_id(w, text));
}

static void put_head(struct writer *w, const struct html_meta *meta)
{
	const char *event = meta->event ? meta->event : "samples";
	char number[32];

	w->off_cpu = meta->unit && !strcmp(meta->unit, "microseconds");
	w->period = meta->hz > 0 && !w->off_cpu ? (uint64_t)(1e9 / meta->hz + 0.5) : 0;
	if (w->off_cpu)
		put_type(w, PROFILE_SAMPLE_TYPE, "off_cpu", "nanoseconds");
	else
		put_type(w, PROFILE_SAMPLE_TYPE, "samples", "count");
	if (w->period)
		put_type(w, PROFILE_SAMPLE_TYPE, "cpu", "nanoseconds");
	put_type(w, PROFILE_PERIOD_TYPE,
		 w->off_cpu  ? "off_cpu"
		 : w->period ? "cpu"
			     : event,
		 w->off_cpu || w->period ? "nanoseconds" : "count");
	pb_u64(&w->pb, PROFILE_PERIOD, w->period);
	pb_u64(&w->pb, PROFILE_TIME_NANOS, meta->start_unix_ns);
	pb_u64(&w->pb, PROFILE_DURATION_NANOS, (uint64_t)(meta->duration_s * 1e9));
	put_comment(w, "host", meta->host ? meta->host : "");
	put_comment(w, "event", event);
	snprintf(number, sizeof(number), "%" PRIu64, meta->lost);
	put_comment(w, "lost", number);
	if (w->period) {
		snprintf(number, sizeof(number), "%g", meta->hz);
		put_comment(w, "hz", number);
	}
}

static void put_tables(struct writer *w)
{
	for (uint32_t id = 0; id < w->mappings.n; id++) {
		size_t at = pb_begin(&w->pb, PROFILE_MAPPING);

		pb_u64(&w->pb, ENTRY_ID, (uint64_t)id + 1);
		pb_u64(&w->pb, MAPPING_FILE, w->mappings.keys[id].a);
		pb_u64(&w->pb, MAPPING_HAS_FUNCTIONS, 1);
		pb_end(&w->pb, at);
	}
	for (uint32_t id = 0; id < strpool_count(w->strings); id++) {
		const char *s = strpool_str(w->strings, id);

		pb_bytes_always(&w->pb, PROFILE_STRING, s, strlen(s));
	}
}

static int write_gzip(const struct pb *pb, FILE *f)
{
	uint8_t *packed;
	size_t len;
	int err = gzip_bytes(pb->buf, pb->len, GZIP_LEVEL, &packed, &len);

	if (err)
		return err;
	fwrite(packed, 1, len, f);
	free(packed);
	return out_finish(f);
}

int stacks_write_pprof(const struct stackset *ss, const struct html_meta *meta, const char *by,
		       FILE *f)
{
	struct writer w = { .ss = ss,
			    .strings = strpool_new(),
			    .ids = calloc(ss->frames.n + 1, sizeof(*w.ids)) };
	int err = -ENOMEM;

	if (w.strings && w.ids) {
		text_id(&w, ""); /* must have id 0 */
		put_head(&w, meta);
		for (size_t l = 0; l < ss->leaves.n && !w.err; l++)
			if (ss->values[l][STACK_AFTER])
				put_sample(&w, l, by);
		put_tables(&w);
		err = w.err ? w.err : w.pb.err ? w.pb.err : write_gzip(&w.pb, f);
	}
	pb_free(&w.pb);
	if (w.strings)
		strpool_free(w.strings);
	idmap_free(&w.mappings);
	free(w.ids);
	free(w.stack);
	return err;
}
