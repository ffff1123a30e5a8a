/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables that BPF searches: packed from images and from this system's own files, then searched
 * with BPF's own code (bpf/core/row_find.h, compiled for the host) around every row's boundaries,
 * and compared with the row stream.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "image_build.h"
#include "readers/trampoline.h"
#include "rows/fntab.h"
#include "rows/pack_rule.h"
#include "sframe_encode.h"
#include "tables/pack.h"
#include "test.h"

/* ---- Chunks, as BPF sees them ---- */

#define MAX_CHUNKS 64

static unsigned char *chunk_mem[MAX_CHUNKS];
static uint32_t nchunks, chunk_used, max_chunks = MAX_CHUNKS;

static const unsigned char *sf_chunk(sf_u32 id)
{
	return id < nchunks ? chunk_mem[id] : NULL;
}

#include "core/row_find.h"

static void *chunk_alloc(void *ctx, uint32_t size, uint32_t *ret_loc)
{
	void *mem;

	(void)ctx;
	size = (size + 15) & ~15u;
	if (size > SF_CHUNK - 16)
		return NULL;
	if (!nchunks || SF_CHUNK - chunk_used < size) {
		if (nchunks == max_chunks)
			return NULL;
		chunk_mem[nchunks] = malloc(SF_CHUNK);
		if (!chunk_mem[nchunks])
			abort();
		/* garbage, to detect reads of what was not written */
		memset(chunk_mem[nchunks], 0xa5, SF_CHUNK);
		chunk_used = nchunks++ ? 0 : 16;
	}
	mem = chunk_mem[nchunks - 1] + chunk_used;
	*ret_loc = (nchunks - 1) << 16 | chunk_used >> 4;
	chunk_used += size;
	return mem;
}

static const struct pack_space space = { chunk_alloc, NULL };

static void chunks_free(void)
{
	while (nchunks)
		free(chunk_mem[--nchunks]);
	max_chunks = MAX_CHUNKS;
}

/* ---- One image ---- */

static struct image im;
static struct senc enc;
static struct unwind_file file;
static struct pack_result packed;
static struct sf_tables tables;
static struct diag diag;

static int pack_opened(void)
{
	int err;

	chunks_free();
	err = pack_file(&file, &space, &packed, &diag);
	tables = (struct sf_tables){ packed.tables.first_page, packed.tables.npages,
				     packed.tables.dir,	       packed.tables.rules,
				     packed.tables.nrules,     packed.tables.flags };
	return err;
}

static int pack_image(void)
{
	memset(&diag, 0, sizeof(diag));
	if (enc.nfns) {
		senc_end(&enc);
		image_sframe(&im, enc.buf, enc.len, enc.addr);
	}
	image_finish(&im);
	EXPECT_EQ(unwind_file_open_mem(&file, im.file.buf, im.file.len, &diag), 0);
	return pack_opened();
}

static void begin(void)
{
	image_init(&im);
	senc_init(&enc, 0x60000000);
	senc_begin(&enc, 2, SENC_AMD64, SENC_SORTED | SENC_PCREL, SENC_FROM_FIELD);
}

static void done(void)
{
	free(packed.ranges);
	packed.ranges = NULL;
	unwind_file_close(&file);
	image_free(&im);
	senc_free(&enc);
}

static void done_all(void)
{
	done();
	chunks_free();
}

/* ---- What a code means, against what a row says ---- */

static bool value_matches(const struct rule *r, uint8_t kind, uint8_t reg, int32_t off)
{
	if (r->kind != kind)
		return false;
	if (kind < RULE_CFA)
		return true;
	return r->off == off && (kind < RULE_REG || r->reg == reg);
}

static bool packed_matches(const struct row *r, uint32_t code, bool tracks_bx)
{
	int32_t n = code & 31;

	if (r->flags || r->cfa.kind != RULE_REG || r->cfa.reg != (code & SF_RULE_BASE_FP ? 6 : 7) ||
	    r->cfa.off != (int32_t)(code >> 5 & 511) * 8)
		return false;
	if (r->ra.kind != RULE_CFA_MEM || r->ra.off != -8 || (tracks_bx && r->bx.kind != RULE_SAME))
		return false;
	return n ? r->fp.kind == RULE_CFA_MEM && r->fp.off == -8 * n : r->fp.kind < RULE_CFA;
}

