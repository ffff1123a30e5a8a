/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The AArch64 part of go_switch.c. RA is at sp in a function with a height, and FP below it. g is
 * in x28, which C code may change; programs with C code have it in thread-local storage, too.
 */
#include "readers/go_switch_arch.h"

#define A64_SP 31
#define A64_LR 30

/* Instructions by mask and value. Offsets are in units of 8 bytes, from bit 10 on. */
#define LDR(t, n)   0xffc003ff, (0xf9400000 | (n) << 5 | (t))
#define STR(t, n)   0xffc003ff, (0xf9000000 | (n) << 5 | (t))
#define MOV_SP(n)   0xffffffff, (0x9100001f | (n) << 5)
#define BL	    0xfc000000, 0x94000000
#define BLR	    0xfffffc1f, 0xd63f0000
#define MRS_TP	    0xffffffe0, 0xd53bd040
#define MOVZ(t)	    0xffe0001f, (0xd2800000 | (t))
#define MOVZ_16(t)  0xffe0001f, (0xd2a00000 | (t))
#define MOVK(t)	    0xffe0001f, (0xf2800000 | (t))
#define IMM12(insn) ((int32_t)((insn) >> 10 & 0xfff) * 8)
#define IMM16(insn) ((int32_t)((insn) >> 5 & 0xffff))

/* Moves past the next such instruction. False: there is none; the place stays. */
static bool next(struct go_code *c, uint32_t mask, uint32_t value, uint32_t *ret)
{
	struct bytes at = c->at;

	while (bytes_left(&at) >= 4) {
		uint32_t insn = bytes_u32(&at);

		if ((insn & mask) != value)
			continue;
		if (ret)
			*ret = insn;
		c->at = at;
		return true;
	}
	return false;
}

static struct sf_go_rule frame_rule(const struct go_search *s, enum sf_go_op op, int32_t height)
{
	struct sf_go_rule rule = s->layout;

	rule.op = height > 0 ? op : SF_GO_NONE;
	rule.cfa_off = height;
	rule.ra_off = -height;
	rule.fp_off = -height - 8;
	return rule;
}

static struct row frame_row(struct rule cfa, int32_t height)
{
	struct row row = { .cfa = cfa,
			   .ra = { .kind = RULE_CFA_MEM, .off = -height },
			   .fp = { .kind = RULE_CFA_MEM, .off = -height - 8 } };

	if (cfa.kind == RULE_REG_MEM)
		row.cfa_off2 = height;
	else
		row.cfa.off += height;
	return row;
}

/* mrs x0, tpidr_el0; mov x27, tls, in one or two instructions. 0: the program has no C code. */
static int32_t find_tls(const struct go_search *s)
{
	uint32_t high = 0, low;
	struct go_code c;
	int32_t tls = 0;

	if (!s->fns[GO_CROSSCALL].end || !go_code_open(s, GO_LOAD_G, &c))
		return 0;
	if (next(&c, MRS_TP, NULL)) {
		if (next(&c, MOVZ(27), &low))
			tls = IMM16(low);
		else if (next(&c, MOVZ_16(27), &high) && next(&c, MOVK(27), &low) && !IMM16(high))
			tls = IMM16(low);
	}
	go_code_close(&c);
	return tls;
}

/* ldr x4, [x28, m]; ldr x6, [x4, curg]; ...; mov sp, x3; ...; ldr x0, [x28, sp]; mov sp, x0 */
static bool find_layout(struct go_search *s, struct go_code *c, struct go_layout *ret)
{
	uint32_t m, curg, sched;

	if (!next(c, LDR(4, 28), &m) || !next(c, LDR(6, 4), &curg) || !next(c, MOV_SP(3), NULL))
		return false;
	ret->start = go_code_pc(c);
	if (!next(c, LDR(0, 28), &sched) || !next(c, MOV_SP(0), NULL))
		return false;
	ret->m = IMM12(m);
	ret->curg = IMM12(curg);
	ret->sched = IMM12(sched);
	ret->tls = find_tls(s);
	return true;
}

/* str x4, [sp, slot]; mov sp, x4; blr; ...; mov sp, x0 */
static bool find_callback(struct go_code *c, struct go_callback *ret)
{
	struct go_code call;
	uint32_t slot;

	if (!next(c, STR(4, A64_SP), &slot) ||
	    (!next(c, MOV_SP(4), NULL) && !next(c, MOV_SP(0), NULL)))
		return false;
	call = *c;
	*ret = (struct go_callback){ .start = go_code_pc(c), .g = IMM12(slot) };
	if (!next(&call, BLR, NULL))
		return false;
	ret->returns = go_code_pc(&call);
	return next(c, MOV_SP(0), NULL);
}

