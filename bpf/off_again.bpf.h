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
#define AGAIN_PIECE 256		/* bytes; reading one costs about as much as a call that reads */
#define AGAIN_RUNS 16		/* a power of two. Pieces side by side, at most AGAIN_LONGEST bytes of them */
#define AGAIN_LONGEST 4096
#define AGAIN_NONE ~0u

#define AGAIN_KNOWN 1		/* see again_user */
#define AGAIN_ADDED 2

struct sf_again_place {
	u64 words;		/* hash of the words */
	u64 hash;		/* of the user part */
	u64 fp;			/* the innermost frame's */
	u16 n;			/* words */
	u16 end;		/* bytes from sp to behind the last one */
	u8 fp_used, runs;
	struct off_sum sum;
	u8 run[AGAIN_RUNS][2];	/* pieces that words are in: the first one, and the one behind the last */
	u16 at[AGAIN_USER];	/* which words, from sp */
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

/* Pieces of a user stack, by CPU: where they are, from sp. Sized by user space. (The verifier takes a piece for as long as any.) */
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

/* The pieces that the place's words are in. */
static __always_inline bool again_read(struct sf_again_stack *copy, const struct sf_again_place *p, u64 sp)
{
	for (u32 i = 0; i < AGAIN_RUNS && i < p->runs; i++) {
		u32 from = p->run[i][0] * AGAIN_PIECE, to = p->run[i][1] * AGAIN_PIECE, len;

		if (to > p->end)
			to = p->end;
		len = to - from;
		asm volatile("" : "+r"(from), "+r"(len));	/* see vma_at */
		if (from >= AGAIN_SPAN || len > AGAIN_LONGEST)
			return false;
		if (copy_user((char *)copy + from, len, sp + from))
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

/* Which pieces to read. false: too many. */
static __always_inline bool again_find_runs(struct sf_again_place *p, u64 pieces)
{
	p->runs = 0;
	for (u32 b = 0; b < 64 && pieces >> b; b++) {
		u32 n = *(volatile u8 *)&p->runs, before;	/* unknown to the verifier */
		u8 *run;

		if (!(pieces >> b & 1))
			continue;
		before = n - 1;
		asm volatile("" : "+r"(n), "+r"(before));	/* see vma_at */
		run = p->run[before & (AGAIN_RUNS - 1)];
		if (n && run[1] == b && b - run[0] < AGAIN_LONGEST / AGAIN_PIECE) {
			run[1] = b + 1;
			continue;
		}
		if (n >= AGAIN_RUNS)
			return false;
		run = p->run[n & (AGAIN_RUNS - 1)];
		run[0] = b;
		run[1] = b + 1;
		p->runs = n + 1;
	}
	return true;
}

_Static_assert(AGAIN_SPAN == 64 * AGAIN_PIECE, "pieces fit a mask");

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
static __always_inline void again_keep_user(struct sf_scratch *s, struct sf_again *m)
{
	u32 n = s->log_n, i = s->again_user;
	struct sf_again_place *p;
	u64 pieces = 0;

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
	p->end = s->log_end;
	for (u32 k = 0; k < AGAIN_USER; k++) {
		if (k >= n)
			break;
		p->at[k] = s->log[k];
		pieces |= 1ull << (s->log[k] / (AGAIN_PIECE / 8) & 63);
	}
	if (again_find_runs(p, pieces))
		m->key[i] = s->again_key;
}

#endif
