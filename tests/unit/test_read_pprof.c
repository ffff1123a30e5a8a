/* SPDX-License-Identifier: BSD-2-Clause */
/* pprof files read back: what comes out is what went in; and files that were made to hurt. */
#include "prof/read_stacks.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/gunzip.h"
#include "base/gzip.h"
#include "base/pb.h"
#include "out/out_html.h"
#include "out/out_stacks.h"
#include "test.h"
#include "world.h"

static uint8_t *pack(const void *data, size_t size, size_t *ret)
{
	uint8_t *out = NULL;

	EXPECT_EQ(gzip_bytes(data, size, 1, &out, ret), 0);
	return out;
}

/* Folded lines of what was read, malloc'ed; NULL and *why if it cannot be. */
static char *read_packed(const void *data, size_t len, struct stacks_meta *meta,
			 struct read_error *why)
{
	struct stackset ss;
	char *out;
	int err;

	*meta = (struct stacks_meta){ 0 };
	*why = (struct read_error){ 0 };
	EXPECT_EQ(stackset_init(&ss), 0);
	err = read_pprof(bytes_of(data, len, false), &ss, STACK_AFTER, meta, why);
	EXPECT(!err || err == -EFBIG || (err == -EINVAL && *why->text));
	out = err ? NULL : folded_of(&ss, false);
	stackset_free(&ss);
	return out;
}

TEST(read_pprof_back)
{
	struct stacks_meta meta;
	struct read_error why;
	struct world w;
	char *pprof, *folded, *out;
	size_t len;

	make_world(&w);
	fill(&w);
	w.meta.start_unix_ns = 1700000000123456789;
	pprof = written_bytes(out_pprof, &w.r, &len);
	folded = written(out_folded, &w.r);
	out = read_packed(pprof, len, &meta, &why);
	EXPECT_STR(out, folded);
	EXPECT_STR(meta.unit, "samples");
	EXPECT_STR(meta.event, "cpu-clock");
	EXPECT_STR(meta.host, "host.");
	EXPECT(meta.hz == 99 && meta.duration_s == 10.5);
	EXPECT(meta.start_unix_ns == 1700000000123456789);
	EXPECT_EQ(meta.lost, 4);
	EXPECT_EQ(meta.user_stacks, 17);
	EXPECT_EQ(meta.complete, 9);
	free(out);
	free(folded);
	for (size_t n = 0; n < len; n += 5) { /* cut anywhere: an error, never a crash */
		out = read_packed(pprof, n, &meta, &why);
		EXPECT(!out);
		EXPECT_STR(why.text, "damaged gzip data");
	}
	free(pprof);
	free_world(&w);
}

TEST(read_pprof_off_cpu)
{
	struct stacks_meta meta;
	struct read_error why;
	struct world w;
	char *pprof, *out;
	size_t len;

	make_world(&w);
	fill(&w);
	w.r.opts.usec = true;
	pprof = written_bytes(out_pprof, &w.r, &len);
	out = read_packed(pprof, len, &meta, &why);
	EXPECT_STR(meta.unit, "microseconds");
	/* 1.5 us + 2 * 1.6 us, of each process */
	EXPECT(out && strstr(out, "app;[app+0x10];[app+0x20];vfs_read_[k] 4\n"));
	EXPECT(out && strstr(out, "kworker/0:1;vfs_read_[k] 4\n"));
	free(out);
	free(pprof);
	free_world(&w);
}

/* ---- Profiles by hand ---- */

enum { TYPE = 1, SAMPLE = 2, MAPPING = 3, LOCATION = 4, FUNCTION = 5, STRING = 6 };

static void put_entry(struct pb *pb, uint32_t table, uint64_t id, uint32_t field, uint64_t value)
{
	size_t at = pb_begin(pb, table);

	pb_u64(pb, 1, id);
	pb_u64(pb, field, value);
	pb_end(pb, at);
}

