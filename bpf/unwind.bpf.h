/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The unwinder: from a task's user registers to frame words in the scratch.
 *
 * Each frame needs its mapping (the last one, one of eight, or a walk of the VMA tree), its row
 * (return-address cache, or search), and one step. The stack is read in windows of 1 KiB.
 *
 * Between two samples other code uses the CPU's caches, so cache misses dominate the cost of a
 * sample. Therefore the loop body unwinds one frame, which keeps the code small, and cache_warm()
 * makes misses overlap.
 */
#ifndef SFBPF_UNWIND_BPF_H
#define SFBPF_UNWIND_BPF_H

#include "fold.bpf.h"
#include "lang.bpf.h"
#include "mapping.bpf.h"
#include "memory.bpf.h"
#include "probe.bpf.h"
#include "ra_check.bpf.h"
#include "regs.bpf.h"
#include "space.bpf.h"

#define regs_scratch(r) ((struct sf_scratch *)(r))
_Static_assert(__builtin_offsetof(struct sf_scratch, regs) == 0,
	       "sf_regs is the head of sf_scratch");

/*
 * Refills the window from addr, never past the end of its page, so the read fails only if the
 * wanted word is not resident. A word across two pages is read alone. A larger window would cost
 * more: each line that is read but not used is a cache miss.
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
 * Notes a word that the unwinder read: its position, in words from the innermost sp, and its value
 * in a hash of all words. off_memo.bpf.h compares them later. log_far collects all bits of the
 * offsets, for a range check.
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

#define LOG_FP_FIRST 1 /* log_fp: of the innermost frame */
#define LOG_FP_NOTED 2

/*
 * Notes the frame pointer when it is used. Noting it earlier is not needed: most code keeps other
 * values in that register.
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
 * Reads both words of a frame with one check of the window: the FP slot is at most 248 bytes below
 * the CFA.
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
 * Whether its step depends only on sp, fp and noted words. The steps of signal frames and of clone
 * do not.
 */
static __always_inline bool rule_noted(const struct sf_rule *rule)
{
	return !(rule->flags & (SF_RULE_SIGNAL | SF_RULE_CHILD)) &&
	       (rule->cfa_reg == SF_REG_SP || rule->cfa_reg == SF_REG_FP) &&
	       rule->ra_kind == SF_K_CFA_MEM && rule->fp_kind < SF_K_REG;
}

#include "bridge.bpf.h"
#include "go_step.bpf.h"
#include "leaf.bpf.h"
#include "leave.bpf.h"

/* Steps by a row that is not packed: a few percent. Global, so it is verified once. */
__noinline int step_indexed(u32 slot, u32 code, u32 offset)
{
	struct sf_scratch *s = scratch_of(slot);
	const struct sf_rule *rule;
	struct sf_vma *v;
	int stop;

	if (!s)
		return SF_STOP_NO_RULE;
	if (code == SF_RULE_END)
		return SF_STOP_COMPLETE;
	v = vma_at(s, s->vma_last);
	rule = rule_find((struct sf_tables *)&v->first_page, code);
	if (!rule)
		return SF_STOP_NO_RULE;
	s->rule = *rule;
	if (rule->flags & SF_RULE_GO)
		return LATER_GO_RULE;
	if (cfg_note_words)
		note_fp(s);
	stop = step_rule(&s->regs, &s->rule, offset, v->flags);
	if (cfg_note_words && !rule_noted(&s->rule))
		s->log_far = ~0ull;
	return stop;
}

_Static_assert(__builtin_offsetof(struct sf_vma, flags) -
			       __builtin_offsetof(struct sf_vma, first_page) ==
		       __builtin_offsetof(struct sf_tables, flags),
	       "sf_vma ends with sf_tables");

/*
 * Steps by frame pointer because there is no row. `cause` becomes the stop reason if that leads
 * nowhere.
 */
