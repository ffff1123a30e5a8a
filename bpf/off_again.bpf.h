/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Off-CPU: the same user stack again. Threads block at few places, again and again. What the user parts of a thread's last stacks were
 * made from is kept, and if all of that is still so, the stack is what it was, and its hash is known without unwinding.
 *
 * The unwinder is a function of the innermost registers, of the mappings with their tables, and of the words it
 * reads (note_word). The first two are one key here, the words are read again: those pieces of the stack that they are in. Left
 * alone: stacks that are not complete, with files whose tables are missing, deeper than AGAIN_SPAN, or with a step that may use other
 * registers.
 */
#ifndef SFBPF_OFF_AGAIN_BPF_H
#define SFBPF_OFF_AGAIN_BPF_H

#include "off_clock.bpf.h"
#include "off_sum.bpf.h"
#include "unwind.bpf.h"

#define AGAIN_PLACES 8		/* of a thread; a power of two */
#define AGAIN_USER 80		/* words */
#define AGAIN_SPAN 16384	/* bytes of stack; a power of two */
#define AGAIN_LINE 64		/* bytes: what a miss of the caches costs */
#define AGAIN_LINES (AGAIN_SPAN / AGAIN_LINE)
#define AGAIN_RUNS 16		/* a power of two. Lines that are read by one call, at most AGAIN_LONGEST bytes of them */
#define AGAIN_LONGEST 4096
#define AGAIN_GAP 6		/* so many lines without a word are read along: about what another call costs */
#define AGAIN_NONE ~0u

#define AGAIN_KNOWN 1		/* see again_user */
#define AGAIN_ADDED 2

struct sf_again_place {
	u64 words;		/* hash of the words */
	u64 hash;		/* of the user part */
	u64 fp;			/* the innermost frame's */
	u16 n;			/* words */
	u8 fp_used, runs;
	struct off_sum sum;
	u8 run[AGAIN_RUNS][2];	/* lines that words are in: the first one, from sp's own, and how many */
	u16 at[AGAIN_USER];	/* which words, from there */
};

struct sf_again {
	u64 key[AGAIN_PLACES];	/* again_key(); 0: nothing is known. Side by side: one cache line */
	struct sf_again_place place[AGAIN_PLACES];
	u32 next;		/* the place to be used for another stack */
	u32 over;		/* the thread exits */
};

/* Made by a thread at its first block that counts: those that sleep cost nothing. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct sf_again);
} off_again SEC(".maps");

/* Lines of a user stack, by CPU: where they are, from sp's. Sized by user space. (The verifier takes a run for as long as any.) */
struct sf_again_stack {
	u64 word[(AGAIN_SPAN + AGAIN_LONGEST) / 8];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct sf_again_stack);
} off_copies SEC(".maps");

/* What the user part depends on beside memory. 0: its mappings may change unseen. */
static __always_inline u64 again_key(const struct sf_scratch *s)
{
	const struct sf_regs *r = &s->regs;
	u64 id = MM_ID(s->mm), h = id;
	u32 seq;

	if (!mm_exact(s->mm, id, &seq))
		return 0;
	FOLD(h, (u64)seq << 32 | *(volatile u32 *)&tables_epoch, FOLD_MUL1);
	FOLD(h, r->pc, FOLD_MUL2);
	FOLD(h, r->sp, FOLD_MUL1);
	FOLD(h, REGS_MORE(r), FOLD_MUL2);
	FOLD(h, r->entry_sp ^ (u64)r->flags << 56, FOLD_MUL1);
	return h;
}

/* Words between sp and the beginning of its line. */
static __always_inline u32 again_shift(u64 sp)
{
	return sp / 8 & (AGAIN_LINE / 8 - 1);
}