/* A location of n lines, which are the functions from, from + 1, ... */
static void put_location(struct pb *pb, uint64_t id, uint64_t from, unsigned int n)
{
	size_t at = pb_begin(pb, LOCATION), line;

	pb_u64(pb, 1, id);
	for (unsigned int i = 0; i < n; i++) {
		line = pb_begin(pb, 4);
		pb_u64(pb, 1, from + i);
		pb_end(pb, line);
	}
	pb_end(pb, at);
}

static void put_sample(struct pb *pb, const uint64_t *locations, size_t n, uint64_t value)
{
	size_t at = pb_begin(pb, SAMPLE);

	pb_packed(pb, 1, locations, n);
	pb_packed(pb, 2, &value, 1);
	pb_end(pb, at);
}

/* Strings 0 "", 1 "samples", 2 "count", 3 "f0", 4 "f1", ...: function i + 1 is "f<i>". */
static void put_head(struct pb *pb, unsigned int functions)
{
	char name[32];
	size_t at = pb_begin(pb, TYPE);

	pb_u64(pb, 1, 1);
	pb_u64(pb, 2, 2);
	pb_end(pb, at);
	pb_bytes_always(pb, STRING, "", 0);
	pb_bytes_always(pb, STRING, "samples", 7);
	pb_bytes_always(pb, STRING, "count", 5);
	for (unsigned int i = 0; i < functions; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		pb_str(pb, STRING, name);
		put_entry(pb, FUNCTION, i + 1, 2, i + 3);
	}
}

static char *read_pb(struct pb *pb, struct read_error *why)
{
	struct stacks_meta meta;
	size_t len;
	uint8_t *packed = pack(pb->buf, pb->len, &len);
	char *out = read_packed(packed, len, &meta, why);

	free(packed);
	pb_free(pb);
	return out;
}

/*
 * Samples before the tables they need; unpacked numbers; inlined lines; a location without a line.
 */
TEST(read_pprof_shapes)
{
	static const uint64_t all[] = { 3, 2, 1 };
	struct read_error why;
	struct pb pb = { 0 };
	char *out;
	size_t at;

	put_sample(&pb, all, 3, 7);
	at = pb_begin(&pb, SAMPLE);
	pb_u64(&pb, 1, 2);
	pb_u64(&pb, 1, 1);
	pb_u64(&pb, 2, 5);
	pb_end(&pb, at);
	put_location(&pb, 1, 1, 1);
	put_location(&pb, 2, 2, 3);
	put_entry(&pb, LOCATION, 3, 3, 0x1234);
	put_head(&pb, 4);
	out = read_pb(&pb, &why);
	EXPECT_STR(out,
		   "[unknown];f0;f3;f2_[i];f1_[i] 5\n[unknown];f0;f3;f2_[i];f1_[i];[unknown] 7\n");
	free(out);
}

static void expect_refused(struct pb *pb, const char *want)
{
	struct read_error why;
	char *out = read_pb(pb, &why);

	EXPECT(!out);
	EXPECT_STR(why.text, want);
	free(out);
}

TEST(read_pprof_damage)
{
	static const uint64_t one = 1, deep[4097] = { [0 ... 4096] = 1 };
	struct pb pb = { 0 };

	put_head(&pb, 1);
	put_sample(&pb, &one, 1, 1);
	expect_refused(&pb, "damaged profile: no location 1");
	put_head(&pb, 1);
	put_location(&pb, 2, 1, 1);
	expect_refused(&pb, "damaged profile: location 1");
	put_head(&pb, 1);
	put_location(&pb, 1, 9, 1);
	put_sample(&pb, &one, 1, 1);
	expect_refused(&pb, "damaged profile: no function 9");
	put_head(&pb, 1);
	put_location(&pb, 1, 1, 1);
	put_sample(&pb, deep, 4097, 1);
	expect_refused(&pb, "damaged profile: a stack of more frames than 4096");
	put_head(&pb, 1);
	pb_bytes_always(&pb, SAMPLE, "\x0a\x7f", 2); /* a length beyond the message */
	expect_refused(&pb, "damaged profile: sample at byte 2");
	put_head(&pb, 1);
	pb_bytes_always(&pb, SAMPLE, "\x0b", 1); /* a group */
	expect_refused(&pb, "damaged profile: sample at byte 1");
	pb_bytes_always(&pb, 15, "\xff", 1);
	pb.len--; /* cut inside the last field */
	expect_refused(&pb, "damaged profile: byte 2");
	expect_refused(&pb, "a pprof profile, but not of samples or off-CPU time");
}

