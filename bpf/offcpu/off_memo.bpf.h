/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Off-CPU: the memo of user stacks. A thread usually blocks in the same few places. For a thread's
 * last stacks, the memo keeps the inputs of their user parts. If none of the inputs has changed,
 * the stack is the same, and its hash is known without unwinding.
 *
 * The inputs of the unwinder are the innermost registers, the mappings with their tables, and the
 * words that it reads (note_word). The registers and mappings form one key. On a key hit, the cache
 * lines of the stack that hold the words are read again. Some stacks do not qualify and are unwound
 * each time: those that are incomplete, need tables that are missing, are deeper than
 * OFF_MEMO_SPAN, or have a step that may use other registers.
 */
#ifndef SFBPF_OFF_MEMO_BPF_H
#define SFBPF_OFF_MEMO_BPF_H

#include "core/fold.bpf.h"
#include "core/kload.bpf.h"
#include "core/maps.bpf.h"
#include "offcpu/off_scratch.bpf.h"
#include "core/space.bpf.h"
#include "core/unwind.bpf.h"

#define OFF_MEMO_PLACES	 8 /* per thread; a power of two */
#define OFF_MEMO_WORDS	 80
#define OFF_MEMO_LONGEST 4096 /* bytes per run; one helper call reads a run */
/* Lines without words inside a run, at most: reading them costs about as much as another call */
#define OFF_MEMO_GAP	 6
#define OFF_MEMO_NONE	 ~0u

struct off_memo_place {
	u64 words_hash;
	u64 hash; /* hash of the user part */
	u64 fp;	  /* the innermost frame's */
	u16 nwords;
	u8 fp_used, nruns;
	struct off_run run[OFF_MEMO_RUNS]; /* lines with words; line 0 is the line of sp */
	/* offsets of the words, in words from the beginning of line 0 */
	u16 word[OFF_MEMO_WORDS];
};

struct off_memo {
	u64 key[OFF_MEMO_PLACES]; /* off_memo_key(); 0: free. Adjacent, to share a cache line */
	struct off_memo_place place[OFF_MEMO_PLACES];
	u32 next, zero; /* the place for the next new stack */
};

/* Allocated at the first block of a thread that counts: threads that only sleep need none. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct off_memo);
} off_memos SEC(".maps");

/*
 * The lines of a user stack that a lookup reads. (The verifier assumes the maximum length for each
 * run.)
 */
struct off_stack_copy {
	u64 word[(OFF_MEMO_SPAN + OFF_MEMO_LONGEST) / 8];
};

