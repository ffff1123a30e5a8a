/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every encoder on a small made-up window: no sample is lost, whatever the size of requests. What
 * receivers make of it: tests/agent.
 */
#include <stdlib.h>

#include "agent/receiver.h"
#include "base/bytes.h"
#include "base/json_read.h"
#include "world.h"

struct encoded {
	struct body list[64];
	size_t n;
	uint64_t samples;
};

static int keep(void *ctx, struct body *b)
{
	struct encoded *e = ctx;

	EXPECT(e->n < 64);
	if (e->n == 64) {
		free(b->data);
		return -1;
	}
	e->list[e->n++] = *b;
	e->samples += b->samples;
	return 0;
}

static void drop(struct encoded *e)
{
	for (size_t i = 0; i < e->n; i++)
		free(e->list[i].data);
	*e = (struct encoded){ 0 };
}

struct scene {
	struct world w;
	struct targets *targets;
	struct window window;
	struct agent_config *cfg;
	struct encode_input in;
};

static void make_scene(struct scene *s, int protocol)
{
	struct agent_config_error err;

	make_world(&s->w);
	fill(&s->w);
	s->w.meta.hz = 19;
	s->targets = targets_new("dflt", NULL);
	window_open(&s->window, s->targets, 1700000000000000000ull, 19);
	s->window.groups = calloc(1, sizeof(*s->window.groups));
	s->window.groups[0] = (struct window_group){ 0, WINDOW_CPU, s->w.p, 0 };
	s->window.ngroups = 1;
	s->window.samples = profile_samples(s->w.p);
	s->window.duration_ns = 10000000000ull;
	s->cfg = agent_config_new();
	s->cfg->protocol = protocol;
	s->cfg->endpoint = strdup(protocol == AGENT_FILE ? "/x" : "http://x");
	s->cfg->gzip = false;
	EXPECT_EQ(agent_config_check(s->cfg, &err), 0);
	s->in = (struct encode_input){ s->cfg,	   "host\"1", &s->window, s->w.sz, s->w.ms,
				       &s->w.meta, &s->w.st,  NULL,	  0,	   false };
}

static void free_scene(struct scene *s)
{
	free(s->window.groups);
	targets_free(s->targets);
	agent_config_free(s->cfg);
	free_world(&s->w);
}

TEST(every_protocol_has_all_samples)
{
	for (int protocol = 0; protocol < AGENT_PROTOCOLS; protocol++) {
		struct encoded e = { .n = 0 };
		struct scene s;

		make_scene(&s, protocol);
		for (int gzip = 0; gzip < 2; gzip++) {
			s.cfg->gzip = gzip;
			EXPECT_EQ(receiver_at(s.in.cfg->protocol)->encode(&s.in, keep, &e), 0);
			EXPECT_EQ(e.samples, profile_samples(s.w.p));
			EXPECT(e.n >= 1);
			drop(&e);
		}
		free_scene(&s);
	}
}

/*
 * The wire format of a message's top level: each field's number and, if it is a message, its bytes.
 */
static uint32_t next_field(struct bytes *b, struct bytes *ret)
{
	uint64_t tag = bytes_uleb(b), len;

	*ret = bytes_of(NULL, 0, false);
	switch (tag & 7) {
	case 0:
		bytes_uleb(b);
		break;
	case 1:
		bytes_skip(b, 8);
		break;
	default:
		len = bytes_uleb(b);
		*ret = bytes_sub(b, b->pos, len);
		bytes_skip(b, len);
	}
	return (uint32_t)(tag >> 3);
}

static void expect_dictionary(const struct body *body)
{
	struct bytes b = bytes_of(body->data, body->len, false), part, element;
	unsigned int count[8] = { 0 }, first_empty[8] = { 0 }, resources = 0;

	while (bytes_left(&b)) {
		uint32_t field = next_field(&b, &part);

		EXPECT(field == 1 || field == 2);
		resources += field == 1;
		while (field == 2 && bytes_left(&part)) {
			uint32_t table = next_field(&part, &element);

			EXPECT(table >= 1 && table <= 7);
			if (!count[table & 7]++)
				first_empty[table & 7] = element.len == 0;
		}
	}
	EXPECT(!b.err);
	EXPECT(resources >= 1);
	for (int t = 1; t <= 7; t++) {
		EXPECT(count[t] >= 1);
		EXPECT(first_empty[t]);
	}
}