/* A few bytes a sample that stand for 4,000 frames each, all of them new ones. */
TEST(read_pprof_many_inlined)
{
	struct read_error why;
	struct pb pb = { 0 };
	char *out;

	put_head(&pb, 4096);
	put_location(&pb, 1, 1, 4000);
	for (unsigned int i = 0; i < 96; i++)
		put_location(&pb, 2 + i, 4001 + i, 1);
	for (unsigned int i = 0; i < 20000; i++)
		put_sample(&pb, (uint64_t[3]){ 1, 2 + i % 96, 2 + i / 96 % 96 }, 3, 1);
	out = read_pb(&pb, &why);
	EXPECT(!out && strstr(why.text, "stands for more frames, names and labels "
					"than a packed file of its size may ("));
	free(out);
}

TEST(gunzip_limits)
{
	static uint8_t zeros[1 << 20];
	size_t len, out_len;
	uint8_t *packed = pack(zeros, sizeof(zeros), &len), *out, more[8192] = { 0 };
	struct bytes in = bytes_of(packed, len, false);

	EXPECT(len < sizeof(more) - 1);
	EXPECT_EQ(gunzip(&in, sizeof(zeros), &out, &out_len), 0);
	EXPECT_EQ(out_len, sizeof(zeros));
	free(out);
	EXPECT_EQ(gunzip(&in, sizeof(zeros) - 1, &out, &out_len), -EFBIG);
	EXPECT_EQ(gunzip(&in, 100, &out, &out_len), -EFBIG);
	memcpy(more, packed, len);
	in = bytes_of(more, len + 1, false);
	EXPECT_EQ(gunzip(&in, sizeof(zeros), &out, &out_len), -EINVAL); /* something follows */
	more[len - 6] ^= 1;
	in = bytes_of(more, len, false);
	EXPECT_EQ(gunzip(&in, sizeof(zeros), &out, &out_len), -EINVAL); /* the checksum */
	free(packed);
}

/* ---- The stored inputs of the fuzz target ---- */

static int read_file(const char *path)
{
	FILE *f = fopen(path, "r");
	struct stacks_meta meta;
	struct read_error why;
	struct stackset ss;
	int err;

	EXPECT(f);
	if (!f)
		return -EIO;
	EXPECT_EQ(stackset_init(&ss), 0);
	err = read_stacks(f, &ss, STACK_AFTER, &meta, &why);
	if (err == -EINVAL)
		EXPECT(*why.text);
	stackset_free(&ss);
	fclose(f);
	return err;
}

/* Files of a directory; how many of them were refused goes to *ret_refused. */
static size_t read_all(const char *dir, size_t *ret_refused)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	char path[512];
	size_t n = 0;

	*ret_refused = 0;
	while (d && (e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		n++;
		if (read_file(path) < 0)
			++*ret_refused;
		else if (strstr(dir, "reject"))
			printf("  %s is accepted\n", path);
	}
	if (d)
		closedir(d);
	return n;
}

TEST(read_stored_inputs)
{
	size_t n, refused;

	if (access("tests/fuzz/corpus/stacks", R_OK))
		SKIP("not run from the top of the tree");
	n = read_all("tests/fuzz/corpus/stacks", &refused);
	EXPECT(n >= 5);
	n = read_all("tests/fuzz/reject/stacks", &refused);
	EXPECT(n >= 10);
	EXPECT_EQ(refused, n);
}

