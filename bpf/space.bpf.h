/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * What makes a remembered mapping good: nothing of its address space has changed since (mm_exact), or not the mapping itself (vma_same).
 */
#ifndef SFBPF_SPACE_BPF_H
#define SFBPF_SPACE_BPF_H

#include "vma.bpf.h"

static __always_inline struct sf_scratch *scratch_of(u32 slot)
{
	return bpf_map_lookup_elem(&scratch, &slot);
}

/* The barrier keeps clang from dropping a mask that it can prove needless and the verifier (6.1) cannot. */
static __always_inline struct sf_vma *vma_at(struct sf_scratch *s, u32 i)
{
	asm volatile("" : "+r"(i));
	return &s->vmas[i & (SF_SLOTS - 1)];
}

static __always_inline struct sf_vma_seen *seen_at(struct sf_scratch *s, u32 i)
{
	asm volatile("" : "+r"(i));
	return &s->seen[i & (SF_SLOTS - 1)];
}

/* mm_lock_seq; false: the kernel has none. */
static __always_inline bool mm_seq(u64 mm, u32 *ret_seq)
{
	*ret_seq = 0;
	if (bpf_core_field_exists(struct mm_struct, mm_lock_seq.sequence))
		*ret_seq = KLOAD32(mm, struct mm_struct, mm_lock_seq.sequence);
	else if (bpf_core_field_exists(struct mm_struct___v64, mm_lock_seq))
		*ret_seq = KLOAD32(mm, struct mm_struct___v64, mm_lock_seq);
	else
		return false;
	return true;
}

/*
 * Whether the mappings of an address space are known to be the same as long as its id and *ret_seq are. mm_lock_seq is odd while
 * somebody holds the write lock (6.14 and later).
 */
static __always_inline bool mm_exact(u64 mm, u64 id, u32 *ret_seq)
{
	bool exact = mm_seq(mm, ret_seq) && id != 0;

	if (bpf_core_field_exists(struct mm_struct, mm_lock_seq.sequence))
		exact &= !(*ret_seq & 1);
	return exact;
}

/* Kernels without locks of VMAs (before 6.4): all that is remembered of an address space goes when anything in it has changed. */
static __always_inline bool vma_has_seq(void)
{
#ifdef SF_NO_CAST	/* before 6.2 */
	return false;
#else
	return bpf_core_field_exists(struct vm_area_struct, vm_lock_seq);
#endif
}

/*
 * Every new executable mapping of a process, and every growth of its heap, changes mm_lock_seq; most mappings stay what they were. One
 * that does is known by its vm_area_struct having the same vm_mm, vm_start, vm_end, and vm_lock_seq (all in one cache line):
 *
 * Whoever changes a VMA, inserts it, or takes it out write-locks it first, which sets vm_lock_seq to the mm_lock_seq of that moment; that
 * number grows with each write lock of the address space. So a VMA of this mm that was not being written when it was noted, and has
 * the same vm_lock_seq still, was not written since. One that was taken out has a greater number from then on, while it waits to be freed and
 * after; the object that is made of its memory begins with -1, which is never noted, and gets a number when it is inserted, again a
 * greater one, or belongs to another mm. (s->mm is the same mm_struct as then: sf_space.ctx_id.) The numbers come round after 2^31 changes.
 *
 * It was not being written when it was noted: vm_lock_seq is read first, then mm_lock_seq, which is another number, and the one from
 * before the VMA was looked up; then the rest. Whoever writes it after that leaves another vm_lock_seq. This takes loads in their order, which
 * x86 grants.
 */
static __always_inline void vma_note(struct sf_scratch *s, const struct sf_space *space, u32 i, u64 vma)
{
	struct sf_vma_seen *seen = seen_at(s, i);
	u32 own, seq;

	seen->vma = 0;
#ifdef __TARGET_ARCH_x86
	if (!vma_has_seq())
		return;
	own = KLOAD32(vma, struct vm_area_struct, vm_lock_seq);
	barrier();
	if (!mm_seq(s->mm, &seq) || own == (u32)-1 || own == seq || seq != space->seq)
		return;
	barrier();
	seen->vma = vma;
	seen->lock_seq = own;
#endif
}

static __always_inline bool vma_same(struct sf_scratch *s, u32 i)
{
	const struct sf_vma_seen *seen = seen_at(s, i);
	const struct sf_vma *v = vma_at(s, i);
	u64 vma = seen->vma;

	return vma && vma_has_seq() && KLOAD32(vma, struct vm_area_struct, vm_lock_seq) == seen->lock_seq &&
	       KLOAD(vma, struct vm_area_struct, vm_mm) == s->mm && KLOAD(vma, struct vm_area_struct, vm_start) == v->start &&
	       KLOAD(vma, struct vm_area_struct, vm_end) == v->start + v->len;
}

/*
 * Forgets the mappings of s->space that are not known to be what they were, or all of them. All at once, though a stack needs few:
 * their cache misses overlap. Global: verified once.
 */
__noinline int vmas_check(u32 slot, u32 fresh)
{
	struct sf_scratch *s = scratch_of(slot);
	u32 i, first, gone = 0;

	if (!s)
		return 0;
	first = (s->space & (SF_SPACES - 1)) * SF_VMAS;
#pragma clang loop unroll(disable)
	for (i = 0; i < SF_VMAS; i++) {
		struct sf_vma *v = vma_at(s, first + i);

		if (!v->len || (!fresh && vma_same(s, first + i)))
			continue;
		v->len = 0;
		gone = 1;
	}
	s->spaces[s->space & (SF_SPACES - 1)].next += gone;
	return 0;
}

#endif
