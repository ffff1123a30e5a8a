/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Off-CPU: the same stack again. Threads block at few places, again and again. What both parts of a thread's last stack were
 * made from is kept, and if all of that is still so, the stack is what it was, and its hash is known without unwinding.
 *
 * User part. The unwinder is a function of the innermost registers, of the mappings with their tables, and of the words it
 * reads (note_word). The first two are one key here, the words are read again with one copy of the stack. Left alone: stacks
 * that are not complete, with files whose tables are missing, deeper than AGAIN_SPAN, or with a step that may use other registers.
 *
 * Kernel part (x86). The kernel's unwinder begins at the saved stack pointer; it steps by return addresses and by the
 * addresses that it computes or finds of places on that stack (saved frame pointers, the sp in saved registers). So the words
 * that count are among those that are addresses of kernel code or of this stack, and if all of these are the same, it goes the
 * same way: by induction, each of its reads is at the same place, and finds either one of them, or a word that it does not
 * step by. Beyond that it depends on the kernel's own tables: on code that is unloaded while others is loaded at its
 * address. What it found where it gave up (a damaged stack) may differ.
 */
#ifndef SFBPF_OFF_AGAIN_BPF_H
#define SFBPF_OFF_AGAIN_BPF_H

#include "unwind.bpf.h"

#define AGAIN_PLACES 4		/* of a thread; a power of two */
#define AGAIN_USER 68		/* words */
#define AGAIN_KERNEL 56
#define AGAIN_FRAMES 24

struct sf_again_user {
	u64 key;		/* again_key(); 0: nothing is known */
	u64 words;		/* hash of the words */
	u64 hash;		/* of the user part */
	u64 fp;			/* the innermost frame's */
	u16 n, len;		/* words; bytes from sp to behind the last one */
	u16 fp_used, zero;
	u16 at[AGAIN_USER];	/* which, from sp */
};

struct sf_again_kernel {
	u64 words, hash;
	u64 entry_at, entry;	/* the outermost RA */
	u32 n, n_frames;	/* n 0: only hash is known */
	u16 at[AGAIN_KERNEL];	/* which, from sp */
	u8 check[AGAIN_KERNEL];	/* 8 bits of each one's hash */
	u32 frames[AGAIN_FRAMES];	/* their lower halves */
};

/* By the place in the program: where it went into the kernel, and how deep its stack was. */
struct sf_again_place {
	struct sf_again_user user;
	struct sf_again_kernel kernel;
};

struct sf_again {
	struct sf_again_place place[AGAIN_PLACES];
};

/* Made by a thread at its first block that counts: those that sleep cost nothing. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct sf_again);
} off_again SEC(".maps");

static __always_inline struct sf_again_place *again_of(struct task_struct *t, bool make)
{
	struct sf_again *m = bpf_task_storage_get(&off_again, t, NULL, make ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
	u64 regs = 0, h;

	if (!m)
		return NULL;
	*(volatile u64 *)&regs = (u64)bpf_task_pt_regs(t);
	h = kload(regs + REGS_PC_AT) ^ kload(regs + REGS_SP_AT);
	return &m->place[h * FOLD_MUL1 >> 62 & (AGAIN_PLACES - 1)];
}

/* ---- User part, of the current task ---- */

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

/* Whether the thread's user part is what it was; then it is in s->user_hash. s->regs and s->again_key are set. */
__noinline int again_user(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	struct sf_again_place *m = again_of(bpf_get_current_task_btf(), false);
	u64 h;
	u32 len, i;

	if (!s || !m || !s->again_key)
		return 0;
	if (m->user.key != s->again_key || (m->user.fp_used && m->user.fp != s->regs.fp))
		return 0;
	len = m->user.len;
	asm volatile("" : "+r"(len));	/* see vma_at */
	if (len > AGAIN_SPAN || copy_user(s->stack, len, s->regs.sp))
		return 0;
	h = s->regs.sp;
	for (i = 0; i < AGAIN_USER; i++) {
		if (i >= m->user.n)
			break;
		FOLD(h, s->stack[m->user.at[i] & (AGAIN_SPAN / 8 - 1)], FOLD_MUL1);
	}
	if (h != m->user.words)
		return 0;
	s->user_hash = m->user.hash;
	return 1;
}

/* After unwinding from fp. */
static __always_inline void again_keep_user(struct sf_scratch *s, struct sf_again_user *u, u64 fp)
{
	u32 n = s->log_n;

	u->key = 0;
	if (!s->again_key || s->stop != SF_STOP_COMPLETE || s->spaces[s->space & (SF_SPACES - 1)].passing ||
	    n > AGAIN_USER || (s->log_far & ~(AGAIN_SPAN - 8ull)))
		return;
	u->fp = fp;
	u->fp_used = s->log_fp_first;
	u->words = s->log_hash;
	u->hash = s->user_hash;
	u->n = n;
	u->len = s->log_end;
	__builtin_memcpy(u->at, s->log, sizeof(u->at));
	u->key = s->again_key;
}