static const char labelled[] =
	"{\"meta\":{\"schema\":1,\"host\":\"h\",\"unit\":\"samples\"},\"stacks\":["
	"{\"comm\":\"w\",\"pid\":7,\"count\":3,\"samples\":3,\"stop\":\"no_row\","
	"\"labels\":{\"service.name\":\"web\",\"service.version\":\"2\"},\"frames\":["
	"{\"name\":\"main\",\"module\":\"m\",\"kind\":\"user\"},"
	"{\"name\":\"read_[k]\",\"module\":\"[kernel]\",\"kind\":\"kernel\"}]},"
	"{\"comm\":\"w\",\"pid\":0,\"count\":5,\"samples\":5,\"stop\":\"complete\","
	"\"labels\":{\"service.name\":\"db\"},\"frames\":["
	"{\"name\":\"jit_[j]\",\"module\":\"[jit]\",\"kind\":\"jit\"}]}]}";

/* Written as pprof and read again; the caller frees the folded lines. */
static char *through_pprof(const struct stackset *ss, const char *by)
{
	struct html_meta html = { .unit = "samples", .event = "cpu-clock", .host = "h", .hz = 19 };
	struct stackset back;
	struct stacks_meta meta = { 0 };
	struct read_error why = { "" };
	char *packed = NULL, *out;
	size_t len;
	FILE *f = open_memstream(&packed, &len);

	EXPECT_EQ(stacks_write_pprof(ss, &html, by, f), 0);
	fclose(f);
	EXPECT_EQ(stackset_init(&back), 0);
	back.choice.by = by ? STACK_BY_LABEL : STACK_BY_THREAD;
	back.choice.by_label = by;
	EXPECT_EQ(read_pprof(bytes_of(packed, len, false), &back, STACK_AFTER, &meta, &why), 0);
	EXPECT_STR(why.text, "");
	EXPECT_STR(meta.host, "h");
	EXPECT(meta.hz == 19);
	out = folded_of(&back, false);
	stackset_free(&back);
	free(packed);
	return out;
}

TEST(stacks_to_pprof_and_copies)
{
	static const char *const by[] = { NULL, "service.name", "service.version" };
	static const char *const want[] = {
		"w;[incomplete:no_row];main;read_[k] 3\nw;jit_[j] 5\n",
		"db;w;jit_[j] 5\nweb;w;[incomplete:no_row];main;read_[k] 3\n",
		"2;w;[incomplete:no_row];main;read_[k] 3\n[no service.version];w;jit_[j] 5\n",
	};
	static const uint64_t values[][STACK_SIDES] = { { 0, 0 }, { 4, 2 } };

	for (int i = 0; i < 3; i++) {
		struct stacks_meta meta = { 0 };
		struct read_error why = { "" };
		struct stackset ss, copy;
		char *out, *line;

		EXPECT_EQ(stackset_init(&ss), 0);
		EXPECT_EQ(stackset_init(&copy), 0);
		ss.choice.by = by[i] ? STACK_BY_LABEL : STACK_BY_THREAD;
		ss.choice.by_label = by[i];
		EXPECT_EQ(read_json(bytes_of(labelled, strlen(labelled), false), &ss, STACK_AFTER,
				    &meta, &why),
			  0);
		out = folded_of(&ss, false);
		EXPECT_STR(out, want[i]);
		free(out);
		out = through_pprof(&ss, by[i]);
		EXPECT_STR(out, want[i]);
		free(out);
		/* The second leaf alone, with values of both sides. */
		EXPECT_EQ(stackset_copy(&copy, &ss, values), 0);
		EXPECT_EQ(copy.totals[STACK_AFTER], 4);
		EXPECT_EQ(copy.totals[STACK_BEFORE], 2);
		EXPECT_EQ(copy.leaves.n, 1);
		out = folded_of(&copy, true);
		line = strstr(out, "jit_[j] 2 4\n");
		EXPECT(line && !strstr(out, "main"));
		free(out);
		stackset_free(&copy);
		stackset_free(&ss);
	}
}
