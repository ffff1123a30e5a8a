/* SPDX-License-Identifier: BSD-2-Clause */
/* A recording that is read again writes all formats as before, and damage of it is found. */
#include "out/recording.h"

#include <errno.h>

#include "base/gunzip.h"
#include "base/gzip.h"
#include "base/pb.h"
#include "out/recording_fields.h"
#include "test.h"
#include "world.h"

#define MS 1000000u

struct made { /* a world with all that a report can have */
	struct world w;
	struct timeline t;
	struct slices slices;
	struct out_blocks blocks;
	struct out_block list[3];
};

static size_t take(struct profile *p, const char *comm, uint32_t tid, uint32_t waker,
		   const uint64_t frames[2], uint16_t n_kernel)
{
	struct sf_sample *rec = calloc(1, sizeof(*rec) + 2 * sizeof(*frames));
	struct profile_times t = { .count = 2, .weight = 5000, .waker = waker, .state = SF_OFF_S };
	size_t at = 0;

	*rec = (struct sf_sample){ .pid = 7,
				   .tid = tid,
				   .cgroup_id = 11,
				   .flags = USER | KERNEL,
				   .stop = SF_STOP_READ_FAULT,
				   .n_user = (uint16_t)(2 - n_kernel),
				   .n_kernel = n_kernel };
	strcpy(rec->comm, comm);
	memcpy(rec->frames, frames, 2 * sizeof(*frames));
	EXPECT_EQ(profile_add_times(p, rec, &t, &at), 0);
	free(rec);
	return at;
}

static void add_symbols(struct world *w)
{
	struct symbolizer_symbol s = { "leaf (a.c:12)", "app", "leaf", "/src/a.c", 12, 10 };
	uint32_t ids[2];

	EXPECT_EQ(symbolizer_restore(w->sz, &s, &ids[0]), 0);
	s = (struct symbolizer_symbol){ "own (a.c:30)", "app", "own", "/src/a.c", 30, 28 };
	EXPECT_EQ(symbolizer_restore(w->sz, &s, &ids[1]), 0);
	EXPECT_EQ(symbolizer_restore_inlined(w->sz, ROW(1, 0x20), ids, 2), 0);
}

static void make(struct made *m)
{
	struct world *w = &m->w;
	struct timeline_block b = { 55 * MS, 57 * MS, 58 * MS, 0, 2, 7, 9 };

	*m = (struct made){ .t = { .start_ns = 50 * MS, .min_block_ns = MS, .has_blocks = true } };
	make_world(w);
	add_symbols(w);
	EXPECT_EQ(module_set_code(modules_find(w->ms, 1),
				  &(struct module_code){ 0, 0x1000, 0x2000 }, 1),
		  0);
	memcpy(modules_find(w->ms, 1)->build_id, "0123456789", 10);
	modules_find(w->ms, 1)->build_id_len = 10;
	profile_by_thread(w->p);
	w->r.wakers = profile_new();
	take(w->r.wakers, "waker", 9, 0, (uint64_t[]){ ROW(1, 0x20), ROW(1, 0x10) }, 0);
	take(w->r.wakers, "waker", 9, 1, (uint64_t[]){ ROW(1, 0x10), KADDR }, 1);
	take(w->p, "app", 7, 2, (uint64_t[]){ ROW(1, 0x20), ROW(2, 0x10) }, 0);
	take(w->p, "</w", 8, 1, (uint64_t[]){ JIT(0x7000), KADDR }, 1);
	take(w->p, "x-1", 9, 0, (uint64_t[]){ SF_FRAME_EXEC, KADDR }, 1);
	EXPECT_EQ(profile_name_process(w->p, 7, "app"), 0);
	for (uint32_t i = 0; i < 6; i++) {
		timeline_add(&m->t, (70 - 3 * i) * MS, i & 1, i / 2);
		slices_add(&m->slices, i * MS, i / 2);
	}
	timeline_add_block(&m->t, &b);
	for (size_t i = 0; i < 3; i++) {
		m->list[i].max_ns = 4000 * (i + 1);
		m->list[i].hist.slot[i] = 2;
	}
	m->blocks =
		(struct out_blocks){ .list = m->list, .n = 3, .hist = true, .has_threads = true };
	EXPECT_EQ(out_blocks_thread(&m->blocks, 7,
				    &(struct sf_off_thread){ { 3, 4 }, 2, 5, 0, 7, 0, "app" }),
		  0);
	w->meta = (struct out_meta){ "wall-clock", 99, "host", "cmd", "sfbpf record", "6.1", 1000 };
	w->st = (struct run_stats){ .duration_s = 0.3, .samples = 7, .offcpu = true };
	w->st.account.user_total = 6;
	w->st.account.stops[SF_STOP_READ_FAULT] = 6;
	w->st.lost[SF_LOST_RING_FULL] = 1;
	w->st.off_ns[SF_OFF_S] = 12345;
	w->r.opts.usec = true;
	w->r.timeline = &m->t;
	w->r.slices = &m->slices;
	w->r.blocks = &m->blocks;
}