static __always_inline int step_unknown(struct sf_scratch *s, u32 cause)
{
	int err;

	if (!s->cause)
		s->cause = cause;
	if (!s->regs.fp && (s->regs.flags & SF_REGS_BY_FP))
		return SF_STOP_ZERO_RA;
	err = step_fp(&s->regs);
	return err == SF_STOP_BAD_CFA || err == SF_STOP_READ_FAULT ? s->cause : err;
}

static __always_inline u32 cause_of_state(const struct sf_vma *v)
{
	switch (v->state) {
	case SF_MOD_READY:
		return SF_STOP_NO_ROW;
	case SF_MOD_JIT:
		return v->flags & SF_VMA_ASKED ? SF_STOP_NOT_LOADED : SF_STOP_JIT;
	case SF_MOD_LOADING:
	case SF_MOD_RETRY:
		return SF_STOP_NOT_LOADED;
	case SF_MOD_NO_PLACE:
		return SF_STOP_MODULES_FULL;
	case SF_MOD_REFUSED:
		return SF_STOP_REFUSED;
	case SF_MOD_FULL:
		return SF_STOP_TABLES_FULL;
	default:
		return SF_STOP_NO_TABLE;
	}
}

/*
 * Steps from code without a row, whose frame was recorded: by its instructions, or by frame
 * pointer.
 */
static __always_inline int step_no_row(struct sf_scratch *s, u32 slot, u32 cause)
{
	u32 n = s->n - 1;
	int stop = NOT_MINE;

	if (s->regs.flags & SF_REGS_FULL) {
		stop = leave_step(slot);
		if (stop != SF_STEP_GO)
			stop = leaf_step(slot);
	} else if (cause == SF_STOP_JIT) {
		stop = leave_step(slot);
	}
	if (stop == SF_STEP_GO) {
		/* What stands between an evaluation loop and its caller is Python's own. */
		if (s->lang.language == SF_LANG_PYTHON && n == s->lang.end && !cfg_native)
			s->n = n;
		return SF_STEP_GO;
	}
	if (cause == SF_STOP_JIT)
		bridge_note(s);
	if (stop == LEAF_SKIPS) {
		s->skipped = cause == SF_STOP_JIT ? SF_STOP_BRIDGED : cause;
		if (cause == SF_STOP_JIT)
			frame_push(s, SF_FRAME_BRIDGE);
	}
	return step_unknown(s, cause);
}

/*
 * Records a frame without a row, and steps to its caller. found: slot of s->vmas; -1: none.
 * Global: not in the hot path, and verified once.
 */
__noinline int frame_without_row(u32 slot, int found)
{
	struct sf_scratch *s = scratch_of(slot);
	struct sf_vma *v;
	u64 word, at;
	u32 n;

	if (!s)
		return SF_STOP_NO_ROW;
	v = vma_at(s, found);
	if (found >= 0 &&
	    (v->state == SF_MOD_JIT || (v->state == SF_MOD_READY && (v->flags & SF_MODULE_LANG)))) {
		int stop = js_frame(slot, found);

		if (stop != NOT_MINE)
			return stop;
	}
	if (found >= 0 && v->state == SF_MOD_JIT) {
		int stop;

		if ((v->flags & SF_VMA_SHARED) && !s->lang.begin.php_none)
			return LATER_PHP_JIT;
		stop = java_frame(slot);

		if (stop != NOT_MINE)
			return stop;
		if (s->regs.pc != s->lang.begin.ruby_not_jit &&
		    s->lang.begin.ruby_misses < RB_JIT_MISSES)
			return LATER_RUBY_JIT;
	}
	at = s->regs.pc - (s->regs.flags & SF_REGS_RA);
	word = (u64)(s->regs.flags & (SF_REGS_RA | SF_REGS_BY_FP)) << 59;
	n = s->n;
	if (found < 0 && (s->regs.flags & SF_REGS_BY_FP)) /* a wrong guess, not a frame */
		return s->cause ? s->cause : SF_STOP_NO_MODULE;
	if (found < 0)
		word |= SF_FRAME_RAW << SF_FRAME_KIND_SHIFT | (at & SF_FRAME_ADDR_MASK);
	else if (v->state == SF_MOD_JIT)
		word |= SF_FRAME_JIT << SF_FRAME_KIND_SHIFT | (at & SF_FRAME_ADDR_MASK);
	else
		word |= SF_FRAME_NOROW << SF_FRAME_KIND_SHIFT | v->word |
			((at + v->delta) & SF_FRAME_OFFSET_MASK);
	if (n >= SF_MAX_USER)
		return SF_STOP_DEPTH;
	*frame_at(s, n) = word;
	s->n = n + 1;
	if (found < 0)
		return SF_STOP_NO_MODULE;
	if (cfg_note_words)
		note_fp(s);
	return step_no_row(s, slot, cause_of_state(v));
}

