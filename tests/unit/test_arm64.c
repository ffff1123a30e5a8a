/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * AArch64: rules in 16 bits (rows/pack_rule.c), BPF's steps over them (bpf/core/step_arm64.h,
 * compiled for the host), and the rows that are made without tables. For real files: a packed rule
 * steps as the same rule unpacked.
 */
#define __TARGET_ARCH_arm64
#include "core/call_insn.h"
#include "core/row_step.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "image_build.h"
#include "readers/trampoline.h"
#include "readers/vdso_arm64.h"
#include "rows/pack_rule.h"
#include "tables/pack.h"
#include "test.h"

/* ---- Memory: every word can be read, and tells its address ---- */

#define STACK 0xffffd0001000ull
#define MASK  0xffffffffffffull	    /* 48 bits */
#define PAC   0x0042000000000000ull /* what lies above them in a signed address */

static uint64_t zero_at, fault_at; /* addresses that hold 0, that cannot be read */

static uint64_t word(uint64_t addr)
{
	return addr == zero_at ? 0 : PAC | (addr * 0x9e3779b97f4a7c15ull >> 20 & 0xfffffff8);
}

SF_INLINE int sf_read_user(struct sf_regs *r, sf_u64 addr, sf_u64 *val)
{
	(void)r;
	if (addr == fault_at)
		return -1;
	*val = word(addr);
	return 0;
}

SF_INLINE int sf_read_user_regs(sf_u64 addr, sf_u64 *dst)
{
	for (int i = 0; i < SF_SIGCONTEXT_WORDS; i++)
		dst[i] = word(addr + 8 * (uint64_t)i);
	return addr == fault_at;
}

SF_INLINE int sf_read_frame(struct sf_regs *r, sf_u64 cfa, sf_u32 slot, sf_u64 *fp, sf_u64 *ra)
{
	if (slot && sf_read_user(r, cfa - 8 * slot, fp))
		return -1;
	return sf_read_user(r, cfa - 8, ra);
}

static struct sf_regs r;

/* In the innermost frame: all registers are known, and register n holds 0x100 + n. */
static void fresh(uint32_t flags)
{
	memset(&r, 0, sizeof(r));
	for (unsigned int i = 0; i < 34; i++)
		r.r[i] = 0x100 + i;
	zero_at = fault_at = 0;
	r.pc = 0x401000;
	r.sp = r.r[31] = STACK;
	r.fp = r.r[29] = STACK + 64;
	r.ra_mask = MASK;
	r.flags = flags;
}

static void expect(uint64_t pc, uint64_t sp, uint64_t fp, uint32_t flags)
{
	EXPECT_EQ(r.pc, pc);
	EXPECT_EQ(r.sp, sp);
	EXPECT_EQ(r.fp, fp);
	EXPECT_EQ(r.flags, flags);
}

/* ---- Rules in 16 bits ---- */

#define REG(n, o)                                        \
	{                                                \
		.kind = RULE_REG, .reg = (n), .off = (o) \
	}
#define AT_CFA(o)                                \
	{                                        \
		.kind = RULE_CFA_MEM, .off = (o) \
	}
#define SAME                      \
	{                         \
		.kind = RULE_SAME \
	}
#define CODE(...) pack_rule(ROW_ARCH_AARCH64, &(struct row){ __VA_ARGS__ }, false)

TEST(arm64_rules_that_fit)
{
	EXPECT_EQ(CODE(.cfa = REG(31, 0), .ra = REG(30, 0), .fp = SAME), 0);
	EXPECT_EQ(CODE(.cfa = REG(31, 4080), .ra = REG(30, 0), .fp = SAME, .flags = ROW_PAC),
		  255 << 6);
	EXPECT_EQ(CODE(.cfa = REG(31, 48), .ra = AT_CFA(-24), .fp = AT_CFA(-32)), 3 << 6 | 2);
	EXPECT_EQ(CODE(.cfa = REG(29, 48), .ra = AT_CFA(-40), .fp = AT_CFA(-48)),
		  SF_RULE_BASE_FP | 3 << 6 | 31);
	EXPECT_EQ(CODE(.cfa = REG(31, 4080), .ra = AT_CFA(-4072), .fp = AT_CFA(-4080)),
		  255 << 6 | 31);
	EXPECT_EQ(CODE(.cfa = REG(31, 480), .ra = AT_CFA(-472), .fp = AT_CFA(-480)), 30 << 6 | 31);
	EXPECT_EQ(CODE(.cfa = REG(31, 512), .ra = AT_CFA(-472), .fp = AT_CFA(-480)), 32 << 6 | 30);
	EXPECT_EQ(CODE(.cfa = REG(31, 32), .ra = AT_CFA(-32), .fp = SAME),
		  2 << 6 | SF_A64_RA_ALONE | 31);
	EXPECT_EQ(CODE(.cfa = REG(31, 32), .ra = AT_CFA(-16), .fp = SAME),
		  2 << 6 | SF_A64_RA_ALONE | 1);
	EXPECT_EQ(CODE(.ra = { .kind = RULE_UNDEF }), SF_RULE_END);
}

