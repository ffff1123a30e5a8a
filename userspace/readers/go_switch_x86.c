/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The x86-64 part of go_switch.c. Each function is searched for the instructions that read or write
 * what is needed, in their order. At a height of sp of 8 or more, FP is saved below RA.
 */
#include <errno.h>

#include "readers/go_switch_arch.h"
#include "rows/pack_rule.h"

/* The rest of a pattern is the number. Patterns have NUL bytes, hence sizeof. */
#define NEXT(c, bytes, size, ret) go_code_next(c, bytes, sizeof(bytes) - 1, size, ret)

static struct rule at_cfa(int32_t off)
{
	return (struct rule){ .kind = RULE_CFA_MEM, .off = off };
}

static struct rule of_reg(enum rule_kind kind, uint8_t reg, int32_t off)
{
	return (struct rule){ .kind = kind, .reg = reg, .off = off };
}

/* A frame whose sp was `cfa` before the stacks changed, at that height. */
static struct row frame_row(struct rule cfa, int32_t height)
{
	struct row row = { .cfa = cfa, .ra = at_cfa(-8), .fp = { .kind = RULE_SAME } };

	if (cfa.kind == RULE_REG_MEM)
		row.cfa_off2 = height + 8;
	else
		row.cfa.off += height + 8;
	if (height >= 8)
		row.fp = at_cfa(-16);
	return row;
}

/* The sf_go_rule of a frame at that height. */
static struct sf_go_rule frame_rule(const struct go_search *s, enum sf_go_op op, int32_t height)
{
	struct sf_go_rule rule = s->layout;

	rule.op = height >= 0 ? op : SF_GO_NONE;
	rule.cfa_off = height + 8;
	rule.ra_off = -8;
	rule.fp_off = height >= 8 ? -16 : 0;
	return rule;
}

/*
 * mov %fs:(tls), %rax; or in two instructions, with tls in %rcx: a number, or in shared libraries a
 * word of the GOT.
 */
static bool thread_variable(struct go_search *s, struct go_code *c, struct go_layout *ret)
{
	const uint64_t start = s->fns[GO_SYSTEMSTACK].start;
	int32_t tls;

	if (NEXT(c, "\x64\x48\x8b\x04\x25", 4, &ret->tls) ||
	    (NEXT(c, "\x48\xc7\xc1", 4, &ret->tls) && NEXT(c, "\x64\x48\x8b\x01", 0, NULL)))
		return true;
	if (!NEXT(c, "\x48\x8b\x0d", 4, &tls))
		return false;
	ret->tls = go_file_offset(s, start) + (int32_t)(go_code_pc(c) - start) + tls;
	ret->tls_slot = ret->tls > 0;
	return ret->tls_slot && NEXT(c, "\x64\x48\x8b\x01", 0, NULL);
}

/*
 * mov %fs:(tls), %rax; mov g_m(%rax), %rbx; cmp m_curg(%rbx), %rax; call; ...; mov sp(%rax), %rsp
 */
static bool find_layout(struct go_search *s, struct go_code *c, struct go_layout *ret)
{
	if (!thread_variable(s, c, ret) || !NEXT(c, "\x48\x8b\x58", 1, &ret->m) ||
	    !NEXT(c, "\x48\x3b\x83", 4, &ret->curg) || !NEXT(c, "\xe8", 4, NULL))
		return false;
	ret->start = go_code_pc(c);
	return NEXT(c, "\x48\x8b\x60", 1, &ret->sched);
}

/* Moves past the next of two forms of a call. */
static bool called(struct go_code *c, const char a[2], size_t len_a, const char b[2], size_t len_b)
{
	struct go_code other = *c;
	bool found = go_code_next(&other, b, len_b, 0, NULL);

	if (go_code_next(c, a, len_a, 0, NULL) && (!found || c->at.pos < other.at.pos))
		return true;
	*c = other;
	return found;
}