static bool indexed_matches(const struct row *r, const struct sf_rule *rule, uint64_t offset,
			    bool tracks_bx)
{
	int32_t cfa_off = rule->cfa_off;

	if (rule->flags & SF_RULE_PLT)
		cfa_off += (offset & 15) >= rule->plt_at ? rule->cfa_off2 : 0;
	else if (rule->cfa_off2 != r->cfa_off2)
		return false;
	if (tracks_bx && r->bx.kind == RULE_CFA_MEM &&
	    (rule->bx_kind != RULE_CFA_MEM || rule->bx_off != r->bx.off))
		return false;
	if (tracks_bx && r->bx.kind != RULE_CFA_MEM &&
	    rule->bx_kind != (r->bx.kind == RULE_SAME ? RULE_SAME : RULE_NONE))
		return false;
	return value_matches(&r->cfa, rule->cfa_kind, rule->cfa_reg, cfa_off) &&
	       value_matches(&r->ra, rule->ra_kind, rule->ra_reg, rule->ra_off) &&
	       value_matches(&r->fp, rule->fp_kind, rule->fp_reg, rule->fp_off) &&
	       !(rule->flags & SF_RULE_SIGNAL) == !(r->flags & ROW_SIGNAL);
}

/* r: the row that holds at the offset, NULL if there is none. */
static bool code_matches(const struct row *r, uint32_t code, uint64_t offset)
{
	bool tracks_bx = tables.flags & SF_MODULE_TRACKS_BX;
	const struct sf_rule *rule;

	if (!r ||
	    (r->ra.kind != RULE_UNDEF && (r->cfa.kind == RULE_NONE || r->ra.kind == RULE_NONE)))
		return code == SF_RULE_GAP;
	if (r->ra.kind == RULE_UNDEF)
		return code == SF_RULE_END;
	if (!(code & SF_RULE_INDEXED))
		return packed_matches(r, code, tracks_bx);
	rule = rule_find(&tables, code);
	return rule && indexed_matches(r, rule, offset, tracks_bx);
}

/* ---- The property ---- */

/* The stream's rows; what is known without tables and comes first */
static struct rowbuf all, known;

static void read_all_rows(void)
{
	struct row_stream s;
	struct row r;

	all.n = 0;
	row_stream_open(&s, &file, ROWS_MERGED, NULL);
	while (row_stream_next(&s, &r) > 0)
		if (rowbuf_push(&all, &r))
			abort();
	row_stream_close(&s);
	known.n = 0;
	if (trampolines_find(&file.img, file.arch, &known))
		abort();
}

/*
 * The row that holds at addr, not far from the near'th. Rows of a repeating block have equal ranges
 * and ascending plt_at.
 */
static const struct row *row_at(size_t near, uint64_t addr)
{
	const struct row *found = NULL;
	size_t i;

	for (i = 0; i < known.n; i++)
		if (addr >= known.rows[i].start && addr < known.rows[i].end)
			return &known.rows[i];
	for (i = near > 20 ? near - 20 : 0; i < all.n && i < near + 20; i++) {
		const struct row *r = &all.rows[i];

		if (addr < r->start || addr >= r->end)
			continue;
		if (!r->plt_rep)
			return r;
		if ((addr - r->start) % r->plt_rep >= r->plt_at)
			found = r;
	}
	return found;
}

static void note_neighbours(const struct row *r, uint64_t addr, uint64_t *before, uint64_t *after)
{
	if (r->end <= addr && r->end > *before)
		*before = r->end;
	if (r->start > addr && r->start < *after)
		*after = r->start;
}

/*
 * Padding between functions may keep the rule before it, as no code runs there; at most 15 bytes.
 */
static bool is_padding(size_t near, uint64_t addr)
{
	uint64_t before = 0, after = UINT64_MAX;

	for (size_t i = near > 20 ? near - 20 : 0; i < all.n && i < near + 20; i++)
		note_neighbours(&all.rows[i], addr, &before, &after);
	for (size_t i = 0; i < known.n; i++)
		note_neighbours(&known.rows[i], addr, &before, &after);
	return before && after - before < 16;
}

static void check_at(size_t near, uint64_t addr)
{
	const struct row *r = row_at(near, addr);
	uint64_t offset;
	uint32_t code;

	if (!elf_image_vaddr_to_offset(&file.img, addr, &offset))
		return;
	code = row_find(&tables, offset);
	if (code_matches(r, code, offset) || (!r && is_padding(near, addr)))
		return;
	printf("  address %" PRIx64 ", offset %" PRIx64 ": code %x, row %s\n", addr, offset, code,
	       r ? "there" : "none");
	test_errors++;
}

/* Every row's boundaries, one byte before and after; blocks at every byte of two repetitions. */
static void check_all(void)
{
	int before = test_errors;

	read_all_rows();
	for (size_t i = 0; i < all.n && test_errors < before + 5; i++) {
		const struct row *r = &all.rows[i];

		for (int d = -1; d <= 1; d++) {
			check_at(i, r->start + (uint64_t)d);
			check_at(i, r->end + (uint64_t)d);
		}
		for (uint64_t d = 0; r->plt_rep && d < 2 * r->plt_rep && r->start + d < r->end; d++)
			check_at(i, r->start + d);
	}
}

