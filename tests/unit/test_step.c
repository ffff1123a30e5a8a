/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One step up the stack (bpf/core/row_step.h, compiled for the host) on stacks written down word by
 * word.
 */
#define __TARGET_ARCH_x86
#include "core/call_insn.h"
#include "core/row_step.h"
#include "test.h"

/* ---- Memory: a stack of words; nothing else can be read ---- */

#define STACK 0x7ffd00001000ull
#define WORDS 64

static uint64_t words[WORDS];
static uint64_t unreadable; /* an address that faults; 0: none */

static int word_at(uint64_t addr, uint64_t *val)
{
	if (addr < STACK || addr > STACK + 8 * (WORDS - 1) || (addr & 7) || addr == unreadable)
		return -1;
	*val = words[(addr - STACK) / 8];
	return 0;
}

SF_INLINE int sf_read_user(struct sf_regs *r, sf_u64 addr, sf_u64 *val)
{
	(void)r;
	return word_at(addr, val);
}

SF_INLINE int sf_read_user_regs(sf_u64 addr, sf_u64 *dst)
{
	for (int i = 0; i < 17; i++)
		if (word_at(addr + 8 * (sf_u64)i, &dst[i]))
			return -1;
	return 0;
}

SF_INLINE int sf_read_frame(struct sf_regs *r, sf_u64 cfa, sf_u32 slot, sf_u64 *fp, sf_u64 *ra)
{
	(void)r;
	if (slot && word_at(cfa - 8 * slot, fp))
		return -1;
	return word_at(cfa - 8, ra);
}

static struct sf_regs r;

/* Word i holds 0x1000 + i; all registers are known, register n holds 0x100 + n. */
static void fresh(uint64_t sp, uint64_t fp)
{
	memset(&r, 0, sizeof(r));
	for (int i = 0; i < WORDS; i++)
		words[i] = 0x1000 + (uint64_t)i;
	for (int i = 0; i < 16; i++)
		r.r[i] = 0x100 + (uint64_t)i;
	unreadable = 0;
	r.pc = 0x401000;
	r.sp = sp;
	r.fp = fp;
	r.bx = 0xb;
	r.entry_sp = 0x7fff00000000ull;
	r.flags = SF_REGS_FULL | SF_REGS_BX;
}

static void expect(uint64_t pc, uint64_t sp, uint64_t fp, uint32_t flags)
{
	EXPECT_EQ(r.pc, pc);
	EXPECT_EQ(r.sp, sp);
	EXPECT_EQ(r.fp, fp);
	EXPECT_EQ(r.flags, flags);
}

#define PACKED(base, cfa, slot) ((base) | (cfa) / 8 << 5 | (slot))

/* ---- Packed rows ---- */

TEST(step_packed_by_sp)
{
	fresh(STACK, 0xf0);
	EXPECT_EQ(step_packed(&r, PACKED(0, 8, 0), 0), SF_STEP_GO);
	expect(0x1000, STACK + 8, 0xf0, SF_REGS_RA);
	/* CFA = word 5: RA in 4, rbp in 3 */
	EXPECT_EQ(step_packed(&r, PACKED(0, 32, 2), 0), SF_STEP_GO);
	expect(0x1004, STACK + 40, 0x1003, SF_REGS_RA);
	fresh(STACK, 0xf0);
	EXPECT_EQ(step_packed(&r, PACKED(0, 480, 31), 0), SF_STEP_GO);
	expect(0x1000 + 59, STACK + 480, 0x1000 + 60 - 31, SF_REGS_RA);
}

TEST(step_packed_by_fp)
{
	fresh(STACK, STACK + 64);
	EXPECT_EQ(step_packed(&r, PACKED(SF_RULE_BASE_FP, 16, 2), 0), SF_STEP_GO);
	expect(0x1009, STACK + 80, 0x1008, SF_REGS_RA);
	/* The largest CFA offset a row can hold. */
	fresh(STACK, STACK + 80 - 511 * 8);
	EXPECT_EQ(step_packed(&r, PACKED(SF_RULE_BASE_FP, 511 * 8, 0), 0), SF_STEP_GO);
	expect(0x1009, STACK + 80, STACK + 80 - 511 * 8, SF_REGS_RA);
}

