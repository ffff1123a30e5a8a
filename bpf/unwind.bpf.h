/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The unwinder: from a task's user registers to frame words in scratch.
 *
 * Per frame: which mapping (the last one, one of eight, or a walk of the VMA tree), which row (return-address
 * cache, or search), one step. The stack is read in windows that reach to the end of the page, since a
 * read of 4 KiB costs 1.3 times a read of 8 bytes. (Larger pages are read in the same pieces.)
 */
#ifndef SFBPF_UNWIND_BPF_H
#define SFBPF_UNWIND_BPF_H

#include "fold.bpf.h"
#include "space.bpf.h"
#ifdef __TARGET_ARCH_arm64
#include "regs_arm64.bpf.h"
#else
#include "regs_x86.bpf.h"
#endif

static __always_inline const unsigned char *sf_chunk(u32 id)
{
	u32 zero = 0;
	void *map = bpf_map_lookup_elem(&chunks, &id);

	return map ? bpf_map_lookup_elem(map, &zero) : NULL;
}

#include "row_find.h"

static __always_inline struct sf_cpu_stats *stats_here(void)
{
	u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&cpu_stats, &cpu);
}

#define regs_scratch(r) ((struct sf_scratch *)(r))
_Static_assert(__builtin_offsetof(struct sf_scratch, regs) == 0, "sf_regs is the head of sf_scratch");

/* User memory of the current task; in remote.bpf.c, of the sleeping task that its iterator is at. */
static __always_inline long copy_user(void *dst, u32 len, u64 addr)
{
#ifdef SF_REMOTE
	struct task_struct *task = bpf_task_from_pid(remote_tid);
	long err;

	if (!task)
		return -1;
	err = bpf_copy_from_user_task(dst, len, (void *)addr, task, 0);
	bpf_task_release(task);
	return err;
#else
	return bpf_probe_read_user(dst, len, (void *)addr);
#endif
}

/*
 * Refills the window from addr, never past the end of its page, so that the read fails only if the wanted word is not
 * resident. A word across two pages is read alone. Most stacks are short, and bytes that nobody looks at cost cache
 * misses: the first window is 1 KiB, each further one twice the last, up to a page.
 */
static __noinline int window_fill(struct sf_scratch *s, u64 addr)
{
	u32 len = SF_WINDOW - (addr & (SF_WINDOW - 1));

	if (len > s->win_want)
		len = s->win_want;
	if (!cfg_cold && s->win_want < SF_WINDOW)
		s->win_want *= 2;
	if (len < 8)
		len = 8;
	s->win_len = 0;
	s->reads++;
	asm volatile("" : "+r"(len));	/* see vma_at */
	if (len > SF_WINDOW || copy_user(s->window, len, addr))
		return -1;
	s->win_base = addr;
	s->win_len = len;
	return 0;
}

/*
 * What the unwinder read, for whoever wants to know whether it would read the same again: where, in words from the innermost sp,
 * and a hash of it all. log_far holds what offsets may not have.
 */
static __always_inline void note_word(struct sf_scratch *s, u64 addr, u64 val)
{
	u64 at = addr - s->log_base;
	u32 n = s->log_n;

	s->log_far |= at;
	s->log[n & (SF_LOG - 1)] = at / 8;
	s->log_n = n + 1;
	if (at >= s->log_end)
		s->log_end = at + 8;
	FOLD(s->log_hash, val, FOLD_MUL1);
}

#define LOG_FP_FIRST 1		/* of log_fp: the innermost frame's */
#define LOG_FP_NOTED 2

