/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Reads of the stack for the steps of row_step.h, and the words that off_memo.bpf.h compares. */
#ifndef SFBPF_STACK_BPF_H
#define SFBPF_STACK_BPF_H

#include "core/fold.bpf.h"
#include "core/memory.bpf.h"
#include "core/regs.bpf.h"
#include "core/space.bpf.h"

#define regs_scratch(r) ((struct sf_scratch *)(r))
_Static_assert(__builtin_offsetof(struct sf_scratch, regs) == 0,
	       "sf_regs is the head of sf_scratch");

/*
 * Refills the window, a copy of at most SF_WINDOW bytes of user memory, from addr to the end of
 * addr's memory page: the read fails only if that page is not resident. A word across two pages is
 * read alone. A larger window would cost more: each cache line that is copied in vain is a miss. 0
 * or -1.
 */
static __noinline int window_fill(struct sf_scratch *s, u64 addr)
{
	u32 len = SF_PAGE_MIN - (addr & (SF_PAGE_MIN - 1));

	if (len > SF_WINDOW)
		len = SF_WINDOW;
	if (len < 8)
		len = 8;
	s->win_len = 0;
	s->reads++;
	if (copy_user_part(s->window, len, SF_WINDOW, addr))
		return -1;
	s->win_base = addr;
	s->win_len = len;
	return 0;
}

/*
 * Notes a word that the unwinder read, for off_memo.bpf.h. log[] has its distance from log_base,
 * the innermost sp, in words; log_hash, a hash of all values; log_far, the OR of all distances in
 * bytes, for a range check.
 */
static __always_inline void note_word(struct sf_scratch *s, u64 addr, u64 val)
{
	u64 at = addr - s->log_base;
	u32 n = s->log_n;

	s->log_far |= at;
	s->log[INDEX(n, SF_LOG)] = at / 8;
	s->log_n = n + 1;
	FOLD(s->log_hash, val, FOLD_MUL1);
}

#define LOG_FP_FIRST 1 /* log_fp: the frame pointer is the one that the walk began with */
#define LOG_FP_NOTED 2 /* log_fp: the frame pointer was noted */

/*
 * Notes the frame pointer when a step uses it. A saved frame pointer that no step uses is not
 * noted: it may differ between equal stacks.
 */
static __always_inline void note_fp(struct sf_scratch *s)
{
	u64 from = s->log_fp;

	if (from == LOG_FP_FIRST)
		s->log_fp_first = 1;
	else if (from != LOG_FP_NOTED)
		note_word(s, from, s->regs.fp);
	s->log_fp = LOG_FP_NOTED;
}

#define WINDOW_AT(s, d) (*(u64 *)((s)->window + INDEX(d, SF_WINDOW)))

static __always_inline int sf_read_user(struct sf_regs *r, u64 addr, u64 *val)
{
	struct sf_scratch *s = regs_scratch(r);
	u64 d = addr - s->win_base;

	if (d >= SF_WINDOW || d + 8 > s->win_len) {
		if (window_fill(s, addr))
			return -1;
		d = 0;
	}
	*val = WINDOW_AT(s, d);
	if (cfg_note_words)
		note_word(s, addr, *val);
	return 0;
}

/*
 * Reads the saved frame pointer and the return address with one check of the window: the saved
 * frame pointer is at most 248 bytes below the CFA.
 */
static __always_inline int read_frame(struct sf_regs *r, u64 cfa, u32 slot, u64 *fp, u64 *ra)
{
	struct sf_scratch *s = regs_scratch(r);
	u32 span = slot ? slot * 8 : 8;
	u64 d = cfa - span - s->win_base;

	if (d >= SF_WINDOW || d + span > s->win_len) {
		if (window_fill(s, cfa - span))
			return -1;
		d = 0;
		if (span > s->win_len) { /* across the end of a page */
			if (slot)
				*fp = WINDOW_AT(s, 0);
			if (window_fill(s, cfa - 8))
				return -1;
			*ra = WINDOW_AT(s, 0);
			return 0;
		}
	}
	if (slot)
		*fp = WINDOW_AT(s, d);
	*ra = WINDOW_AT(s, d + span - 8);
	return 0;
}

static __always_inline int sf_read_frame(struct sf_regs *r, u64 cfa, u32 slot, u64 *fp, u64 *ra)
{
	struct sf_scratch *s = regs_scratch(r);

	if (read_frame(r, cfa, slot, fp, ra))
		return -1;
	if (cfg_note_words && slot)
		s->log_fp = cfa - slot * 8;
	if (cfg_note_words)
		note_word(s, cfa - 8, *ra);
	return 0;
}

static __always_inline int sf_read_user_regs(u64 addr, u64 *dst)
{
	return copy_user(dst, SF_SIGCONTEXT_WORDS * 8, addr);
}

/*
 * Whether the rule's step depends only on sp, fp and noted words. The steps of signal frames and of
 * the child's side of clone() depend on more.
 */
static __always_inline bool rule_noted(const struct sf_rule *rule)
{
	return !(rule->flags & (SF_RULE_SIGNAL | SF_RULE_CHILD)) &&
	       (rule->cfa_reg == SF_REG_SP || rule->cfa_reg == SF_REG_FP) &&
	       rule->ra_kind == SF_K_CFA_MEM && rule->fp_kind < SF_K_REG;
}

#endif
