/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions brought in order, and the rows of both sources merged: by example, and byte by byte
 * against an oracle.
 */
#include <stdlib.h>

#include "image_build.h"
#include "readers/row_stream.h"
#include "rows/fntab.h"
#include "rows/row_text.h"
#include "sframe_encode.h"
#include "test.h"

#define SFRAME_ADDR 0x60000000

static struct image im;
static struct senc enc;
static struct unwind_file file;
static struct diag diag;
static char got[65536];

static void begin(void)
{
	image_init(&im);
	senc_init(&enc, SFRAME_ADDR);
	senc_begin(&enc, 2, SENC_AMD64, SENC_SORTED | SENC_PCREL, SENC_FROM_FIELD);
}

static void done(void)
{
	unwind_file_close(&file);
	image_free(&im);
	senc_free(&enc);
}

static void open_image(void)
{
	memset(&diag, 0, sizeof(diag));
	if (enc.nfns) {
		senc_end(&enc);
		image_sframe(&im, enc.buf, enc.len, SFRAME_ADDR);
	}
	image_finish(&im);
	EXPECT_EQ(unwind_file_open_mem(&file, im.file.buf, im.file.len, &diag), 0);
}

/* "START-END SOURCE CFA\n" for each row; the rest of these rows is always the same. */
static const char *rows_of(unsigned int which)
{
	struct row_stream s;
	struct row r;
	size_t n = 0;
	int more;

	got[0] = 0;
	row_stream_open(&s, &file, which, &diag);
	while ((more = row_stream_next(&s, &r)) > 0) {
		n += (size_t)snprintf(got + n, sizeof(got) - n, "%" PRIx64 "-%" PRIx64 " %s ",
				      r.start, r.end, r.source == ROW_SFRAME ? "sf" : "eh");
		if (r.ra.kind == RULE_UNDEF)
			n += (size_t)snprintf(got + n, sizeof(got) - n, "end");
		else
			n += (size_t)snprintf(got + n, sizeof(got) - n, "%+d", r.cfa.off);
		if (r.plt_rep)
			n += (size_t)snprintf(got + n, sizeof(got) - n, " rep=%u", r.plt_rep);
		if (r.plt_at)
			n += (size_t)snprintf(got + n, sizeof(got) - n, " at=%u", r.plt_at);
		n += (size_t)snprintf(got + n, sizeof(got) - n, "\n");
	}
	EXPECT_EQ(more, 0);
	row_stream_close(&s);
	return got;
}

static void sf_fn(uint64_t addr, uint32_t size, const char *cfa)
{
	senc_fn(&enc, (struct senc_fn){ .addr = addr, .size = size, .row_type = 1 });
	senc_row(&enc, 0, SENC_SP, 2, cfa);
}

static void eh_fn(uint64_t addr, uint64_t size, uint8_t cfa)
{
	IMAGE_FDE(&im, addr, size, CFA_OFFSET(cfa));
}

TEST(fntab_sorts_and_cuts)
{
	struct fntab t = { 0 };
	struct elf_image img = { .size = 1 << 20 };
	struct elf_phdr ph[] = {
		/* not in the order of their addresses */
		{ .type = PT_LOAD,
		  .flags = PF_X,
		  .offset = 0x3000,
		  .vaddr = 0x3000,
		  .filesz = 0x1000,
		  .memsz = 0x1000 },
		{ .type = PT_LOAD,
		  .flags = PF_R,
		  .offset = 0x2000,
		  .vaddr = 0x2000,
		  .filesz = 0x1000,
		  .memsz = 0x1000 },
		{ .type = PT_LOAD,
		  .flags = PF_X,
		  .offset = 0x1000,
		  .vaddr = 0x1000,
		  .filesz = 0x1000,
		  .memsz = 0x1000 },
	};
	static const struct fn fns[] = {
		{ 0x3800, 0x5000, 0 },			      /* runs out of its segment */
		{ 0x1100, 0x1200, 1 },			      /* replaced by 3 */
		{ 0x1000, 0x1110, 2 },			      /* cut off by 3 */
		{ 0x1100, 0x1180, 3 }, { 0x2000, 0x2100, 4 }, /* not code */
		{ 0x0fff, 0x1001, 5 },			      /* starts outside */
		{ 0x1300, 0x1300, 6 },			      /* empty */
		{ 0x1fff, 0x3900, 7 },			      /* its last byte only */
	};

	img.phdrs = ph;
	img.nphdrs = 3;
	for (size_t i = 0; i < sizeof(fns) / sizeof(fns[0]); i++)
		EXPECT_EQ(fntab_push(&t, fns[i].start, fns[i].end, fns[i].ref), 0);
	EXPECT_EQ(fntab_arrange(&t, &img), 0);
	EXPECT_EQ(t.n, 4);
	if (t.n == 4) {
		EXPECT(t.fns[0].start == 0x1000 && t.fns[0].end == 0x1100 && t.fns[0].ref == 2);
		EXPECT(t.fns[1].start == 0x1100 && t.fns[1].end == 0x1180 && t.fns[1].ref == 3);
		EXPECT(t.fns[2].start == 0x1fff && t.fns[2].end == 0x2000 && t.fns[2].ref == 7);
		EXPECT(t.fns[3].start == 0x3800 && t.fns[3].end == 0x4000 && t.fns[3].ref == 0);
	}
	fntab_free(&t);
}

