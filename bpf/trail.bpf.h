/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The trail of the last stack of a CPU, and how the next one follows it.
 *
 * Samples that come soon after one another mostly share their outer frames: not only the same code, the same memory. A step is a function of
 * pc, sp, fp and of the one or two words that it reads. So where a stack has come to a state that the last one was in, in an
 * address space whose mappings are the same, it goes on as that one did, as long as the words are still what they were. To look at
 * them takes no row, and no step has to wait for the one before: their addresses are known.
 *
 * Only steps of packed rows are followed: what else a row depends on is not noted.
 */
#ifndef SFBPF_TRAIL_BPF_H
#define SFBPF_TRAIL_BPF_H

/* x86-64: there a packed row reads RA and FP by sf_read_frame. */
static __always_inline bool trail_on(void)
{
#if defined(__TARGET_ARCH_x86) && !defined(SF_REMOTE)
	return cfg_trail && !cfg_note_words;
#else
	return false;
#endif
}

static __always_inline struct sf_trail *trail_of(u32 slot)
{
	return bpf_map_lookup_elem(&trails, &slot);
}

/* The barrier: see vma_at. */
static __always_inline struct sf_state *trail_at(struct sf_trail *t, u32 i)
{
	asm volatile("" : "+r"(i));
	return &t->at[i & (SF_TRAIL - 1)];
}

/* What is known of another stack is good if it has the same mappings, and if changes of them would show. */
static __always_inline void trail_begin(struct sf_trail *t, const struct sf_space *space)
{
	if (t->ctx_id != space->ctx_id || t->epoch != space->epoch || t->gone != space->next) {
		t->ctx_id = space->ctx_id;
		t->epoch = space->epoch;
		t->gone = space->next;
		t->top = t->end = SF_TRAIL_TOP;
	}
	t->next = t->kept = t->top;
	t->nfresh = 0;
	t->slot = SF_TRAIL_BREAK;
}

/* How the step to a state was made. */
static __always_inline void trail_link(struct sf_state *at, u32 slot)
{
	at->slot = slot;
	at->low = slot ? at->fp : at->pc;
	at->span = slot ? slot * 8 : 8;
}

/* The state whose frame is being recorded. */
static __always_inline void trail_note(struct sf_trail *t, const struct sf_regs *r, u64 word)
{
	u32 n = t->nfresh;
	struct sf_state *f = &t->fresh[n & (SF_FRESH - 1)];

	f->pc = r->pc;
	f->sp = r->sp;
	f->fp = r->fp;
	f->word = word;
	trail_link(f, r->flags == SF_REGS_RA ? t->slot : SF_TRAIL_BREAK);
	t->nfresh = n + 1;
}

/* The new states become at[to] and so on; how many there was room for. */
static __always_inline u32 trail_put(struct sf_trail *t, u32 to)
{
	u32 n = t->nfresh, i;

#pragma clang loop unroll(disable)
	for (i = 0; i < SF_FRESH; i++) {
		if (i >= n || to + i >= SF_TRAIL_END)
			break;
		*trail_at(t, to + i) = t->fresh[i];
	}
	t->nfresh = 0;
	return i;
}

/* The stack goes on otherwise than the last one. Global, as trail_follow: verified once, and hardly at all where no trail is on. */
__noinline int trail_leave(u32 slot)
{
	struct sf_trail *t = trail_on() ? trail_of(slot) : NULL;

	if (!t)
		return 0;
	if (t->kept == t->top)
		t->kept = t->top = SF_TRAIL_TOP;
	t->kept += trail_put(t, t->kept);
	t->end = t->next = t->kept;
	trail_at(t, t->end)->span = SF_TRAIL_BREAK;
	return 0;
}

/* From the state at[next] to those behind it, as far as memory says so; LEGS of them a round. */
#define LEGS 8
static int trail_some(u32 round, void *ctx)
{
	u32 slot = *(u32 *)ctx;
	struct sf_scratch *s = scratch_of(slot);
	struct sf_trail *t = trail_of(slot);
	const struct sf_state *at;
	u32 next, n, len, span = 0, gone = 0;
	u64 base, top, *frame;

	if (!s || !t)
		return 1;
	next = t->next;
	n = s->n;
	asm volatile("" : "+r"(next), "+r"(n));	/* see vma_at */
	if (next > SF_TRAIL - 1 - LEGS || n > SF_MAX_USER - LEGS)
		return 1;
	at = &t->at[next];
	frame = &s->frames[n];
	base = s->win_base;
	len = s->win_len;
#define LEG(i)											\
	do {											\
		gone = i;									\
		span = at[i + 1].span;								\
		top = at[i + 1].sp - base;							\
		if (top > len || top < span)							\
			goto fill;								\
		if (WINDOW_AT(s, top - 8) != at[i + 1].pc || WINDOW_AT(s, top - span) != at[i + 1].low)	\
			goto out;								\
		frame[i] = at[i].word;								\
	} while (0)
	LEG(0);
	LEG(1);
	LEG(2);
	LEG(3);
	LEG(4);
	LEG(5);
	LEG(6);
	LEG(7);
#undef LEG
	s->n = n + LEGS;
	t->next = next + LEGS;
	return 0;
fill:
	s->n = n + gone;
	t->next = next + gone;
	return span >= SF_TRAIL_BREAK || window_fill(s, base + top - span) || span > s->win_len;
out:
	s->n = n + gone;
	t->next = next + gone;
	return 1;
}

/* The stack is in the state at[next]. */
__noinline int trail_follow(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	struct sf_trail *t = trail_on() ? trail_of(slot) : NULL;
	struct sf_state *at;
	u32 next, n;
	u64 left;

	if (!s || !t)
		return 0;
	next = t->next;
	n = t->nfresh;
	if (n > next)
		return trail_leave(slot);
	if (next - n != t->kept)
		t->top = next - n;
	trail_put(t, next - n);
	trail_link(trail_at(t, next), t->slot);	/* the last stack may have come from another callee */
	left = trail_at(t, t->end - 1)->sp - s->regs.sp;
	if (left > s->win_want)
		s->win_want = left < SF_WINDOW ? left : SF_WINDOW;
	bpf_loop(2 * SF_TRAIL, trail_some, &slot, 0);
	at = trail_at(t, t->next);
	s->hits += t->next - next;
	s->regs.pc = at->pc;
	s->regs.sp = at->sp;
	s->regs.fp = at->fp;
	t->slot = at->slot;
	t->kept = t->next++;
	return 0;
}

/* Before a frame: whether it is one of the last stack's. */
static __always_inline void trail_meet(const struct sf_scratch *s, struct sf_trail *t, u32 slot)
{
	u32 next = t->next, end = t->end;
	u64 sp = s->regs.sp;
	struct sf_state *at;

	if (t->nfresh > SF_FRESH - 2)
		trail_leave(slot);
	for (int i = 0; i < 4; i++)
		if (next < end && trail_at(t, next)->sp < sp)
			next++;
	t->next = next;
	at = trail_at(t, next);
	if (next < end && at->sp == sp && at->pc == s->regs.pc && at->fp == s->regs.fp && s->regs.flags == SF_REGS_RA)
		trail_follow(slot);
}

#endif