/* mov %rdi, %rsp; call *reg; ...; mov sp(%rsi), %rsp */
static bool find_callback(struct go_code *c, struct go_callback *ret)
{
	struct go_code call;

	if (!NEXT(c, "\x48\x89\xfc", 0, NULL))
		return false;
	call = *c;
	*ret = (struct go_callback){ .start = go_code_pc(c) };
	if (!called(&call, "\xff\xd0", 2, "\xff\xd2", 2))
		return false;
	ret->returns = go_code_pc(&call);
	return NEXT(c, "\x48\x8b\x66", 1, NULL);
}

static bool find_call(struct go_code *c)
{
	return NEXT(c, "\xe8", 4, NULL);
}

static bool find_g0(struct go_code *c, enum go_name name, struct sf_go_rule *rule)
{
	(void)rule;
	return go_code_next(c, name == GO_MCALL ? "\x49\x8b\x66" : "\x48\x8b\x63", 3, 1, NULL);
}

/* mov %reg, slot(%rsp), with reg as in the instruction's bytes. */
static bool stored(struct go_code *c, const char with_offset[4], const char at_rsp[4],
		   int32_t *slot)
{
	struct go_code plain = *c, other = *c;
	bool found = go_code_next(&other, with_offset, 4, 1, slot);

	if (go_code_next(&plain, at_rsp, 4, 0, NULL) && (!found || plain.at.pos < other.at.pos)) {
		*slot = 0;
		*c = plain;
		return true;
	}
	*c = other;
	return found;
}

/*
 * Moves into the call of C: the address of an instruction differs from that of the byte before the
 * return address.
 */
static bool called_c(struct go_code *c)
{
	bool found = called(c, "\xff\xd0", 2, "\xe8", 1);

	c->at.pos -= found && c->at.base[c->at.pos - 1] == 0xd0;
	return found;
}

/* Calls of C when already on the thread's stack: sp is aligned, and saved in the frame. */
static void asmcgocall_here(struct go_search *s, struct go_code *c)
{
	struct row row;
	int32_t slot, height;
	uint64_t start;

	if (!NEXT(c, "\x48\x83\xec", 1, NULL))
		return;
	height = go_height_at(s, GO_ASMCGOCALL, go_code_pc(c) - 4);
	start = go_code_pc(c);
	if (height < 0 || !stored(c, "\x48\x89\x54\x24", "\x48\x89\x14\x24", &slot) || !called_c(c))
		return;
	row = frame_row(of_reg(RULE_REG, X86_RDX, 0), height);
	go_add_row(s, start, go_code_pc(c), &row);
	start = go_code_pc(c);
	if (!NEXT(c, "\x48\x89\xf4", 0, NULL))
		return;
	row = frame_row(of_reg(RULE_REG_MEM, X86_RSP, slot), height);
	go_add_row(s, start, go_code_pc(c), &row);
}

/*
 * mov sp(%rsi), %rsp; ...; mov %rdi, g(%rsp); ...; mov %rdi, depth(%rsp); call; mov %rsi, %rsp
 */
static void asmcgocall(struct go_search *s)
{
	int32_t g, depth, height;
	struct sf_go_rule rule;
	struct go_code c;
	uint64_t start;

	if (!go_code_open(s, GO_ASMCGOCALL, &c))
		return;
	if (NEXT(&c, "\x48\x8b\x66", 1, NULL)) {
		start = go_code_pc(&c);
		height = go_height_at(s, GO_ASMCGOCALL, start);
		rule = frame_rule(s, SF_GO_CALL, height);
		if (stored(&c, "\x48\x89\x7c\x24", "\x48\x89\x3c\x24", &g) &&
		    stored(&c, "\x48\x89\x7c\x24", "\x48\x89\x3c\x24", &depth) && called_c(&c) &&
		    rule.op) {
			/* The goroutine's sp is where systemstack has it until C is called. */
			rule.op = SF_GO_GOROUTINE;
			go_add_switch(s, start, go_code_pc(&c), &rule);
			start = go_code_pc(&c);
			rule.op = SF_GO_CALL;
			rule.call_g = (uint8_t)g;
			rule.call_depth = (uint8_t)depth;
			if (NEXT(&c, "\x48\x89\xf4", 0, NULL)) {
				go_add_switch(s, start, go_code_pc(&c), &rule);
				asmcgocall_here(s, &c);
			}
		}
	}
	go_code_close(&c);
}

