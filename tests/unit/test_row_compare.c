/* SPDX-License-Identifier: BSD-2-Clause */
/* What counts as a disagreement between .sframe and .eh_frame, and finding it. */
#include "image_build.h"
#include "readers/row_compare.h"
#include "sframe_encode.h"
#include "test.h"

#define REG(r, o)                                        \
	{                                                \
		.kind = RULE_REG, .reg = (r), .off = (o) \
	}
#define MEM(r, o)                                            \
	{                                                    \
		.kind = RULE_REG_MEM, .reg = (r), .off = (o) \
	}
#define AT_CFA(o)                                \
	{                                        \
		.kind = RULE_CFA_MEM, .off = (o) \
	}
#define KIND(k)             \
	{                   \
		.kind = (k) \
	}

static unsigned int judged;

static unsigned int bad(struct row sframe, struct row eh)
{
	return row_disagree(&sframe, &eh, &judged);
}

static const struct row plain = { .cfa = REG(7, 16), .ra = AT_CFA(-8), .fp = KIND(RULE_SAME) };

TEST(disagree_column_by_column)
{
	struct row r = plain;

	EXPECT_EQ(bad(plain, plain), 0);
	EXPECT_EQ(judged, ROW_CFA | ROW_RA | ROW_FP | ROW_SIGNED);
	r.cfa.off = 24;
	EXPECT_EQ(bad(r, plain), ROW_CFA);
	r = plain;
	r.ra.off = -16;
	EXPECT_EQ(bad(plain, r), ROW_RA);
	r = plain;
	r.fp = (struct rule)AT_CFA(-16);
	EXPECT_EQ(bad(plain, r), ROW_FP);
	EXPECT_EQ(bad(r, plain), ROW_FP);
	r = plain;
	r.flags = ROW_PAC;
	EXPECT_EQ(bad(plain, r), ROW_SIGNED);
	r.flags = ROW_SIGNAL; /* old versions have no way to say so */
	EXPECT_EQ(bad(plain, r), 0);
}

TEST(disagree_what_cannot_be_judged)
{
	struct row r = plain;

	r.cfa = (struct rule)KIND(RULE_NONE);
	EXPECT_EQ(bad(plain, r), 0);
	EXPECT_EQ(judged, ROW_RA | ROW_FP | ROW_SIGNED);
	r = plain;
	r.ra = (struct rule)KIND(RULE_NONE);
	EXPECT_EQ(bad(r, plain), 0);
	EXPECT_EQ(judged, ROW_CFA | ROW_FP);
	r = plain;
	r.fp = (struct rule)KIND(RULE_UNDEF);
	EXPECT_EQ(bad(plain, r), 0);
	EXPECT_EQ(judged, ROW_CFA | ROW_RA | ROW_SIGNED);
}

TEST(disagree_outermost)
{
	const struct row sframe = { .cfa = KIND(RULE_NONE),
				    .ra = KIND(RULE_UNDEF),
				    .fp = KIND(RULE_NONE) };
	const struct row eh = { .cfa = REG(7, 8), .ra = KIND(RULE_UNDEF), .fp = KIND(RULE_SAME) };

	EXPECT_EQ(bad(sframe, eh), 0);
	EXPECT_EQ(judged, ROW_RA);
	EXPECT_EQ(bad(plain, eh), ROW_RA);
	EXPECT_EQ(bad(sframe, plain), ROW_RA);
}

TEST(disagree_not_by_spelling)
{
	struct row r = plain;

	r.ra = (struct rule)MEM(7, 8);
	EXPECT_EQ(bad(plain, r), 0);
	r.ra = (struct rule)MEM(7, 16);
	EXPECT_EQ(bad(plain, r), ROW_RA);
	r = plain;
	r.cfa = (struct rule)REG(6, 16);
	/* The RA is at cfa-8 in both: one mistake, told once */
	EXPECT_EQ(bad(plain, r), ROW_CFA);
}

static char told[1024];
static size_t ntold;

static void tell(void *ctx, const struct row_clash *c)
{
	(void)ctx;
	ntold += (size_t)snprintf(told + ntold, sizeof(told) - ntold,
				  "%" PRIx64 "-%" PRIx64 " %u: %d %d\n", c->start, c->end,
				  c->columns, c->sframe->cfa.off, c->eh->cfa.off);
}

#define PLT_EXPRESSION 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22

static void plt(struct senc *enc, uint64_t addr, const char *second, uint32_t at)
{
	senc_fn(enc, (struct senc_fn){ .addr = addr, .size = 64, .pcmask = true, .rep_size = 16 });
	senc_row(enc, 0, SENC_SP, 1, "8");
	senc_row(enc, at, SENC_SP, 1, second);
}

TEST(compare_finds_what_differs)
{
	static struct senc enc;
	struct row_compare_totals totals;
	struct unwind_file file;
	struct diag diag = { 0 };
	struct image im;

	image_init(&im);
	image_code(&im, 0x1000, 0x1000, 0x1000);
	senc_init(&enc, 0x60000000);
	senc_begin(&enc, 2, SENC_AMD64, SENC_SORTED | SENC_PCREL, SENC_FROM_FIELD);
	plt(&enc, 0x1000, "16", 11);
	/* Of 64 bytes, each ninth and tenth differ */
	plt(&enc, 0x1040, "16", 9);
	plt(&enc, 0x1080, "24", 11);
	senc_fn(&enc, (struct senc_fn){ .addr = 0x1100, .size = 32 });
	senc_row(&enc, 0, SENC_SP, 1, "8");
	senc_row(&enc, 4, SENC_SP, 1, "16");
	senc_row(&enc, 8, SENC_SP, 1, "24");
	/* .eh_frame says nothing here */
	senc_fn(&enc, (struct senc_fn){ .addr = 0x1200, .size = 32 });
	senc_row(&enc, 0, SENC_SP, 1, "8");
	senc_end(&enc);
	image_sframe(&im, enc.buf, enc.len, 0x60000000);
	IMAGE_FDE(&im, 0x1000, 0xc0, PLT_EXPRESSION);
	IMAGE_FDE(&im, 0x1100, 32, CFA_ADVANCE(6), CFA_OFFSET(16), CFA_ADVANCE(2), CFA_OFFSET(24));
	image_finish(&im);
	EXPECT_EQ(unwind_file_open_mem(&file, im.file.buf, im.file.len, &diag), 0);
	ntold = 0;
	EXPECT_EQ(row_compare(&file, tell, NULL, &totals, &diag), 0);
	EXPECT_STR(told, "1049-104b 1: 16 8\n108b-1090 1: 24 16\n1104-1106 1: 16 8\n");
	EXPECT_EQ(totals.rows, 10);
	EXPECT_EQ(totals.compared, 9);
	EXPECT_EQ(totals.clashing, 3);
	unwind_file_close(&file);
	image_free(&im);
	senc_free(&enc);
}
