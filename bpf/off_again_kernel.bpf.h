/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Off-CPU: the same kernel stack again (x86), of whatever thread. Threads block at few places of the kernel; what a stack there was made
 * from is kept by CPU, and if all of that is so again, so are the frames, and the kernel's unwinder is left alone.
 *
 * It begins at the saved stack pointer; it steps by return addresses and by the addresses that it computes or finds of places on
 * that stack (saved frame pointers, the sp in saved registers). So the words that count are among those that are addresses of kernel
 * code or of this stack, and if all of these are the same, it goes the same way: by induction, each of its reads is at the
 * same place, and finds either one of them, or a word that it does not step by. Addresses of this stack are the same if their distance to
 * the stack pointer is, or, above the place where each system call adds a random distance, that to the stack's beginning.
 * Beyond that it depends on the kernel's own tables: on code that is unloaded while others is loaded at its
 * address. What it found where it gave up (a damaged stack) may differ.
 */
#ifndef SFBPF_OFF_AGAIN_KERNEL_BPF_H
#define SFBPF_OFF_AGAIN_KERNEL_BPF_H

#include "off_again.bpf.h"

#define AGAIN_WAYS 4		/* stacks of a set; a power of two */
#define AGAIN_WORDS 64
#define AGAIN_FRAMES 24

struct sf_again_kernel {
	u64 words, hash;	/* of the words; of the stack */
	u64 entry;		/* the outermost RA */
	u16 n, n_frames;	/* n 0: only hash is known */
	u32 zero;
	u16 at[AGAIN_WORDS];	/* which, from sp, and AGAIN_NEAR or AGAIN_FAR */
	u8 check[AGAIN_WORDS];	/* 8 bits of each one's hash */
	u32 frames[AGAIN_FRAMES];	/* their lower halves */
};

/* One cache line says which of them it may be. */
struct sf_again_set {
	u32 last[AGAIN_WAYS];		/* the last word's lower half */
	u16 last_at[AGAIN_WAYS];	/* from sp; 0: the stack is not known */
	u64 zero;
	struct sf_again_kernel stack[AGAIN_WAYS];
};

/* SF_AGAIN_SETS for each CPU; sized by user space. Written where interrupts are off: by sched_switch. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct sf_again_set);
} off_kernels SEC(".maps");

#define KERNEL_TEXT 0xffffffff80000000ull	/* and modules: Documentation/arch/x86/x86_64/mm.rst */
#define KERNEL_TEXT_END 0xffffffffff000000ull
/* Of at[]: the word is the address of a place between sp and the last frame's RA, or of another one on the stack. */
#define AGAIN_NEAR 0x8000
#define AGAIN_FAR 0x4000

static __always_inline u64 kernel_sp(u64 task)
{
	return bpf_core_field_exists(struct task_struct, thread.sp) ? KLOAD(task, struct task_struct, thread.sp) : 0;
}

static __always_inline u64 again_entry_at(u64 stack)
{
	return stack + cfg_thread_size - sizeof(struct pt_regs) - 8;
}

static __always_inline struct sf_again_set *kernel_set(u32 i)
{
	return bpf_map_lookup_elem(&off_kernels, &i);
}

/* By sf_scratch.again_kernel: the set and the stack in it. */
static __always_inline struct sf_again_kernel *kernel_at(u32 i)
{
	struct sf_again_set *set = kernel_set(i / AGAIN_WAYS);

	return set ? &set->stack[i & (AGAIN_WAYS - 1)] : NULL;
}

static __always_inline u64 again_word(u64 at, u64 sp, u64 stack)
{
	u64 near = -(at >> 15), far = -(at >> 14 & 1);

	asm volatile("" : "+r"(near), "+r"(far));	/* no branches: the verifier would go both ways at each word */
	return kload(sp + (at & (AGAIN_FAR - 1)) * 8) - (sp & near) - (stack & far);
}

static __always_inline u8 again_check(u64 word)
{
	return word * FOLD_MUL2 >> 56;
}

/* The set that the stack belongs to: by the system call and by the function that called schedule(). */
static __always_inline u32 again_set(const struct sf_scratch *s, u64 stack, u64 sp)
{
	u64 h = kload(again_entry_at(stack) + 8 + REGS_CALL_AT);

	if (s->scan_third)
		h += kload(sp + 8ull * s->scan_third) * FOLD_MUL2;
	return bpf_get_smp_processor_id() * SF_AGAIN_SETS + (h * FOLD_MUL1 >> 32) % SF_AGAIN_SETS;
}

