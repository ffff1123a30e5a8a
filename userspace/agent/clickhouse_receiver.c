/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sample refers to its stack by a number: a hash of the frames' names, the same on every host and
 * after every restart. The frames of a stack, and the files that they lie in with their build-ids,
 * are sent if this host has not sent them within the last hour. Stacks are sent before the samples
 * that refer to them.
 */
#include "agent/clickhouse_receiver.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "agent/receiver.h"
#include "base/idmap.h"
#include "base/json.h"
#include "base/num.h"
#include "base/text.h"
#include "base/vec.h"

#define RESEND_NS (3600 * NUM_S)
#define MAX_SENT  262144 /* stacks or files remembered as sent; above it, all are sent again */

const char clickhouse_schema[] =
	"CREATE TABLE IF NOT EXISTS sfbpf_samples (\n"
	"    ts DateTime64(3, 'UTC'), host LowCardinality(String), "
	"service LowCardinality(String),\n"
	"    version LowCardinality(String), container String, comm LowCardinality(String), "
	"type LowCardinality(String),\n"
	"    stack_id UInt64, value UInt64, period_ns UInt64, "
	"labels Map(LowCardinality(String), String)\n"
	") ENGINE = MergeTree PARTITION BY toDate(ts) ORDER BY (service, host, ts)\n"
	"TTL toDateTime(ts) + INTERVAL 14 DAY "
	"SETTINGS non_replicated_deduplication_window = 10000;\n"
	"CREATE TABLE IF NOT EXISTS sfbpf_stacks (\n"
	"    stack_id UInt64, frames Array(LowCardinality(String)), seen DateTime('UTC')\n"
	") ENGINE = ReplacingMergeTree(seen) ORDER BY stack_id TTL seen + INTERVAL 15 DAY;\n"
	"CREATE TABLE IF NOT EXISTS sfbpf_files (\n"
	"    build_id String, path String, host LowCardinality(String), seen DateTime('UTC')\n"
	") ENGINE = ReplacingMergeTree(seen) ORDER BY (build_id, path, host) "
	"TTL seen + INTERVAL 15 DAY;\n"
	"CREATE TABLE IF NOT EXISTS sfbpf_functions (\n"
	"    minute DateTime('UTC'), service LowCardinality(String), "
	"version LowCardinality(String),\n"
	"    type LowCardinality(String), function LowCardinality(String), self_ns UInt64, "
	"total_ns UInt64\n"
	") ENGINE = SummingMergeTree PARTITION BY toDate(minute)\n"
	"ORDER BY (service, type, minute, version, function) TTL minute + INTERVAL 90 DAY\n"
	"SETTINGS non_replicated_deduplication_window = 10000;\n"
	"CREATE DICTIONARY IF NOT EXISTS sfbpf_frames (stack_id UInt64, frames Array(String))\n"
	"PRIMARY KEY stack_id SOURCE(CLICKHOUSE(TABLE 'sfbpf_stacks')) LAYOUT(DIRECT());\n"
	"CREATE MATERIALIZED VIEW IF NOT EXISTS sfbpf_functions_view TO sfbpf_functions AS\n"
	"SELECT toStartOfMinute(ts) AS minute, service, version, type,\n"
	"    arrayJoin(arrayDistinct(frames)) AS function,\n"
	"    sumIf(ns, function = frames[-1]) AS self_ns, sum(ns) AS total_ns\n"
	"FROM (SELECT ts, service, version, type, value * period_ns AS ns,\n"
	"          dictGet('sfbpf_frames', 'frames', stack_id) AS known,\n"
	"          if(empty(known), ['[unknown]'], known) AS frames FROM sfbpf_samples)\n"
	"GROUP BY minute, service, version, type, function;\n";

/* What was sent within the last hour. Only the encoding thread uses it. */
static struct {
	struct idmap stacks, files; /* keys: stack_id; module */
	uint64_t since_ns;
} sent;
static atomic_bool forget;