static bool find_call(struct go_code *c)
{
	return next(c, BL, NULL);
}

static bool find_g0(struct go_code *c, enum go_name name, struct sf_go_rule *rule)
{
	struct go_code saved = *c;
	uint32_t lr;

	/* The RA of morestack's caller is still in LR there. */
	if (name == GO_MORESTACK && next(&saved, STR(3, 28), &lr))
		rule->fp_off = IMM12(lr);
	return next(c, MOV_SP(0), NULL);
}

/*
 * Calls of C when already on the thread's stack: mov sp, x13; str x2, [sp, slot]; blr; mov sp, x2
 */
static void asmcgocall_here(struct go_search *s, struct go_code *c, int32_t height)
{
	uint32_t slot;
	uint64_t start;
	struct row row;

	if (!next(c, MOV_SP(13), NULL))
		return;
	start = go_code_pc(c);
	if (!next(c, STR(2, A64_SP), &slot) || !next(c, BLR, NULL))
		return;
	row = frame_row((struct rule){ .kind = RULE_REG, .reg = 2 }, height);
	go_add_row(s, start, go_code_pc(c) - 3, &row);
	start = go_code_pc(c) - 3;
	if (!next(c, MOV_SP(2), NULL))
		return;
	row = frame_row((struct rule){ .kind = RULE_REG_MEM, .reg = A64_SP, .off = IMM12(slot) },
			height);
	go_add_row(s, start, go_code_pc(c), &row);
}

/* mov sp, x0; ...; str x4, [sp, g]; ...; str x4, [sp, depth]; blr; ...; mov sp, x5 */
static void asmcgocall(struct go_search *s)
{
	struct sf_go_rule rule;
	uint32_t g, depth;
	struct go_code c;
	uint64_t start;
	int32_t height;

	if (!go_code_open(s, GO_ASMCGOCALL, &c))
		return;
	if (next(&c, MOV_SP(0), NULL)) {
		start = go_code_pc(&c);
		height = go_height_at(s, GO_ASMCGOCALL, start);
		rule = frame_rule(s, SF_GO_GOROUTINE, height);
		if (next(&c, STR(4, A64_SP), &g) && next(&c, STR(4, A64_SP), &depth) &&
		    next(&c, BLR, NULL) && height > 0) {
			go_add_switch(s, start, go_code_pc(&c) - 3, &rule);
			start = go_code_pc(&c) - 3;
			rule.op = SF_GO_CALL;
			rule.call_g = (uint8_t)IMM12(g);
			rule.call_depth = (uint8_t)IMM12(depth);
			if (next(&c, MOV_SP(5), NULL)) {
				go_add_switch(s, start, go_code_pc(&c), &rule);
				asmcgocall_here(s, &c, height);
			}
		}
	}
	go_code_close(&c);
}

/* str x2, [x21, vdso_sp]; mov sp, x1; ...; mov sp, x20 */
static void vdso(struct go_search *s, enum go_name name)
{
	struct sf_go_rule rule;
	struct go_code c;
	uint64_t start;
	uint32_t sp;

	if (!go_code_open(s, name, &c))
		return;
	if (next(&c, STR(2, 21), &sp) && next(&c, MOV_SP(1), NULL)) {
		start = go_code_pc(&c);
		rule = frame_rule(s, SF_GO_VDSO, go_height_at(s, name, start));
		rule.m_off = IMM12(sp);
		if (next(&c, MOV_SP(20), NULL))
			go_add_switch(s, start, go_code_pc(&c), &rule);
	}
	go_code_close(&c);
}

/* mov sp, x0; ...; ldr x6, [x5, 8]; br x6 */
static void gogo(struct go_search *s)
{
	struct row row = { .cfa = { .kind = RULE_REG, .reg = A64_SP },
			   .ra = { .kind = RULE_REG_MEM, .reg = 5, .off = 8 },
			   .fp = { .kind = RULE_SAME } };
	struct go_code c;

	if (!go_code_open(s, GO_GOGO, &c))
		return;
	if (next(&c, MOV_SP(0), NULL))
		go_add_row(s, go_code_pc(&c), c.end, &row);
	go_code_close(&c);
}

static void add_calls(struct go_search *s)
{
	asmcgocall(s);
	vdso(s, GO_NANOTIME);
	vdso(s, GO_WALLTIME);
}

const struct go_arch go_arch_arm64 = {
	.find_layout = find_layout,
	.find_callback = find_callback,
	.find_call = find_call,
	.find_g0 = find_g0,
	.frame = frame_rule,
	.add_calls = add_calls,
	.add_jumps = gogo,
};