static uint32_t code_at(uint64_t offset)
{
	return row_find(&tables, offset);
}

/* ---- Rules ---- */

#define REG(r, o)                                        \
	{                                                \
		.kind = RULE_REG, .reg = (r), .off = (o) \
	}
#define AT_CFA(o)                                \
	{                                        \
		.kind = RULE_CFA_MEM, .off = (o) \
	}
#define KIND(k)             \
	{                   \
		.kind = (k) \
	}

static uint16_t code_of(struct row r, bool tracks_bx)
{
	if (r.ra.kind == RULE_NONE && r.flags != 0x80)
		r.ra = (struct rule)AT_CFA(-8);
	r.flags &= 0x7f;
	return pack_rule(ROW_ARCH_X86_64, &r, tracks_bx);
}

#define CODE(...) code_of((struct row){ __VA_ARGS__ }, false)

TEST(pack_rule_shapes_that_fit)
{
	EXPECT_EQ(CODE(.cfa = REG(7, 8), .fp = KIND(RULE_SAME)), 1 << 5);
	EXPECT_EQ(CODE(.cfa = REG(7, 16), .fp = AT_CFA(-16)), 2 << 5 | 2);
	EXPECT_EQ(CODE(.cfa = REG(6, 16), .fp = AT_CFA(-16)), SF_RULE_BASE_FP | 2 << 5 | 2);
	EXPECT_EQ(CODE(.cfa = REG(7, 511 * 8), .fp = AT_CFA(-31 * 8)), 511 << 5 | 31);
	EXPECT_EQ(CODE(.cfa = REG(7, 0), .fp = KIND(RULE_SAME)), 0);
	EXPECT_EQ(CODE(.cfa = REG(7, 8), .fp = KIND(RULE_NONE)), 1 << 5);
	EXPECT_EQ(CODE(.cfa = KIND(RULE_NONE), .ra = KIND(RULE_UNDEF)), SF_RULE_END);
	EXPECT_EQ(CODE(.cfa = REG(7, 8), .ra = KIND(RULE_UNDEF), .flags = ROW_SIGNAL), SF_RULE_END);
}

TEST(pack_rule_shapes_that_do_not_fit)
{
	EXPECT_EQ(CODE(.cfa = REG(7, 8), .fp = KIND(RULE_UNDEF)), SF_RULE_INDEXED);
	EXPECT_EQ(CODE(.cfa = REG(7, 512 * 8), .fp = KIND(RULE_SAME)), SF_RULE_INDEXED);
	EXPECT_EQ(CODE(.cfa = REG(7, 12), .fp = KIND(RULE_SAME)), SF_RULE_INDEXED);
	EXPECT_EQ(CODE(.cfa = REG(7, -8), .fp = KIND(RULE_SAME)), SF_RULE_INDEXED);
	EXPECT_EQ(CODE(.cfa = REG(7, INT32_MIN), .fp = KIND(RULE_SAME)), SF_RULE_INDEXED);
	EXPECT_EQ(CODE(.cfa = REG(10, 0), .fp = KIND(RULE_SAME)), SF_RULE_INDEXED);
	EXPECT_EQ(CODE(.cfa = { .kind = RULE_REG_MEM, .reg = 6, .off = -40 },
		       .fp = KIND(RULE_SAME)),
		  SF_RULE_INDEXED);
	EXPECT_EQ(CODE(.cfa = KIND(RULE_NONE), .fp = KIND(RULE_SAME)), SF_RULE_INDEXED);
	EXPECT_EQ(CODE(.cfa = REG(7, 8), .ra = AT_CFA(-16)), SF_RULE_INDEXED);
	EXPECT_EQ(CODE(.cfa = REG(7, 8), .ra = REG(11, 0)), SF_RULE_INDEXED);
	/* No RA rule */
	EXPECT_EQ(code_of((struct row){ .cfa = REG(7, 8), .flags = 0x80 }, false), SF_RULE_INDEXED);
	EXPECT_EQ(CODE(.cfa = REG(7, 8), .flags = ROW_SIGNAL), SF_RULE_INDEXED);
	EXPECT_EQ(CODE(.cfa = REG(7, 8), .plt_rep = 16), SF_RULE_INDEXED);
	/* That is the RA's slot */
	EXPECT_EQ(CODE(.cfa = REG(7, 8), .fp = AT_CFA(-8)), SF_RULE_INDEXED);
	EXPECT_EQ(CODE(.cfa = REG(7, 8), .fp = AT_CFA(0)), SF_RULE_INDEXED);
	EXPECT_EQ(CODE(.cfa = REG(7, 8), .fp = AT_CFA(16)), SF_RULE_INDEXED);
	EXPECT_EQ(CODE(.cfa = REG(7, 8), .fp = AT_CFA(-20)), SF_RULE_INDEXED);
	EXPECT_EQ(CODE(.cfa = REG(7, 8), .fp = AT_CFA(-32 * 8)), SF_RULE_INDEXED);
	EXPECT_EQ(CODE(.cfa = REG(7, 8), .fp = AT_CFA(INT32_MIN)), SF_RULE_INDEXED);
	EXPECT_EQ(CODE(.cfa = REG(7, 8), .fp = REG(6, 0)), SF_RULE_INDEXED);
	EXPECT_EQ(CODE(.cfa = REG(7, 8), .fp = { .kind = RULE_REG_MEM, .reg = 6 }),
		  SF_RULE_INDEXED);
}

