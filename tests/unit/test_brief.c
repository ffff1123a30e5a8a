/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which functions are told in brief, and that it is the same. What their rows are is the readers'
 * own tests' affair, which compare too.
 */
#include <stdlib.h>

#include "brief_check.h"
#include "image_build.h"
#include "sframe_encode.h"
#include "test.h"

#define CODE	    0x10000
#define SFRAME_ADDR 0x60000000

static struct image im;
static struct senc enc;
static struct unwind_file file;
static struct eh_brief *eh;
static struct sframe_brief *sf;

static void begin(void)
{
	image_init(&im);
	image_code(&im, CODE, CODE, 0x10000000);
	senc_init(&enc, SFRAME_ADDR);
}

static void open_image(void)
{
	if (enc.nfns) {
		senc_end(&enc);
		image_sframe(&im, enc.buf, enc.len, SFRAME_ADDR);
	}
	image_finish(&im);
	EXPECT_EQ(unwind_file_open_mem(&file, im.file.buf, im.file.len, NULL), 0);
	eh = eh_brief_new(&file.eh);
	sf = sframe_brief_new(&file.sframe);
}

static void done(void)
{
	eh_brief_free(eh);
	sframe_brief_free(sf);
	unwind_file_close(&file);
	image_free(&im);
	senc_free(&enc);
}

/*
 * Whether the function is told in brief, the first time and when all is known; the rows are the
 * same.
 */
static bool told_fn(enum row_source source, const struct fn *fn)
{
	struct rowbuf rows = { 0 };
	bool told[2];

	if (source == ROW_SFRAME)
		EXPECT_EQ(sframe_rows(&file.sframe, fn, &rows, NULL), 0);
	else
		EXPECT_EQ(eh_frame_rows(&file.eh, fn, &rows, NULL), 0);
	for (int round = 0; round < 2; round++)
		EXPECT(source == ROW_SFRAME ? sframe_brief_agrees(sf, fn, &rows, &told[round])
					    : eh_brief_agrees(eh, fn, &rows, &told[round]));
	EXPECT_EQ(told[0], told[1]);
	rowbuf_free(&rows);
	return told[0];
}

static bool eh_told(size_t i)
{
	return told_fn(ROW_EH_FRAME, &file.eh.fns.fns[i]);
}

TEST(brief_eh_told)
{
	begin();
	image_cie(&im, "zR");
	IMAGE_FDE(&im, CODE, 0x100, 0x41, CFA_OFFSET(16), CFA_SAVED(6, 16), 0x43, 0x0d, 6, 0x02,
		  0x50, 0x0a, CFA_REG_OFFSET(7, 8), 0x41, 0x0b);
	IMAGE_FDE(&im, CODE + 0x100, 0x20000000, 0x0e, 0xa0, 1, CFA_SAVED(12, 24), CFA_SAVED(3, 32),
		  0x42, 0, 0, 0xc3, CFA_ADVANCE2(0x300), 0x0e, 0x80, 0x80, 1, 0x04, 0, 0, 1, 0,
		  0x83, 0x90, 1, CFA_RA_UNDEFINED, 0x2e, 5, 0x41, CFA_OFFSET(8));
	IMAGE_FDE(&im, CODE + 0x30000, 0x100, 0);
	/* Longer than the function */
	IMAGE_FDE(&im, CODE + 0x30100, 0x10, 0x41, CFA_OFFSET(16), 0x60, CFA_OFFSET(24));
	IMAGE_FDE(&im, CODE + 0x30200, 0x10, 0x41, CFA_OFFSET(16), 0x40, CFA_OFFSET(24), 0x41, 0x10,
		  6, 2, 0x76, 8);
	open_image();
	EXPECT_EQ(file.eh.fns.n, 5);
	for (size_t i = 0; i < file.eh.fns.n; i++)
		EXPECT(eh_told(i));
	done();
}

TEST(brief_eh_not_told)
{
	uint8_t deep[66];

	memset(deep, 0x0a, sizeof(deep));
	begin();
	image_cie(&im, "zR");
	image_fde(&im, CODE, 0x100, deep, 64);
	/* Damage from here on */
	image_fde(&im, CODE + 0x100, 0x100, deep, 65);
	IMAGE_FDE(&im, CODE + 0x200, 0x100, 0x41, 0x0b);
	IMAGE_FDE(&im, CODE + 0x300, 0x100, 0x41, 0x3f);
	/* Cut short: the record ends there */
	IMAGE_FDE(&im, CODE + 0x400, 0x100, 0x41, 0, 0, 0, 0, 0, 0x0e);
	IMAGE_FDE(&im, CODE + 0x500, 0x100, 0x41, 0x0e, 0x10, 0, 0, 0x03, 0x10);
	IMAGE_FDE(&im, CODE + 0x600, 0x100, 0x41, 0x86, 2, 0, 0, 0, 0x86);
	/* rare: set_loc, and a PLT's CFA */
	IMAGE_FDE(&im, CODE + 0x700, 0x100, 0x01, 0, 0, 0, 0);
	IMAGE_FDE(&im, CODE + 0x800, 0x100, 0x0f, 0x0b, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a,
		  0x33, 0x24, 0x22);
	open_image();
	EXPECT_EQ(file.eh.fns.n, 9);
	EXPECT(eh_told(0));
	for (size_t i = 1; i < file.eh.fns.n; i++)
		EXPECT(!eh_told(i));
	done();
}