/* ---- Kernel part, of a task that is about to be switched to ---- */

#define KERNEL_TEXT 0xffffffff80000000ull	/* and modules: Documentation/arch/x86/x86_64/mm.rst */
#define KERNEL_TEXT_END 0xffffffffff000000ull
#define AGAIN_REL 0x8000	/* in at[]: the word is the address of a place between sp and the system call's return address */

static __always_inline u64 kernel_sp(u64 task)
{
	return bpf_core_field_exists(struct task_struct, thread.sp) ? KLOAD(task, struct task_struct, thread.sp) : 0;
}

static __always_inline u64 again_word(u32 at, u64 sp)
{
	u64 word = kload(sp + (u64)(at & ~AGAIN_REL) * 8);

	return at & AGAIN_REL ? word - sp : word;
}

static __always_inline u8 again_check(u64 word)
{
	return word * FOLD_MUL2 >> 56;
}

static __always_inline u64 again_kernel_words(const struct sf_again_kernel *k, u64 sp)
{
	u64 h = 0;
	u32 i;

	for (i = 0; i < AGAIN_KERNEL; i++) {
		if (i >= k->n)
			break;
		FOLD(h, again_word(k->at[i], sp), FOLD_MUL1);
	}
	return h;
}

static __always_inline bool again_kernel(const struct sf_again_kernel *k, u64 sp)
{
	if (!k->n || sp >= k->entry_at || kload(k->entry_at) != k->entry)
		return false;
	return again_kernel_words(k, sp) == k->words;
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
				if (j + 2 >= s->scan_n)
					return 1;
			}
		} else if (word - s->scan_stack < cfg_thread_size) {
			note_word(s, at, word);
		}
	}
	return 0;
}

/*
 * The same frames, but not the same words: those that differ have nothing to do with the frames, as long as the frames' return
 * addresses, in their order, are among those that do not.
 */
static __always_inline void again_drop_words(struct sf_scratch *s, struct sf_again_kernel *k, u64 sp)
{
	u32 i, n;

	s->log_n = s->scan_at = 0;
	for (i = 0; i < AGAIN_KERNEL; i++) {
		u32 at = k->at[i], check = k->check[i];
		u64 word = again_word(at, sp);

		if (i >= k->n)
			break;
		if (again_check(word) != check)
			continue;
		if (s->scan_at < AGAIN_FRAMES && (u32)word == k->frames[s->scan_at])
			s->scan_at++;
		n = s->log_n;
		if (n >= AGAIN_KERNEL)
			break;
		k->at[n] = at;
		k->check[n] = check;
		s->log_n = n + 1;
	}
	k->n = s->scan_at + 1 >= k->n_frames ? s->log_n : 0;
}

/* Which words count of the n frames at frames[SF_MAX_USER]. */
static __always_inline void again_find_words(struct sf_scratch *s, u32 slot, struct sf_again_kernel *k, u64 stack, u64 sp, u32 n)
{
	u32 i;

	s->scan_stack = stack;
	s->scan_at = 0;
	s->scan_n = n;
	s->log_base = sp;
	s->log_n = s->log_end = 0;
	bpf_loop(SCAN_WORDS / SCAN_BLOCK, scan_block, &slot, 0);
	if (s->scan_at + 1 != n || s->log_n > AGAIN_KERNEL)
		return;
	for (i = 0; i < AGAIN_KERNEL; i++) {
		u32 at = s->log[i];

		if (i >= s->log_n)
			break;
		if (kload(sp + 8ull * at) - sp < s->log_end)
			at |= AGAIN_REL;
		k->at[i] = at;
		k->check[i] = again_check(again_word(at, sp));
	}
	k->n = s->log_n;
	k->n_frames = n;
	for (i = 0; i < AGAIN_FRAMES; i++)
		k->frames[i] = s->frames[SF_MAX_USER + i];
}

/*
 * After the kernel's unwinder has put n frames at frames[SF_MAX_USER]. Their words are looked for when they come a second
 * time: what never comes again costs little.
 */
static __always_inline void again_keep_kernel(struct sf_scratch *s, u32 slot, struct sf_again_kernel *k, u64 task, u64 sp, u32 n)
{
	u64 stack = KLOAD(task, struct task_struct, stack), end = stack + cfg_thread_size - sizeof(struct pt_regs);
	bool again = k->hash == s->kernel_hash && k->entry_at == end - 8;

	k->hash = s->kernel_hash;
	k->entry_at = end - 8;
	k->entry = kload(end - 8);
	if (!again || n < 2 || n > AGAIN_FRAMES || s->frames[SF_MAX_USER + (n - 1)] != k->entry || sp - stack >= cfg_thread_size)
		k->n = 0;
	else if (k->n)
		again_drop_words(s, k, sp);
	else
		again_find_words(s, slot, k, stack, sp, n);
	k->words = again_kernel_words(k, sp);
}

#endif