TEST(fntab_sort_is_stable_in_any_order)
{
	struct elf_phdr ph = {
		.type = PT_LOAD,
		.flags = PF_X,
		.filesz = 1 << 20,
		.memsz = 1 << 20,
	};
	struct elf_image img = { .size = 1 << 20, .phdrs = &ph, .nphdrs = 1 };

	for (unsigned int seed = 1; seed < 200; seed++) {
		struct fntab t = { 0 };
		uint64_t last[64];
		size_t want = 0, n = seed % 97;

		srand(seed);
		memset(last, 0xff, sizeof(last));
		for (size_t i = 0; i < n; i++) {
			unsigned int slot = (unsigned int)rand() % 64;

			fntab_push(&t, slot * 16, slot * 16 + 8, i);
			want += last[slot] == UINT64_MAX;
			last[slot] = i;
		}
		EXPECT_EQ(fntab_arrange(&t, &img), 0);
		EXPECT_EQ(t.n, want);
		for (size_t i = 0; i < t.n; i++) {
			EXPECT(!i || t.fns[i].start > t.fns[i - 1].start);
			EXPECT_EQ(t.fns[i].ref, last[t.fns[i].start / 16]);
		}
		fntab_free(&t);
	}
}

TEST(stream_segments_end_at_the_file)
{
	struct elf_phdr ph = { .type = PT_LOAD,
			       .flags = PF_X,
			       .offset = 0x1000,
			       .vaddr = 0x1000,
			       .filesz = 1ull << 40,
			       .memsz = 1ull << 40 };
	struct elf_image img = { .size = 0x1800, .phdrs = &ph, .nphdrs = 1 };
	struct elf_phdr segs[EXEC_SEGMENTS_MAX];

	EXPECT_EQ(exec_segments(&img, segs, EXEC_SEGMENTS_MAX), 1);
	EXPECT_EQ(segs[0].filesz, 0x800);
	ph.offset = 0x1800;
	EXPECT_EQ(exec_segments(&img, segs, EXEC_SEGMENTS_MAX), 0);
	ph.offset = UINT64_MAX - 4;
	ph.filesz = 2;
	EXPECT_EQ(exec_segments(&img, segs, EXEC_SEGMENTS_MAX), 0);
}

TEST(stream_single_sources)
{
	begin();
	image_code(&im, 0x1000, 0x1000, 0x1000);
	sf_fn(0x1100, 0x20, "16");
	senc_row(&enc, 4, SENC_SP, 1, "24");
	eh_fn(0x1000, 0x10, 8);
	eh_fn(0x1100, 0x20, 32);
	open_image();
	EXPECT_STR(rows_of(ROWS_SFRAME), "1100-1104 sf +16\n1104-1120 sf +24\n");
	EXPECT_STR(rows_of(ROWS_EH_FRAME), "1000-1010 eh +8\n1100-1120 eh +32\n");
	EXPECT_STR(rows_of(ROWS_MERGED), "1000-1010 eh +8\n1100-1104 sf +16\n1104-1120 sf +24\n");
	done();
}

TEST(stream_sframe_inside_eh_frame)
{
	begin();
	image_code(&im, 0x1000, 0x1000, 0x1000);
	sf_fn(0x1100, 0x20, "16");
	sf_fn(0x1140, 0x20, "24");
	eh_fn(0x1000, 0x200, 8);
	open_image();
	EXPECT_STR(rows_of(ROWS_MERGED),
		   "1000-1100 eh +8\n1100-1120 sf +16\n1120-1140 eh +8\n1140-1160 sf +24\n"
		   "1160-1200 eh +8\n");
	done();
}

TEST(stream_eh_frame_sticks_out_of_sframe)
{
	begin();
	image_code(&im, 0x1000, 0x1000, 0x1000);
	sf_fn(0x1100, 0x20, "16");
	IMAGE_FDE(&im, 0x10f0, 0x40, CFA_ADVANCE(0x14), CFA_OFFSET(40), CFA_ADVANCE(8),
		  CFA_OFFSET(48), CFA_ADVANCE(8), CFA_OFFSET(56));
	open_image();
	EXPECT_STR(rows_of(ROWS_MERGED), "10f0-1100 eh +8\n1100-1120 sf +16\n1120-1130 eh +56\n");
	done();
}