/*
 * Return address -> rule: an exact cache. Module id (25 bits) and file offset (34) make a 59-bit
 * key. Multiplying it by an odd number modulo 2^59 is a bijection; the product is in the upper bits
 * of a word. Its upper 12 bits select the entry, and the other 47 are compared. The rules of an id
 * never change, not even if its tables are evicted and loaded again, and no id is reused.
 */
#define CACHE_FACTOR	     (0x4f1bbcdcbfa53e1ull << 5)
#define CACHE_KEY(v, offset) (((v)->word | (offset)) * CACHE_FACTOR)
#define CACHE_SLOT(key)	     ((key) >> 52)
#define CACHE_TAG(key)	     ((key) << 12 | 1 << 16) /* bit 16: differs from empty entries */

_Static_assert(SF_CACHE_BITS == 12 && SF_FRAME_MODULE_MASK < 1 << 25 && SF_FRAME_MODULE_SHIFT == 34,
	       "the cache's key is exact");

/*
 * Searches the row on a cache miss. Global: otherwise the verifier would verify the search once per
 * frame of the callback.
 */
__noinline int row_search(u32 slot, u32 i, u64 offset)
{
	struct sf_scratch *s = scratch_of(slot);

	return s ? row_find((struct sf_tables *)&vma_at(s, i)->first_page, offset) : SF_RULE_GAP;
}

static __always_inline u32 row_of(struct sf_scratch *s, struct sf_cache *c, u32 slot, u32 i,
				  u64 offset)
{
	const struct sf_vma *v = vma_at(s, i);
	u64 key, *entry, have;
	u32 code;

	/* Innermost pcs rarely repeat, so they are not cached. */
	if (!(s->regs.flags & SF_REGS_RA))
		return row_search(slot, i, offset) & 0xffff;
	key = CACHE_KEY(v, offset);
	entry = &c->entry[CACHE_SLOT(key)];
	have = *entry;
	if ((have & ~0xffffull) == CACHE_TAG(key)) {
		s->hits++;
		return have & 0xffff;
	}
	code = row_search(slot, i, offset) & 0xffff;
	*entry = CACHE_TAG(key) | code;
	return code;
}