/* The lines that the place's words are in. */
static __always_inline bool again_read(struct sf_again_stack *copy, const struct sf_again_place *p, u64 sp)
{
	u64 base = sp - 8 * again_shift(sp);

	for (u32 i = 0; i < AGAIN_RUNS && i < p->runs; i++) {
		u32 from = p->run[i][0] * AGAIN_LINE, len = p->run[i][1] * AGAIN_LINE;

		asm volatile("" : "+r"(from), "+r"(len));	/* see vma_at */
		if (from >= AGAIN_SPAN || len > AGAIN_LONGEST)
			return false;
		if (copy_user((char *)copy + from, len, base + from))
			return false;
	}
	return true;
}

/* The registers of the current task, and again_key. */
static __always_inline bool again_regs(struct sf_scratch *s)
{
	s->mm = KLOAD(bpf_get_current_task(), struct task_struct, mm);
	s->again_key = 0;
	if (regs_of_task(&s->regs, bpf_get_current_task_btf()) != SF_STEP_GO)
		return false;
	regs_of_mm(&s->regs, s->mm);
	s->again_fp = s->regs.fp;
	s->again_key = again_key(s);
	return s->again_key != 0;
}

/* What a block of the current task's has in common with others that end at the same stack, beside its user part. 0: it is counted by itself. */
static __always_inline u64 again_kind(const struct sf_scratch *s)
{
	u64 task = bpf_get_current_task(), h = s->kernel_hash;

	if (!cfg_off_sums || s->off_waiting || off_finish)
		return 0;
	FOLD(h, kload(KADDR(task, struct task_struct, comm)), FOLD_MUL1);
	FOLD(h, kload(KADDR(task, struct task_struct, comm) + 8), FOLD_MUL2);
	FOLD(h, (u64)*(volatile u32 *)&off_generation << 8 | s->off_state, FOLD_MUL1);
	if (cfg_want_cgroup)
		FOLD(h, bpf_get_current_cgroup_id(), FOLD_MUL2);
	return h > OFF_SUM_BUSY ? h : OFF_SUM_BUSY + 1;
}

/*
 * Whether the current thread's user part is what it was: AGAIN_KNOWN, its hash is again_hash. AGAIN_ADDED: so is all else, and
 * the block, which is over, is added up.
 */
__noinline int again_user(u32 slot)
{
	struct sf_again *m = bpf_task_storage_get(&off_again, bpf_get_current_task_btf(), NULL, 0);
	u32 cpu = bpf_get_smp_processor_id(), i;
	struct sf_again_stack *copy = bpf_map_lookup_elem(&off_copies, &cpu);
	struct sf_scratch *s = scratch_of(slot);
	struct sf_again_place *p;
	u64 h;

	if (!s || !copy || !cfg_note_words)
		return 0;
	s->again_user = AGAIN_NONE;
	s->again_kind = 0;
	if (!again_regs(s) || !m)
		return 0;
	for (i = 0; i < AGAIN_PLACES; i++)
		if (m->key[i] == s->again_key)
			s->again_user = i;
	i = *(volatile u32 *)&s->again_user;	/* unknown to the verifier */
	if (i >= AGAIN_PLACES)
		return 0;
	p = &m->place[i];
	if ((p->fp_used && p->fp != s->regs.fp) || !again_read(copy, p, s->regs.sp))
		return 0;
	h = s->regs.sp;
	for (i = 0; i < AGAIN_USER; i++) {
		if (i >= p->n)
			break;
		FOLD(h, copy->word[p->at[i] & (AGAIN_SPAN / 8 - 1)], FOLD_MUL1);
	}
	if (h != p->words)
		return 0;
	s->again_hash = p->hash;
	s->again_kind = again_kind(s);
	return off_sum_add(&p->sum, s->again_kind, s->off_blocked, s->off_stands_for) ? AGAIN_ADDED : AGAIN_KNOWN;
}

