/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines and inlined functions of a Go program: a made table, its damage, and answers of a child. */
#include "elf/go_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/full_io.h"
#include "elf_reader.h"
#include "symtab/go_places.h"
#include "go_file.h"
#include "test.h"

#define TEXT	  0x401000
#define TABLE	  0x402000
#define MODULE	  0x403000
#define FILE_SIZE 0x3400

/*
 * The functions are main.outer [0, 0x40), into which main.mid is inlined at [0x10, 0x30) and
 * main.leaf into that at [0x20, 0x30); and asm.f [0x40, 0x60), without lines.
 */
enum { NAMES = 72, UNITS = 120, FILES = 136, PCS = 160, FUNCS = 208, GOFUNC = 400, END = 432 };

static const char names[] = "\0main.outer\0main.mid\0main.leaf\0asm.f";
static const char files[] = "?\0/src/a.go\0/src/b.go";
/* Files 0 for 0x20 bytes, 1 for 0x10, 0; lines 11, 31, 52, 12; inlined calls -1, 0, 1, -1 */
static const uint8_t pcs[] = { 0,  2,	 0x20, 2,    0x10, 1,	 0x10, 0,	  /* at 1 */
			       24, 0x10, 40,   0x10, 42,   0x10, 79,   0x10, 0,	  /* at 8 */
			       0,  0x10, 2,    0x10, 2,	   0x10, 3,    0x10, 0 }; /* at 17 */

static void put32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, 4);
}

static void put64(uint8_t *p, uint64_t v)
{
	memcpy(p, &v, 8);
}

/* An inlined call. */
static void put_call(uint8_t *p, uint32_t name, uint32_t parent, uint32_t start_line)
{
	put32(p + 4, name);
	put32(p + 8, parent);
	put32(p + 12, start_line);
}

static void put_function(uint8_t *f, uint32_t start, uint32_t name, bool lines)
{
	put32(f, start);
	put32(f + 4, name);
	if (!lines)
		return;
	put32(f + 20, 1);
	put32(f + 24, 8);
	put32(f + 28, 3); /* pcdata */
	put32(f + 32, 1); /* unit: files 1 and 2 of UNITS */
	put32(f + 36, 10);
	f[43] = 4; /* funcdata */
	put32(f + 44 + 2 * 4, 17);
	for (int i = 0; i < 3; i++)
		put32(f + 56 + i * 4, UINT32_MAX);
	put32(f + 56 + 3 * 4, 0);
}

static void make_table(uint8_t *t)
{
	const uint64_t head[] = { 2, 2, 0, NAMES, UNITS, FILES, PCS, FUNCS };
	uint8_t *f = t + FUNCS;

	put32(t, 0xfffffff1);
	put32(t + 4, 0x08010000);
	memcpy(t + 8, head, sizeof(head));
	memcpy(t + NAMES, names, sizeof(names));
	put32(t + UNITS + 4, 2);
	put32(t + UNITS + 8, 12);
	memcpy(t + FILES, files, sizeof(files));
	memcpy(t + PCS, pcs, sizeof(pcs));
	put32(f + 4, 24);
	put32(f + 8, 0x40);
	put32(f + 12, 24 + 72);
	put32(f + 16, 0x60);
	put_function(f + 24, 0, 1, true);
	put_function(f + 24 + 72, 0x40, 31, false);
	put_call(t + GOFUNC, 12, 4, 30);
	put_call(t + GOFUNC + 16, 21, 0x14, 50);
}

/* old: of before Go 1.26, with the module anywhere in .noptrdata. */
static uint8_t *make_file(bool old)
{
	static const char shstrtab[] = "\0.text\0.gopclntab\0.shstrtab\0.go.module\0.noptrdata";
	uint8_t *file = calloc(1, FILE_SIZE), *module = file + 0x3000 + (old ? 40 : 0);

	go_file_init(file, 5, TEXT, FILE_SIZE - 0x1000, shstrtab, sizeof(shstrtab));
	make_table(file + 0x2000);
	put64(module, TABLE);
	put64(module + 8, TABLE + NAMES);
	put64(module + 176, TEXT);
	put64(module + (old ? 320 : 336), TABLE + GOFUNC);
	if (!old)
		put64(module + 344, TABLE + END);
	go_file_section(file, 1, 1, TEXT, 0x1000, 0x60);
	go_file_section(file, 2, 7, TABLE, 0x2000, END);
	go_file_section(file, 3, old ? 39 : 28, MODULE, 0x3000, 0x400);
	return file;
}

/* The frames at an offset from the text, as text; fewer than 64 KiB. */
static const char *frames_at(const uint8_t *mem, uint64_t at)
{
	static char text[1 << 16];
	struct go_frame frames[GO_FRAMES_MAX];
	struct go_table table = { 0 };
	struct elf_image img;
	struct go_lines lines;
	char *p = text;
	size_t n = 0;

	*p = 0;
	if (elf_image_open_mem(&img, mem, FILE_SIZE, NULL))
		return "";
	if (!go_table_open(&img, &table) && !go_lines_open(&img, &table, &lines))
		n = go_lines_at(&lines, TEXT + at, frames);
	EXPECT(n <= GO_FRAMES_MAX);
	for (size_t i = 0; i < n; i++)
		p += sprintf(p, "%s%.99s %.99s:%u %u", i ? ", " : "",
			     frames[i].name ? frames[i].name : "?",
			     frames[i].file ? frames[i].file : "?", frames[i].line,
			     frames[i].start_line);
	go_table_close(&table);
	elf_image_close(&img);
	return text;
}