TEST(step_packed_bad)
{
	fresh(STACK, STACK - 16);
	EXPECT_EQ(step_packed(&r, PACKED(SF_RULE_BASE_FP, 16, 2), 0), SF_STOP_BAD_CFA); /* = sp */
	EXPECT_EQ(step_packed(&r, PACKED(0, 0, 0), 0), SF_STOP_BAD_CFA);
	fresh(STACK, UINT64_MAX - 7);
	EXPECT_EQ(step_packed(&r, PACKED(SF_RULE_BASE_FP, 16, 2), 0), SF_STOP_BAD_CFA); /* wraps */
	fresh(STACK, STACK + 800);
	EXPECT_EQ(step_packed(&r, PACKED(SF_RULE_BASE_FP, 16, 2), 0), SF_STOP_READ_FAULT);
	fresh(STACK, 0);
	unreadable = STACK + 8;
	EXPECT_EQ(step_packed(&r, PACKED(0, 16, 0), 0), SF_STOP_READ_FAULT);
	unreadable = STACK;
	EXPECT_EQ(step_packed(&r, PACKED(0, 16, 2), 0), SF_STOP_READ_FAULT);
	/* A step that fails changes nothing */
	expect(0x401000, STACK, 0, SF_REGS_FULL | SF_REGS_BX);
}

/* A frame pointer may lead to another stack; then the return address must be checked. */
TEST(step_packed_down)
{
	fresh(STACK + 64, STACK + 16);
	EXPECT_EQ(step_packed(&r, PACKED(SF_RULE_BASE_FP, 16, 2), 0), SF_STEP_GO);
	expect(0x1003, STACK + 32, 0x1002, SF_REGS_RA | SF_REGS_DOWN);
	EXPECT_EQ(r.left, STACK + 64);
	/* The frame after it is one as any other. */
	EXPECT_EQ(step_packed(&r, PACKED(0, 16, 2), 0), SF_STEP_GO);
	EXPECT_EQ(r.flags, SF_REGS_RA);
	fresh(STACK + 64, STACK + 16);
	words[3] = 0;
	EXPECT_EQ(step_packed(&r, PACKED(SF_RULE_BASE_FP, 16, 2), 0), SF_STOP_BAD_CFA);
}

/* May be the end of a stack; its place decides (zero_check). */
TEST(step_packed_ra_0)
{
	fresh(STACK, 0xf0);
	words[1] = 0;
	EXPECT_EQ(step_packed(&r, PACKED(0, 16, 0), 0), SF_STOP_ZERO_RA);
	EXPECT_EQ(r.sp, STACK + 16);
}

/*
 * _start of a program whose tables do not say that it is outermost: its "return address" is argc.
 */
TEST(step_packed_entry)
{
	fresh(STACK, 0xf0);
	r.entry_sp = STACK + 32;
	EXPECT_EQ(step_packed(&r, PACKED(0, 16, 0), 0), SF_STEP_GO);
	EXPECT_EQ(step_packed(&r, PACKED(0, 16, 0), 0), SF_STEP_GO); /* sp = entry_sp now */
	EXPECT_EQ(step_packed(&r, PACKED(0, 8, 0), 0), SF_STOP_COMPLETE);
	/* A stack above the main one is no stack that was entered there. */
	fresh(STACK + 64, 0xf0);
	r.entry_sp = STACK;
	EXPECT_EQ(step_packed(&r, PACKED(0, 8, 0), 0), SF_STEP_GO);
	/* Nor is a frame that reaches far beyond the entry the first one. */
	fresh(STACK, 0xf0);
	r.entry_sp = STACK + 8;
	EXPECT_EQ(step_packed(&r, PACKED(0, 16 + 64, 0), 0), SF_STEP_GO);
}