TEST(arm64_rules_that_do_not_fit)
{
	EXPECT_EQ(CODE(.cfa = REG(31, 4096), .ra = REG(30, 0), .fp = SAME), SF_RULE_INDEXED);
	EXPECT_EQ(CODE(.cfa = REG(31, 8), .ra = REG(30, 0), .fp = SAME), SF_RULE_INDEXED);
	EXPECT_EQ(CODE(.cfa = REG(31, -16), .ra = REG(30, 0), .fp = SAME), SF_RULE_INDEXED);
	EXPECT_EQ(CODE(.cfa = REG(28, 16), .ra = REG(30, 0), .fp = SAME), SF_RULE_INDEXED);
	EXPECT_EQ(CODE(.cfa = REG(31, 16), .ra = REG(17, 0), .fp = SAME), SF_RULE_INDEXED);
	EXPECT_EQ(CODE(.cfa = REG(31, 16), .ra = REG(30, 4), .fp = SAME), SF_RULE_INDEXED);
	EXPECT_EQ(CODE(.cfa = REG(31, 16), .ra = REG(30, 0), .fp = AT_CFA(-16)), SF_RULE_INDEXED);
	EXPECT_EQ(CODE(.cfa = REG(31, 32), .ra = AT_CFA(-8), .fp = AT_CFA(-32)), SF_RULE_INDEXED);
	EXPECT_EQ(CODE(.cfa = REG(31, 32), .ra = AT_CFA(-8), .fp = SAME), SF_RULE_INDEXED);
	EXPECT_EQ(CODE(.cfa = REG(31, 32), .ra = AT_CFA(0), .fp = SAME), SF_RULE_INDEXED);
	EXPECT_EQ(CODE(.cfa = REG(31, 32), .ra = AT_CFA(INT32_MIN), .fp = SAME), SF_RULE_INDEXED);
	EXPECT_EQ(CODE(.cfa = REG(31, 32), .ra = AT_CFA(INT32_MIN + 7), .fp = AT_CFA(INT32_MAX)),
		  SF_RULE_INDEXED);
	EXPECT_EQ(CODE(.cfa = REG(31, 1024), .ra = AT_CFA(-504), .fp = AT_CFA(-512)),
		  SF_RULE_INDEXED);
	EXPECT_EQ(CODE(.cfa = REG(31, 16), .ra = REG(30, 0), .fp = SAME, .flags = ROW_SIGNAL),
		  SF_RULE_INDEXED);
}

/* ---- Steps ---- */

#define PACKED(base, cfa, rest) ((base) | (cfa) / 16 << 6 | (rest))

TEST(arm64_step_pair)
{
	fresh(SF_REGS_FULL);
	EXPECT_EQ(step_packed(&r, PACKED(0, 48, 2), 0), SF_STEP_GO);
	expect(word(STACK + 24) & MASK, STACK + 48, word(STACK + 16), SF_REGS_RA);
	fresh(SF_REGS_RA);
	EXPECT_EQ(step_packed(&r, PACKED(SF_RULE_BASE_FP, 32, 31), 0), SF_STEP_GO);
	expect(word(STACK + 72) & MASK, STACK + 96, word(STACK + 64), SF_REGS_RA);
	fresh(SF_REGS_RA);
	EXPECT_EQ(step_packed(&r, PACKED(0, 32, SF_A64_RA_ALONE | 1), 0), SF_STEP_GO);
	expect(word(STACK + 16) & MASK, STACK + 32, STACK + 64, SF_REGS_RA);
}

TEST(arm64_step_bad)
{
	fresh(SF_REGS_RA);
	/* Its record would lie below sp */
	EXPECT_EQ(step_packed(&r, PACKED(0, 32, 3), 0), SF_STOP_BAD_CFA);
	r.fp = STACK - 64;
	EXPECT_EQ(step_packed(&r, PACKED(SF_RULE_BASE_FP, 32, 31), 0), SF_STOP_BAD_CFA);
	fresh(SF_REGS_RA);
	fault_at = STACK + 8;
	EXPECT_EQ(step_packed(&r, PACKED(0, 16, 31), 0), SF_STOP_READ_FAULT);
	expect(0x401000, STACK, STACK + 64, SF_REGS_RA);
	fresh(SF_REGS_RA);
	zero_at = STACK + 8;
	EXPECT_EQ(step_packed(&r, PACKED(0, 16, 31), 0), SF_STOP_ZERO_RA);
}