/* Has all stacks and files sent again after a body of them was dropped. Any thread may call it. */
static void on_dropped(const struct body *b)
{
	if (b->kind != BODY_CH_SAMPLES)
		atomic_store(&forget, true);
}

struct stack_ids {
	uint64_t *list;
	size_t n, cap;
};

struct rows {
	const struct encode_input *in;
	body_fn fn;
	void *ctx;
	enum body_kind kind;
	char *text;
	size_t len;
	FILE *f;
	uint64_t samples;
	/*
	 * The ids that the first pass sent frames for, one for each stack in order. Names may
	 * arrive between the passes, and another name would be another id.
	 */
	struct stack_ids *ids;
	size_t next;
	int err;
};

static void rows_flush(struct rows *r)
{
	bool bad = !r->f || ferror(r->f);

	if (r->f && fclose(r->f))
		bad = true;
	r->f = NULL;
	if (bad && !r->err)
		r->err = -ENOMEM;
	if (!r->err && r->len)
		r->err = body_emit(r->in, r->kind, r->in->cfg->gzip, (uint8_t *)r->text, r->len,
				   r->samples, NULL, r->fn, r->ctx);
	else
		free(r->text);
	r->text = NULL;
	r->len = 0;
	r->samples = 0;
}

/* Starts a row: one JSON object. */
static struct json row_begin(struct rows *r)
{
	struct json j;

	if (r->f && (size_t)ftell(r->f) > r->in->cfg->request_bytes)
		rows_flush(r);
	if (!r->f && !r->err)
		r->f = open_memstream(&r->text, &r->len);
	if (!r->f)
		r->err = -ENOMEM;
	j = json_on(r->f);
	if (r->f)
		json_object(&j, NULL);
	return j;
}

static void row_end(struct rows *r, struct json *j)
{
	json_object_end(j);
	putc('\n', r->f);
}

/* FNV-1a, 64 bits. Stack ids are stored, so this must never change. */
static uint64_t fnv(uint64_t h, const char *s)
{
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3ull;
	return h * 0x100000001b3ull; /* the NUL */
}

static const char *frame_name(const struct encode_input *in, const struct body_stack *st, size_t i)
{
	/* Root first. */
	if (*st->note && i == 0)
		return st->note;
	i -= *st->note != 0;
	return symbolizer_name(in->symbols, st->frames.list[st->frames.n - 1 - i].symbol);
}

static size_t frame_count(const struct body_stack *st)
{
	return st->frames.n + (*st->note != 0);
}

static uint64_t stack_id(const struct encode_input *in, const struct body_stack *st)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < frame_count(st); i++)
		h = fnv(h, frame_name(in, st, i));
	return frame_count(st) ? h : fnv(h, "[no stack]");
}

static bool is_new(struct rows *r, struct idmap *map, uint64_t key)
{
	size_t before = map->n;
	uint32_t id;

	if (idmap_get(map, key, 0, &id)) {
		r->err = -ENOMEM;
		return false;
	}
	return id == before;
}

static void put_stack(struct rows *r, const struct body_stack *st, uint64_t id)
{
	struct json j = row_begin(r);

	if (r->err)
		return;
	json_u64(&j, "stack_id", id);
	json_array(&j, "frames");
	for (size_t i = 0; i < frame_count(st); i++)
		json_str(&j, NULL, frame_name(r->in, st, i));
	if (!frame_count(st))
		json_str(&j, NULL, "[no stack]");
	json_array_end(&j);
	json_u64(&j, "seen", r->in->window->start_unix_ns / NUM_S);
	row_end(r, &j);
}

