/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * When a cached mapping is valid: nothing in its address space has changed since the mapping was
 * cached (mm_exact), or the mapping itself has not changed (vma_same).
 */
#ifndef SFBPF_SPACE_BPF_H
#define SFBPF_SPACE_BPF_H

#include "core/regs.bpf.h"
#include "core/vma.bpf.h"

static __always_inline struct sf_vma *vma_at(struct sf_scratch *s, u32 i)
{
	return &s->vmas[INDEX(i, SF_SLOTS)];
}

static __always_inline struct sf_vma_seen *seen_at(struct sf_scratch *s, u32 i)
{
	return &s->seen[INDEX(i, SF_SLOTS)];
}

/* Reads mm_lock_seq. false: the kernel has none. */
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
 * True if an unchanged id and *ret_seq prove that no mapping of the address space has changed.
 * mm_lock_seq is odd while the write lock is held (6.14 and later).
 */
static __always_inline bool mm_exact(u64 mm, u64 id, u32 *ret_seq)
{
	bool exact = mm_seq(mm, ret_seq) && id != 0;

	if (bpf_core_field_exists(struct mm_struct, mm_lock_seq.sequence))
		exact &= !(*ret_seq & 1);
	return exact;
}

/*
 * Whether a mapping can be validated by its vm_lock_seq. That needs a kernel with per-VMA locks
 * (since 6.4) and an architecture that does not reorder loads (see vma_note). Elsewhere, all cached
 * mappings of an address space are dropped when one of them changes.
 */
static __always_inline bool vma_has_seq(void)
{
#if defined(SF_NO_CAST) || !defined(__TARGET_ARCH_x86)
	return false;
#else
	return bpf_core_field_exists(struct vm_area_struct, vm_lock_seq);
#endif
}

/*
 * mm_lock_seq changes with every new mapping of a process and with every growth of its heap, but
 * most mappings do not change then. A mapping is unchanged if its vm_area_struct has the same
 * vm_mm, vm_start, vm_end and vm_lock_seq (all in one cache line):
 *
 * Code that changes, inserts or removes a VMA write-locks it first. This sets vm_lock_seq to the
 * current mm_lock_seq, which grows with each write lock of the address space. So a VMA of this mm
 * that was not being written when it was noted, and still has the same vm_lock_seq, has not been
 * written since. A removed VMA has a greater number from then on, while it waits to be freed and
 * afterwards. A new object in the same memory starts with -1, which is never noted. When it is
 * inserted, it gets a greater number or belongs to another mm. (sf_space.ctx_id
 * makes sure that s->mm is the mm_struct of before.) The numbers wrap around after 2^31 changes.
 *
 * The VMA was not being written when it was noted, because vm_lock_seq is read first, and then
 * mm_lock_seq, which must differ from it and must be the one from before the VMA was looked up. The
 * other fields are read after that. A later write sets another vm_lock_seq. All this requires
 * ordered loads, which x86 provides.
 */
static __always_inline void vma_note(struct sf_scratch *s, const struct sf_space *space, u32 i,
				     u64 vma)
{
	struct sf_vma_seen *seen = seen_at(s, i);
	u32 own, seq;

	seen->vma = 0;
	if (!vma_has_seq())
		return;
	own = KLOAD32(vma, struct vm_area_struct, vm_lock_seq);
	barrier();
	if (!mm_seq(s->mm, &seq) || own == (u32)-1 || own == seq || seq != space->seq)
		return;
	barrier();
	seen->vma = vma;
	seen->lock_seq = own;
}

static __always_inline bool vma_same(struct sf_scratch *s, u32 i)
{
	const struct sf_vma_seen *seen = seen_at(s, i);
	const struct sf_vma *v = vma_at(s, i);
	u64 vma = seen->vma;

	return vma && vma_has_seq() &&
	       KLOAD32(vma, struct vm_area_struct, vm_lock_seq) == seen->lock_seq &&
	       KLOAD(vma, struct vm_area_struct, vm_mm) == s->mm &&
	       KLOAD(vma, struct vm_area_struct, vm_start) == v->start &&
	       KLOAD(vma, struct vm_area_struct, vm_end) == v->start + v->len;
}

/*
 * Drops the cached mappings of s->space that are not known to be unchanged, or all of them (fresh).
 * All are checked at once, although a stack needs only a few, because their cache misses overlap. A
 * global function, so it is verified once.
 */
__noinline int vmas_check(u32 slot, u32 fresh)
{
	struct sf_scratch *s = scratch_of(slot);
	u32 i, first;

	if (!s)
		return 0;
	first = (s->space & (SF_SPACES - 1)) * SF_VMAS;
#pragma clang loop unroll(disable)
	for (i = 0; i < SF_VMAS; i++) {
		struct sf_vma *v = vma_at(s, first + i);

		if (v->len && (fresh || !vma_same(s, first + i)))
			v->len = 0;
	}
	return 0;
}

/* Selects the cached mappings of s->mm, and the one to try first. */
static __always_inline void space_enter(struct sf_scratch *s, u32 slot)
{
	u32 epoch = *(volatile u32 *)&tables_epoch, seq;
	u64 id = MM_ID(s->mm);
	bool exact = mm_exact(s->mm, id, &seq), fresh;
	struct sf_space *space;

	s->space = id & (SF_SPACES - 1);
	s->vma_last = s->space * SF_VMAS;
	space = &s->spaces[INDEX(id, SF_SPACES)];
	fresh = space->ctx_id != id || space->epoch != epoch || !id;
	if (!fresh && space->seq == seq && !space->provisional && exact)
		return;
	space->ctx_id = id;
	space->epoch = epoch;
	space->seq = seq;
	space->provisional = !exact;
	vmas_check(slot, fresh);
}

#endif