/* The RA is in LR only while nothing has been called. */
TEST(arm64_step_leaf)
{
	fresh(SF_REGS_FULL);
	r.r[30] = PAC | 0x402000;
	EXPECT_EQ(step_packed(&r, PACKED(0, 0, 0), 0), SF_STEP_GO);
	expect(0x402000, STACK, STACK + 64, SF_REGS_RA);
	EXPECT_EQ(step_packed(&r, PACKED(0, 0, 0), 0), SF_STOP_REG_UNKNOWN);
	r.fp = 0;
	EXPECT_EQ(step_packed(&r, PACKED(0, 0, 0), 0), SF_STOP_COMPLETE);
	fresh(SF_REGS_FULL);
	EXPECT_EQ(step_packed(&r, PACKED(0, 64, 0), 0), SF_STEP_GO);
	expect(0x100 + 30, STACK + 64, STACK + 64, SF_REGS_RA);
	fresh(SF_REGS_FULL);
	r.r[30] = PAC; /* signed 0 */
	EXPECT_EQ(step_packed(&r, PACKED(0, 0, 0), 0), SF_STOP_ZERO_RA);
}

TEST(arm64_step_sigcontext)
{
	const struct row *row = &a64_restorer_row;
	const struct sf_rule rule = {
		.cfa_kind = row->cfa.kind,
		.cfa_reg = row->cfa.reg,
		.cfa_off = row->cfa.off,
		.ra_kind = row->ra.kind,
		.ra_reg = row->ra.reg,
		.ra_off = row->ra.off,
		.flags = SF_RULE_SIGNAL,
	};
	/* siginfo, ucontext up to the sigcontext, fault_address */
	const uint64_t regs = STACK + 128 + 176 + 8;

	fresh(SF_REGS_RA);
	EXPECT_EQ(step_rule(&r, &rule, 0, 0), SF_STEP_GO);
	expect(word(regs + 8 * 32), word(regs + 8 * 31), word(regs + 8 * 29), SF_REGS_FULL);
	for (unsigned int i = 0; i < 31; i++)
		EXPECT_EQ(r.r[i], word(regs + 8 * i));
	fresh(SF_REGS_RA);
	fault_at = regs;
	EXPECT_EQ(step_rule(&r, &rule, 0, 0), SF_STOP_READ_FAULT);
}

/*
 * Code without rows: after a step by frame pointer sp is only known again where a row says where
 * the record is.
 */
#define BY_FP (SF_REGS_RA | SF_REGS_BY_FP | SF_REGS_GUESS)

TEST(arm64_step_fp)
{
	fresh(SF_REGS_FULL);
	EXPECT_EQ(step_fp(&r), SF_STEP_GO);
	expect(word(STACK + 72) & MASK, STACK + 80, word(STACK + 64), BY_FP);
	r.fp = STACK + 256;
	/* The record lies at CFA - 32 */
	EXPECT_EQ(step_packed(&r, PACKED(0, 128, 2), 0), SF_STEP_GO);
	expect(word(STACK + 264) & MASK, STACK + 288, word(STACK + 256), SF_REGS_RA);
	fresh(BY_FP);
	/* No record: the next frame pointer */
	EXPECT_EQ(step_packed(&r, PACKED(0, 128, SF_A64_RA_ALONE | 1), 0), SF_STEP_GO);
	expect(word(STACK + 72) & MASK, STACK + 80, word(STACK + 64), BY_FP);
	fresh(BY_FP);
	/* Its sp would lie below what is known: not its record */
	EXPECT_EQ(step_packed(&r, PACKED(0, 128, 2), 0), SF_STEP_GO);
	EXPECT_EQ(r.flags, BY_FP);
	fresh(SF_REGS_FULL);
	zero_at = STACK + 64;
	EXPECT_EQ(step_fp(&r), SF_STEP_GO);
	EXPECT_EQ(r.flags, BY_FP);
}

