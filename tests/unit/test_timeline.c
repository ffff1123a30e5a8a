/* SPDX-License-Identifier: BSD-2-Clause */
#include "prof/timeline.h"

#include <errno.h>

#include "base/gunzip.h"
#include "base/gzip.h"
#include "base/pb.h"
#include "test.h"
#include "world.h"

static char *unpacked(const char *data, size_t len)
{
	struct bytes in = bytes_of(data, len, false);
	char *out = NULL;
	uint8_t *text;
	size_t n;

	EXPECT_EQ(gunzip(&in, 64 << 20, &text, &n), 0);
	out = strndup((char *)text, n);
	free(text);
	return out;
}

/* A sample of a thread; the stack goes into the profile, the rest into the timeline. */
static void take(struct world *w, struct timeline *t, const struct fake *f, uint32_t tid,
		 uint64_t time_ns, uint32_t cpu)
{
	struct sf_sample *rec = calloc(1, sizeof(*rec) + sizeof(f->frames));
	struct profile_times once = { .count = 1, .weight = 1 };
	size_t stack = 0;

	rec->type = SF_REC_SAMPLE;
	rec->pid = f->pid;
	rec->tid = tid;
	rec->stop = f->stop;
	rec->flags = f->flags;
	rec->n_user = f->n_user;
	rec->n_kernel = f->n_kernel;
	strcpy(rec->comm, f->comm);
	memcpy(rec->frames, f->frames, sizeof(f->frames));
	EXPECT_EQ(profile_add_times(w->p, rec, &once, &stack), 0);
	timeline_add(t, time_ns, cpu, stack);
	free(rec);
}

static const struct fake main_thread = {
	"app", 7, SF_STOP_COMPLETE, USER, 1, 2, 0, { ROW(1, 0x20), ROW(1, 0x10) }
};
static const struct fake in_kernel = { "</w", 7, SF_STOP_READ_FAULT,	USER | KERNEL, 1,
				       1,     1, { JIT(0x7000), KADDR } };
static const struct fake nothing = { "", 3, SF_STOP_COMPLETE, 0, 1, 0, 0, { 0 } };

#define MS 1000000u

/* Five samples of two processes on CPUs 0 and 4, not in the order of time. */
static void fill_times(struct world *w, struct timeline *t)
{
	make_world(w);
	profile_by_thread(w->p);
	w->meta.hz = 100;
	w->meta.start_unix_ns = 1000 * MS;
	w->st.duration_s = 0.5;
	w->st.samples = 5;
	*t = (struct timeline){ .start_ns = 50 * MS };
	take(w, t, &in_kernel, 5, 62 * MS, 4);
	take(w, t, &main_thread, 7, 61 * MS, 0);
	take(w, t, &nothing, 3, 63 * MS, 4);
	take(w, t, &main_thread, 7, 60 * MS + 1, 4);
	take(w, t, &main_thread, 7, 71 * MS, 0);
	w->r.timeline = t;
}

TEST(timeline_tracks)
{
	struct timeline_tracks tracks;
	struct timeline t;
	struct world w;

	fill_times(&w, &t);
	EXPECT_EQ(timeline_begin(&t), 50 * MS);
	EXPECT_EQ(timeline_by_thread(&t, w.p, NULL, &tracks), 0);
	EXPECT_EQ(tracks.n, 3);
	/* The main thread comes first, though its id is not the lowest. */
	EXPECT_EQ(tracks.list[1].tid, 7);
	EXPECT_EQ(tracks.list[1].n, 3);
	EXPECT_EQ(t.list[tracks.list[1].first].time_ns, 60 * MS + 1);
	EXPECT_EQ(tracks.list[2].tid, 5);
	EXPECT_STR(tracks.list[2].comm, "</w");
	EXPECT_STR(tracks.list[2].process, "app");
	timeline_tracks_free(&tracks);
	EXPECT_EQ(timeline_by_cpu(&t, &tracks), 0);
	EXPECT_EQ(tracks.n, 2);
	EXPECT_EQ(tracks.list[1].tid, 4);
	EXPECT_EQ(tracks.list[1].n, 3);
	EXPECT_EQ(t.list[tracks.list[1].first].time_ns, 60 * MS + 1);
	timeline_tracks_free(&tracks);
	timeline_free(&t);
	free_world(&w);
}