/* One of the lines of again_lines: into the last run, or a new one. 1: there are too many. */
static int again_add_line(u32 i, void *ctx)
{
	struct sf_scratch *s = scratch_of(*(u32 *)ctx);
	u32 n, first;

	if (!s)
		return 1;
	if (!(s->again_lines[i / 64 & 3] >> (i & 63) & 1))
		return 0;
	n = s->again_runs;
	first = s->again_first;
	if (n && i - s->again_end <= AGAIN_GAP && i - first < AGAIN_LONGEST / AGAIN_LINE) {
		s->again_run[(n - 1) & (AGAIN_RUNS - 1)][1] = i + 1 - first;
	} else {
		s->again_runs = n + 1;
		if (n >= AGAIN_RUNS)
			return 1;
		s->again_first = i;
		s->again_run[n & (AGAIN_RUNS - 1)][0] = i;
		s->again_run[n & (AGAIN_RUNS - 1)][1] = 1;
	}
	s->again_end = i + 1;
	return 0;
}

_Static_assert(AGAIN_LINES == 64 * 4, "lines fit again_lines, and a byte");
_Static_assert(sizeof(((struct sf_scratch *)0)->again_run) == sizeof(((struct sf_again_place *)0)->run), "runs are found there and copied");

/* The block went to the count s->off_key: those that are like it are added up. */
__noinline int again_begin_sum(u32 slot)
{
	struct sf_again *m = bpf_task_storage_get(&off_again, bpf_get_current_task_btf(), NULL, 0);
	struct sf_scratch *s = scratch_of(slot);

	if (m && s && !m->over && s->again_user < AGAIN_PLACES)
		off_sum_begin(&m->place[s->again_user & (AGAIN_PLACES - 1)].sum, s->again_kind, s->off_key);
	return 0;
}

static __always_inline void again_hand_in(struct sf_again *m)
{
	for (u32 i = 0; i < AGAIN_PLACES; i++)
		off_sum_hand_in(&m->place[i].sum);
}

/* Whether place i of the current thread can be used for another stack. */
__noinline int again_empty(u32 i)
{
	struct sf_again *m = bpf_task_storage_get(&off_again, bpf_get_current_task_btf(), NULL, 0);

	return m && !m->over && off_sum_hand_in(&m->place[i & (AGAIN_PLACES - 1)].sum);
}

/* After again_user and unwinding. */
static __always_inline void again_keep_user(struct sf_scratch *s, u32 slot, struct sf_again *m)
{
	u32 n = s->log_n, i = s->again_user;
	struct sf_again_place *p;
	u32 shift = again_shift(s->log_base), far = 0;

	if (i < AGAIN_PLACES)
		m->key[i & (AGAIN_PLACES - 1)] = 0;
	if (s->stop != SF_STOP_COMPLETE || s->spaces[s->space & (SF_SPACES - 1)].passing || n > AGAIN_USER ||
	    (s->log_far & ~(AGAIN_SPAN - 8ull)))
		return;
	if (i >= AGAIN_PLACES)
		i = m->next++;
	i &= AGAIN_PLACES - 1;
	p = &m->place[i];
	if (!again_empty(i))
		return;
	p->fp = s->again_fp;
	p->fp_used = s->log_fp_first;
	p->words = s->log_hash;
	p->hash = s->user_hash;
	p->n = n;
	__builtin_memset(s->again_lines, 0, sizeof(s->again_lines));
	for (u32 k = 0; k < AGAIN_USER; k++) {
		if (k >= n)
			break;
		p->at[k] = s->log[k] + shift;
		far |= p->at[k];
		s->again_lines[p->at[k] / (8 * 64) & 3] |= 1ull << (p->at[k] / 8 & 63);
	}
	if (far >= AGAIN_SPAN / 8)
		return;
	s->again_runs = 0;
	bpf_loop(AGAIN_LINES, again_add_line, &slot, 0);
	if (s->again_runs > AGAIN_RUNS)
		return;
	p->runs = s->again_runs;
	__builtin_memcpy(p->run, s->again_run, sizeof(p->run));
	m->key[i] = s->again_key;
}

#endif