TEST(pack_rule_with_rbx)
{
	EXPECT_EQ(
		code_of((struct row){ .cfa = REG(7, 16), .fp = KIND(RULE_SAME), .bx = AT_CFA(-16) },
			false),
		2 << 5);
	EXPECT_EQ(
		code_of((struct row){ .cfa = REG(7, 16), .fp = KIND(RULE_SAME), .bx = AT_CFA(-16) },
			true),
		SF_RULE_INDEXED);
	EXPECT_EQ(code_of((struct row){ .cfa = REG(7, 16),
					.fp = KIND(RULE_SAME),
					.bx = KIND(RULE_SAME) },
			  true),
		  2 << 5);
	EXPECT_EQ(code_of((struct row){ .cfa = REG(7, 16), .fp = KIND(RULE_SAME) }, true),
		  SF_RULE_INDEXED);
}

/* ---- Pages ---- */

TEST(pack_gaps)
{
	begin();
	image_code(&im, 0x401000, 0x1000, 0x1000);
	IMAGE_FDE(&im, 0x401100, 0x20, CFA_OFFSET(16));
	IMAGE_FDE(&im, 0x401128, 0x8, CFA_OFFSET(24));	  /* 8 bytes of padding before */
	IMAGE_FDE(&im, 0x401140, 0x10, CFA_RA_UNDEFINED); /* 16: a hole */
	IMAGE_FDE(&im, 0x401158, 0x8, CFA_OFFSET(32));
	EXPECT_EQ(pack_image(), 0);
	EXPECT_EQ(packed.rules, 0);
	EXPECT_EQ(packed.tables.first_page, 0);
	EXPECT_EQ(packed.tables.npages, 1);
	EXPECT_EQ(code_at(0), SF_RULE_GAP);
	EXPECT_EQ(code_at(0x10ff), SF_RULE_GAP);
	EXPECT_EQ(code_at(0x1100), 2 << 5);
	EXPECT_EQ(code_at(0x1127), 2 << 5);
	EXPECT_EQ(code_at(0x1128), 3 << 5);
	EXPECT_EQ(code_at(0x112f), 3 << 5);
	EXPECT_EQ(code_at(0x1130), SF_RULE_GAP);
	EXPECT_EQ(code_at(0x113f), SF_RULE_GAP);
	EXPECT_EQ(code_at(0x1140), SF_RULE_END);
	EXPECT_EQ(code_at(0x1157), SF_RULE_END);
	EXPECT_EQ(code_at(0x1158), 4 << 5);
	EXPECT_EQ(code_at(0x1160), SF_RULE_GAP);
	EXPECT_EQ(code_at(0xffff), SF_RULE_GAP);
	EXPECT_EQ(code_at(0x10000), SF_RULE_GAP);
	EXPECT_EQ(code_at(UINT64_MAX), SF_RULE_GAP);
	check_all();
	done_all();
}