TEST(timeline_limit)
{
	struct timeline t = { .max = 3, .start_ns = 9 };

	for (uint32_t i = 0; i < 5; i++)
		timeline_add(&t, 8 - i, i, i);
	EXPECT_EQ(t.n, 3);
	EXPECT_EQ(t.dropped, 2);
	EXPECT_EQ(timeline_begin(&t), 6);
	timeline_free(&t);
}

static void expect_part(const char *text, const char *part)
{
	if (!strstr(text, part)) {
		printf("  missing: %s\n", part);
		test_errors++;
	}
}

TEST(timeline_firefox)
{
	static const char *const parts[] = {
		"\"interval\":10.000000,\"startTime\":1000.000,",
		"\"profilingEndTime\":500.000,",
		"\"libs\":[{\"name\":\"app\",\"path\":\"app\",",
		"\"stringArray\":[\"[unknown] (3)\",\"\",\"[app+0x10]\",\"app\",\"[app+0x20]\",",
		"\"stackTable\":{\"length\":12,\"frame\":[0,1,2,3,1,2,4,5,6,4,5,6],",
		"\"prefix\":[null,null,1,null,3,4,null,6,7,3,9,10]",
		"\"category\":[0,1,1,0,0,3,2]",
		"\"name\":\"app\",\"processName\":\"app\",\"isMainThread\":true,\"pid\":\"7\","
		"\"tid\":7\n",
		"\"time\":[10.000001,11.000000,21.000000],\"stack\":[2,2,2],"
		"\"threadCPUDelta\":[10000000,10000000,10000000]}",
		"\"name\":\"<\\/w\",\"processName\":\"app\",\"isMainThread\":false,\"pid\":\"7\","
		"\"tid\":5\n",
		"\"name\":\"CPU 4\",\"processName\":\"CPUs\",\"isMainThread\":false,"
		"\"pid\":\"CPUs\","
		"\"tid\":\"CPU 4\"",
		"\"label\":\"Not on the timeline\",\"format\":\"integer\",\"value\":6}",
	};
	struct timeline t;
	struct world w;
	char *out, *text;
	size_t len;

	fill_times(&w, &t);
	t.dropped = 6;
	out = written_bytes(out_firefox, &w.r, &len);
	text = unpacked(out, len);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		expect_part(text, parts[i]);
	free(text);
	free(out);
	timeline_free(&t);
	free_world(&w);
}

/* The message in field `number` of msg, the nth of them. */
static struct bytes field(struct bytes msg, uint32_t number, unsigned int nth)
{
	struct pb_field f;

	while (pb_next(&msg, &f))
		if (f.number == number && !nth--)
			return f.bytes;
	return (struct bytes){ 0 };
}

static uint64_t number(struct bytes msg, uint32_t want)
{
	struct pb_field f;

	while (pb_next(&msg, &f))
		if (f.number == want)
			return f.value;
	return 0;
}

TEST(timeline_perfetto)
{
	/* By packet: time, CPU, tid, callstack */
	static const uint64_t want[][4] = {
		{ 60 * MS + 6, 4, 7, 1 }, { 61 * MS + 5, 0, 7, 1 }, { 62 * MS + 5, 4, 5, 2 },
		{ 63 * MS + 5, 4, 3, 3 }, { 71 * MS + 5, 0, 7, 1 },
	};
	struct bytes trace, packet, sample;
	struct timeline t;
	struct world w;
	size_t len, n = 0;
	char *out;

	fill_times(&w, &t);
	t.suspended_ns = 5;
	t.dropped = 6;
	out = written_bytes(out_perfetto, &w.r, &len);
	trace = bytes_of(out, len, false);
	EXPECT_EQ(number(field(trace, 1, 0), 8), 50 * MS + 5);
	for (; n < 5; n++) {
		packet = field(trace, 1, (unsigned int)n + 2);
		sample = field(packet, 66, 0);
		EXPECT_EQ(number(packet, 8), want[n][0]);
		EXPECT_EQ(number(sample, 1), want[n][1]);
		EXPECT_EQ(number(sample, 3), want[n][2]);
		EXPECT_EQ(number(sample, 4), want[n][3]);
	}
	/* The stack of the second callstack: [incomplete:read_fault], JIT code, kernel. */
	packet = field(field(trace, 1, 4), 12, 0);
	EXPECT_EQ(number(field(packet, 6, 0), 7), 0);
	EXPECT_EQ(number(field(packet, 6, 1), 7), 4);
	EXPECT_EQ(number(field(packet, 6, 1), 4), 0x7000);
	EXPECT_EQ(number(field(packet, 6, 2), 7), 2);
	EXPECT_EQ(number(field(packet, 7, 0), 2), 3); /* its first frame: two were there before */
	EXPECT_EQ(number(field(field(trace, 1, 4), 66, 0), 16), 3);
	EXPECT_EQ(number(field(field(trace, 1, 7), 66, 0), 17), 6);
	free(out);
	timeline_free(&t);
	free_world(&w);
}

