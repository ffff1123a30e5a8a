/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pprof output, read back by a decoder of its own and, where it is installed, by `go tool pprof`.
 */
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/pb.h"
#include "elf_reader.h"
#include "test.h"
#include "world.h"

/* ---- The writer ---- */

TEST(pb_wire)
{
	static const uint64_t packed[] = { 0, 1, 300 };
	static const uint8_t want[] = {
		0x08, 0x96, 0x01,						  /* 1: 150 */
		0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, /* 2: -1 */
		0x1a, 0x02, 'h',  'i',						  /* 3: "hi" */
		0x22, 0x00,							  /* 4: "" */
		0x2a, 0x04, 0x00, 0x01, 0xac, 0x02,				  /* 5: packed */
		0x31, 1,    0,	  0,	0,    0,    0,	  0,	0x80,		  /* 6: fixed64 */
		0x82, 0x01, 0x02, 0x3a, 0x00, /* 16: { 7: {} } */
	};
	struct pb pb = { 0 };
	size_t outer, inner;

	pb_u64(&pb, 1, 150);
	pb_u64(&pb, 1, 0);
	pb_u64(&pb, 2, UINT64_MAX);
	pb_str(&pb, 3, "hi");
	pb_str(&pb, 3, "");
	pb_bytes_always(&pb, 4, "", 0);
	pb_packed(&pb, 5, packed, 3);
	pb_fixed64(&pb, 6, 0x8000000000000001);
	outer = pb_begin(&pb, 16);
	inner = pb_begin(&pb, 7);
	pb_end(&pb, inner);
	pb_end(&pb, outer);
	EXPECT_EQ(pb.err, 0);
	EXPECT_EQ(pb.len, sizeof(want));
	EXPECT(pb.len == sizeof(want) && memcmp(pb.buf, want, sizeof(want)) == 0);
	pb_free(&pb);
	outer = pb_begin(&pb, 1); /* a length of two bytes */
	for (int i = 0; i < 200; i++)
		pb_u64(&pb, 1, 1);
	pb_end(&pb, outer);
	EXPECT_EQ(pb.len, 403);
	EXPECT(pb.len == 403 && pb.buf[1] == 0x90 && pb.buf[2] == 0x03 && pb.buf[3] == 0x08);
	pb_free(&pb);
}

/* ---- A decoder ---- */

struct field {
	uint32_t number;
	uint64_t value;	    /* varints */
	struct bytes bytes; /* the rest */
};

static bool next_field(struct bytes *b, struct field *ret)
{
	uint64_t key, len;

	if (!bytes_left(b))
		return false;
	key = bytes_uleb(b);
	ret->number = (uint32_t)(key >> 3);
	if ((key & 7) == 0) {
		ret->value = bytes_uleb(b);
	} else if ((key & 7) == 2) {
		len = bytes_uleb(b);
		ret->bytes = bytes_sub(b, b->pos, len);
		bytes_skip(b, len);
	} else {
		b->err = true;
	}
	EXPECT(!b->err);
	return !b->err;
}

/* Value of field `number` of a message; the last one counts. */
static uint64_t get(struct bytes msg, uint32_t number)
{
	uint64_t value = 0;
	struct field f;

	while (next_field(&msg, &f))
		if (f.number == number)
			value = f.value;
	return value;
}

static struct bytes get_message(struct bytes msg, uint32_t number, unsigned int nth)
{
	struct field f;

	while (next_field(&msg, &f))
		if (f.number == number && !nth--)
			return f.bytes;
	return bytes_of(NULL, 0, false);
}

/* The message of that id in a table of the profile. */
static struct bytes by_id(struct bytes profile, uint32_t table, uint64_t id)
{
	struct field f;

	while (next_field(&profile, &f))
		if (f.number == table && get(f.bytes, 1) == id)
			return f.bytes;
	return bytes_of(NULL, 0, false);
}

static const char *string(struct bytes profile, uint64_t id)
{
	static char buf[4][256];
	static unsigned int turn;
	struct bytes s = get_message(profile, 6, (unsigned int)id);
	char *out = buf[turn++ % 4];

	snprintf(out, sizeof(buf[0]), "%.*s", (int)s.len, s.base ? (const char *)s.base : "");
	return out;
}