static void put_file(struct rows *r, const struct module *m)
{
	char hex[2 * sizeof(m->build_id) + 1] = "", path[4096];
	struct json j;

	for (size_t i = 0; i < m->build_id_len && i < sizeof(m->build_id); i++)
		sprintf(hex + 2 * i, "%02x", m->build_id[i]);
	if (!*hex)
		return;
	redact_paths(r->in->cfg->redact, m->path ? m->path : "", path, sizeof(path));
	j = row_begin(r);
	if (r->err)
		return;
	json_str(&j, "build_id", hex);
	json_str(&j, "path", path);
	json_str(&j, "host", r->in->host);
	json_u64(&j, "seen", r->in->window->start_unix_ns / NUM_S);
	row_end(r, &j);
}

static void put_files(struct rows *r, const struct body_stack *st)
{
	for (size_t i = 0; i < st->frames.n && !r->err; i++) {
		uint32_t kind = SF_FRAME_KIND(st->frames.list[i].word);
		const struct module *m =
			st->frames.list[i].kernel || kind > SF_FRAME_NOROW
				? NULL
				: modules_find(r->in->modules,
					       SF_FRAME_MODULE(st->frames.list[i].word));

		if (m && m->known >= KNOWN_FILE && is_new(r, &sent.files, m->id))
			put_file(r, m);
	}
}

static void on_label(void *ctx, const char *name, const char *value)
{
	struct json *j = ctx;

	/* These have columns in sfbpf_samples. */
	if (strcmp(name, "host.name") && strcmp(name, "service.name") &&
	    strcmp(name, "service.version") && strcmp(name, "container.id"))
		json_str(j, name, value);
}

static const char *label(const struct agent_config *cfg, const char *name, const char *own)
{
	for (size_t i = 0; i < cfg->labels.n; i++)
		if (!strcmp(cfg->labels.list[i].name, name))
			return cfg->labels.list[i].value;
	return own;
}

/*
 * The unit of a value. Blocked time is in nanoseconds, so value * period_ns is a time for both
 * types.
 */
static uint64_t period_of(const struct rows *r, enum window_kind kind)
{
	return kind == WINDOW_OFF_CPU	   ? 1
	       : out_is_clock(r->in->meta) ? (uint64_t)(1e9 / r->in->window->hz + 0.5)
					   : 0;
}

static void put_state(struct json *j, enum window_kind kind, const struct profile_stack *s)
{
	static const char letters[] = SF_OFF_LETTERS;

	if (kind == WINDOW_OFF_CPU && s->state < SF_OFF_STATES)
		json_str(j, "state", (char[2]){ letters[s->state] });
}

static void put_sample(struct rows *r, const struct window_group *g, const struct profile_stack *s,
		       uint64_t id)
{
	const struct target *t = targets_at(r->in->window->targets, g->target);
	const struct window *w = r->in->window;
	struct json j = row_begin(r);
	char ts[32], comm[64];

	if (r->err)
		return;
	snprintf(ts, sizeof(ts), "%" PRIu64 ".%03u", (uint64_t)(w->start_unix_ns / NUM_S),
		 (unsigned int)(w->start_unix_ns / NUM_MS % 1000));
	text_clean(comm, sizeof(comm), *s->comm ? s->comm : "[unknown]",
		   *s->comm ? strlen(s->comm) : 9, 0);
	json_str(&j, "ts", ts);
	json_str(&j, "host", label(r->in->cfg, "host.name", r->in->host));
	json_str(&j, "service", label(r->in->cfg, "service.name", t->service));
	json_str(&j, "version", label(r->in->cfg, "service.version", t->version));
	json_str(&j, "container", t->container);
	json_str(&j, "comm", comm);
	json_str(&j, "type", g->kind == WINDOW_OFF_CPU ? "off_cpu" : "cpu");
	json_u64(&j, "stack_id", id);
	json_u64(&j, "value", window_value(g->kind, s));
	json_u64(&j, "period_ns", period_of(r, g->kind));
	json_object(&j, "labels");
	put_state(&j, g->kind, s);
	body_labels(r->in, t, on_label, &j);
	json_object_end(&j);
	row_end(r, &j);
	r->samples += s->count;
}