/*
 * The thread 9 of "app" is blocked from 52 to 64 ms, woken at 63 ms by the main thread; then from
 * 66 to 70 ms, woken by an interrupt. The main thread is preempted from 64 to 65 ms.
 */
static struct profile *fill_blocks(struct world *w, struct timeline *t)
{
	static const struct timeline_block blocks[] = {
		{ 52 * MS, 63 * MS, 64 * MS, 0, 1, 9, 7 },
		{ 64 * MS, 65 * MS, 65 * MS, 1, 0, 7, 0 },
		{ 66 * MS, 70 * MS, 70 * MS, 0, 2, 9, 0 },
	};
	static const struct fake waker = { "app", 7, SF_STOP_COMPLETE, USER, 1,
					   1,	  0, { ROW(1, 0x50) } };
	static const struct fake interrupt = { "[softirq]", 0, SF_STOP_COMPLETE, KERNEL, 1,
					       0,	    1, { KADDR } };
	struct profile *wakers = profile_new();
	size_t at;

	fill_times(w, t);
	add_fake(wakers, &waker, 1);
	add_fake(wakers, &interrupt, 1);
	for (int i = 0; i < 2; i++) {
		struct sf_sample *rec = calloc(1, sizeof(*rec) + 8);
		struct profile_times none = { .state = i ? SF_OFF_R : SF_OFF_D };

		strcpy(rec->comm, "app");
		rec->pid = 7;
		rec->flags = USER;
		rec->n_user = 1;
		rec->frames[0] = ROW(1, 0x60);
		EXPECT_EQ(profile_add_times(w->p, rec, &none, &at), 0);
		free(rec);
		for (int k = 0; k < 3; k++)
			if (blocks[k].stack == (uint32_t)i) {
				struct timeline_block b = blocks[k];

				b.stack = (uint32_t)at;
				timeline_add_block(t, &b);
			}
	}
	w->r.wakers = wakers;
	t->has_blocks = true;
	t->min_block_ns = MS;
	return wakers;
}

TEST(timeline_marks)
{
	struct timeline_tracks tracks;
	struct timeline t;
	struct world w;
	struct profile *wakers = fill_blocks(&w, &t);

	EXPECT_EQ(timeline_by_thread(&t, w.p, wakers, &tracks), 0);
	/* Threads 3, 7, 5 and 9; the last one has no samples. */
	EXPECT_EQ(tracks.n, 4);
	EXPECT_EQ(tracks.list[1].nmarks, 2);
	EXPECT_EQ(tracks.marks[tracks.list[1].first_mark].kind, TIMELINE_WAKES);
	EXPECT_EQ(tracks.list[2].nmarks, 0);
	EXPECT_EQ(tracks.list[3].tid, 9);
	EXPECT_EQ(tracks.list[3].n, 0);
	EXPECT_EQ(tracks.list[3].nmarks, 3);
	EXPECT_STR(tracks.list[3].comm, "app");
	timeline_tracks_free(&tracks);
	EXPECT_EQ(timeline_by_cpu(&t, &tracks), 0);
	EXPECT_EQ(tracks.n, 2);
	EXPECT_EQ(tracks.nmarks, 0);
	timeline_tracks_free(&tracks);
	t.max = t.nblocks;
	timeline_add_block(&t, &t.blocks[0]);
	EXPECT_EQ(t.nblocks, 3);
	EXPECT_EQ(t.missing, 1);
	profile_free(wakers);
	timeline_free(&t);
	free_world(&w);
}