static struct bytes gunzip(const char *data, size_t len, uint8_t *buf, size_t cap)
{
	z_stream z = { .next_in = (uint8_t *)data,
		       .avail_in = (uInt)len,
		       .next_out = buf,
		       .avail_out = (uInt)cap };

	EXPECT_EQ(inflateInit2(&z, 15 + 16), Z_OK);
	EXPECT_EQ(inflate(&z, Z_FINISH), Z_STREAM_END);
	inflateEnd(&z);
	return bytes_of(buf, cap - z.avail_out, false);
}

/* "name@mapping;..." root first, then " value value", as folded lines have it. */
static void describe(struct bytes profile, struct bytes sample, char *out, size_t cap)
{
	struct bytes ids = get_message(sample, 1, 0), values = get_message(sample, 2, 0);
	uint64_t list[16];
	size_t n = 0, len = 0;

	while (bytes_left(&ids) && n < 16)
		list[n++] = bytes_uleb(&ids);
	while (n--) {
		struct bytes loc = by_id(profile, 4, list[n]), line = get_message(loc, 4, 0);
		struct bytes fn = by_id(profile, 5, get(line, 1)),
			     map = by_id(profile, 3, get(loc, 2));

		len += (size_t)snprintf(out + len, cap - len, "%s@%s;", string(profile, get(fn, 2)),
					map.len ? string(profile, get(map, 5)) : "");
	}
	while (bytes_left(&values))
		len += (size_t)snprintf(out + len, cap - len, " %" PRIu64, bytes_uleb(&values));
}

static void expect_label(struct bytes profile, struct bytes sample, unsigned int nth,
			 const char *key, const char *str, uint64_t num)
{
	struct bytes label = get_message(sample, 3, nth);

	EXPECT_STR(string(profile, get(label, 1)), key);
	EXPECT_STR(string(profile, get(label, 2)), str);
	EXPECT_EQ(get(label, 3), num);
}

static uint8_t buf[1 << 20];

TEST(pprof_samples)
{
	static const char *const want[] = {
		"[app+0x10]@app;[app+0x20]@app;vfs_read_[k]@[kernel.kallsyms]; 1 10101010",
		"[app+0x10]@app;[app+0x20]@app;vfs_read_[k]@[kernel.kallsyms]; 2 20202020",
		"[li;b.+0x30]@li;b.;[unknown]_[j]@; 3 30303030",
		"vfs_read_[k]@[kernel.kallsyms]; 4 40404040",
		"[no stack]@; 5 50505050",
		"[unknown]@; 6 60606060",
	};
	struct bytes profile, sample;
	struct world w;
	char *out, text[512];
	size_t len;

	make_world(&w);
	fill(&w);
	out = written_bytes(out_pprof, &w.r, &len);
	profile = gunzip(out, len, buf, sizeof(buf));
	EXPECT_STR(string(profile, 0), "");
	for (unsigned int i = 0; i < 6; i++) {
		describe(profile, get_message(profile, 2, i), text, sizeof(text));
		EXPECT_STR(text, want[i]);
	}
	EXPECT_EQ(get_message(profile, 2, 6).len, 0);
	sample = get_message(profile, 2, 2);
	expect_label(profile, sample, 0, "comm", "a;b .\xef\xbf\xbd", 0);
	expect_label(profile, sample, 1, "pid", "", 9);
	expect_label(profile, sample, 2, "incomplete", "read_fault", 0);
	EXPECT_EQ(get(profile, 12), 10101010);
	EXPECT_EQ(get(profile, 10), 10500000000);
	EXPECT_STR(string(profile, get(get_message(profile, 11, 0), 1)), "cpu");
	EXPECT_STR(string(profile, get(get_message(profile, 1, 0), 1)), "samples");
	EXPECT_STR(string(profile, get(get_message(profile, 1, 1), 2)), "nanoseconds");
	free(out);
	w.r.opts.usec = true;
	out = written_bytes(out_pprof, &w.r, &len);
	profile = gunzip(out, len, buf, sizeof(buf));
	describe(profile, get_message(profile, 2, 1), text, sizeof(text));
	EXPECT_STR(text, "[app+0x10]@app;[app+0x20]@app;vfs_read_[k]@[kernel.kallsyms]; 2 3200");
	EXPECT_STR(string(profile, get(get_message(profile, 1, 1), 1)), "off_cpu");
	free(out);
	free_world(&w);
}