TEST(step_packed_keeps_rbx_where_tables_tell)
{
	fresh(STACK, 0xf0);
	EXPECT_EQ(step_packed(&r, PACKED(0, 8, 0), SF_MODULE_TRACKS_BX), SF_STEP_GO);
	expect(0x1000, STACK + 8, 0xf0, SF_REGS_RA | SF_REGS_BX);
	EXPECT_EQ(r.bx, 0xb);
	EXPECT_EQ(step_packed(&r, PACKED(0, 8, 0), 0), SF_STEP_GO);
	EXPECT_EQ(r.flags, SF_REGS_RA);
}

/* ---- Frame pointer ---- */

#define BY_FP (SF_REGS_RA | SF_REGS_BY_FP | SF_REGS_GUESS)

TEST(step_fp_chain_and_its_end)
{
	fresh(STACK, STACK + 16);
	words[2] = STACK + 64;
	words[8] = 0;
	EXPECT_EQ(step_fp(&r), SF_STEP_GO);
	expect(0x1003, STACK + 32, STACK + 64, BY_FP);
	EXPECT_EQ(step_fp(&r), SF_STEP_GO);
	expect(0x1009, STACK + 80, 0, BY_FP);
	EXPECT_EQ(step_fp(&r), SF_STOP_BAD_CFA);
}

TEST(step_fp_bad)
{
	fresh(STACK + 32, STACK + 24);
	EXPECT_EQ(step_fp(&r), SF_STOP_BAD_CFA); /* below sp */
	fresh(STACK, STACK + 12);
	EXPECT_EQ(step_fp(&r), SF_STOP_BAD_CFA); /* not aligned */
	fresh(STACK, STACK + 8 * (WORDS - 1));
	EXPECT_EQ(step_fp(&r), SF_STOP_READ_FAULT); /* the RA is off the stack */
	fresh(STACK, STACK + 16);
	words[3] = 0;
	EXPECT_EQ(step_fp(&r), SF_STOP_ZERO_RA);
	EXPECT_EQ(r.sp, STACK + 32);
}

/* ---- Rules of their own ---- */

#define RULE(...)           \
	(struct sf_rule)    \
	{                   \
		__VA_ARGS__ \
	}
#define CFA_REG(n, off) .cfa_kind = SF_K_REG, .cfa_reg = (n), .cfa_off = (off)
#define CFA_MEM(n, off, add) \
	.cfa_kind = SF_K_REG_MEM, .cfa_reg = (n), .cfa_off = (off), .cfa_off2 = (add)
#define RA_AT_CFA .ra_kind = SF_K_CFA_MEM, .ra_off = -8

static int step_at(uint32_t offset, struct sf_rule rule, uint32_t module_flags)
{
	return step_rule(&r, &rule, offset, module_flags);
}

static int step(struct sf_rule rule)
{
	return step_at(0, rule, 0);
}

TEST(step_rule_registers)
{
	fresh(STACK, 0xf0);
	r.r[10] = STACK + 24;
	EXPECT_EQ(step(RULE(CFA_REG(10, 8), RA_AT_CFA, .fp_kind = SF_K_SAME)), SF_STEP_GO);
	expect(0x1003, STACK + 32, 0xf0, SF_REGS_RA);
	/* One frame further r10 is unknown. */
	EXPECT_EQ(step(RULE(CFA_REG(10, 8), RA_AT_CFA)), SF_STOP_REG_UNKNOWN);
	EXPECT_EQ(step(RULE(CFA_REG(7, 8), RA_AT_CFA)), SF_STEP_GO);
	r.fp = STACK + 64;
	EXPECT_EQ(step(RULE(CFA_REG(6, 8), RA_AT_CFA)), SF_STEP_GO);
	EXPECT_EQ(r.sp, STACK + 72);
	/* rip and beyond are no registers of ours. */
	fresh(STACK, 0xf0);
	EXPECT_EQ(step(RULE(CFA_REG(16, 8), RA_AT_CFA)), SF_STOP_REG_UNKNOWN);
	EXPECT_EQ(step(RULE(CFA_REG(255, 8), RA_AT_CFA)), SF_STOP_REG_UNKNOWN);
}