TEST(otlp_requests_of_any_size)
{
	for (uint64_t limit = 1; limit < 10000; limit = limit * 3 + 7) {
		struct encoded e = { .n = 0 };
		struct scene s;

		make_scene(&s, AGENT_OTLP_HTTP);
		s.cfg->request_bytes = limit;
		s.cfg->symbols = limit % 2 ? AGENT_SYMBOLS_NONE : AGENT_SYMBOLS_HOST;
		s.cfg->label_pid = limit % 2;
		EXPECT_EQ(receiver_at(s.in.cfg->protocol)->encode(&s.in, keep, &e), 0);
		EXPECT_EQ(e.samples, profile_samples(s.w.p));
		for (size_t i = 0; i < e.n; i++)
			expect_dictionary(&e.list[i]);
		if (limit == 1)
			EXPECT_EQ(e.n, profile_count(s.w.p));
		drop(&e);
		free_scene(&s);
	}
}

TEST(clickhouse_rows_are_json)
{
	struct encoded e = { .n = 0 };
	struct scene s;
	uint64_t sum = 0;

	make_scene(&s, AGENT_CLICKHOUSE);
	s.cfg->request_bytes = 300;
	EXPECT_EQ(receiver_at(s.in.cfg->protocol)->encode(&s.in, keep, &e), 0);
	for (size_t i = 0; i < e.n; i++) {
		const char *at = (const char *)e.list[i].data, *end = at + e.list[i].len, *line;

		for (; at < end; at = line + 1) {
			struct json_reader j;
			const char *key;

			line = memchr(at, '\n', (size_t)(end - at));
			EXPECT(line != NULL);
			if (!line)
				break;
			json_reader_init(&j, at, (size_t)(line - at));
			EXPECT(json_enter(&j, '{'));
			while ((key = json_key(&j))) {
				if (e.list[i].kind == BODY_CH_SAMPLES && !strcmp(key, "value"))
					sum += json_unsigned(&j);
				else
					json_skip(&j);
			}
			EXPECT(!j.bytes.err);
			json_reader_free(&j);
		}
	}
	EXPECT_EQ(sum, profile_samples(s.w.p));
	drop(&e);
	free_scene(&s);
}

TEST(windows_forget_processes)
{
	struct targets *t = targets_new("dflt", NULL);
	struct sf_sample rec = { .type = SF_REC_SAMPLE, .comm = "app", .flags = USER, .weight = 1 };
	struct window w;
	struct world world;

	make_world(&world);
	for (int keep_pids = 0; keep_pids < 2; keep_pids++) {
		window_open(&w, t, 0, 19);
		for (rec.pid = 1; rec.pid <= 10; rec.pid++)
			window_add(&w, &rec);
		EXPECT_EQ(w.samples, 10);
		EXPECT_EQ(window_close(&w, 5, world.sz, keep_pids), 0);
		EXPECT_EQ(w.ngroups, 1);
		EXPECT_EQ(profile_count(w.groups[0].profile), keep_pids ? 10 : 1);
		EXPECT_EQ(profile_samples(w.groups[0].profile), 10);
		window_free(&w);
	}
	targets_free(t);
	free_world(&world);
}

#define BLOCK_NS 3000000ull

/*
 * The scene with the same stacks as blocked time: each block is 3 ms and of a process of its own.
 */
static void add_blocks(struct scene *s)
{
	struct sf_sample rec = { .type = SF_REC_STACK, .comm = "app", .flags = USER };
	struct profile_times t = { .count = 2, .weight = 2 * BLOCK_NS, .state = SF_OFF_D };
	struct profile *p = profile_new();
	size_t at;

	s->window.cap = 1; /* what make_scene has allocated */
	for (rec.pid = 1; rec.pid <= 10; rec.pid++)
		EXPECT_EQ(profile_add_times(p, &rec, &t, &at), 0);
	EXPECT_EQ(window_add_blocks(&s->window, p), 0);
	profile_free(p);
	EXPECT_EQ(s->window.ngroups, 2);
	EXPECT_EQ(s->window.groups[1].kind, WINDOW_OFF_CPU);
	EXPECT_EQ(s->window.blocks, 20);
	EXPECT_EQ(s->window.blocked_ns, 20 * BLOCK_NS);
	EXPECT_EQ(window_value(WINDOW_OFF_CPU, &(struct profile_stack){ .count = 2, .weight = 5 }),
		  5);
}