/*
 * A register that is known at a CIE's functions' start has one number in all CIEs that are alike.
 */
TEST(brief_eh_cies)
{
	struct brief b = { 0 };
	uint32_t rules;

	begin();
	for (unsigned int i = 0; i < 40; i++) {
		image_cie(&im, i % 2 ? "zRS" : "zR");
		IMAGE_FDE(&im, CODE + 0x100 * i, 0x100, 0x41, CFA_OFFSET(16), CFA_SAVED(6, 16));
	}
	open_image();
	EXPECT_EQ(file.eh.ncies, 40);
	for (size_t i = 0; i < 40; i++)
		EXPECT(eh_told(i));
	EXPECT_EQ(eh_brief_rows(eh, &file.eh.fns.fns[1], &b), 1);
	rules = b.rules;
	EXPECT_EQ(eh_brief_rows(eh, &file.eh.fns.fns[39], &b), 1);
	EXPECT(b.rules == rules && rules < 10);
	free(b.rows);
	done();
}

/* More states than are numbered: what uses the first of them is told in brief all the same. */
TEST(brief_eh_many_states)
{
	static uint8_t insns[5 * 40000];
	size_t n = 0;

	for (unsigned int i = 0; i < 40000; i++) {
		insns[n++] = 0x41;
		insns[n++] = 0x0e;
		insns[n++] = (uint8_t)(0x80 | (i & 0x7f));
		insns[n++] = (uint8_t)(0x80 | (i >> 7 & 0x7f));
		insns[n++] = (uint8_t)(i >> 14);
	}
	begin();
	image_cie(&im, "zR");
	IMAGE_FDE(&im, CODE, 0x100, 0x41, CFA_OFFSET(16));
	image_fde(&im, CODE + 0x1000, 0x100000, insns, n);
	IMAGE_FDE(&im, CODE + 0x200000, 0x100, 0x41, CFA_OFFSET(16), 0x41, CFA_OFFSET(8));
	IMAGE_FDE(&im, CODE + 0x200100, 0x100, 0x41, CFA_SAVED(6, 16));
	open_image();
	EXPECT(eh_told(0));
	EXPECT(!eh_told(1));
	EXPECT(eh_told(2));
	EXPECT(!eh_told(3));
	for (unsigned int which = ROWS_SFRAME; which <= ROWS_MERGED; which++)
		EXPECT(rows_agree(&file, which, NULL));
	done();
}

TEST(brief_sframe)
{
	begin();
	senc_begin(&enc, 2, SENC_AMD64, SENC_SORTED | SENC_PCREL, SENC_FROM_FIELD);
	for (unsigned int type = 0; type < 3; type++) {
		senc_fn(&enc, (struct senc_fn){ .addr = CODE + 0x10000 * type,
						.size = 0x200,
						.row_type = (uint8_t)type });
		senc_row(&enc, 0, SENC_SP, 1, "8");
		senc_row(&enc, 1, SENC_SP, 1, "16 -16");
		senc_row(&enc, 4, SENC_FP, 2, "16 -16");
		senc_row(&enc, 5, SENC_FP, 4, "70000 -16"); /* longer than what is remembered */
		senc_row(&enc, 0xf0, 0, 1, "");		    /* outermost */
	}
	senc_fn(&enc, (struct senc_fn){ .addr = CODE + 0x30000, .size = 0x100 });
	senc_row(&enc, 4, SENC_SP, 1, "8"); /* nothing is known before */
	senc_fn(&enc, (struct senc_fn){ .addr = CODE + 0x31000, .size = 0x10 });
	senc_row(&enc, 0, SENC_SP, 1, "8");
	senc_row(&enc, 0x11, SENC_SP, 1, "16"); /* past the end */
	open_image();
	EXPECT_EQ(file.sframe.fns.n, 5);
	for (size_t i = 0; i < 4; i++)
		EXPECT(told_fn(ROW_SFRAME, &file.sframe.fns.fns[i]));
	EXPECT(!told_fn(ROW_SFRAME, &file.sframe.fns.fns[4]));
	EXPECT(rows_agree(&file, ROWS_SFRAME, NULL));
	done();
}
