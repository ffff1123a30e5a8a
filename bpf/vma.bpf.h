/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The kernel's own VMA tree is the process map: from (current mm, address) to the mapped file.
 *
 * mm->mm_mt is a maple tree since 6.1 (commit 524e00b36e8c). Encoding (include/linux/maple_tree.h,
 * lib/maple_tree.c): a child pointer is node address | type << 3 | low bits; ma_root has bit 1 set when it is a
 * node. Type 1 (leaf_64) and 2 (range_64): 15 pivots, 16 slots; 3 (arange_64): 9 pivots, 10 slots. The entry
 * for an address is the first slot whose pivot is not below it; a zero pivot behind the first ends the list.
 *
 * The walk takes no lock. Nodes and VMAs are freed by RCU, and this runs with interrupts off, so what is read was a
 * node or a VMA a moment ago at worst; the final check of vm_start <= address < vm_end rejects everything else.
 */
#ifndef SFBPF_VMA_BPF_H
#define SFBPF_VMA_BPF_H

#include "kload.bpf.h"

#define MAPLE_NODE(e) ((e) & ~0xffull)
#define MAPLE_TYPE(e) ((e) >> 3 & 0xf)
#define MAPLE_LEVELS 8

/* Word i (8 bytes) of a node: word 0 is the parent, pivots start at 1. */
static __always_inline u64 maple_word(struct sf_scratch *s, u64 node, u32 i)
{
	return cfg_rdonly_cast ? kload(node + 8 * i) : s->node[i & 31];
}

/* The vm_area_struct that holds addr, as a kernel address; 0 if none. */
static __always_inline u64 vma_walk(struct sf_scratch *s, u64 addr)
{
	u64 e = KLOAD(s->mm, struct mm_struct, mm_mt.ma_root);
	u64 vma = 0;
	int level;

	if ((e & 3) != 2)	/* empty, or a single entry: no process looks so */
		return 0;
	for (level = 0; level < MAPLE_LEVELS; level++) {
		u64 node = MAPLE_NODE(e);
		u32 type = MAPLE_TYPE(e);
		u32 pivots = type == 3 ? 9 : 15;
		u32 i;

		if (!cfg_rdonly_cast && bpf_probe_read_kernel(s->node, sizeof(s->node), (void *)node))
			return 0;
		for (i = 0; i < 15; i++) {
			u64 pivot;

			if (i >= pivots)
				break;
			pivot = maple_word(s, node, 1 + i);
			if (addr <= pivot || (!pivot && i))
				break;
		}
		e = maple_word(s, node, 1 + pivots + i);
		if (type == 1) {
			vma = e;
			break;
		}
		if ((e & 3) == 2 || !e)	/* no node below: a hole */
			break;
	}
	if (!vma || KLOAD(vma, struct vm_area_struct, vm_start) > addr || KLOAD(vma, struct vm_area_struct, vm_end) <= addr)
		return 0;
	return vma;
}

static __always_inline u64 inode_mtime_ns(u64 inode)
{
	if (bpf_core_field_exists(struct inode, i_mtime_sec))
		return KLOAD(inode, struct inode, i_mtime_sec) * 1000000000ull + KLOAD32(inode, struct inode, i_mtime_nsec);
	if (bpf_core_field_exists(struct inode___v67, __i_mtime))
		return KLOAD(inode, struct inode___v67, __i_mtime.tv_sec) * 1000000000ull +
		       KLOAD(inode, struct inode___v67, __i_mtime.tv_nsec);
	return KLOAD(inode, struct inode___v61, i_mtime.tv_sec) * 1000000000ull +
	       KLOAD(inode, struct inode___v61, i_mtime.tv_nsec);
}

static __always_inline u64 vma_inode(u64 vma)
{
	u64 file = KLOAD(vma, struct vm_area_struct, vm_file);

	return file ? KLOAD(file, struct file, f_inode) : 0;
}

static __always_inline void inode_key(u64 inode, struct sf_file_key *key)
{
	key->ino = KLOAD(inode, struct inode, i_ino);
	key->dev = KLOAD32(KLOAD(inode, struct inode, i_sb), struct super_block, s_dev);
	key->gen = KLOAD32(inode, struct inode, i_generation);
	key->mtime_ns = inode_mtime_ns(inode);
}

/*
 * The module id of a file, given on first sight; 0 if there is no room. *ret_new: nobody has asked for its tables yet.
 * Two CPUs that meet a new file at once: BPF_NOEXIST lets one win, the other finds its entry at the next sight.
 */
static __always_inline u32 module_of(const struct sf_file_key *key, bool *ret_new)
{
	u32 *known = bpf_map_lookup_elem(&files, key);
	u32 id;

	*ret_new = false;
	if (known)
		return *known;
	if (next_module >= SF_MAX_MODULES)
		return 0;
	id = __sync_fetch_and_add(&next_module, 1);
	if (id >= SF_MAX_MODULES)
		return 0;
	if (bpf_map_update_elem(&files, key, &id, BPF_NOEXIST)) {
		known = bpf_map_lookup_elem(&files, key);
		return known ? *known : 0;
	}
	*ret_new = true;
	return id;
}

static __always_inline void fill_need(struct sf_need *need, u64 vma, u64 inode, const struct sf_file_key *key, u32 id, u32 pid)
{
	need->type = SF_REC_NEED;
	need->module = id;
	need->pid = pid;
	need->zero = 0;
	need->vm_start = KLOAD(vma, struct vm_area_struct, vm_start);
	need->vm_end = KLOAD(vma, struct vm_area_struct, vm_end);
	need->size = KLOAD(inode, struct inode, i_size);
	need->key = *key;
}

#endif