TEST(pack_page_boundaries)
{
	begin();
	image_code(&im, 0x400000, 0x20000, 0x80000);
	/* Across 0x30000 */
	IMAGE_FDE(&im, 0x40fff0, 0x20, CFA_OFFSET(16), CFA_ADVANCE(0x18), CFA_OFFSET(24));
	/* Up to the page's last byte */
	IMAGE_FDE(&im, 0x410010, 0xfff0, CFA_OFFSET(32));
	/* From a page's first byte */
	IMAGE_FDE(&im, 0x420000, 0x10, CFA_OFFSET(40));
	/* Two empty pages before; a whole one inside */
	IMAGE_FDE(&im, 0x450008, 0x20000, CFA_OFFSET(48));
	EXPECT_EQ(pack_image(), 0);
	EXPECT_EQ(packed.tables.first_page, 2);
	EXPECT_EQ(packed.tables.npages, 8);
	EXPECT_EQ(code_at(0x2ffef), SF_RULE_GAP);
	EXPECT_EQ(code_at(0x2fff0), 2 << 5);
	EXPECT_EQ(code_at(0x30000), 2 << 5);
	EXPECT_EQ(code_at(0x30008), 3 << 5);
	EXPECT_EQ(code_at(0x30010), 4 << 5);
	EXPECT_EQ(code_at(0x3ffff), 4 << 5);
	EXPECT_EQ(code_at(0x40000), 5 << 5);
	EXPECT_EQ(code_at(0x4000f), 5 << 5);
	EXPECT_EQ(code_at(0x40010), SF_RULE_GAP);
	EXPECT_EQ(code_at(0x50000), SF_RULE_GAP);
	EXPECT_EQ(code_at(0x6ffff), SF_RULE_GAP);
	EXPECT_EQ(code_at(0x70007), SF_RULE_GAP);
	EXPECT_EQ(code_at(0x70008), 6 << 5);
	EXPECT_EQ(code_at(0x80000), 6 << 5);
	EXPECT_EQ(code_at(0x8ffff), 6 << 5);
	EXPECT_EQ(code_at(0x90007), 6 << 5);
	EXPECT_EQ(code_at(0x90008), SF_RULE_GAP);
	check_all();
	done_all();
}

TEST(pack_long_function_shares_pages)
{
	begin();
	image_code(&im, 0x400000, 0x10000, 0x4000000);
	IMAGE_FDE(&im, 0x400008, 0x3fffff0, CFA_OFFSET(16));
	EXPECT_EQ(pack_image(), 0);
	EXPECT_EQ(packed.tables.npages, 0x400);
	EXPECT(packed.bytes < 8192);
	EXPECT_EQ(code_at(0x10007), SF_RULE_GAP);
	for (uint64_t page = 1; page < 0x400; page++)
		EXPECT_EQ(code_at(0x10000 + (page << 16)), 2 << 5);
	check_all();
	done_all();
}

/*
 * A rule for every byte of a page: more than any compiler, and one row more than a page can hold.
 */
TEST(pack_dense_page)
{
	static uint8_t insns[70000 * 3];
	size_t n = 0;

	for (int i = 0; i < 70000; i++) {
		insns[n++] = 0x0e;
		insns[n++] = i & 1 ? 16 : 8;
		insns[n++] = CFA_ADVANCE(1);
	}
	begin();
	image_code(&im, 0x400000, 0x10000, 0x20000);
	image_fde(&im, 0x400000, 70000, insns, n);
	EXPECT_EQ(pack_image(), 0);
	EXPECT_EQ(packed.lost_rows, 1);
	for (uint64_t i = 0; i < 70000; i++)
		if (i != 65535)
			EXPECT_EQ(code_at(0x10000 + i), i & 1 ? 2 << 5 : 1 << 5);
	done_all();
}

/* 256 rows within a block of 256 bytes need all nine steps of the search. */
TEST(pack_block_index)
{
	static uint8_t insns[65536];
	size_t n = 0;
	uint64_t at = 0;

	begin();
	image_code(&im, 0, 0x10000, 0x10000);
	for (int i = 0; at < 0xf000; i++) {
		unsigned int step = at < 0x400 ? 1 : at < 0x2000 ? 37 : 800;

		insns[n++] = 0x0e;
		insns[n++] = (uint8_t)(8 + 8 * (i % 15));
		insns[n++] = 0x03;
		insns[n++] = (uint8_t)step;
		insns[n++] = (uint8_t)(step >> 8);
		at += step;
	}
	image_fde(&im, 0, 0xff00, insns, n);
	EXPECT_EQ(pack_image(), 0);
	check_all();
	done_all();
}

TEST(pack_segments_out_of_order)
{
	begin();
	image_code(&im, 0x100000, 0x40000, 0x1000);
	image_code(&im, 0x200000, 0x20000, 0x1000);
	image_code(&im, 0x300000, 0x30000, 0x1000);
	IMAGE_FDE(&im, 0x100010, 0x10, CFA_OFFSET(16));
	IMAGE_FDE(&im, 0x200010, 0x10, CFA_OFFSET(24));
	IMAGE_FDE(&im, 0x300010, 0x10, CFA_OFFSET(32));
	EXPECT_EQ(pack_image(), 0);
	EXPECT_EQ(packed.lost_rows, 0);
	EXPECT_EQ(packed.tables.first_page, 2);
	EXPECT_EQ(code_at(0x40010), 2 << 5);
	EXPECT_EQ(code_at(0x20010), 3 << 5);
	EXPECT_EQ(code_at(0x30010), 4 << 5);
	check_all();
	done_all();
}