/* Records the current frame, and steps to its caller. SF_STEP_GO or a stop. */
static __always_inline int unwind_frame(struct sf_scratch *s, struct sf_cache *c, u32 slot)
{
	u32 flags = s->regs.flags, n = s->n, code;
	u64 at = s->regs.pc - (flags & SF_REGS_RA);
	int found = s->vma_last & (SF_SLOTS - 1);
	struct sf_vma *v = vma_at(s, found);
	u64 offset;
	bool first;

	if (at - v->start >= v->len) {
		found = vma_find(slot, at);
		v = vma_at(s, found);
	}
	if (found < 0 || v->state != SF_MOD_READY) {
		u32 memory = found >= 0 && v->state == SF_MOD_JIT ? v->flags : 0;

		if (found < 0 || (memory & SF_VMA_PROBES))
			return LATER_PROBE;
		return memory & SF_VMA_NEW ? LATER_COPIED : frame_without_row(slot, found);
	}
	offset = (at + v->delta) & SF_FRAME_OFFSET_MASK;
	code = row_of(s, c, slot, found, offset);
	if (code == SF_RULE_GAP)
		return frame_without_row(slot, found);
	if (n >= SF_MAX_USER)
		return SF_STOP_DEPTH;
	first = (v->flags & (SF_MODULE_LANG | SF_MODULE_STARTS)) && lang_see(slot, found, offset);
	if (cfg_note_words && ((code & SF_RULE_BASE_FP) || (flags & SF_REGS_BY_FP)))
		note_fp(s);
	*frame_at(s, n) = v->word | offset | (u64)(flags & (SF_REGS_RA | SF_REGS_BY_FP)) << 59;
	s->n = n + 1;
	if (first)
		return SF_STOP_COMPLETE;
	if (code & SF_RULE_INDEXED)
		return step_indexed(slot, code, offset);
	return step_packed(&s->regs, code, v->flags);
}

static __always_inline int bridge_step(u32 slot)
{
	u64 addr = bridge_next(slot);

	return bridge_look(slot, addr ? vma_find(slot, addr) : -1);
}

/* The walk is at the innermost frame. */
static __always_inline void walk_begin(struct sf_scratch *s)
{
	s->n = 0;
	s->cause = 0;
	s->win_len = 0;
	s->lang_at = LANG_NATIVE;
	s->lang.language = SF_LANG_NONE;
	s->lang.seen = -1;
	s->lang.end = 0;
	s->lang.begin = (struct sf_lang_begin){};
	s->lang.pc.at = 0;
	s->lang.code = 0;
	s->go_sp = s->absent = 0;
	s->gap = s->bridged = s->faults = s->skipped = 0;
}

/*
 * A walk that broke may have gone through a word that is no return address: what a library put
 * there when it made a stack, or data. So the walk is made once more, and ends at such a word. A
 * walk through a signal frame is not: the registers that it began with are lost. 1: the walk is at
 * the innermost frame again. Global: not in the hot path, and verified once.
 */
__noinline int walk_again(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	u32 stop;

	if (!s)
		return 0;
	stop = s->stop;
	if (stop == SF_STOP_ZERO_RA)
		stop = zero_check(slot);
	if (s->checked || s->regs.r[SF_REG_SP] != s->begin_sp ||
	    (stop != SF_STOP_NO_MODULE && stop != SF_STOP_ZERO_RA && stop != SF_STOP_READ_FAULT &&
	     stop != SF_STOP_BAD_CFA))
		return 0;
	s->checked = SF_REGS_GUESS;
	s->regs.pc = s->begin_pc;
	regs_finish(&s->regs, s->begin_flags & SF_REGS_RA);
	walk_begin(s);
	return 1;
}