static void free_made(struct made *m)
{
	profile_free(m->w.r.wakers);
	timeline_free(&m->t);
	slices_free(&m->slices);
	out_blocks_free(&m->blocks);
	free_world(&m->w);
}

static char *in_format(const struct out_report *all, const struct out_format *f, size_t *len)
{
	const struct out_report r = out_report_for(all, f);
	char *out = NULL;
	FILE *to = open_memstream(&out, len);

	EXPECT_EQ(f->write(&r, to), 0);
	fclose(to);
	return out;
}

/* A page has a number that is used once, in three places. */
static void forget_nonce(char *page)
{
	static const char mark[] = "nonce";

	for (char *at = page; (at = strstr(at, mark)); at += strlen(mark))
		memset(at + strlen(mark) + 1, '0', 34);
}

TEST(recording_round_trip)
{
	const struct out_format *recording = out_format_named("recording", OUT_SAMPLES), *f;
	struct recording rec;
	struct read_error why;
	struct made m;
	size_t len, n, n2;
	char *file, *a, *b;

	make(&m);
	file = in_format(&m.w.r, recording, &len);
	EXPECT_EQ(recording_read(bytes_of(file, len, false), &rec, &why), 0);
	for (size_t i = 0; (f = out_format_at(i)); i++) {
		a = in_format(&m.w.r, f, &n);
		b = in_format(&rec.report, f, &n2);
		if (!strcmp(f->name, "html")) {
			forget_nonce(a);
			forget_nonce(b);
		}
		EXPECT_EQ(n, n2);
		EXPECT(n > 20 && n == n2 && !memcmp(a, b, n));
		free(a);
		free(b);
	}
	EXPECT_STR(rec.meta.command_line, "sfbpf record");
	EXPECT_STR(rec.meta.kernel, "6.1");
	recording_free(&rec);
	free(file);
	free_made(&m);
}

/* The file with its message replaced */
static int read_message(const uint8_t *msg, size_t n, struct read_error *why)
{
	struct recording rec;
	uint8_t *packed, *file;
	size_t len;
	int err;

	EXPECT_EQ(gzip_bytes(msg, n, 1, &packed, &len), 0);
	file = malloc(len + RECORDING_MAGIC_LEN);
	memcpy(file, RECORDING_MAGIC, RECORDING_MAGIC_LEN);
	memcpy(file + RECORDING_MAGIC_LEN, packed, len);
	err = recording_read(bytes_of(file, len + RECORDING_MAGIC_LEN, false), &rec, why);
	if (!err) {
		const struct out_format *f;

		for (size_t i = 0; (f = out_format_at(i)); i++)
			if (rec.report.timeline || !f->timeline)
				free(in_format(&rec.report, f, &len));
	}
	recording_free(&rec);
	free(packed);
	free(file);
	return err;
}

TEST(recording_damaged)
{
	struct read_error why;
	struct bytes packed;
	struct made m;
	uint8_t *msg;
	size_t len, n;
	char *file;
	int err;

	make(&m);
	file = in_format(&m.w.r, out_format_named("recording", OUT_SAMPLES), &len);
	packed = bytes_of(file + RECORDING_MAGIC_LEN, len - RECORDING_MAGIC_LEN, false);
	EXPECT_EQ(gunzip(&packed, 1 << 20, &msg, &n), 0);
	EXPECT_EQ(read_message(msg, n, &why), 0);
	for (size_t i = 0; i < n; i += 3) {
		uint8_t old = msg[i];

		err = read_message(msg, i, &why);
		EXPECT(!err || (err == -EINVAL && *why.text));
		for (unsigned int k = 0; k < 3; k++) {
			msg[i] = (uint8_t[]){ 0xff, 0, (uint8_t)(old + 1) }[k];
			err = read_message(msg, n, &why);
			EXPECT(!err || (err == -EINVAL && *why.text));
		}
		msg[i] = old;
	}
	free(msg);
	free(file);
	free_made(&m);
}