/*
 * Functions that call the vDSO: mov %rdx, vdso_sp(%rbx); mov sp(%rdx), %rsp; ...; mov %r12, %rsp;
 * and after their return a part without the vDSO.
 */
static void vdso(struct go_search *s, enum go_name name)
{
	const struct go_table *t = &s->rows->table;
	struct go_values h = go_heights_of(t, &s->fns[name]);
	struct sf_go_rule rule;
	uint64_t start, from;
	bool returned = false;
	int32_t sp, height;
	struct go_code c;

	if (!go_code_open(s, name, &c))
		return;
	if (NEXT(&c, "\x48\x89\x93", 4, &sp) && NEXT(&c, "\x48\x8b\x62", 1, NULL)) {
		start = go_code_pc(&c);
		height = go_height_at(s, name, start);
		rule = frame_rule(s, SF_GO_VDSO, height);
		rule.m_off = sp;
		if (NEXT(&c, "\x4c\x89\xe4", 0, NULL)) {
			go_add_switch(s, start, go_code_pc(&c), &rule);
			while (go_values_next(t, &h, &from)) {
				if (returned && h.value == height)
					go_add_switch(s, from, h.pc, &rule);
				returned |= from >= go_code_pc(&c) && !h.value;
			}
		}
	}
	go_code_close(&c);
}

/* mov (%rbx), %rsp; ...; mov 8(%rbx), %rbx; jmp *%rbx: as if it had returned there. */
static void gogo(struct go_search *s)
{
	struct row row = { .cfa = of_reg(RULE_REG, X86_RSP, 0),
			   .ra = of_reg(RULE_REG_MEM, X86_RBX, 8),
			   .fp = { .kind = RULE_SAME } };
	struct go_code c;
	uint64_t start;

	if (!go_code_open(s, GO_GOGO, &c))
		return;
	if (NEXT(&c, "\x48\x8b\x23", 0, NULL)) {
		start = go_code_pc(&c);
		if (NEXT(&c, "\x48\x8b\x5b\x08", 0, NULL)) {
			go_add_row(s, start, go_code_pc(&c) - 3, &row);
			row.ra = of_reg(RULE_REG, X86_RBX, 0);
			go_add_row(s, go_code_pc(&c) - 3, c.end, &row);
		}
	}
	go_code_close(&c);
}

/* syscall; ...; mov %rsi, %rsp: the rest is the new thread's. */
static void clone_child(struct go_search *s)
{
	struct row row = frame_row(of_reg(RULE_REG, X86_RSP, 0), 0);
	const struct row outermost = { .ra = { .kind = RULE_UNDEF } };
	struct go_code c;
	uint64_t start;

	if (!go_code_open(s, GO_CLONE, &c))
		return;
	if (NEXT(&c, "\x0f\x05", 0, NULL)) {
		start = go_code_pc(&c);
		row.flags = ROW_CHILD;
		if (NEXT(&c, "\x48\x89\xf4", 0, NULL)) {
			go_add_row(s, start, go_code_pc(&c) - 3, &row);
			go_add_row(s, go_code_pc(&c) - 3, c.end, &outermost);
		}
	}
	go_code_close(&c);
}

static void add_calls(struct go_search *s)
{
	asmcgocall(s);
	vdso(s, GO_NANOTIME);
	vdso(s, GO_WALLTIME);
	vdso(s, GO_TIME_NOW);
	vdso(s, GO_GETRANDOM);
}

static void add_jumps(struct go_search *s)
{
	gogo(s);
	clone_child(s);
}

const struct go_arch go_arch_x86 = {
	.find_layout = find_layout,
	.find_callback = find_callback,
	.find_call = find_call,
	.find_g0 = find_g0,
	.frame = frame_rule,
	.add_calls = add_calls,
	.add_jumps = add_jumps,
	.pushes_ra = true,
};
