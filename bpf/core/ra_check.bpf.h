/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Checks of what no row says. Code without rows may keep any value in the frame pointer, and memory
 * may hold zeros and return addresses of calls that are over. So a return address that was found
 * without a row must be one, and a 0 in place of a return address or a frame pointer is only the
 * end of a stack if it lies where a stack begins.
 */
#ifndef SFBPF_RA_CHECK_BPF_H
#define SFBPF_RA_CHECK_BPF_H

#include "core/call_insn.h"
#include "core/memory.bpf.h"
#include "core/probe.bpf.h"
#include "core/row.bpf.h"
#include "core/space.bpf.h"
#include "core/vma.bpf.h"

/*
 * Whether the row of a return address belongs to code that is entered without a call: the signal
 * restorer, or an outermost frame such as that of a makecontext() function.
 */
static __always_inline bool ra_needs_no_call(struct sf_scratch *s, u32 slot)
{
	const struct sf_rule *rule;
	u64 at = s->regs.pc - 1;
	struct sf_vma *v;
	u32 code;
	int i = vma_find(slot, at);

	if (i < 0)
		return probe_replaced(s, s->regs.pc);
	v = vma_at(s, i);
	if (v->state != SF_MOD_READY)
		return false;
	code = row_search(slot, i, (at + v->delta) & SF_FRAME_OFFSET_MASK) & 0xffff;
	if (code == SF_RULE_END)
		return true;
	if (code == SF_RULE_GAP || !(code & SF_RULE_INDEXED))
		return false;
	rule = rule_find((struct sf_tables *)&v->first_page, code);
	return rule && (rule->flags & SF_RULE_SIGNAL);
}

#if defined(__TARGET_ARCH_x86)
/* Whether a step down stayed in the mapping of the stack that it left. */
static __always_inline bool stack_went_down(struct sf_scratch *s, u32 slot)
{
	return (s->regs.flags & SF_REGS_DOWN) &&
	       vma_near(slot, s->regs.sp - 8) == vma_near(slot, s->regs.left);
}
#else
static __always_inline bool stack_went_down(struct sf_scratch *s, u32 slot)
{
	return false;
}
#endif

/*
 * Checks the result of a step that may be wrong (SF_REGS_GUESS, SF_REGS_DOWN). SF_STEP_GO: its
 * return address follows a call. That the address is executable is seen when the next frame's
 * mapping is looked up. A step down must lead to another mapping: below sp, a stack holds what
 * calls that are over have left. Global: not in the hot path, and verified once.
 */
__noinline int guess_check(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);

	if (!s)
		return SF_STOP_NO_ROW;
	if (stack_went_down(s, slot))
		return SF_STOP_BAD_CFA;
	if (!(s->regs.flags & SF_REGS_RA) || follows_call(s->regs.pc) || ra_needs_no_call(s, slot))
		return SF_STEP_GO;
	if (!(s->regs.flags & SF_REGS_GUESS))
		return SF_STOP_ZERO_RA; /* s->checked: no better than a 0 */
	return (s->regs.flags & SF_REGS_BY_FP) && s->cause ? s->cause : SF_STOP_REG_UNKNOWN;
}

#define TOP_SLACK 64 /* bytes that the code which starts a thread may use before its first call */

/* Whether one of the words from `at` to `top` is the address after a call. */
static __always_inline bool calls_between(u64 at, u64 top)
{
	u32 i;

#pragma clang loop unroll(disable)
	for (i = 0; i < TOP_SLACK / 8 && at < top; i++, at += 8)
		if (holds_return(at))
			return true;
	return false;
}

/*
 * Whether a library that makes stacks has made this one, and the last frame is the first one of it:
 * a row of the library says where the return address is, and no call has pushed what is there.
 */
static __always_inline bool stack_made(struct sf_scratch *s)
{
	u32 last = s->n - 1;
	struct sf_module *m;
	u64 word;

	if (!s->checked || (s->regs.flags & (SF_REGS_BY_FP | SF_REGS_GUESS)) || last >= SF_MAX_USER)
		return false;
	word = *frame_at(s, last);
	m = SF_FRAME_KIND(word) == SF_FRAME_ROW ? module_at(SF_FRAME_MODULE(word)) : NULL;
	if (!m || !(m->flags & SF_MODULE_MAKES))
		return false;
	return !s->regs.pc ||
	       (!copy_user(&word, sizeof(word), s->regs.pc - SF_CALL_BYTES) && !after_call(word));
}

/*
 * Checks a return address or a frame pointer of 0 (SF_STOP_ZERO_RA). It ends the stack if sp is
 * where the kernel put it at the process's entry, or at the end of the mapping of another stack. A
 * frame pointer of 0 does not, if a function without one has called this one. A stack that a
 * library has made may lie anywhere.
 */
__noinline int zero_check(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	u64 vma, top, sp;

	if (!s)
		return SF_STOP_ZERO_RA;
	sp = s->regs.sp;
	top = s->regs.entry_sp;
	vma = vma_near(slot, sp - 8);
	if (vma && (KLOAD(vma, struct vm_area_struct, vm_start) > top ||
		    KLOAD(vma, struct vm_area_struct, vm_end) <= top))
		top = KLOAD(vma, struct vm_area_struct, vm_end);
	/* sp is right above the slot of a return address, which lies at argc or below. */
	if (top + 8 - sp <= TOP_SLACK + 8 &&
	    !((s->regs.flags & SF_REGS_BY_FP) && calls_between(sp, top)))
		return SF_STOP_COMPLETE;
	if (stack_made(s))
		return SF_STOP_COMPLETE;
	return (s->regs.flags & SF_REGS_BY_FP) && s->cause ? s->cause : SF_STOP_ZERO_RA;
}

#endif