TEST(go_lines)
{
	for (int old = 0; old < 2; old++) {
		uint8_t *file = make_file(old);

		EXPECT_STR(frames_at(file, 0), "main.outer /src/a.go:11 10");
		EXPECT_STR(frames_at(file, 0x10),
			   "main.mid /src/a.go:31 30, main.outer /src/a.go:11 10");
		EXPECT_STR(frames_at(file, 0x2f), "main.leaf /src/b.go:52 50, "
						  "main.mid /src/a.go:31 30, "
						  "main.outer /src/a.go:11 10");
		EXPECT_STR(frames_at(file, 0x3f), "main.outer /src/a.go:12 10");
		EXPECT_STR(frames_at(file, 0x40), "");
		EXPECT_STR(frames_at(file, 0x60), "");
		free(file);
	}
}

/* A frame is missing rather than wrong. */
TEST(go_lines_without_calls)
{
	uint8_t *file = make_file(false);

	put64(file + 0x3000 + 336, 0);
	EXPECT_STR(frames_at(file, 0x20), "");
	EXPECT_STR(frames_at(file, 0), "main.outer /src/a.go:11 10");
	/* A call that is inlined into itself. */
	put64(file + 0x3000 + 336, TABLE + GOFUNC);
	put32(file + 0x2000 + GOFUNC + 8, 0x10);
	EXPECT_STR(frames_at(file, 0x10), "");
	/* Older tables have no start lines. */
	put32(file + 0x2000, 0xfffffff0);
	EXPECT_STR(frames_at(file, 0), "");
	free(file);
}

/* Any byte of the table and of the module can have any value; what counts is that it ends. */
TEST(go_lines_damage)
{
	static const uint8_t values[] = { 0, 1, 0x7f, 0x80, 0xff };

	for (int old = 0; old < 2; old++) {
		uint8_t *file = make_file(old);

		for (size_t i = 0; i < END + 400; i++) {
			uint8_t *at = file + (i < END ? 0x2000 + i : 0x3000 + i - END), was = *at;

			for (size_t k = 0; k < sizeof(values); k++) {
				*at = values[k];
				frames_at(file, 0x2f);
				frames_at(file, 0x41);
			}
			*at = was;
		}
		for (size_t size = 0; size < END; size++) {
			go_file_section(file, 2, 7, TABLE, 0x2000, size);
			frames_at(file, 0x2f);
		}
		free(file);
	}
}

static int file_of(const void *bytes, size_t n)
{
	int fd = memfd_create("test", 0);

	EXPECT(fd >= 0 && !write_full(fd, bytes, n));
	return fd;
}

TEST(go_places_of_child)
{
	const uint64_t offsets[] = { 0x1000, 0x1020, 0x1041, 0x1030, 1 };
	struct test_reader reader = open_reader(elf_worker_main);
	uint8_t *mem = make_file(false);
	struct go_places p;
	int fd = file_of(mem, FILE_SIZE);

	EXPECT_EQ(elf_reader_go(reader.r, fd, offsets, 5, &p), 0);
	EXPECT_EQ(p.n, 5);
	if (p.n == 5) {
		EXPECT(p.v[0].at == 0 && p.v[1].at == 1 && p.v[3].at == 1 && p.v[4].at == 3);
		EXPECT_STR(p.text + p.v[1].name, "main.leaf");
		EXPECT_STR(p.text + p.v[1].file, "/src/b.go");
		EXPECT(p.v[1].line == 52 && p.v[1].start_line == 50);
		EXPECT_STR(p.text + p.v[3].name, "main.outer");
		EXPECT_EQ(p.v[3].name, p.v[4].name);
	}
	go_places_free(&p);
	close(fd);
	memset(mem + 0x2000, 0, 4);
	fd = file_of(mem, FILE_SIZE);
	EXPECT_EQ(elf_reader_go(reader.r, fd, offsets, 5, &p), -ENOENT);
	close(fd);
	free(mem);
	close_reader(&reader);
}

/* What a child that was broken into sends is checked. */
TEST(go_places_hostile)
{
	const struct go_place good = { .at = 1, .name = 1, .line = 7 };
	struct {
		struct go_place v[2];
		char text[4];
	} sent = { { good, good }, "\0ab" };
	struct go_place *bad = &sent.v[1];
	struct go_places p;

	for (int i = 0; i < 8; i++) {
		uint32_t n = 2, text = 4;
		int fd;

		*bad = good;
		sent.text[3] = 0;
		switch (i) {
		case 0:
			break;
		case 1:
			bad->at = 0;
			break;
		case 2:
			bad->at = 2;
			break;
		case 3:
			bad->name = 4;
			break;
		case 4:
			bad->file = UINT32_MAX;
			break;
		case 5:
			bad->line = bad->start_line = UINT32_MAX;
			break;
		case 6:
			sent.text[3] = 'c';
			break;
		case 7:
			n = UINT32_MAX;
			break;
		}
		fd = file_of(&sent, sizeof(sent));
		EXPECT_EQ(go_places_take(fd, n, text, 2, &p), i ? -EBADMSG : 0);
		if (!i) {
			EXPECT_EQ(go_places_take(fd, 2, 0, 2, &(struct go_places){ 0 }), -EBADMSG);
			EXPECT_EQ(go_places_take(fd, 2, 5, 2, &(struct go_places){ 0 }), -EBADMSG);
			go_places_free(&p);
		}
		close(fd);
	}
}