/* Per CPU. Sized by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct off_stack_copy);
} off_stack_copies SEC(".maps");

/* Hash of all inputs of the user part except memory. 0: its mappings may change unnoticed. */
static __always_inline u64 off_memo_key(const struct sf_scratch *s)
{
	const struct sf_regs *r = &s->regs;
	u64 id = MM_ID(s->mm), h = id ^ cfg_hash_key;
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

/* Number of words from the beginning of sp's cache line to sp. */
static __always_inline u32 off_memo_shift(u64 sp)
{
	return sp / 8 & (OFF_MEMO_LINE / 8 - 1);
}

/* Reads the lines of a place. */
static __always_inline bool off_memo_read(struct off_stack_copy *copy,
					  const struct off_memo_place *p, u64 sp)
{
	u64 base = sp - 8 * off_memo_shift(sp);

	for (u32 i = 0; i < OFF_MEMO_RUNS && i < p->nruns; i++) {
		u32 from = p->run[i].first * OFF_MEMO_LINE, len = p->run[i].lines * OFF_MEMO_LINE;

		if (from >= OFF_MEMO_SPAN)
			return false;
		if (copy_user_part((char *)copy + AT_MOST(from, OFF_MEMO_SPAN - 1), len,
				   OFF_MEMO_LONGEST, base + from))
			return false;
	}
	return true;
}

/* Sets the registers of the current task, and the key. false: there is no key. */
static __always_inline bool off_memo_regs(struct sf_scratch *s, struct off_scratch *o)
{
	s->mm = KLOAD(bpf_get_current_task(), struct task_struct, mm);
	o->memo_key = 0;
	if (regs_of_task(&s->regs, bpf_get_current_task_btf()) != SF_STEP_GO)
		return false;
	regs_of_mm(&s->regs, s->mm);
	o->memo_fp = s->regs.fp;
	o->memo_key = off_memo_key(s);
	return o->memo_key != 0;
}

/*
 * Looks up the current thread's user part. 1: found, and memo_hash is its hash. Sets memo_key and
 * memo_place for off_memo_store.
 */
__noinline int off_memo_lookup(u32 slot)
{
	struct off_memo *m = bpf_task_storage_get(&off_memos, bpf_get_current_task_btf(), NULL, 0);
	u32 cpu = bpf_get_smp_processor_id(), i;
	struct off_stack_copy *copy = bpf_map_lookup_elem(&off_stack_copies, &cpu);
	struct sf_scratch *s = scratch_of(slot);
	struct off_scratch *o = off_scratch_of(slot);
	struct off_memo_place *p;
	u64 h;

	if (!s || !o || !copy || !cfg_note_words)
		return 0;
	o->memo_place = OFF_MEMO_NONE;
	if (!off_memo_regs(s, o) || !m)
		return 0;
	for (i = 0; i < OFF_MEMO_PLACES; i++)
		if (m->key[i] == o->memo_key)
			o->memo_place = i;
	i = *(volatile u32 *)&o->memo_place; /* unknown to the verifier */
	if (i >= OFF_MEMO_PLACES)
		return 0;
	p = &m->place[INDEX(i, OFF_MEMO_PLACES)];
	if ((p->fp_used && p->fp != s->regs.fp) || !off_memo_read(copy, p, s->regs.sp))
		return 0;
	h = s->regs.sp;
	for (i = 0; i < OFF_MEMO_WORDS; i++) {
		if (i >= p->nwords)
			break;
		FOLD(h, copy->word[INDEX(p->word[i], OFF_MEMO_SPAN / 8)], FOLD_MUL1);
	}
	if (h != p->words_hash)
		return 0;
	o->memo_hash = p->hash;
	return 1;
}

/* Adds line i, if it holds words, to the last run or to a new one. 1: too many runs. */
static int off_memo_add_line(u32 i, void *ctx)
{
	struct off_scratch *o = off_scratch_of(*(u32 *)ctx);
	u32 n, first;

	if (!o)
		return 1;
	if (!(o->lines[INDEX(i / 64, OFF_MEMO_LINES / 64)] >> (i & 63) & 1))
		return 0;
	n = o->nruns;
	first = o->run_first;
	if (n && i - o->run_end <= OFF_MEMO_GAP && i - first < OFF_MEMO_LONGEST / OFF_MEMO_LINE) {
		o->run[INDEX(n - 1, OFF_MEMO_RUNS)].lines = i + 1 - first;
	} else {
		o->nruns = n + 1;
		if (n >= OFF_MEMO_RUNS)
			return 1;
		o->run_first = i;
		o->run[INDEX(n, OFF_MEMO_RUNS)].first = i;
		o->run[INDEX(n, OFF_MEMO_RUNS)].lines = 1;
	}
	o->run_end = i + 1;
	return 0;
}

_Static_assert(OFF_MEMO_LINES <= 256, "a line's number fits off_run.first");

/* Stores the stack that was unwound after a miss in off_memo_lookup. */
static __always_inline void off_memo_store(struct sf_scratch *s, struct off_scratch *o, u32 slot,
					   struct off_memo *m)
{
	u32 n = s->log_n, i = o->memo_place;
	struct off_memo_place *p;
	u32 shift = off_memo_shift(s->log_base), bits = 0;

	if (i < OFF_MEMO_PLACES)
		m->key[INDEX(i, OFF_MEMO_PLACES)] = 0;
	if (s->stop != SF_STOP_COMPLETE || s->spaces[INDEX(s->space, SF_SPACES)].provisional ||
	    n > OFF_MEMO_WORDS || (s->log_far & ~(OFF_MEMO_SPAN - 8ull)))
		return;
	if (i >= OFF_MEMO_PLACES)
		i = m->next++;
	p = &m->place[INDEX(i, OFF_MEMO_PLACES)];
	m->key[INDEX(i, OFF_MEMO_PLACES)] = 0;
	p->fp = o->memo_fp;
	p->fp_used = s->log_fp_first;
	p->words_hash = s->log_hash;
	p->hash = o->user_hash;
	p->nwords = n;
	__builtin_memset(o->lines, 0, sizeof(o->lines));
	for (u32 k = 0; k < OFF_MEMO_WORDS; k++) {
		if (k >= n)
			break;
		p->word[k] = s->log[k] + shift;
		bits |= p->word[k];
		o->lines[INDEX(p->word[k] / (8 * 64), OFF_MEMO_LINES / 64)] |=
			1ull << (p->word[k] / 8 & 63);
	}
	if (bits >= OFF_MEMO_SPAN / 8)
		return;
	o->nruns = 0;
	bpf_loop(OFF_MEMO_LINES, off_memo_add_line, &slot, 0);
	if (o->nruns > OFF_MEMO_RUNS)
		return;
	p->nruns = o->nruns;
	__builtin_memcpy(p->run, o->run, sizeof(p->run));
	m->key[INDEX(i, OFF_MEMO_PLACES)] = o->memo_key;
}

#endif