TEST(arm64_ends_with_call)
{
	/* bl; blr x8; blraa x8, sp; blrab x8, x9; blraaz x8; blrabz x8 */
	static const uint32_t calls[] = { 0x94000001, 0x97ffffff, 0xd63f0100, 0xd73f091f,
					  0xd73f0d09, 0xd63f091f, 0xd63f0d1f };
	/* b; br x8; ret; svc #0; nop; cbz */
	static const uint32_t others[] = { 0x14000001, 0xd61f0100, 0xd65f03c0,
					   0xd4000001, 0xd503201f, 0xb4000040 };

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		EXPECT(ends_with_call((uint64_t)calls[i] << 32));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		EXPECT(!ends_with_call((uint64_t)others[i] << 32 | 0x94000001));
}

/* ---- Real files ---- */

static struct sf_rule unpacked(const struct row *row)
{
	return (struct sf_rule){
		.cfa_kind = row->cfa.kind,
		.cfa_reg = row->cfa.reg,
		.cfa_off = row->cfa.off,
		.cfa_off2 = row->cfa_off2,
		.ra_kind = row->ra.kind,
		.ra_reg = row->ra.reg,
		.ra_off = row->ra.off,
		.fp_kind = row->fp.kind,
		.fp_reg = row->fp.reg,
		.fp_off = row->fp.off,
	};
}

static bool steps_alike(const struct row *row, uint16_t code, uint32_t flags)
{
	const struct sf_rule rule = unpacked(row);
	struct sf_regs packed;
	int stop;

	fresh(flags);
	r.fp = STACK + 5000 * 16;
	stop = step_packed(&r, code, 0);
	packed = r;
	fresh(flags);
	r.fp = STACK + 5000 * 16;
	return step_rule(&r, &rule, 0, 0) == stop && !memcmp(&r, &packed, sizeof(r));
}

/* At least `percent` of the rows are packed. False: no such file. */
static bool check_file(const char *path, unsigned int percent)
{
	unsigned int n = 0, npacked = 0, wrong = 0;
	struct unwind_file file;
	struct row_stream s;
	struct row row;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	if (unwind_file_open_fd(&file, fd, NULL)) {
		close(fd);
		return false;
	}
	row_stream_open(&s, &file, ROWS_MERGED, NULL);
	while (row_stream_next(&s, &row) > 0) {
		uint16_t code = pack_rule(file.arch, &row, false);

		n++;
		npacked += code != SF_RULE_INDEXED;
		if (!(code & SF_RULE_INDEXED))
			wrong += !steps_alike(&row, code, SF_REGS_FULL) +
				 !steps_alike(&row, code, SF_REGS_RA) +
				 !steps_alike(&row, code, BY_FP);
	}
	row_stream_close(&s);
	EXPECT_EQ(wrong, 0);
	EXPECT(n > 0 && npacked * 100 >= n * percent);
	unwind_file_close(&file);
	close(fd);
	return true;
}

TEST(arm64_libc)
{
	if (!check_file("/usr/aarch64-linux-gnu/lib/libc.so.6", 99))
		SKIP("no AArch64 libc there");
}

TEST(arm64_fixtures)
{
	static const char *const names[] = { "v1/aarch64/fx-fp",  "v1/aarch64/fx-nofp",
					     "v1/aarch64/fx-pac", "v1/aarch64/fx-pacb",
					     "v2/aarch64/fx-fp",  "v2/aarch64/fx-nofp-static",
					     "v3/aarch64/fx-pac", "v3/aarch64/fx-nofp" };
	int found = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[128];

		snprintf(path, sizeof(path), "../shared/fixtures/%s", names[i]);
		found += check_file(path, 75);
	}
	if (!found)
		SKIP(getenv("SFBPF_FIXTURES") ? "" : "no fixtures");
}

/* ---- Rows without tables ---- */

static bool is(const struct row *row, uint64_t start, uint64_t end, struct rule cfa, struct rule ra,
	       struct rule fp)
{
	return row->start == start && row->end == end && rule_equal(&row->cfa, &cfa) &&
	       rule_equal(&row->ra, &ra) && rule_equal(&row->fp, &fp);
}

#define RULE(...) (struct rule) __VA_ARGS__
#define LEAF	  RULE(REG(31, 0)), RULE(REG(30, 0)), RULE(SAME)