static int open_self(void)
{
	FILE *f = fopen("/proc/self/exe", "re");
	int fd = f ? dup(fileno(f)) : -1;

	if (f)
		fclose(f);
	return fd;
}

/* The test program itself is an ELF file with an executable segment. */
TEST(pprof_wakers)
{
	struct profile *wakers;
	struct bytes profile, sample;
	struct world w;
	size_t len;
	char *out;

	make_world(&w);
	wakers = fill_wakers(&w);
	out = written_bytes(out_pprof, &w.r, &len);
	profile = gunzip(out, len, buf, sizeof(buf));
	sample = get_message(profile, 2, 0);
	expect_label(profile, sample, 2, "state", "S", 0);
	expect_label(profile, sample, 3, "waker", "b", 0);
	expect_label(profile, sample, 4, "waker_stack", "b;[app+0x30];--;[hardirq];vfs_read_[k]",
		     0);
	free(out);
	profile_free(wakers);
	free_world(&w);
}

TEST(pprof_mappings)
{
	struct test_reader reader = open_reader(elf_worker_main);
	struct bytes profile, map, loc;
	struct elf_image img;
	uint64_t at = 0;
	struct world w;
	struct module *m;
	char *out;
	size_t len;

	make_world(&w);
	symbolizer_set_reader(w.sz, reader.r, NULL);
	m = add_module(w.ms, 3, "self");
	m->fd = open_self();
	m->size = 4096;
	memcpy(m->build_id, "\x01\xab\xff", 3);
	m->build_id_len = 3;
	EXPECT_EQ(module_image(m, &img), 0);
	EXPECT(elf_image_vaddr_to_offset(&img, img.entry, &at));
	elf_image_close(&img);
	add_fake(w.p,
		 &(struct fake){
			 "self", 5, SF_STOP_COMPLETE, USER, 1, 2, 0, { ROW(3, at), ROW(1, 0x77) } },
		 7);
	out = written_bytes(out_pprof, &w.r, &len);
	profile = gunzip(out, len, buf, sizeof(buf));
	map = by_id(profile, 3, 1);
	loc = by_id(profile, 4, 1);
	EXPECT_STR(string(profile, get(map, 5)), "self");
	EXPECT_STR(string(profile, get(map, 6)), "01abff");
	EXPECT_EQ(get(map, 4) % 4096, 0);
	EXPECT(get(map, 4) <= at);
	EXPECT_EQ(get(loc, 3) - get(map, 2) + get(map, 4), at);
	EXPECT(get(loc, 3) < get(map, 3));
	EXPECT_EQ(get(map, 7), 1); /* _start */
	map = by_id(profile, 3, 2);
	loc = by_id(profile, 4, 2);
	EXPECT_EQ(get(loc, 3) - get(map, 2), 0x77);
	EXPECT(get(loc, 3) < get(map, 3));
	EXPECT(get(map, 2) >= get(by_id(profile, 3, 1), 3));
	EXPECT_EQ(get(map, 7), 0); /* nothing of it has a name */
	free(out);
	free_world(&w);
	close_reader(&reader);
}

TEST(pprof_go)
{
	char path[] = "/tmp/sfbpf-pprof-XXXXXX", cmd[256], line[512];
	bool total = false, leaf = false;
	struct world w;
	FILE *f;
	int fd;

	if (system("command -v go >/dev/null"))
		SKIP("go is not installed");
	fd = mkstemp(path);
	f = fd < 0 ? NULL : fdopen(fd, "w");
	if (!f)
		SKIP("no temporary file");
	make_world(&w);
	fill(&w);
	EXPECT_EQ(out_pprof(&w.r, f), 0);
	fclose(f);
	snprintf(cmd, sizeof(cmd),
		 "HOME=/tmp go tool pprof -symbolize=none -top "
		 "-sample_index=samples %s 2>/dev/null",
		 path);
	f = popen(cmd, "r");
	while (f && fgets(line, sizeof(line), f)) {
		total |= strstr(line, "of 21 total") != NULL;
		leaf |= strstr(line, "vfs_read_[k]") && atoi(line) == 7;
	}
	EXPECT(f && pclose(f) == 0);
	EXPECT(total);
	EXPECT(leaf);
	remove(path);
	free_world(&w);
}