TEST(step_rule_ra)
{
	fresh(STACK, 0xf0);
	EXPECT_EQ(step(RULE(CFA_REG(7, 8), .ra_kind = SF_K_REG, .ra_reg = 11)), SF_STEP_GO);
	expect(0x10b, STACK + 8, 0xf0, SF_REGS_RA);
	fresh(STACK, 0xf0);
	EXPECT_EQ(step(RULE(CFA_REG(7, 8), .ra_kind = SF_K_REG_MEM, .ra_reg = 7, .ra_off = 24)),
		  SF_STEP_GO);
	EXPECT_EQ(r.pc, 0x1003);
	fresh(STACK, 0xf0);
	EXPECT_EQ(step(RULE(CFA_REG(7, 8), .ra_kind = SF_K_CFA_MEM, .ra_off = 16)), SF_STEP_GO);
	EXPECT_EQ(r.pc, 0x1003);
	fresh(STACK, 0xf0);
	EXPECT_EQ(step(RULE(CFA_REG(7, 8), .ra_kind = SF_K_UNDEF)), SF_STOP_COMPLETE);
	EXPECT_EQ(step(RULE(CFA_REG(7, 8), .ra_kind = SF_K_NONE)), SF_STOP_NO_RULE);
	EXPECT_EQ(step(RULE(CFA_REG(7, 8), .ra_kind = SF_K_SAME)), SF_STOP_NO_RULE);
	EXPECT_EQ(step(RULE(.cfa_kind = SF_K_NONE, RA_AT_CFA)), SF_STOP_NO_RULE);
	words[0] = 0;
	EXPECT_EQ(step(RULE(CFA_REG(7, 8), RA_AT_CFA)), SF_STOP_ZERO_RA);
}

/* The CFA is in an array of words on the stack, of which a register holds the length. */
TEST(step_rule_indexed)
{
	const struct sf_rule rule = RULE(.cfa_kind = SF_K_INDEX_MEM, .cfa_reg = 9, .cfa_off = 8,
					 .cfa_off2 = 16, RA_AT_CFA);

	fresh(STACK, 0xf0);
	r.r[9] = 2;
	words[3] = STACK + 24;
	EXPECT_EQ(step(rule), SF_STEP_GO);
	expect(0x1004, STACK + 40, 0xf0, SF_REGS_RA);
	fresh(STACK, 0xf0);
	r.r[9] = 1ull << 40;
	EXPECT_EQ(step(rule), SF_STOP_READ_FAULT);
	/* The index is not tracked: its innermost value is tried, and the CFA must be near. */
	fresh(STACK, 0xf0);
	r.flags = SF_REGS_RA;
	r.r[9] = 2;
	words[3] = STACK + 24;
	EXPECT_EQ(step(rule), SF_STEP_GO);
	expect(0x1004, STACK + 40, 0xf0, SF_REGS_RA | SF_REGS_GUESS);
	fresh(STACK, 0xf0);
	r.flags = SF_REGS_RA;
	r.r[9] = 2;
	words[3] = STACK - 16;
	EXPECT_EQ(step(rule), SF_STOP_REG_UNKNOWN);
}