/*
 * A row that cannot be used leaves its bytes to .eh_frame; one that says "outermost" is usable
 * without a CFA.
 */
TEST(stream_unusable_sframe_rows)
{
	begin();
	senc_begin(&enc, 3, SENC_AMD64, SENC_SORTED | SENC_PCREL, SENC_FROM_FIELD);
	image_code(&im, 0x1000, 0x1000, 0x1000);
	senc_fn(&enc, (struct senc_fn){ .addr = 0x1100, .size = 0x40, .flex = true });
	senc_row(&enc, 0, 0, 1, "57 8");     /* rsp + 8 */
	senc_row(&enc, 0x10, 0, 2, "257 8"); /* register 32 */
	senc_row(&enc, 0x20, 0, 1, "");	     /* outermost */
	senc_row(&enc, 0x30, 0, 1, "57 16");
	eh_fn(0x1100, 0x40, 32);
	open_image();
	EXPECT_STR(rows_of(ROWS_MERGED),
		   "1100-1110 sf +8\n1110-1120 eh +32\n1120-1130 sf end\n1130-1140 sf +16\n");
	done();
}

TEST(stream_repeating_block)
{
	begin();
	image_code(&im, 0x1000, 0x1000, 0x1000);
	senc_fn(&enc,
		(struct senc_fn){ .addr = 0x1020, .size = 0x40, .pcmask = true, .rep_size = 16 });
	senc_row(&enc, 0, SENC_SP, 1, "8");
	senc_row(&enc, 11, SENC_SP, 1, "16");
	sf_fn(0x1080, 8, "40");
	eh_fn(0x1000, 0x80, 64);
	open_image();
	EXPECT_STR(rows_of(ROWS_MERGED),
		   "1000-1020 eh +64\n1020-1060 sf +8 rep=16\n1020-1060 sf +16 rep=16 at=11\n"
		   "1060-1080 eh +64\n1080-1088 sf +40\n");
	EXPECT_STR(rows_of(ROWS_SFRAME),
		   "1020-1060 sf +8 rep=16\n1020-1060 sf +16 rep=16 at=11\n1080-1088 sf +40\n");
	done();
}

/* GNU ld's expression for .plt: rsp + 8 + ((rip & 15) >= 11) * 8. */
#define PLT_EXPRESSION 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22

TEST(stream_repeating_block_of_eh_frame)
{
	begin();
	image_code(&im, 0x1000, 0x1000, 0x1000);
	IMAGE_FDE(&im, 0x1020, 0x60, CFA_OFFSET(16), CFA_ADVANCE(6), CFA_OFFSET(24),
		  CFA_ADVANCE(10), PLT_EXPRESSION);
	sf_fn(0x1000, 0x20, "40");
	sf_fn(0x1060, 0x10, "48");
	open_image();
	EXPECT_STR(rows_of(ROWS_EH_FRAME),
		   "1020-1026 eh +16\n1026-1030 eh +24\n1030-1080 eh +8 rep=16\n"
		   "1030-1080 eh +16 rep=16 at=11\n");
	EXPECT_STR(rows_of(ROWS_MERGED),
		   "1000-1020 sf +40\n1020-1026 eh +16\n1026-1030 eh +24\n"
		   "1030-1060 eh +8 rep=16\n1030-1060 eh +16 rep=16 at=11\n1060-1070 sf +48\n"
		   "1070-1080 eh +8 rep=16\n1070-1080 eh +16 rep=16 at=11\n");
	done();
}

/* ---- Byte by byte ---- */

#define SPAN 2048
#define BASE 0x1000

struct told { /* what one source says about a byte; cfa 0: nothing */
	int cfa;
};

struct spec {
	uint64_t start, end;
	int rows, cfa[4], at[4];
};

/* The contract's words, literally: the later-starting function cuts off the earlier one. */
static void oracle(const struct spec *fns, size_t n, struct told *bytes)
{
	for (uint64_t b = 0; b < SPAN; b++) {
		const struct spec *best = NULL;

		bytes[b].cfa = 0;
		for (size_t i = 0; i < n; i++)
			if (fns[i].start <= b && (!best || fns[i].start >= best->start))
				best = &fns[i];
		if (!best || b >= best->end)
			continue;
		for (int r = 0; r < best->rows; r++)
			if (b - best->start >= (uint64_t)best->at[r])
				bytes[b].cfa = best->cfa[r];
	}
}

static void random_fns(struct spec *fns, size_t n, int cfa)
{
	for (size_t i = 0; i < n; i++) {
		struct spec *f = &fns[i];

		f->start = (unsigned int)rand() % (SPAN - 300);
		f->end = f->start + 1 + (unsigned int)rand() % 250;
		f->rows = 1 + rand() % 4;
		for (int r = 0; r < f->rows; r++) {
			f->cfa[r] = cfa += 8;
			f->at[r] = r ? f->at[r - 1] + 1 + rand() % 20 : 0;
			if (f->at[r] >= (int)(f->end - f->start))
				f->rows = r;
		}
	}
}