static __always_inline bool again_same(const struct sf_again_kernel *k, u64 stack, u64 sp)
{
	u64 h = 0;
	u32 i;

	for (i = 0; i < AGAIN_WORDS; i++) {
		if (i >= k->n)
			break;
		FOLD(h, again_word(k->at[i], sp, stack), FOLD_MUL1);
	}
	return h == k->words && kload(again_entry_at(stack)) == k->entry;
}

/* Whether the kernel stack of s->off_task is known: then its hash is in s->kernel_hash, and s->again_kernel says where the rest is. */
__noinline int again_kernel(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	struct sf_again_kernel *k;
	struct sf_again_set *set;
	u64 sp, stack;
	u32 i, at;

	if (!s || !cfg_note_words)
		return 0;
	sp = kernel_sp(s->off_task);
	stack = KLOAD(s->off_task, struct task_struct, stack);
	s->again_kernel = AGAIN_NONE;
	if (sp - stack >= cfg_thread_size)
		return 0;
	at = again_set(s, stack, sp);
	set = kernel_set(at);
	if (!set)
		return 0;
	for (i = 0; i < AGAIN_WAYS; i++)
		if (set->last_at[i] && (u32)kload(sp + 8ull * set->last_at[i]) == set->last[i])
			s->again_kernel = at * AGAIN_WAYS + i;
	k = kernel_at(*(volatile u32 *)&s->again_kernel);	/* which the verifier need not tell apart */
	if (!k || !again_same(k, stack, sp)) {
		s->again_kernel = AGAIN_NONE;
		return 0;
	}
	s->kernel_hash = k->hash;
	return 1;
}

#define SCAN_BLOCK 16
#define SCAN_WORDS 1024

/* Notes where words are that may count, up to the RA of frame scan_n - 2. */
static int scan_block(u32 i, void *ctx)
{
	struct sf_scratch *s = scratch_of(*(u32 *)ctx);
	u32 k, j;

	if (!s)
		return 1;
	for (k = 0; k < SCAN_BLOCK; k++) {
		u64 at = s->log_base + 8ull * (i * SCAN_BLOCK + k), word = kload(at);

		if (word - KERNEL_TEXT < KERNEL_TEXT_END - KERNEL_TEXT) {
			note_word(s, at, word);
			j = s->scan_at;
			if (j < SF_MAX_KERNEL && word == s->frames[SF_MAX_USER + j]) {
				s->scan_at = j + 1;
				if (j == 2 && !s->scan_third)
					s->scan_third = (at - s->log_base) / 8;
				if (j + 2 >= s->scan_n)
					return 1;
			}
		} else if (word - s->scan_stack < cfg_thread_size) {
			note_word(s, at, word);
		}
	}
	return 0;
}

/* A word that counts. */
static __always_inline void again_add(struct sf_scratch *s, struct sf_again_kernel *k, u32 at, u64 word)
{
	u32 n = s->scan_kept;

	s->scan_kept = n + 1;
	if (n >= AGAIN_WORDS)
		return;
	k->at[n] = at;
	k->check[n] = again_check(word);
	s->scan_last = word;
	s->scan_last_at = at;
	FOLD(s->log_hash, word, FOLD_MUL1);
}

static int again_add_found(u32 i, void *ctx)
{
	struct sf_scratch *s = scratch_of(*(u32 *)ctx);
	struct sf_again_kernel *k = s ? kernel_at(s->again_kernel) : NULL;
	u32 at;
	u64 word;

	if (!k)
		return 1;
	at = s->log[i & (SF_LOG - 1)];
	word = kload(s->log_base + 8ull * at);
	if (word - s->log_base < s->log_end)
		at |= AGAIN_NEAR;
	else if (word - s->scan_stack < cfg_thread_size)
		at |= AGAIN_FAR;
	again_add(s, k, at, again_word(at, s->log_base, s->scan_stack));
	return 0;
}

/*
 * The same frames, but not the same words: those that differ have nothing to do with the frames, as long as the frames' return
 * addresses, in their order, are among those that do not.
 */