TEST(pack_known_code_at_the_end_of_a_segment)
{
	const struct row plt = { .start = 0x1000f0,
				 .end = 0x100100,
				 .cfa = REG(X86_RSP, 8),
				 .ra = AT_CFA(-8),
				 .fp = KIND(RULE_SAME) };

	begin();
	image_code(&im, 0x100000, 0x20000, 0x1000);
	image_code(&im, 0x200000, 0x30000, 0x1000);
	IMAGE_FDE(&im, 0x100010, 0x10, CFA_OFFSET(16));
	IMAGE_FDE(&im, 0x200010, 0x10, CFA_OFFSET(24));
	image_finish(&im);
	EXPECT_EQ(unwind_file_open_mem(&file, im.file.buf, im.file.len, &diag), 0);
	EXPECT_EQ(rowbuf_push(&file.known, &plt), 0);
	EXPECT_EQ(pack_opened(), 0);
	EXPECT_EQ(packed.lost_rows, 0);
	EXPECT_EQ(code_at(0x20010), 2 << 5);
	EXPECT_EQ(code_at(0x200f0), 1 << 5);
	EXPECT_EQ(code_at(0x30010), 3 << 5);
	done_all();
}

TEST(pack_failures)
{
	begin();
	image_code(&im, 0x401000, 0x1000, 0x1000);
	EXPECT_EQ(pack_image(), -ENODATA);
	done();
	begin();
	image_code(&im, 0x401000, 0x1000, 0x1000);
	/* RA is an unknown: a gap at the very start */
	IMAGE_FDE(&im, 0x401000, 0x10, 0x16, 16, 0);
	EXPECT_EQ(pack_image(), 0);
	done();
	begin();
	image_code(&im, 0x401000, 0x1000, 0x1000);
	IMAGE_FDE(&im, 0x401000, 0x10, CFA_OFFSET(16));
	chunks_free();
	max_chunks = 0;
	image_finish(&im);
	EXPECT_EQ(unwind_file_open_mem(&file, im.file.buf, im.file.len, NULL), 0);
	EXPECT_EQ(pack_file(&file, &space, &packed, NULL), -ENOSPC);
	EXPECT(!packed.ranges);
	done_all();
}

/* A small section can ask for a rule for every byte of a large segment. */
TEST(pack_refuses_tables_larger_than_the_file)
{
	begin();
	image_code(&im, 0x400000, 0x10000, 0x400000);
	senc_fn(&enc, (struct senc_fn){
			      .addr = 0x400000, .size = 0x400000, .pcmask = true, .rep_size = 16 });
	for (uint32_t i = 0; i < 16; i++)
		senc_row(&enc, i, SENC_SP, 1, i & 1 ? "16" : "8");
	EXPECT_EQ(pack_image(), -E2BIG);
	EXPECT(nchunks <= 6);
	done_all();
}

/* ---- Rules of their own ---- */

TEST(pack_indexed_rules_are_shared)
{
	begin();
	image_code(&im, 0x401000, 0x1000, 0x1000);
	IMAGE_FDE(&im, 0x401000, 0x10, CFA_REG_OFFSET(10, 0));
	IMAGE_FDE(&im, 0x401010, 0x10, CFA_REG_OFFSET(10, 8));
	IMAGE_FDE(&im, 0x401020, 0x10, CFA_REG_OFFSET(10, 0));
	EXPECT_EQ(pack_image(), 0);
	EXPECT_EQ(packed.rules, 2);
	EXPECT_EQ(code_at(0x1000), code_at(0x1020));
	EXPECT(code_at(0x1000) != code_at(0x1010));
	EXPECT(!rule_find(&tables, SF_RULE_INDEXED | 2));
	EXPECT(!rule_find(&tables, SF_RULE_GAP));
	check_all();
	done_all();
}

TEST(pack_signal_frame)
{
	begin();
	image_code(&im, 0x401000, 0x1000, 0x1000);
	image_cie(&im, "zRS");
	IMAGE_FDE(&im, 0x401000, 0x10, 0x0f, 4, 0x77, 0xa0, 1, 0x06, 0x10, 16, 3, 0x77, 0xa8, 1);
	EXPECT_EQ(pack_image(), 0);
	EXPECT_EQ(packed.rules, 1);
	EXPECT(rule_find(&tables, code_at(0x1000)) &&
	       rule_find(&tables, code_at(0x1000))->flags == SF_RULE_SIGNAL);
	check_all();
	done_all();
}

#define PLT_EXPRESSION 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22