static void add_specs(const struct spec *sf, size_t nsf, const struct spec *eh, size_t neh)
{
	for (size_t i = 0; i < nsf; i++) {
		senc_fn(&enc, (struct senc_fn){ .addr = BASE + sf[i].start,
						.size = (uint32_t)(sf[i].end - sf[i].start),
						.row_type = 1 });
		for (int r = 0; r < sf[i].rows; r++) {
			char words[16];

			snprintf(words, sizeof(words), "%d", sf[i].cfa[r]);
			senc_row(&enc, (uint32_t)sf[i].at[r], SENC_SP, 4, words);
		}
	}
	for (size_t i = 0; i < neh; i++) {
		uint8_t insns[64];
		size_t n = 0;

		for (int r = 0; r < eh[i].rows; r++) {
			if (r)
				insns[n++] = (uint8_t)CFA_ADVANCE(eh[i].at[r] - eh[i].at[r - 1]);
			insns[n++] = 0x0e;
			insns[n++] = (uint8_t)(0x80 | (eh[i].cfa[r] & 127));
			insns[n++] = (uint8_t)(0x80 | (eh[i].cfa[r] >> 7 & 127));
			insns[n++] = (uint8_t)(eh[i].cfa[r] >> 14);
		}
		image_fde(&im, BASE + eh[i].start, eh[i].end - eh[i].start, insns, n);
	}
}

static void check_bytes(unsigned int which, const struct told *sf, const struct told *eh,
			unsigned int seed)
{
	static int told[SPAN], source[SPAN];
	struct row_stream s;
	struct row r;
	uint64_t last = 0;

	memset(told, 0, sizeof(told));
	row_stream_open(&s, &file, which, &diag);
	while (row_stream_next(&s, &r) > 0) {
		EXPECT(r.start >= last && r.start < r.end && r.start >= BASE &&
		       r.end <= BASE + SPAN);
		last = r.end;
		for (uint64_t b = r.start; b < r.end && r.end <= BASE + SPAN; b++) {
			told[b - BASE] = r.cfa.off;
			source[b - BASE] = r.source;
		}
	}
	row_stream_close(&s);
	for (int b = 0; b < SPAN; b++) {
		bool from_sf = (which & ROWS_SFRAME) && sf[b].cfa;
		int want = from_sf ? sf[b].cfa : which & ROWS_EH_FRAME ? eh[b].cfa : 0;

		if (told[b] == want &&
		    (!want || source[b] == (from_sf ? ROW_SFRAME : ROW_EH_FRAME)))
			continue;
		printf("  seed %u, rows %u, byte %x: got %d, want %d\n", seed, which, b, told[b],
		       want);
		test_errors++;
		return;
	}
}

TEST(stream_random_functions)
{
	static struct spec sf[12], eh[24];
	static struct told sf_bytes[SPAN], eh_bytes[SPAN];

	for (unsigned int seed = 1; seed <= 400; seed++) {
		size_t nsf = seed % 13, neh = seed % 25;

		srand(seed);
		random_fns(sf, nsf, 10000);
		random_fns(eh, neh, 20000);
		oracle(sf, nsf, sf_bytes);
		oracle(eh, neh, eh_bytes);
		begin();
		image_code(&im, BASE, BASE, SPAN);
		add_specs(sf, nsf, eh, neh);
		open_image();
		check_bytes(ROWS_SFRAME, sf_bytes, eh_bytes, seed);
		check_bytes(ROWS_EH_FRAME, sf_bytes, eh_bytes, seed);
		check_bytes(ROWS_MERGED, sf_bytes, eh_bytes, seed);
		done();
	}
}

TEST(stream_notes_a_function_once)
{
	uint64_t malformed;

	begin();
	image_code(&im, 0x1000, 0x1000, 0x1000);
	senc_fn(&enc, (struct senc_fn){ .addr = 0x1000, .size = 0x10, .row_type = 1 });
	senc_row(&enc, 0x20, SENC_SP, 2, "8"); /* beyond the end */
	sf_fn(0x1100, 0x10, "8");
	IMAGE_FDE(&im, 0x1200, 0x10, 0x3f); /* no instruction */
	open_image();
	malformed = diag.malformed;
	rows_of(ROWS_SFRAME);
	EXPECT_EQ(diag.malformed, malformed + 1);
	rows_of(ROWS_EH_FRAME);
	EXPECT_EQ(diag.malformed, malformed + 2);
	rows_of(ROWS_MERGED);
	rows_of(ROWS_SFRAME);
	EXPECT_EQ(diag.malformed, malformed + 2);
	done();
}