/* A register that is not tracked: its innermost value is tried, and the result must be checked. */
TEST(step_rule_same_value)
{
	fresh(STACK, 0xf0);
	r.flags = SF_REGS_RA;
	r.r[11] = STACK + 32;
	EXPECT_EQ(step(RULE(CFA_REG(11, 8), RA_AT_CFA)), SF_STEP_GO);
	expect(0x1004, STACK + 40, 0xf0, SF_REGS_RA | SF_REGS_GUESS);
	/* Not above the last CFA; too far; a return address of 0 */
	r.r[11] = STACK + 32;
	EXPECT_EQ(step(RULE(CFA_REG(11, 8), RA_AT_CFA)), SF_STOP_REG_UNKNOWN);
	r.r[11] = STACK + 40 + SF_GUESS_MAX;
	EXPECT_EQ(step(RULE(CFA_REG(11, 8), RA_AT_CFA)), SF_STOP_REG_UNKNOWN);
	fresh(STACK, 0xf0);
	r.flags = SF_REGS_RA;
	r.r[11] = STACK + 32;
	words[4] = 0;
	EXPECT_EQ(step(RULE(CFA_REG(11, 8), RA_AT_CFA)), SF_STOP_REG_UNKNOWN);
	/* Only for the CFA. The process's entry is not guessed. */
	fresh(STACK, 0xf0);
	r.flags = SF_REGS_RA;
	r.r[11] = STACK + 32;
	EXPECT_EQ(step(RULE(CFA_REG(11, 8), .ra_kind = SF_K_REG, .ra_reg = 10)),
		  SF_STOP_REG_UNKNOWN);
	r.entry_sp = STACK + 32;
	EXPECT_EQ(step(RULE(CFA_REG(11, 8), RA_AT_CFA)), SF_STOP_REG_UNKNOWN);
}

/*
 * Behind clone's system call: the caller's thread goes on, the new one, which gets 0, begins there.
 */
TEST(step_rule_child)
{
	struct sf_rule rule = RULE(CFA_REG(7, 8), RA_AT_CFA, .fp_kind = SF_K_SAME,
				   .flags = SF_RULE_CHILD);

	fresh(STACK, 0xf0);
	EXPECT_EQ(step(rule), SF_STEP_GO);
	expect(0x1000, STACK + 8, 0xf0, SF_REGS_RA);
	fresh(STACK, 0xf0);
	r.r[0] = 0;
	EXPECT_EQ(step(rule), SF_STOP_COMPLETE);
	/* Nothing is known of the register in a caller. */
	fresh(STACK, 0xf0);
	r.r[0] = 0;
	r.flags = SF_REGS_RA;
	EXPECT_EQ(step(rule), SF_STEP_GO);
}

TEST(step_rule_fp)
{
	fresh(STACK, STACK + 40);
	EXPECT_EQ(step(RULE(CFA_REG(7, 32), RA_AT_CFA, .fp_kind = SF_K_CFA_MEM, .fp_off = -32)),
		  SF_STEP_GO);
	expect(0x1003, STACK + 32, 0x1000, SF_REGS_RA);
	fresh(STACK, STACK + 40);
	EXPECT_EQ(step(RULE(CFA_REG(7, 32), RA_AT_CFA, .fp_kind = SF_K_REG_MEM, .fp_reg = 6)),
		  SF_STEP_GO);
	EXPECT_EQ(r.fp, 0x1005);
	fresh(STACK, STACK + 40);
	EXPECT_EQ(step(RULE(CFA_REG(7, 32), RA_AT_CFA, .fp_kind = SF_K_CFA, .fp_off = -16)),
		  SF_STEP_GO);
	EXPECT_EQ(r.fp, STACK + 16);
	/* A lost frame pointer leads nowhere, whatever the register holds. */
	EXPECT_EQ(step(RULE(CFA_REG(7, 8), RA_AT_CFA, .fp_kind = SF_K_UNDEF)), SF_STEP_GO);
	EXPECT_EQ(r.fp, STEP_FP_LOST);
	EXPECT_EQ(step(RULE(CFA_REG(6, 16), RA_AT_CFA)), SF_STOP_BAD_CFA);
	fresh(STACK, STACK + 40);
	EXPECT_EQ(step(RULE(CFA_REG(7, 32), RA_AT_CFA, .fp_kind = SF_K_CFA_MEM, .fp_off = -64)),
		  SF_STOP_READ_FAULT);
}