TEST(blocked_time_in_every_protocol)
{
	for (int protocol = 0; protocol < AGENT_PROTOCOLS; protocol++) {
		struct encoded e = { .n = 0 };
		struct scene s;
		size_t cpu_only;

		make_scene(&s, protocol);
		s.cfg->label_pid = true;
		EXPECT_EQ(receiver_at(s.in.cfg->protocol)->encode(&s.in, keep, &e), 0);
		EXPECT(!body_has(&s.in, WINDOW_OFF_CPU));
		cpu_only = e.n;
		drop(&e);
		add_blocks(&s);
		EXPECT_EQ(receiver_at(s.in.cfg->protocol)->encode(&s.in, keep, &e), 0);
		EXPECT_EQ(e.samples, profile_samples(s.w.p) + 20);
		if (protocol == AGENT_CLICKHOUSE) /* what was sent before is not sent again */
			EXPECT_EQ(e.list[e.n - 1].kind, BODY_CH_SAMPLES);
		else
			EXPECT_EQ(e.n, cpu_only + (protocol == AGENT_FILE));
		if (protocol == AGENT_FILE) {
			EXPECT_EQ(e.list[0].kind, BODY_FILE);
			EXPECT_EQ(e.list[1].kind, BODY_FILE_OFF_CPU);
		}
		drop(&e);
		profile_free(s.window.groups[1].profile);
		free_scene(&s);
	}
}

/* The mappings in a body's dictionary, with the empty one. */
static unsigned int mappings_of(const struct body *body)
{
	struct bytes b = bytes_of(body->data, body->len, false), part, element;
	unsigned int n = 0;

	while (bytes_left(&b))
		if (next_field(&b, &part) == 2)
			while (bytes_left(&part))
				n += next_field(&part, &element) == 1;
	return n;
}

/* A mapping says which file it is of. */
TEST(no_mapping_without_a_file)
{
	unsigned int before = 0, after = 0, files = 0;
	struct encoded e = { .n = 0 };
	struct scene s;

	make_scene(&s, AGENT_OTLP_HTTP);
	EXPECT_EQ(receiver_at(s.in.cfg->protocol)->encode(&s.in, keep, &e), 0);
	for (size_t i = 0; i < e.n; i++)
		before += mappings_of(&e.list[i]);
	drop(&e);
	for (uint32_t i = 0; i < modules_count(s.w.ms); i++) {
		struct module *m = modules_at(s.w.ms, i);

		if (m && m->path) {
			free(m->path);
			m->path = NULL;
			m->name = "";
			files++;
		}
	}
	EXPECT_EQ(receiver_at(s.in.cfg->protocol)->encode(&s.in, keep, &e), 0);
	for (size_t i = 0; i < e.n; i++) {
		after += mappings_of(&e.list[i]);
		expect_dictionary(&e.list[i]);
	}
	EXPECT(files > 0 && before >= 2 + files);
	EXPECT_EQ(after, 2); /* the empty one and the kernel's */
	drop(&e);
	free_scene(&s);
}

TEST(blocked_time_alone_is_sent)
{
	struct encoded e = { .n = 0 };
	struct scene s;

	make_scene(&s, AGENT_OTLP_HTTP);
	add_blocks(&s);
	s.window.groups[0].profile = profile_new(); /* no sample at all */
	s.window.samples = 0;
	EXPECT_EQ(receiver_at(s.in.cfg->protocol)->encode(&s.in, keep, &e), 0);
	EXPECT_EQ(e.n, 1);
	EXPECT_EQ(e.samples, 20);
	if (e.n)
		expect_dictionary(&e.list[0]);
	drop(&e);
	profile_free(s.window.groups[0].profile);
	profile_free(s.window.groups[1].profile);
	free_scene(&s);
}

TEST(clickhouse_says_which_type_a_value_is_of)
{
	struct encoded e = { .n = 0 };
	unsigned int rows = 0;
	struct scene s;

	make_scene(&s, AGENT_CLICKHOUSE);
	add_blocks(&s);
	EXPECT_EQ(receiver_at(s.in.cfg->protocol)->encode(&s.in, keep, &e), 0);
	for (size_t i = 0; i < e.n; i++) {
		const char *at = (const char *)e.list[i].data, *end = at + e.list[i].len;

		for (; e.list[i].kind == BODY_CH_SAMPLES &&
		       (at = memmem(at, (size_t)(end - at), "\"off_cpu\"", 9));
		     at++) {
			rows++;
			EXPECT(memmem(at, (size_t)(end - at), "\"value\":6000000", 15) != NULL);
			EXPECT(memmem(at, (size_t)(end - at), "\"period_ns\":1,", 14) != NULL);
			EXPECT(memmem(at, (size_t)(end - at), "\"state\":\"D\"", 11) != NULL);
		}
	}
	EXPECT_EQ(rows, 10);
	drop(&e);
	profile_free(s.window.groups[1].profile);
	free_scene(&s);
}
