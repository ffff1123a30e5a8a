/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The mappings that a walk meets: cached by address space, and with their files resolved to modules
 * (space.bpf.h says when a cached one is valid).
 */
#ifndef SFBPF_MAPPING_BPF_H
#define SFBPF_MAPPING_BPF_H

#include "core/copied.bpf.h"
#include "core/file.bpf.h"
#include "lang/lang.bpf.h"
#include "core/probe.bpf.h"
#include "core/space.bpf.h"

/* Marks slot i as one that the next sample looks up again. */
static __always_inline void vma_provisional(struct sf_scratch *s, struct sf_space *space, u32 i)
{
	space->provisional = 1;
	seen_at(s, i)->vma = 0;
}

/* Takes note that the file of the mapping in slot i was resolved. */
static __always_inline void vma_used(struct sf_scratch *s, u32 slot, struct sf_space *space, u32 i)
{
	struct sf_vma *v = vma_at(s, i);

	if (v->state != SF_MOD_READY) {
		vma_provisional(s, space, i);
	} else if (v->flags & SF_MODULE_LANG) {
		lang_met(slot, i);
	}
}

/*
 * A mapping of the file that the code of the current frame, whose mapping has none, may be copied
 * from. 0: none. In two global functions one after the other, not in the hot path: their stacks do
 * not add up.
 */
__noinline u64 copied_near(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	struct sf_copy_key *key;
	struct sf_vma *v;
	u64 vma;

	if (!s)
		return 0;
	v = vma_at(s, s->vma_last);
	v->flags = 0;
	vma = vma_near(slot, s->regs.pc - (s->regs.flags & SF_REGS_RA));
	if (!vma || (KLOAD(vma, struct vm_area_struct, vm_flags) & VM_WRITE) ||
	    !is_memory(vma_inode(vma)))
		return 0;
	key = &s->copied.key;
	key->space = MM_ID(s->mm);
	key->start = v->start;
	key->end = v->start + v->len;
	key->lock_seq = seen_at(s, s->vma_last)->vma ? seen_at(s, s->vma_last)->lock_seq : 0;
	return copied_from(s, slot, key->start, key->end);
}

/* Resolves the file, if that mapping is known to be of it. Always 0. */
__noinline int copied_learn(u32 slot, u64 near)
{
	struct sf_scratch *s = scratch_of(slot);
	struct sf_space *space;
	struct sf_copy *copy;
	struct sf_vma *v;
	u64 addr;
	u32 i;

	if (!s || !near)
		return 0;
	i = s->vma_last;
	addr = s->regs.pc - (s->regs.flags & SF_REGS_RA);
	v = vma_at(s, i);
	space = &s->spaces[INDEX(s->space, SF_SPACES)];
	vma_file(s, v, near, vma_inode(near));
	copy = bpf_map_lookup_elem(&copies, &s->copied.key);
	if (v->state == SF_MOD_READY && !copy)
		copied_ask(s, v->word >> SF_FRAME_MODULE_SHIFT, addr, vma_delta(near));
	if (v->state == SF_MOD_READY && copy && copied_narrow(v, copy, addr)) {
		v->delta = copy->delta;
		vma_used(s, slot, space, i);
		return 0;
	}
	v->flags = 0;
	if (v->state != SF_MOD_READY || !copy || !copy->end) {
		vma_provisional(s, space, i);
		v->flags = SF_VMA_ASKED;
	}
	v->state = SF_MOD_JIT;
	return 0;
}

/* Caches a mapping in slot i. */
static __always_inline void vma_learn(struct sf_scratch *s, u32 slot, struct sf_space *space, u32 i,
				      u64 vma)
{
	struct sf_vma *v = vma_at(s, i);
	u64 inode, offset;

	vma_note(s, space, i, vma);
	v->start = KLOAD(vma, struct vm_area_struct, vm_start);
	v->len = KLOAD(vma, struct vm_area_struct, vm_end) - v->start;
	inode = vma_inode(vma);
	offset = inode ? KLOAD(vma, struct vm_area_struct, vm_pgoff) << cfg_page_shift : 0;
	if (inode && inode_is_anonymous(inode)) {
		v->state = SF_MOD_JIT;
		v->delta = 0;
		v->flags = SF_VMA_SHARED;
		return;
	}
	/* Offsets that no frame word can hold are treated as memory without a file. */
	if ((inode || v->start == KLOAD(s->mm, struct mm_struct, context.vdso)) &&
	    offset <= SF_FRAME_OFFSET_MASK && v->len <= SF_FRAME_OFFSET_MASK - offset) {
		v->delta = offset - v->start;
		vma_file(s, v, vma, inode);
		vma_used(s, slot, space, i);
		if (v->state == SF_MOD_JIT)
			v->flags = SF_VMA_NEW;
	} else {
		v->state = SF_MOD_JIT;
		v->delta = 0;
		v->flags = v->start == probe_page(s) ? SF_VMA_PROBES : SF_VMA_NEW;
	}
}

/* A global function, so it is verified once for all callers. */
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
	space = &s->spaces[INDEX(s->space, SF_SPACES)];
	first = (s->space & (SF_SPACES - 1)) * SF_VMAS;
	s->vma_put = SF_SLOTS; /* map memory: the verifier does not track its values */
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
	vma = vma_walk(slot, addr, true);
	if (!vma || !(KLOAD(vma, struct vm_area_struct, vm_flags) & VM_EXEC))
		return -1;
	put = s->vma_put;
	if (put == SF_SLOTS)
		put = first + (space->next++ & (SF_VMAS - 1));
	vma_learn(s, slot, space, put, vma);
	s->vma_last = put;
	return put;
}

#endif
