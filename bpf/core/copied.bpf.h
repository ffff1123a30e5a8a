/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Code that a process has copied from its file into memory of its own, at the same addresses: onto
 * huge pages (libhugetlbfs, node --use-largepages, opcache.huge_code_pages) or into a memfd.
 *
 * Such memory lies in a hole that the file's own mappings leave. Only the contents prove that it is
 * a copy, and BPF cannot read files. So user space compares them once (userspace/kern/copied.h),
 * and the map says which part of the mapping is equal to the file, and where. Until then, and for
 * all other memory, the mapping is one without a file.
 */
#ifndef SFBPF_COPIED_BPF_H
#define SFBPF_COPIED_BPF_H

#include "core/space.bpf.h"
#include "core/vma.bpf.h"

/* Memory that only the kernel must answer for: user space reads it. */
static __always_inline bool is_memory(u64 inode)
{
	u64 magic;

	if (!inode)
		return true;
	magic = KLOAD(KLOAD(inode, struct inode, i_sb), struct super_block, s_magic);
	return magic == TMPFS_MAGIC || magic == HUGETLBFS_MAGIC;
}

/*
 * A mapping of the file in whose hole the mapping lies: the same file is before and after it, or it
 * holds the program's own code. 0: none.
 */
static __always_inline u64 copied_from(struct sf_scratch *s, u32 slot, u64 start, u64 end)
{
	u64 before = vma_near(slot, start - 1), after = vma_near(slot, end), exe, data;
	u64 first = before ? vma_inode(before) : 0, last = after ? vma_inode(after) : 0;

	if (first && first == last)
		return before;
	if (start >= KLOAD(s->mm, struct mm_struct, end_code) ||
	    end <= KLOAD(s->mm, struct mm_struct, start_code))
		return 0;
	exe = KLOAD(s->mm, struct mm_struct, exe_file);
	exe = exe ? KLOAD(exe, struct file, f_inode) : 0;
	if (exe && first == exe)
		return before;
	if (exe && last == exe)
		return after;
	data = vma_near(slot, KLOAD(s->mm, struct mm_struct, start_data));
	return data && exe && vma_inode(data) == exe ? data : 0;
}

/* Asks user space to compare the mapping, whose key is in s->copied, with the module. */
static __always_inline void copied_ask(struct sf_scratch *s, u32 module, u64 at, u64 delta)
{
	struct sf_copy_need *need = &s->copied;
	struct sf_copy empty = {};

	if (!need_allowed(mm_owner(s->mm), bpf_ktime_get_ns()) ||
	    bpf_map_update_elem(&copies, &need->key, &empty, BPF_NOEXIST))
		return;
	need->type = SF_REC_COPY;
	need->module = module;
	need->pid = s->pid;
	need->at = at;
	need->delta = delta;
	if (bpf_ringbuf_output(&ring, need, sizeof(*need), BPF_RB_FORCE_WAKEUP))
		bpf_map_delete_elem(&copies, &need->key);
}

/*
 * Narrows the mapping at v to the part of it that holds `at` and is, or is not, the copy. Returns
 * whether it is the copy.
 */
static __always_inline bool copied_narrow(struct sf_vma *v, const struct sf_copy *copy, u64 at)
{
	u64 end = v->start + v->len;

	if (at < copy->start) {
		v->len = copy->start - v->start;
		return false;
	}
	if (at >= copy->end) {
		v->start = copy->end;
		v->len = end - copy->end;
		return false;
	}
	v->start = copy->start;
	v->len = copy->end - copy->start;
	return true;
}

#endif