/* A realigned stack: the CFA is where *(rbp - 8) points. */
TEST(step_rule_deref)
{
	fresh(STACK, STACK + 40);
	words[4] = STACK + 96;
	EXPECT_EQ(step(RULE(CFA_MEM(6, -8, 0), RA_AT_CFA, .fp_kind = SF_K_REG_MEM, .fp_reg = 6)),
		  SF_STEP_GO);
	expect(0x100b, STACK + 96, 0x1005, SF_REGS_RA);
	/* Hand-written code: *(rsp + 152) + 8. */
	fresh(STACK, 0xf0);
	words[19] = STACK + 200;
	EXPECT_EQ(step(RULE(CFA_MEM(7, 152, 8), RA_AT_CFA)), SF_STEP_GO);
	expect(0x1019, STACK + 208, 0xf0, SF_REGS_RA);
	/* Switching to another stack, which may lie lower. */
	fresh(STACK + 256, STACK + 264);
	words[33] = STACK + 32;
	EXPECT_EQ(step(RULE(CFA_MEM(6, 0, 0), RA_AT_CFA)), SF_STEP_GO);
	expect(0x1003, STACK + 32, STACK + 264, SF_REGS_RA);
	fresh(STACK, 0x10);
	EXPECT_EQ(step(RULE(CFA_MEM(6, 0, 0), RA_AT_CFA)), SF_STOP_READ_FAULT);
}

TEST(step_rule_bad_cfa)
{
	fresh(STACK + 64, STACK);
	EXPECT_EQ(step(RULE(CFA_REG(6, 64), RA_AT_CFA)), SF_STOP_BAD_CFA);
	EXPECT_EQ(step(RULE(CFA_REG(7, -8), RA_AT_CFA)), SF_STOP_BAD_CFA);
	expect(0x401000, STACK + 64, STACK, SF_REGS_FULL | SF_REGS_BX);
}

TEST(step_rule_plt)
{
	const struct sf_rule plt = RULE(CFA_REG(7, 8), .cfa_off2 = 8, RA_AT_CFA,
					.fp_kind = SF_K_SAME, .flags = SF_RULE_PLT, .plt_at = 11);

	fresh(STACK, 0xf0);
	EXPECT_EQ(step_at(0x1020, plt, 0), SF_STEP_GO);
	expect(0x1000, STACK + 8, 0xf0, SF_REGS_RA);
	fresh(STACK, 0xf0);
	EXPECT_EQ(step_at(0x102a, plt, 0), SF_STEP_GO);
	EXPECT_EQ(r.sp, STACK + 8);
	fresh(STACK, 0xf0);
	EXPECT_EQ(step_at(0x102b, plt, 0), SF_STEP_GO);
	expect(0x1001, STACK + 16, 0xf0, SF_REGS_RA);
	fresh(STACK, 0xf0);
	EXPECT_EQ(step_at(0x102f, plt, 0), SF_STEP_GO);
	EXPECT_EQ(r.sp, STACK + 16);
}

TEST(step_rule_entry)
{
	fresh(STACK, 0xf0);
	r.entry_sp = STACK + 8;
	EXPECT_EQ(step(RULE(CFA_REG(7, 16), RA_AT_CFA)), SF_STOP_COMPLETE);
	/* An RA that is not on top of the frame says nothing about argc. */
	fresh(STACK, 0xf0);
	r.entry_sp = STACK + 8;
	EXPECT_EQ(step(RULE(CFA_REG(7, 16), .ra_kind = SF_K_REG, .ra_reg = 2)), SF_STEP_GO);
}