TEST(pack_plt_is_one_rule)
{
	begin();
	image_code(&im, 0x401000, 0x1000, 0x1000);
	IMAGE_FDE(&im, 0x401020, 0x80, CFA_OFFSET(16), CFA_ADVANCE(6), CFA_OFFSET(24),
		  CFA_ADVANCE(10), PLT_EXPRESSION);
	EXPECT_EQ(pack_image(), 0);
	EXPECT_EQ(packed.rules, 1);
	EXPECT_EQ(packed.rows, 5); /* gap, two of the head, the PLT, gap */
	EXPECT(rule_find(&tables, code_at(0x1030)) &&
	       rule_find(&tables, code_at(0x1030))->flags == SF_RULE_PLT);
	check_all();
	done_all();
}

/* Blocks that no linker makes are spelled out. */
TEST(pack_odd_blocks)
{
	begin();
	image_code(&im, 0x401000, 0x1000, 0x1000);
	senc_fn(&enc,
		(struct senc_fn){ .addr = 0x401000, .size = 100, .pcmask = true, .rep_size = 24 });
	senc_row(&enc, 0, SENC_SP, 1, "8");
	senc_row(&enc, 5, SENC_SP, 1, "16");
	senc_row(&enc, 9, SENC_SP, 1, "24");
	/* Not aligned */
	senc_fn(&enc,
		(struct senc_fn){ .addr = 0x401108, .size = 64, .pcmask = true, .rep_size = 16 });
	senc_row(&enc, 0, SENC_SP, 1, "32");
	senc_row(&enc, 11, SENC_SP, 1, "40");
	senc_fn(&enc,
		(struct senc_fn){ .addr = 0x401200, .size = 100, .pcmask = true, .rep_size = 40 });
	senc_row(&enc, 20, SENC_SP, 1, "48"); /* nothing for its first bytes */
	senc_fn(&enc,
		(struct senc_fn){ .addr = 0x401300, .size = 64, .pcmask = true, .rep_size = 16 });
	senc_row(&enc, 0, SENC_SP, 1, "8");
	senc_fn(&enc,
		(struct senc_fn){ .addr = 0x401400, .size = 64, .pcmask = true, .rep_size = 16 });
	senc_row(&enc, 0, SENC_SP, 1, "8");
	senc_row(&enc, 11, SENC_SP, 1, "16");
	EXPECT_EQ(pack_image(), 0);
	EXPECT_EQ(packed.rules, 1);
	EXPECT_EQ(packed.nranges, 5);
	check_all();
	EXPECT_EQ(code_at(0x1400 + 10), code_at(0x1400 + 11));
	EXPECT_EQ(code_at(0x1300 + 13), 1 << 5);
	done_all();
}

TEST(pack_sframe_ranges)
{
	begin();
	image_code(&im, 0x401000, 0x1000, 0x1000);
	senc_fn(&enc, (struct senc_fn){ .addr = 0x401010, .size = 0x18 });
	senc_row(&enc, 0, SENC_SP, 1, "8");
	senc_fn(&enc, (struct senc_fn){ .addr = 0x401030, .size = 0x10 });
	senc_row(&enc, 0, SENC_SP, 1, "8");
	senc_fn(&enc, (struct senc_fn){ .addr = 0x401100, .size = 0x10 });
	senc_row(&enc, 0, SENC_SP, 1, "8");
	IMAGE_FDE(&im, 0x401000, 0x200, CFA_OFFSET(16));
	EXPECT_EQ(pack_image(), 0);
	EXPECT_EQ(packed.nranges, 2);
	if (packed.nranges == 2) {
		EXPECT(packed.ranges[0].start == 0x1010 && packed.ranges[0].end == 0x1040);
		EXPECT(packed.ranges[1].start == 0x1100 && packed.ranges[1].end == 0x1110);
	}
	check_all();
	done_all();
}

/* A CFA based on rbx makes the whole file keep rbx; what was noted is not noted twice. */
TEST(pack_restarts_for_rbx)
{
	begin();
	image_code(&im, 0x401000, 0x1000, 0x1000);
	/* Then damage */
	IMAGE_FDE(&im, 0x401000, 0x10, CFA_OFFSET(16), CFA_SAVED(3, 16), CFA_ADVANCE(1), 0x3f);
	IMAGE_FDE(&im, 0x401100, 0x10, CFA_OFFSET(16), CFA_SAVED(3, 16), CFA_ADVANCE(4),
		  CFA_REG_OFFSET(3, 16));
	/* Rbx in rax: lost */
	IMAGE_FDE(&im, 0x401200, 0x10, CFA_OFFSET(24), 0x09, 3, 0);
	EXPECT_EQ(pack_image(), 0);
	EXPECT_EQ(packed.tables.flags, SF_MODULE_TRACKS_BX);
	EXPECT_EQ(diag.malformed, 1);
	EXPECT_EQ(diag.kept, 1);
	check_all();
	done_all();
}