static int unwind_next(u32 round, void *ctx)
{
	u32 slot = *(u32 *)ctx;
	struct sf_scratch *s = scratch_of(slot);
	struct sf_cache *c = bpf_map_lookup_elem(&cache, &slot);
	int stop;

	if (!s || !c)
		return 1;
	if (s->lang_at) {
		stop = s->lang_at == LANG_BRIDGE ? bridge_step(slot) : lang_next(slot);
	} else {
		stop = unwind_frame(s, c, slot);
		if (stop == LATER_COPIED)
			return copied_learn(slot, copied_near(slot));
		if (stop == LATER_PROBE) {
			if (probe_step(slot) == SF_STEP_GO)
				return 0;
			stop = frame_without_row(slot, -1);
		}
		if (stop == LATER_GO_RULE)
			stop = go_step(slot);
		if (stop == LATER_JS_EMIT)
			stop = js_emit(slot);
		if (stop == LATER_PHP_JIT) {
			u64 exe = php_unknown(slot);

			if (exe)
				vma_find(slot, exe);
			stop = php_jit(slot);
		}
		if (stop == LATER_RUBY_JIT) {
			u64 ra = ruby_jit_ra(slot);

			stop = ruby_jit(slot, ra ? vma_find(slot, ra - 1) : -1);
		}
		if (stop == LATER_JAVA_FILE)
			return file_of(slot);
		if (stop == LATER_JAVA_SCOPES)
			return java_scopes(slot);
		if (stop == LATER_JAVA_CHUNK)
			return java_chunk(slot);
		if (stop == LATER_JS_SCOPES)
			return js_scopes(slot);
		if (stop == LATER_JS_WORD)
			return js_word(slot);
		if (stop == SF_STEP_GO &&
		    ((s->regs.flags | s->checked) & (SF_REGS_GUESS | SF_REGS_DOWN)))
			stop = guess_check(slot);
	}
	if (stop == SF_STEP_GO)
		return 0;
	s->stop = stop;
	if (s->gap)
		bridge_retry(slot);
	else if (walk_again(slot))
		return 0;
	return s->lang_at != LANG_BRIDGE;
}

#define WARM_FRAMES 64

/*
 * Most stacks share their outer frames with the previous one. Loads their cache entries at once, so
 * that the misses overlap.
 */
static __always_inline void cache_warm(struct sf_scratch *s, u32 slot)
{
	struct sf_cache *c = bpf_map_lookup_elem(&cache, &slot);
	u32 n = s->n, i; /* of the previous stack */

	if (!c)
		return;
#pragma clang loop unroll(disable)
	for (i = 0; i < WARM_FRAMES; i++) {
		u32 at = n - 1 - i;
		u64 word;

		if (at >= SF_MAX_USER)
			break;
		word = *frame_at(s, at);
		if (SF_FRAME_KIND(word) == SF_FRAME_LANG)
			continue;
		*(volatile u64 *)&c->entry[CACHE_SLOT(word * CACHE_FACTOR)];
	}
}

/* Unwinds from s->regs in s->mm, with s->pid for requests. Sets s->n, the frames and s->stop. */
static __always_inline void unwind_user(struct sf_scratch *s, u32 slot)
{
	cache_warm(s, slot);
	s->stop = SF_STOP_DEPTH;
	s->lang.spent = (struct sf_lang_spent){};
	s->checked = 0;
	s->begin_pc = s->regs.pc;
	s->begin_sp = s->regs.sp;
	s->begin_flags = s->regs.flags;
	walk_begin(s);
	if (cfg_note_words) {
		s->log_base = s->log_hash = s->regs.sp;
		s->log_far = s->log_n = s->log_fp_first = 0;
		s->log_fp = LOG_FP_FIRST;
	}
	space_enter(s, slot);
	/*
	 * An evaluation loop takes a round, and its frame is replaced by those of its language. A
	 * walk may be made twice.
	 */
	bpf_loop(4 * SF_MAX_USER + 1, unwind_next, &slot, 0);
	if (s->stop == SF_STOP_ZERO_RA)
		s->stop = zero_check(slot);
	if ((s->stop == SF_STOP_JIT || s->stop == SF_STOP_NO_ROW) && !s->lang.language)
		php_without_loop(slot);
	if ((s->stop == SF_STOP_JIT || s->lang.seen >= 0) && !s->lang.language)
		ruby_without_loop(slot);
	if (s->lang.language)
		lang_finish(slot);
	/* A frame-pointer chain through a file that is not loaded yet proves nothing. */
	if (s->stop == SF_STOP_COMPLETE && s->cause == SF_STOP_NOT_LOADED)
		s->stop = SF_STOP_NOT_LOADED;
	if (s->bridged)
		bridge_end(s);
	if (s->skipped && s->stop == SF_STOP_COMPLETE)
		s->stop = s->skipped;
}

#endif