static int again_add_same(u32 i, void *ctx)
{
	struct sf_scratch *s = scratch_of(*(u32 *)ctx);
	struct sf_again_kernel *k = s ? kernel_at(s->again_kernel) : NULL;
	u32 j, at;
	u64 word;

	if (!k)
		return 1;
	i &= AGAIN_WORDS - 1;
	at = k->at[i];
	word = again_word(at, s->log_base, s->scan_stack);
	if (again_check(word) != k->check[i])
		return 0;
	j = s->scan_at;
	if (at < AGAIN_FAR && j < AGAIN_FRAMES && (u32)word == k->frames[j])
		s->scan_at = j + 1;
	again_add(s, k, at, word);
	return 0;
}

static int again_add_frame(u32 i, void *ctx)
{
	struct sf_scratch *s = scratch_of(*(u32 *)ctx);
	struct sf_again_kernel *k = s ? kernel_at(s->again_kernel) : NULL;

	if (!k || i >= AGAIN_FRAMES)
		return 1;
	k->frames[i] = s->frames[SF_MAX_USER + i];
	return 0;
}

/*
 * Where in its set the stack with kernel_hash is or shall be: those that are known give way only to one another.
 */
static __always_inline void again_choose(struct sf_scratch *s, const struct sf_again_set *set, u32 at)
{
	s->again_kernel = at * AGAIN_WAYS + s->kernel_hash % AGAIN_WAYS;
	for (u32 i = 0; i < AGAIN_WAYS; i++)
		if (!set->last_at[i])
			s->again_kernel = at * AGAIN_WAYS + i;
	for (u32 i = 0; i < AGAIN_WAYS; i++)
		if (set->stack[i].hash == s->kernel_hash)
			s->again_kernel = at * AGAIN_WAYS + i;
}

/* The words that count, of a stack with n frames: those of the `had` ones that were so before, or all, if none are known. */
static __always_inline void again_learn(struct sf_scratch *s, u32 slot, u32 had, u32 n)
{
	s->scan_at = s->scan_kept = 0;
	if (!had) {
		s->log_n = s->log_end = 0;
		bpf_loop(SCAN_WORDS / SCAN_BLOCK, scan_block, &slot, 0);
		bpf_loop(n, again_add_frame, &slot, 0);
	}
	s->log_hash = 0;
	if (had)
		bpf_loop(had, again_add_same, &slot, 0);
	else if (s->log_n <= AGAIN_WORDS)
		bpf_loop(s->log_n, again_add_found, &slot, 0);
}

/*
 * After the kernel's unwinder has put s->n_beside frames of s->off_task at frames[SF_MAX_USER]. Their words are looked for when they
 * come a second time: what never comes again costs little.
 */
__noinline int again_keep_kernel(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	struct sf_again_kernel *k;
	struct sf_again_set *set;
	u64 stack, sp, entry;
	u32 n, at, way;

	if (!s || !cfg_note_words)
		return 0;
	sp = kernel_sp(s->off_task);
	stack = KLOAD(s->off_task, struct task_struct, stack);
	n = s->n_beside;
	if (sp - stack >= cfg_thread_size || n < 2 || n > AGAIN_FRAMES)
		return 0;
	entry = kload(again_entry_at(stack));
	if (s->frames[SF_MAX_USER + n - 1] != entry)
		return 0;
	at = again_set(s, stack, sp);
	set = kernel_set(at);
	if (!set)
		return 0;
	again_choose(s, set, at);
	way = *(volatile u32 *)&s->again_kernel & (AGAIN_WAYS - 1);
	k = &set->stack[way];
	set->last_at[way] = 0;
	if (k->hash != s->kernel_hash) {
		k->n = 0;
		k->hash = s->kernel_hash;
		return 0;
	}
	s->scan_stack = stack;
	s->scan_n = n;
	s->log_base = sp;
	again_learn(s, slot, k->n, n);
	k->words = s->log_hash;
	k->entry = entry;
	k->n_frames = n;
	k->n = s->scan_at + 1 >= n && s->scan_kept <= AGAIN_WORDS ? s->scan_kept : 0;
	if (k->n) {
		set->last[way] = s->scan_last;
		set->last_at[way] = s->scan_last_at;
	}
	return 0;
}

#endif