TEST(pack_more_rules_than_fit)
{
	static uint8_t insns[7000 * 4];
	size_t n = 0;

	begin();
	image_code(&im, 0x400000, 0x10000, 0x10000);
	for (unsigned int i = 0; i < 7000; i++) {
		insns[n++] = 0x0e;
		/* Odd offsets need a rule each */
		insns[n++] = (uint8_t)(0x80 | (i & 63) << 1 | 1);
		insns[n++] = (uint8_t)(i >> 6);
		insns[n++] = CFA_ADVANCE(4);
	}
	image_fde(&im, 0x400000, 0x8000, insns, n);
	EXPECT_EQ(pack_image(), 0);
	EXPECT_EQ(packed.rules, 6144);
	EXPECT_EQ(packed.lost_rows, 7000 - 6144);
	EXPECT_EQ(code_at(0x10000 + 6143 * 4), SF_RULE_INDEXED | 6143);
	EXPECT_EQ(code_at(0x10000 + 6144 * 4), SF_RULE_GAP);
	done_all();
}

/* ---- Any rows, any file ---- */

static size_t random_insns(uint8_t *insns, uint64_t size)
{
	uint64_t at = 0;
	size_t n = 0;

	for (int r = rand() % 12; r >= 0; r--) {
		unsigned int step = 1 + (unsigned int)rand() % 60;

		switch (rand() % 6) {
		case 0:
			insns[n++] = 0x0c;
			insns[n++] = (uint8_t)(rand() % 16);
			insns[n++] = (uint8_t)(rand() % 128);
			break;
		case 1:
			insns[n++] = 0x80 | 6;
			insns[n++] = (uint8_t)(rand() % 40);
			break;
		case 2:
			insns[n++] = 0x07;
			insns[n++] = rand() % 8 ? 6 : 16;
			break;
		case 3:
			insns[n++] = 0x80 | 3;
			insns[n++] = (uint8_t)(rand() % 40);
			break;
		default:
			insns[n++] = 0x0e;
			insns[n++] = (uint8_t)(8 * (rand() % 16));
		}
		if (at + step >= size)
			break;
		insns[n++] = (uint8_t)CFA_ADVANCE(step);
		at += step;
	}
	return n;
}

TEST(pack_random_files)
{
	for (unsigned int seed = 1; seed <= 150; seed++) {
		uint64_t at = 0x400000;
		int before = test_errors;

		srand(seed);
		begin();
		image_code(&im, 0x400000, 0x8000, 0x60000);
		while (at < 0x45f000) {
			uint64_t size = 1 + (uint64_t)rand() % (rand() % 16 ? 400 : 70000);
			uint8_t insns[256];

			if (at + size > 0x460000)
				break;
			image_fde(&im, at, size, insns, random_insns(insns, size));
			if (rand() % 4 == 0 && enc.nfns < SENC_MAX_FNS) {
				senc_fn(&enc, (struct senc_fn){ .addr = at + size / 2,
								.size = (uint32_t)(1 + size / 3),
								.row_type = 2 });
				senc_row(&enc, 0, SENC_SP, 1, "24");
			}
			at += size + (uint64_t)rand() % (rand() % 8 ? 24 : 100000);
		}
		EXPECT_EQ(pack_image(), 0);
		check_all();
		done();
		if (test_errors != before) {
			printf("  seed %u\n", seed);
			break;
		}
	}
	chunks_free();
}

/* The file at path, every row of it; false: there is none. */
static bool check_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;

	if (fd < 0)
		return false;
	memset(&diag, 0, sizeof(diag));
	err = unwind_file_open_fd(&file, fd, &diag);
	EXPECT_EQ(err, 0);
	if (!err) {
		EXPECT_EQ(pack_opened(), 0);
		EXPECT_EQ(packed.lost_rows, 0);
		check_all();
		EXPECT(all.n > 1000 || !strstr(path, "libc"));
	}
	free(packed.ranges);
	packed.ranges = NULL;
	unwind_file_close(&file);
	close(fd);
	chunks_free();
	return true;
}

TEST(pack_libc)
{
	if (!check_file("/lib/x86_64-linux-gnu/libc.so.6"))
		SKIP("no libc there");
}

TEST(pack_ld_so_keeps_rbx)
{
	if (!check_file("/lib64/ld-linux-x86-64.so.2"))
		SKIP("no ld.so there");
	EXPECT_EQ(packed.tables.flags, SF_MODULE_TRACKS_BX);
}

TEST(pack_python)
{
	if (!check_file("/usr/bin/python3"))
		SKIP("no /usr/bin/python3");
}

TEST(pack_this_program)
{
	check_file("/proc/self/exe");
	rowbuf_free(&all);
	rowbuf_free(&known);
}