TEST(step_rule_rbx)
{
	const struct sf_rule saves = RULE(CFA_REG(7, 24), RA_AT_CFA, .bx_kind = SF_K_CFA_MEM,
					  .bx_off = -24);
	const struct sf_rule keeps = RULE(CFA_REG(7, 8), RA_AT_CFA, .bx_kind = SF_K_SAME);
	const struct sf_rule loses = RULE(CFA_REG(7, 8), RA_AT_CFA, .bx_kind = SF_K_NONE);

	fresh(STACK, 0xf0);
	EXPECT_EQ(step_at(0, saves, SF_MODULE_TRACKS_BX), SF_STEP_GO);
	EXPECT_EQ(r.bx, 0x1000);
	EXPECT_EQ(r.flags, SF_REGS_RA | SF_REGS_BX);
	EXPECT_EQ(step_at(0, keeps, SF_MODULE_TRACKS_BX), SF_STEP_GO);
	EXPECT_EQ(r.bx, 0x1000);
	EXPECT_EQ(r.flags, SF_REGS_RA | SF_REGS_BX);
	r.bx = STACK + 120;
	EXPECT_EQ(step_at(0, RULE(CFA_REG(3, 8), RA_AT_CFA, .bx_kind = SF_K_SAME),
			  SF_MODULE_TRACKS_BX),
		  SF_STEP_GO);
	expect(0x100f, STACK + 128, 0xf0, SF_REGS_RA | SF_REGS_BX);
	EXPECT_EQ(step_at(0, loses, SF_MODULE_TRACKS_BX), SF_STEP_GO);
	EXPECT_EQ(r.flags, SF_REGS_RA);
	EXPECT_EQ(step_at(0, RULE(CFA_REG(3, 8), RA_AT_CFA), SF_MODULE_TRACKS_BX),
		  SF_STOP_REG_UNKNOWN);
	/* Lost once, it is not known again by being "same". */
	EXPECT_EQ(step_at(0, keeps, SF_MODULE_TRACKS_BX), SF_STEP_GO);
	EXPECT_EQ(r.flags, SF_REGS_RA);
	/* "Same" means nothing in a module whose packed rows do not keep it. */
	fresh(STACK, 0xf0);
	EXPECT_EQ(step_at(0, keeps, 0), SF_STEP_GO);
	EXPECT_EQ(r.flags, SF_REGS_RA);
	/* A slot that cannot be read costs rbx, not the stack. */
	fresh(STACK, 0xf0);
	unreadable = STACK;
	EXPECT_EQ(step_at(0, saves, SF_MODULE_TRACKS_BX), SF_STEP_GO);
	EXPECT_EQ(r.flags, SF_REGS_RA);
}

/* ---- Signal frames ---- */

/*
 * glibc's __restore_rt: the saved rsp is at rsp + 160, then rip; r8 is the first of the
 * registers, at rsp + 40.
 */
TEST(step_rule_sigreturn)
{
	/* r8..r15 rdi rsi rbp rbx rdx rax rcx rsp rip by DWARF number */
	static const uint8_t order[15] = { 8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2 };
	const struct sf_rule restorer = RULE(CFA_MEM(7, 160, 0), .ra_kind = SF_K_REG_MEM,
					     .ra_reg = 7, .ra_off = 168, .fp_kind = SF_K_REG_MEM,
					     .fp_reg = 7, .fp_off = 120, .flags = SF_RULE_SIGNAL);

	fresh(STACK, 0xf0);
	r.flags = SF_REGS_RA;
	for (int i = 0; i < 15; i++)
		words[5 + i] = 0x500 + order[i];
	/* The interrupted stack may be anywhere: this handler ran on an alternate one */
	words[20] = STACK - 0x10000;
	words[21] = 0x402000;
	EXPECT_EQ(step(restorer), SF_STEP_GO);
	expect(0x402000, STACK - 0x10000, 0x506, SF_REGS_FULL | SF_REGS_BX);
	EXPECT_EQ(r.bx, 0x503);
	for (unsigned int i = 0; i < 15; i++)
		EXPECT_EQ(r.r[i], i == 7 ? words[20] : 0x500 + i);
	EXPECT_EQ(r.r[15], 0x50f);
	fresh(STACK, 0xf0);
	unreadable = STACK + 80;
	EXPECT_EQ(step(restorer), SF_STOP_READ_FAULT);
}