TEST(timeline_firefox_marks)
{
	static const char *const parts[] = {
		"\"markerSchema\":[{\"name\":\"Wait\",",
		"\"label\":\"Waits\",\"format\":\"integer\",\"value\":3}",
		/* the main thread */
		"\"markers\":{\"length\":2,\"data\":[{\"type\":\"Wake\",\"thread\":\"app (9)\","
		"\"cause\":{\"time\":13.000000,\"stack\":",
		"{\"type\":\"Wait\",\"cause\":{\"time\":14.000000,",
		"\"startTime\":[13.000000,14.000000],\"endTime\":[null,15.000000],"
		"\"phase\":[0,1],\"category\":[0,6]}",
		/* thread 9 */
		"{\"type\":\"Wait\",\"waker\":\"app (7)\",\"cause\":{\"time\":2.000000,",
		"{\"type\":\"Wait\",\"waker\":\"[softirq]\",\"cause\":{\"time\":16.000000,",
		"\"startTime\":[2.000000,13.000000,16.000000],"
		"\"endTime\":[13.000000,14.000000,20.000000],\"phase\":[1,1,1],"
		"\"category\":[4,6,4]}",
		"\"[blocked: other]\"",
	};
	struct timeline t;
	struct world w;
	struct profile *wakers = fill_blocks(&w, &t);
	char *out, *text;
	size_t len;

	out = written_bytes(out_firefox, &w.r, &len);
	text = unpacked(out, len);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		expect_part(text, parts[i]);
	free(text);
	free(out);
	profile_free(wakers);
	timeline_free(&t);
	free_world(&w);
}

TEST(timeline_perfetto_marks)
{
	/* Of the packets with events: time, type, track, flow that begins or ends */
	static const uint64_t want[][4] = {
		{ 52, 1, 9, 0 }, { 63, 2, 9, 0 }, { 63, 3, 0, 1 }, { 63, 1, 9, 1 }, { 64, 2, 9, 0 },
		{ 64, 1, 0, 0 }, { 65, 2, 0, 0 }, { 66, 1, 9, 0 }, { 70, 2, 9, 0 },
	};
	struct bytes trace, packet, event;
	struct pb_field f;
	struct timeline t;
	struct world w;
	struct profile *wakers = fill_blocks(&w, &t);
	size_t len, n = 0;
	char *out;

	out = written_bytes(out_perfetto, &w.r, &len);
	trace = bytes_of(out, len, false);
	while (pb_next(&trace, &f)) {
		packet = f.bytes;
		event = field(packet, 11, 0);
		if (!number(event, 9))
			continue;
		EXPECT(n < sizeof(want) / sizeof(want[0]));
		EXPECT_EQ(number(packet, 8), want[n][0] * MS);
		EXPECT_EQ(number(event, 9), want[n][1]);
		EXPECT_EQ(number(event, 11), (UINT64_C(7) << 32 | want[n][2]) + 1);
		EXPECT_EQ(number(event, 47) + number(event, 48), want[n][3]);
		EXPECT_EQ(!number(event, 56), want[n][1] == 2);
		n++;
	}
	EXPECT_EQ(n, sizeof(want) / sizeof(want[0]));
	free(out);
	profile_free(wakers);
	timeline_free(&t);
	free_world(&w);
}

TEST(timeline_full_disk)
{
	struct timeline t;
	struct world w;
	FILE *f;

	fill_times(&w, &t);
	for (int i = 0; i < 20000; i++)
		take(&w, &t, &main_thread, 7, 80 * MS + (uint64_t)i * i, 0);
	f = fopen("/dev/full", "w");
	EXPECT(out_firefox(&w.r, f) < 0);
	fclose(f);
	f = fopen("/dev/full", "w");
	EXPECT(out_perfetto(&w.r, f) < 0);
	fclose(f);
	timeline_free(&t);
	free_world(&w);
}

TEST(timeline_empty)
{
	struct timeline t = { .start_ns = 5 };
	struct world w;
	char *out, *text;
	size_t len;

	make_world(&w);
	w.r.timeline = &t;
	out = written_bytes(out_firefox, &w.r, &len);
	text = unpacked(out, len);
	expect_part(text, "\"threads\":[]}");
	free(text);
	free(out);
	free_world(&w);
}

TEST(gzip_stream)
{
	size_t len, n = 300000;
	char *packed, *text, *in = malloc(n + 1);
	FILE *to = open_memstream(&packed, &len), *f = gzip_stream(to, 6), *full;

	for (size_t i = 0; i < n; i++)
		in[i] = (char)('a' + i * i % 23);
	in[n] = 0;
	EXPECT_EQ(fwrite(in, 1, n, f), n);
	EXPECT_EQ(fclose(f), 0);
	fclose(to);
	text = unpacked(packed, len);
	EXPECT_STR(text, in);
	free(text);
	free(packed);
	full = fopen("/dev/full", "w");
	setvbuf(full, NULL, _IONBF, 0);
	f = gzip_stream(full, 6);
	fwrite(in, 1, n, f);
	EXPECT_EQ(fclose(f), EOF);
	fclose(full);
	free(in);
}