static void begin(struct pb *pb)
{
	size_t at;

	pb_str(pb, REC_STRING, "cpu-clock");
	at = pb_begin(pb, REC_META);
	pb_u64(pb, META_EVENT, 1);
	pb_u64(pb, META_FLAGS, RECORDING_WAKERS);
	pb_end(pb, at);
}

static int end(struct pb *pb)
{
	struct read_error why;
	int err = read_message(pb->buf, pb->len, &why);

	pb_free(pb);
	return err;
}

static void put_stack(struct pb *pb, uint32_t field, uint32_t pid, uint64_t waker)
{
	size_t at = pb_begin(pb, field);

	pb_u64(pb, STACK_PID, pid);
	pb_u64(pb, STACK_COUNT, 1);
	pb_u64(pb, STACK_WAKER_AT, waker);
	pb_end(pb, at);
}

/* What would be read beyond an array, or never end, if it were believed */
TEST(recording_hostile)
{
	struct pb pb = { 0 };
	size_t at;

	begin(&pb);
	EXPECT_EQ(end(&pb), 0);
	begin(&pb); /* a waker of itself, */
	put_stack(&pb, REC_WAKER, 1, 1);
	EXPECT_EQ(end(&pb), -EINVAL);
	begin(&pb); /* a chain without an end, */
	for (uint32_t i = 0; i < SF_OFF_CHAIN + 1; i++)
		put_stack(&pb, REC_WAKER, i, i);
	EXPECT_EQ(end(&pb), -EINVAL);
	begin(&pb); /* equal stacks, which have one index, */
	put_stack(&pb, REC_STACK, 1, 0);
	put_stack(&pb, REC_STACK, 1, 0);
	EXPECT_EQ(end(&pb), -EINVAL);
	begin(&pb); /* sums that overflow, */
	put_stack(&pb, REC_STACK, 1, 0);
	at = pb_begin(&pb, REC_STACK);
	pb_u64(&pb, STACK_COUNT, UINT64_MAX);
	pb_end(&pb, at);
	EXPECT_EQ(end(&pb), -EINVAL);
	begin(&pb); /* a frame of a symbol that is not there, */
	pb_packed(&pb, REC_FRAMES, (uint64_t[]){ ROW(1, 2), 0 }, 2);
	EXPECT_EQ(end(&pb), -EINVAL);
	begin(&pb); /* and a sample of a stack that is not there */
	at = pb_begin(&pb, REC_TIMELINE);
	pb_packed(&pb, TIMES_SAMPLES, (uint64_t[]){ 2, 0, 0 }, 3);
	pb_end(&pb, at);
	EXPECT_EQ(end(&pb), -EINVAL);
}

/* A few bytes cannot stand for gigabytes of names. */
TEST(recording_too_many_names)
{
	struct pb pb = { 0 };
	uint64_t frames[900] = { 0 };
	char name[1001];
	size_t at;

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	begin(&pb);
	pb_str(&pb, REC_STRING, name);
	pb_packed(&pb, REC_SYMBOLS, (uint64_t[]){ 2, 2, 2, 0, 0, 0 }, SYMBOL_NUMBERS);
	pb_packed(&pb, REC_FRAMES, (uint64_t[]){ ROW(1, 2), 0 }, 2);
	for (uint32_t i = 0; i < 200; i++) {
		at = pb_begin(&pb, REC_STACK);
		pb_packed(&pb, STACK_FRAMES, frames, 900);
		pb_u64(&pb, STACK_N_USER, 900);
		pb_u64(&pb, STACK_PID, i + 1);
		pb_u64(&pb, STACK_COUNT, 1);
		pb_end(&pb, at);
	}
	EXPECT_EQ(end(&pb), -EINVAL);
}