/*
 * A signal frame of another shape, the vDSO's or one of hand-made assembly: the pc is not after a
 * call.
 */
TEST(step_rule_signal_flag)
{
	fresh(STACK, 0xf0);
	EXPECT_EQ(step(RULE(CFA_REG(7, 16), RA_AT_CFA, .flags = SF_RULE_SIGNAL)), SF_STEP_GO);
	expect(0x1001, STACK + 16, 0xf0, 0);
	/* May lie lower */
	EXPECT_EQ(step(RULE(CFA_REG(7, -8), RA_AT_CFA, .flags = SF_RULE_SIGNAL)), SF_STEP_GO);
	EXPECT_EQ(r.sp, STACK + 8);
}

/* ---- Call instructions ---- */

/* The bytes before a return address, of which an instruction is the last. */
static uint64_t before(const uint8_t *insn, size_t len)
{
	uint64_t b = 0x9090909090909090ull;

	for (size_t i = 0; i < len; i++)
		b = b >> 8 | (uint64_t)insn[i] << 56;
	return b;
}

#define INSN(...) before((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

TEST(ends_with_call)
{
	const uint64_t calls[] = {
		INSN(0xff, 0xd0),			     /* *%rax */
		INSN(0x41, 0xff, 0xd4),			     /* *%r12 */
		INSN(0x3e, 0xff, 0xd7),			     /* notrack *%rdi */
		INSN(0xff, 0x10),			     /* *(%rax) */
		INSN(0x41, 0xff, 0x55, 0),		     /* *(%r13) */
		INSN(0x41, 0xff, 0x14, 0x24),		     /* *(%r12) */
		INSN(0xff, 0x14, 0xc5, 0, 0, 0, 0),	     /* *(,%rax,8) */
		INSN(0xff, 0x53, 8),			     /* *8(%rbx) */
		INSN(0xff, 0x54, 0x24, 8),		     /* *8(%rsp) */
		INSN(0x41, 0xff, 0x54, 0xcc, 8),	     /* *8(%r12,%rcx,8) */
		INSN(0xff, 0x93, 0, 0x10, 0, 0),	     /* *4096(%rbx) */
		INSN(0xff, 0x94, 0x24, 0, 0x10, 0, 0),	     /* *4096(%rsp) */
		INSN(0x41, 0xff, 0x94, 0xcd, 0, 0x10, 0, 0), /* *4096(%r13,%rcx,8) */
		INSN(0xff, 0x15, 0, 0x10, 0, 0),	     /* *4096(%rip) */
		INSN(0x64, 0xff, 0x14, 0x25, 0x10, 0, 0, 0), /* *%fs:16 */
		INSN(0xe8, 0xfb, 0x0f, 0, 0),
		INSN(0x67, 0xe8, 1, 0, 0, 0), /* rel32 */
	};
	const uint64_t others[] = {
		INSN(0xe8, 0, 0, 0, 0),	      /* of the next function, before which it stands */
		INSN(0xff, 0xe0),	      /* jmp *%rax */
		INSN(0xe9, 0xfb, 0x0f, 0, 0), /* jmp rel32 */
		INSN(0xff, 0x25, 8, 0, 0, 0), /* jmp *8(%rip) */
		INSN(0xff, 0x70, 8),	      /* push 8(%rax) */
		INSN(0xff, 0x40, 8),	      /* incl 8(%rax) */
		INSN(0xff, 0x58, 8),	      /* lcall *8(%rax) */
		INSN(0xb8, 0xe8, 0, 0, 0),    /* mov $0xe8, %eax */
		INSN(0xff, 0x15, 0, 0x10, 0), /* a call that is cut off */
		INSN(0xff, 0xd0, 0x90),	      /* a call and more */
		INSN(0xc3),
		INSN(0x0f, 0x05), /* ret, syscall */
		INSN(0x5d),
		0,
		~0ull, /* pop %rbp */
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		EXPECT(ends_with_call(calls[i]));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		EXPECT(!ends_with_call(others[i]));
}