typedef void (*each_fn)(struct rows *r, const struct window_group *g, const struct body_stack *st);

static void each_new(struct rows *r, const struct window_group *g, const struct body_stack *st)
{
	uint64_t id = stack_id(r->in, st);

	(void)g;
	if (vec_reserve(&r->ids->list, &r->ids->cap, r->ids->n + 1, sizeof(*r->ids->list))) {
		r->err = -ENOMEM;
		return;
	}
	r->ids->list[r->ids->n++] = id;
	if (is_new(r, &sent.stacks, id))
		put_stack(r, st, id);
}

static void each_file(struct rows *r, const struct window_group *g, const struct body_stack *st)
{
	(void)g;
	put_files(r, st);
}

static void each_sample(struct rows *r, const struct window_group *g, const struct body_stack *st)
{
	put_sample(r, g, &st->s, r->ids->list[r->next++]);
}

static int pass(const struct encode_input *in, enum body_kind kind, struct stack_ids *ids,
		each_fn each, body_fn fn, void *ctx)
{
	struct rows r = { .in = in, .fn = fn, .ctx = ctx, .kind = kind, .ids = ids };
	const struct window *w = in->window;
	struct body_stack st = { 0 };

	for (size_t g = 0; g < w->ngroups; g++) {
		for (size_t i = 0; i < profile_count(w->groups[g].profile) && !r.err; i++) {
			r.err = body_stack(in, w->groups[g].profile, i, &st);
			if (!r.err)
				each(&r, &w->groups[g], &st);
		}
	}
	if (r.f)
		rows_flush(&r);
	free(st.frames.list);
	return r.err;
}

static void start_hour(uint64_t now_ns)
{
	if (!atomic_exchange(&forget, false) && now_ns - sent.since_ns < RESEND_NS &&
	    sent.stacks.n < MAX_SENT && sent.files.n < MAX_SENT)
		return;
	idmap_free(&sent.stacks);
	idmap_free(&sent.files);
	sent.stacks = sent.files = (struct idmap){ 0 };
	sent.since_ns = now_ns;
}

static int encode_window(const struct encode_input *in, body_fn fn, void *ctx)
{
	struct stack_ids ids = { 0 };
	int err;

	start_hour(in->window->start_unix_ns);
	err = pass(in, BODY_CH_STACKS, &ids, each_new, fn, ctx);
	if (!err)
		err = pass(in, BODY_CH_FILES, &ids, each_file, fn, ctx);
	if (!err)
		err = pass(in, BODY_CH_SAMPLES, &ids, each_sample, fn, ctx);
	free(ids.list);
	if (err)
		atomic_store(&forget, true);
	return err;
}

static int insert_url(const struct agent_config *cfg, const struct body *b, const char *base,
		      int len, char *ret, size_t cap)
{
	const char *table = b->kind == BODY_CH_STACKS  ? "sfbpf_stacks"
			    : b->kind == BODY_CH_FILES ? "sfbpf_files"
						       : "sfbpf_samples";
	char database[256], token[37];
	int n;

	body_escape(database, sizeof(database), cfg->database ? cfg->database : "default");
	body_id_text(b->id, token);
	n = snprintf(ret, cap,
		     "%.*s/?database=%s&insert_deduplication_token=%s"
		     "&deduplicate_blocks_in_dependent_materialized_views=1"
		     "&query=INSERT%%20INTO%%20%s%%20FORMAT%%20JSONEachRow",
		     len, base, database, token, table);
	return n < (int)cap ? 0 : -EINVAL;
}

const struct receiver receiver_clickhouse = {
	.endpoint = "http://127.0.0.1:8123",
	.bodies = BODY_BIT(BODY_CH_STACKS) | BODY_BIT(BODY_CH_FILES) | BODY_BIT(BODY_CH_SAMPLES),
	.encode = encode_window,
	.dropped = on_dropped,
	.content_type = "application/x-ndjson",
	.url = insert_url,
};
