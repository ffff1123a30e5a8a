/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Steps of Go's runtime from one stack to another (struct sf_go_rule). Everything that is read here
 * is the program's own memory, so it may be wrong: m must be that of both ends. Only files with
 * such rules come here.
 */
#ifndef SFBPF_GO_STEP_BPF_H
#define SFBPF_GO_STEP_BPF_H

#include "core/memory.bpf.h"
#include "core/space.bpf.h"

#define GO_STACK_HI 8 /* bytes: where the upper end of its stack is in a g */

static __always_inline bool go_word(u64 addr, u64 *val)
{
	return !copy_user(val, sizeof(*val), addr) && *val;
}

/* The thread's m. */
static __always_inline bool go_m(struct sf_scratch *s, const struct sf_go_rule *rule, u64 *m)
{
	u64 g, tls = (u64)(long long)rule->tls;

	/* A shared library has the offset in a word that the dynamic linker has set */
	if (rule->tls_slot && !go_word((u64)(u32)rule->tls - vma_at(s, s->vma_last)->delta, &tls))
		return false;
#if defined(__TARGET_ARCH_arm64)
	if (!rule->tls)
		g = s->regs.r[28];
	else
#endif
		if (!go_word(user_tp() + tls, &g))
		return false;
	return go_word(g + rule->g_m, m);
}

/* The goroutine of m. */
static __always_inline bool go_curg(const struct sf_go_rule *rule, u64 m, u64 *g)
{
	u64 back;

	return go_word(m + (u64)(long long)rule->m_off, g) && go_word(*g + rule->g_m, &back) &&
	       back == m;
}

/*
 * Goes on where a g's pc and sp say: RA was pushed below sp, or its frame was saved at a call.
 */
static __always_inline int go_saved(struct sf_scratch *s, const struct sf_go_rule *rule, u64 g)
{
	u64 sp, pc;

	if (!go_word(g + rule->g_sched, &sp) || !go_word(g + rule->g_sched + 8, &pc) || (sp & 7))
		return SF_STOP_GO_STACK;
	s->regs.sp = sp;
	s->regs.pc = pc;
	s->regs.flags = SF_REGS_RA;
	return SF_STEP_GO;
}

/* Goes on, as go_saved, in the caller of morestack. Its RA is not saved yet on AArch64. */
static __always_inline int go_more(struct sf_scratch *s, const struct sf_go_rule *rule, u64 g)
{
#if defined(__TARGET_ARCH_arm64)
	int stop;

	if (!go_word(g + (u64)(long long)rule->fp_off, &s->regs.r[SF_ARM64_LR]))
		return SF_STOP_GO_STACK;
	stop = go_saved(s, rule, g);
	s->regs.flags |= SF_REGS_FULL;
	return stop;
#else
	return go_saved(s, rule, g);
#endif
}

/*
 * Goes on at the start of the thread, or where C has called Go: there g0's sp is that of
 * cgocallback, whose own rule finds it again.
 */
static __always_inline int go_thread(struct sf_scratch *s, const struct sf_go_rule *rule, u64 m)
{
	u64 delta = vma_at(s, s->vma_last)->delta, g0, sp, ra;

	if (!go_word(m, &g0) || !go_word(g0 + rule->g_sched, &sp) || (sp & 7))
		return SF_STOP_GO_STACK;
	if (go_word(sp + (u64)(long long)rule->cfa_off, &ra) &&
	    ra + delta == (u64)(u32)rule->ra_off)
		return go_saved(s, rule, g0);
	if (!rule->callback)
		return SF_STOP_GO_STACK;
	s->regs.sp = sp;
	s->regs.pc = (u64)(u32)rule->callback - delta; /* g0's own is 0 on a thread of C's */
	s->regs.flags = SF_REGS_RA;
	return SF_STEP_GO;
}

/* The sp of cgocallback on the thread's stack, and for the next one the sp that it saved. */
static __always_inline bool go_callback(struct sf_scratch *s, const struct sf_go_rule *rule, u64 m,
					u64 *sp)
{
	u64 g0;

	*sp = s->go_sp;
	if (!*sp && (!go_word(m, &g0) || !go_word(g0 + rule->g_sched, sp)))
		return false;
	return !copy_user(&s->go_sp, sizeof(s->go_sp), *sp + rule->call_g);
}

/* The sp of asmcgocall on the stack of the goroutine, which may have moved meanwhile. */
static __always_inline bool go_call(const struct sf_scratch *s, const struct sf_go_rule *rule,
				    u64 *sp)
{
	u64 g, depth, hi;

	if (!go_word(s->regs.sp + rule->call_g, &g) ||
	    !go_word(s->regs.sp + rule->call_depth, &depth) || !go_word(g + GO_STACK_HI, &hi))
		return false;
	*sp = hi - depth;
	return true;
}

/* Steps by s->rule. SF_STEP_GO or a stop. Global, so it is verified once. */
__noinline int go_step(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	const struct sf_go_rule *rule;
	u64 m = 0, g, sp = 0, cfa, ra = 0, fp;
	u32 op;

	if (!s)
		return SF_STOP_GO_STACK;
	rule = (const struct sf_go_rule *)&s->rule;
	op = rule->op;
	fp = s->regs.fp;
	if (cfg_note_words) /* the memo does not know what is read here */
		s->log_far = ~0ull;
	if (op != SF_GO_CALL && !go_m(s, rule, &m))
		return SF_STOP_GO_STACK;
	if (op == SF_GO_MORE && go_curg(rule, m, &g))
		return go_more(s, rule, g);
	if (op == SF_GO_MORE || op == SF_GO_THREAD)
		return go_thread(s, rule, m);
	if (op == SF_GO_VDSO) {
		if (!go_word(m + (u64)(long long)rule->m_off, &cfa) ||
		    !go_word(m + (u64)(long long)rule->m_off + 8, &ra))
			return SF_STOP_GO_STACK;
	} else {
		if (op == SF_GO_GOROUTINE
			    ? !go_curg(rule, m, &g) || !go_word(g + rule->g_sched, &sp)
		    : op == SF_GO_CALL ? !go_call(s, rule, &sp)
				       : !go_callback(s, rule, m, &sp))
			return SF_STOP_GO_STACK;
		cfa = sp + (u64)(long long)rule->cfa_off;
		if (sf_read_user(&s->regs, cfa + (u64)(long long)rule->ra_off, &ra))
			return SF_STOP_GO_STACK;
	}
	if ((cfa & 7) ||
	    (rule->fp_off && sf_read_user(&s->regs, cfa + (u64)(long long)rule->fp_off, &fp)))
		return SF_STOP_GO_STACK;
	s->regs.pc = STEP_RA(&s->regs, ra);
	s->regs.sp = cfa;
	s->regs.fp = fp;
	s->regs.flags = SF_REGS_RA;
	return s->regs.pc ? SF_STEP_GO : SF_STOP_GO_STACK;
}

#endif