/*
 * The frame pointer is about to be used. Only now does it matter where it was read: most code keeps other things in that
 * register.
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

#define WINDOW_AT(s, d) (*(u64 *)((s)->window + ((d) & (SF_WINDOW - 1))))

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

/* Both words of a frame with one look at the window: the FP slot lies below the RA, 248 bytes at most. */
static __always_inline int read_frame(struct sf_regs *r, u64 cfa, u32 slot, u64 *fp, u64 *ra)
{
	struct sf_scratch *s = regs_scratch(r);
	u32 span = slot ? slot * 8 : 8;
	u64 d = cfa - span - s->win_base;

	if (d >= SF_WINDOW || d + span > s->win_len) {
		if (window_fill(s, cfa - span))
			return -1;
		d = 0;
		if (span > s->win_len) {	/* across a page's end */
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

/* Asks user space for a file's tables. Wakes it: the process may be short-lived. */
static __always_inline bool send_need(const struct sf_need *need)
{
	struct sf_cpu_stats *st = stats_here();

	if (bpf_ringbuf_output(&ring, (void *)need, sizeof(*need), BPF_RB_FORCE_WAKEUP)) {
		if (st)
			st->needs_dropped++;
		return false;
	}
	if (st)
		st->needs++;
	return true;
}

/* Whether the file's tables shall be asked for once more. */
static __always_inline bool retry_due(struct sf_module *m)
{
	u32 state = m->state;
	u64 now;

	if (state != SF_MOD_RETRY && state != SF_MOD_FULL)
		return false;
	now = bpf_ktime_get_ns();
	if ((s32)((u32)(now / 1000000) - m->retry_ms) < 0 || !need_allowed(m->owner, now))
		return false;
	return __sync_val_compare_and_swap(&m->state, state, SF_MOD_LOADING) == state;
}

static __always_inline void count_refused(void)
{
	struct sf_cpu_stats *st = stats_here();

	if (st)
		st->needs_refused++;
}

/* Resolves the file behind a VMA: module, tables, and the request for them if this is its first sight. */
static __always_inline void vma_file(struct sf_scratch *s, struct sf_vma *v, u64 vma, u64 inode)
{
	struct sf_file_key key = {};
	struct sf_module *m;
	bool need_it = false;
	u32 why;

	if (inode)
		inode_key(inode, &key);
	else
		key.ino = SF_KEY_VDSO;
	m = module_known(&key);
	if (!m)
		m = module_new(&key, mm_owner(s->mm), &need_it, &why);
	if (!m) {
		v->word = 0;
		v->state = why;
		if (why == SF_MOD_REFUSED)
			count_refused();
		return;
	}
	if (need_it || retry_due(m)) {
		struct sf_need need;

		fill_need(&need, vma, inode, m, s->pid);
		if (!send_need(&need)) {	/* again at the next sight */
			m->retry_ms = bpf_ktime_get_ns() / 1000000;
			m->state = SF_MOD_RETRY;
		}
	}
	v->word = (u64)m->id << SF_FRAME_MODULE_SHIFT;
	v->state = *(volatile u32 *)&m->state;
	v->first_page = m->first_page;
	v->npages = m->npages;
	v->dir = m->dir;
	v->rules = m->rules;
	v->nrules = m->nrules;
	v->flags = m->flags;
	m->used++;
}

/* Chooses the remembered mappings of s->mm, and the one to begin with. */
static __always_inline void space_enter(struct sf_scratch *s, u32 slot)
{
	u32 epoch = *(volatile u32 *)&tables_epoch, seq;
	u64 id = MM_ID(s->mm);
	bool exact = mm_exact(s->mm, id, &seq), fresh;
	struct sf_space *space;

	s->space = id & (SF_SPACES - 1);
	s->vma_last = s->space * SF_VMAS;
	space = &s->spaces[id & (SF_SPACES - 1)];
	fresh = space->ctx_id != id || space->epoch != epoch || !id;
	if (!fresh && space->seq == seq && !space->passing && exact)
		return;
	space->ctx_id = id;
	space->epoch = epoch;
	space->seq = seq;
	space->passing = !exact;
	vmas_check(slot, fresh);
}

/* Remembers a mapping as slot i. */
static __always_inline void vma_learn(struct sf_scratch *s, struct sf_space *space, u32 i, u64 vma)
{
	struct sf_vma *v = vma_at(s, i);
	u64 inode, offset;

	vma_note(s, space, i, vma);
	v->start = KLOAD(vma, struct vm_area_struct, vm_start);
	v->len = KLOAD(vma, struct vm_area_struct, vm_end) - v->start;
	inode = vma_inode(vma);
	offset = inode ? KLOAD(vma, struct vm_area_struct, vm_pgoff) << cfg_page_shift : 0;
	/* An offset that no frame word can hold: as if there were no file. */
	if ((inode || v->start == KLOAD(s->mm, struct mm_struct, context.vdso)) && offset <= SF_FRAME_OFFSET_MASK &&
	    v->len <= SF_FRAME_OFFSET_MASK - offset) {
		v->delta = offset - v->start;
		vma_file(s, v, vma, inode);
		if (v->state != SF_MOD_READY) {
			space->passing = 1;
			seen_at(s, i)->vma = 0;
		}
	} else {
		v->state = SF_MOD_JIT;
		v->delta = 0;
	}
}

/*
 * The slot of s->vmas that holds addr, walking the VMA tree if it is not there yet; -1: no executable mapping.
 * A global function: verified once by itself, whatever calls it.
 */
__noinline int vma_find(u32 slot, u64 addr)
{
	struct sf_scratch *s = scratch_of(slot);
	struct sf_cpu_stats *st;
	struct sf_space *space;
	struct sf_vma *v;
	u32 i, first, put;
	u64 vma;

	if (!s)
		return -1;
	space = &s->spaces[s->space & (SF_SPACES - 1)];
	first = (s->space & (SF_SPACES - 1)) * SF_VMAS;
	s->vma_put = SF_SLOTS;	/* in memory: the verifier need not tell its values apart */
#pragma clang loop unroll(disable)
	for (i = 0; i < SF_VMAS; i++) {
		v = vma_at(s, first + i);
		if (addr - v->start < v->len) {
			s->vma_last = first + i;
			return first + i;
		}
		if (!v->len && s->vma_put == SF_SLOTS)
			s->vma_put = first + i;
	}
	st = stats_here();
	if (st)
		st->vma_walks++;
	vma = vma_walk(s, addr);
	if (!vma || !(KLOAD(vma, struct vm_area_struct, vm_flags) & VM_EXEC))
		return -1;
	put = s->vma_put;
	if (put == SF_SLOTS)
		put = first + (space->next++ & (SF_VMAS - 1));
	vma_learn(s, space, put, vma);
	s->vma_last = put;
	return put;
}

/* Its step depends on sp, fp, and words that are noted alone. A signal frame's does not, nor clone's. */
static __always_inline bool rule_noted(const struct sf_rule *rule)
{
	return !(rule->flags & (SF_RULE_SIGNAL | SF_RULE_CHILD)) && (rule->cfa_reg == SF_REG_SP || rule->cfa_reg == SF_REG_FP) &&
	       rule->ra_kind == SF_K_CFA_MEM && rule->fp_kind < SF_K_REG;
}

/* The rows that are not packed: a few in a hundred. Global for the verifier's sake. */
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
	if (cfg_note_words)
		note_fp(s);
	stop = step_rule(&s->regs, &s->rule, offset, v->flags);
	if (cfg_note_words && !rule_noted(&s->rule))
		s->log_far = ~0ull;
	return stop;
}

_Static_assert(__builtin_offsetof(struct sf_vma, flags) - __builtin_offsetof(struct sf_vma, first_page) ==
	       __builtin_offsetof(struct sf_tables, flags), "sf_vma ends with sf_tables");

/* No row: by the frame pointer, remembering why. `cause` says what a dead end will be called. */
static __always_inline int step_unknown(struct sf_scratch *s, u32 cause)
{
	int err;

	if (!s->cause)
		s->cause = cause;
	if ((s->regs.flags & SF_REGS_FP_END) ||
	    (s->n > 1 && !s->regs.fp && s->regs.entry_sp - s->regs.sp <= 64 && cause != SF_STOP_JIT))
		return SF_STOP_COMPLETE;
	err = step_fp(&s->regs);
	return err == SF_STOP_BAD_CFA || err == SF_STOP_READ_FAULT ? s->cause : err;
}

static __always_inline u32 cause_of_state(const struct sf_vma *v)
{
	switch (v->state) {
	case SF_MOD_READY:
		return SF_STOP_NO_ROW;
	case SF_MOD_JIT:
		return SF_STOP_JIT;
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
 * A frame whose mapping has no rows for it: recorded, then left by the frame pointer. found: slot of s->vmas, -1 none.
 * Global: out of the hot path, and verified once.
 */
__noinline int frame_without_row(u32 slot, int found)
{
	struct sf_scratch *s = scratch_of(slot);
	struct sf_vma *v;
	u64 word, at;
	u32 n, cause;

	if (!s)
		return SF_STOP_NO_ROW;
	at = s->regs.pc - (s->regs.flags & SF_REGS_RA);
	word = (u64)(s->regs.flags & (SF_REGS_RA | SF_REGS_BY_FP)) << 59;
	n = s->n;
	if (found < 0 && (s->regs.flags & SF_REGS_BY_FP))	/* a wrong guess is no frame */
		return s->cause ? s->cause : SF_STOP_NO_MODULE;
	v = vma_at(s, found);
	if (found < 0)
		word |= SF_FRAME_RAW << SF_FRAME_KIND_SHIFT | (at & SF_FRAME_ADDR_MASK);
	else if (v->state == SF_MOD_JIT)
		word |= SF_FRAME_JIT << SF_FRAME_KIND_SHIFT | (at & SF_FRAME_ADDR_MASK);
	else
		word |= SF_FRAME_NOROW << SF_FRAME_KIND_SHIFT | v->word | ((at + v->delta) & SF_FRAME_OFFSET_MASK);
	if (n >= SF_MAX_USER)
		return SF_STOP_DEPTH;
	s->frames[n & (SF_MAX_USER - 1)] = word;
	s->n = n + 1;
	if (found < 0)
		return SF_STOP_NO_MODULE;
	if (cfg_note_words)
		note_fp(s);
	cause = cause_of_state(v);
	return step_unknown(s, cause);
}

/*
 * Return address -> rule: an exact cache. Module id (25 bits) and file offset (34) make a 59-bit key; multiplied by
 * an odd number modulo 2^59 it is another 59-bit number, uniquely, here in the upper bits of a word. 12 bits of that choose
 * the entry, the other 47 are compared. An id's rules never change while it has tables, nor when it has them again, and no id
 * is used twice.
 */
#define CACHE_FACTOR (0x4f1bbcdcbfa53e1ull << 5)
#define CACHE_KEY(v, offset) (((v)->word | (offset)) * CACHE_FACTOR)
#define CACHE_SLOT(key) ((key) >> 52)
#define CACHE_TAG(key) ((key) << 12 | 1 << 16)	/* bit 16: never 0, as empty entries are */

_Static_assert(SF_CACHE_BITS == 12 && SF_FRAME_MODULE_MASK < 1 << 25 && SF_FRAME_MODULE_SHIFT == 34, "the cache's key is exact");

/* What the cache does not know. Global: the search would otherwise be verified once per frame of the callback. */
__noinline int row_search(u32 slot, u32 i, u64 offset)
{
	struct sf_scratch *s = scratch_of(slot);

	return s ? row_find((struct sf_tables *)&vma_at(s, i)->first_page, offset) : SF_RULE_GAP;
}

static __always_inline u32 row_of(struct sf_scratch *s, struct sf_cache *c, u32 slot, u32 i, u64 offset)
{
	const struct sf_vma *v = vma_at(s, i);
	u64 key, *entry, have;
	u32 code;

	/* Innermost pcs are too many to be worth remembering. */
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

#include "trail.bpf.h"

/* Records the frame that the registers are in, and steps to its caller. SF_STEP_GO or a stop reason. t: trail_on(). */
static __always_inline int unwind_frame(struct sf_scratch *s, struct sf_cache *c, struct sf_trail *t, u32 slot)
{
	u32 flags = s->regs.flags, n = s->n, code;
	u64 at = s->regs.pc - (flags & SF_REGS_RA);
	int found = s->vma_last & (SF_SLOTS - 1);
	struct sf_vma *v = &s->vmas[found];
	u64 offset, word;

	if (at - v->start >= v->len) {
		found = vma_find(slot, at);
		v = vma_at(s, found);
	}
	if (found < 0 || v->state != SF_MOD_READY)
		return frame_without_row(slot, found);
	offset = (at + v->delta) & SF_FRAME_OFFSET_MASK;
	code = row_of(s, c, slot, found, offset);
	if (code == SF_RULE_GAP)
		return frame_without_row(slot, found);
	if (n >= SF_MAX_USER)
		return SF_STOP_DEPTH;
	asm volatile("" : "+r"(n));	/* see vma_at */
	if (cfg_note_words && ((code & SF_RULE_BASE_FP) || (flags & SF_REGS_BY_FP)))
		note_fp(s);
	word = v->word | offset | (u64)(flags & (SF_REGS_RA | SF_REGS_BY_FP)) << 59;
	s->frames[n & (SF_MAX_USER - 1)] = word;
	s->n = n + 1;
	if (trail_on()) {
		trail_note(t, &s->regs, word);
		t->slot = code & SF_RULE_INDEXED ? SF_TRAIL_BREAK : code & 31;
	}
	if (code & SF_RULE_INDEXED)
		return step_indexed(slot, code, offset);
	return step_packed(&s->regs, code, v->flags);
}

static int unwind_some(u32 round, void *ctx)
{
	u32 slot = *(u32 *)ctx;
	struct sf_scratch *s = scratch_of(slot);
	struct sf_cache *c = bpf_map_lookup_elem(&cache, &slot);
	struct sf_trail *t = NULL;
	int stop;

	if (!s || !c)
		return 1;
	if (trail_on()) {
		t = trail_of(slot);
		if (!t)
			return 1;
		trail_meet(s, t, slot);
	}
#define FRAME do { stop = unwind_frame(s, c, t, slot); if (stop != SF_STEP_GO) { s->stop = stop; return 1; } } while (0)
	FRAME;
	if (!cfg_cold)
		FRAME;
#undef FRAME
	return 0;
}

#define WARM_FRAMES 64

/*
 * A stack mostly has the outer frames of the last one. Their entries are loaded here all at once, so that unwinding need not wait
 * for one after the other when others have used the caches meanwhile.
 */
static __always_inline void cache_warm(struct sf_scratch *s, u32 slot)
{
	struct sf_cache *c = bpf_map_lookup_elem(&cache, &slot);
	u32 n = s->n, i;	/* of the last stack */

	if (!c)
		return;
#pragma clang loop unroll(disable)
	for (i = 0; i < WARM_FRAMES; i++) {
		u32 at = n - 1 - i;

		if (at >= SF_MAX_USER)
			break;
		*(volatile u64 *)&c->entry[CACHE_SLOT(s->frames[at] * CACHE_FACTOR)];
	}
}

/* s->regs, s->mm, s->pid are set. Leaves s->n frames and s->stop. */
static __always_inline void unwind_user(struct sf_scratch *s, u32 slot)
{
	struct sf_trail *t;

	if (cfg_cold)
		cache_warm(s, slot);
	s->n = 0;
	s->stop = SF_STOP_DEPTH;
	s->cause = 0;
	s->win_len = 0;
	s->win_want = SF_WINDOW_FIRST;
	if (cfg_note_words) {
		s->log_base = s->log_hash = s->regs.sp;
		s->log_end = s->log_far = s->log_n = s->log_fp_first = 0;
		s->log_fp = LOG_FP_FIRST;
	}
	space_enter(s, slot);
	t = trail_on() ? trail_of(slot) : NULL;
	if (t)
		trail_begin(t, &s->spaces[s->space & (SF_SPACES - 1)]);
	bpf_loop(SF_MAX_USER + 1, unwind_some, &slot, 0);
	if (t)
		trail_leave(slot);
	/* A frame-pointer guess through a file that is still being loaded proves nothing. */
	if (s->stop == SF_STOP_COMPLETE && s->cause == SF_STOP_NOT_LOADED)
		s->stop = SF_STOP_NOT_LOADED;
}

#endif