/* A leaf; a function with a frame and an early return; the restorer. */
TEST(arm64_vdso)
{
	static const uint32_t code[] = {
		0xd503233f,
		0xd65f03c0, /*  0 paciasp; ret */
		/*  8 stp x29,x30,[sp,#-128]!; mov x29,sp; stp x19,x20,[sp,#16] */
		0xa9b87bfd,
		0x910003fd,
		0xa90153f3,
		/* 14 ldp x19,x20,[sp,#16]; ldp x29,x30,[sp],#128; ret */
		0xa94153f3,
		0xa8c87bfd,
		0xd65f03c0,
		/* 20 nop; ldp x29,x30,[sp],#128; ret */
		0xd503201f,
		0xa8c87bfd,
		0xd65f03c0,
	};
	/* nop; mov x8,#139; svc #0 */
	static const uint32_t tail[] = { 0xd503201f, 0xd2801168, 0xd4000001 };
	const struct rule pair_ra = AT_CFA(-120), pair_fp = AT_CFA(-128);
	struct rowbuf rows = { 0 };
	struct unwind_file file;
	struct image im;

	image_init(&im);
	im.machine = EM_AARCH64;
	image_code(&im, 0x1000, 0x1000, sizeof(code));
	image_finish(&im);
	memcpy(im.file.buf + 0x1000, code, sizeof(code));
	EXPECT_EQ(unwind_file_open_mem(&file, im.file.buf, im.file.len, NULL), 0);
	EXPECT_EQ(vdso_arm64_rows(&file.img, &rows), 0);
	EXPECT_EQ(rows.n, 6);
	if (rows.n == 6) {
		EXPECT(is(&rows.rows[0], 0x1000, 0x100c, LEAF));
		EXPECT(is(&rows.rows[1], 0x100c, 0x1010, RULE(REG(31, 128)), pair_ra, pair_fp));
		EXPECT(is(&rows.rows[2], 0x1010, 0x101c, RULE(REG(29, 128)), pair_ra, pair_fp));
		EXPECT(is(&rows.rows[3], 0x101c, 0x1020, LEAF));
		EXPECT(is(&rows.rows[4], 0x1020, 0x1028, RULE(REG(29, 128)), pair_ra, pair_fp));
		EXPECT(is(&rows.rows[5], 0x1028, 0x102c, LEAF));
	}
	unwind_file_close(&file);
	image_free(&im);

	rows.n = 0;
	image_init(&im);
	im.machine = EM_AARCH64;
	image_code(&im, 0, 0, 0x2000);
	image_finish(&im);
	memcpy(im.file.buf + 0x1000, tail, sizeof(tail));
	EXPECT_EQ(unwind_file_open_mem(&file, im.file.buf, im.file.len, NULL), 0);
	EXPECT_EQ(vdso_arm64_rows(&file.img, &rows), 0);
	EXPECT_EQ(rows.n, 3);
	if (rows.n == 3) {
		EXPECT(is(&rows.rows[0], 0, 0x1000, LEAF));
		EXPECT(is(&rows.rows[1], 0x1000, 0x100c, a64_restorer_row.cfa, a64_restorer_row.ra,
			  a64_restorer_row.fp));
		EXPECT(is(&rows.rows[2], 0x100c, 0x2000, LEAF));
	}
	unwind_file_close(&file);
	image_free(&im);
	rowbuf_free(&rows);
}

TEST(arm64_libc_trampolines)
{
	struct rowbuf rows = { 0 };
	const struct elf_shdr *plt;
	struct unwind_file file;
	int fd = open("/usr/aarch64-linux-gnu/lib/libc.so.6", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		SKIP("no AArch64 libc there");
	EXPECT_EQ(unwind_file_open_fd(&file, fd, NULL), 0);
	plt = elf_image_section(&file.img, ".plt");
	EXPECT_EQ(trampolines_find(&file.img, file.arch, &rows), 0);
	EXPECT(plt && rows.n >= 5);
	if (plt && rows.n >= 5) {
		/* With branch protection, glibc 2.41 has a landing pad there. */
		const uint64_t push = rows.rows[0].end;

		EXPECT(push == plt->addr + 4 || push == plt->addr + 8);
		EXPECT(is(&rows.rows[0], plt->addr, push, LEAF));
		EXPECT(is(&rows.rows[1], push, plt->addr + 32, RULE(REG(31, 16)), RULE(AT_CFA(-8)),
			  RULE(SAME)));
		EXPECT(is(&rows.rows[2], plt->addr + 32, plt->addr + plt->size, LEAF));
		/* It is a program too; up to its first call. */
		EXPECT_EQ(rows.rows[3].start, file.img.entry);
		EXPECT_EQ(rows.rows[3].ra.kind, RULE_UNDEF);
	}
	/* From clone's system call on, and from clone3's. */
	for (size_t i = 4; i < rows.n; i++)
		EXPECT(is(&rows.rows[i], rows.rows[i].start, rows.rows[i].start + 20, LEAF) &&
		       rows.rows[i].flags == ROW_CHILD);
	rowbuf_free(&rows);
	unwind_file_close(&file);
	close(fd);
}
