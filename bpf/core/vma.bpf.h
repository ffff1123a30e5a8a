/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Finds the mapped file for (current mm, address) in the kernel's own VMA tree.
 *
 * mm->mm_mt is a maple tree since 6.1 (commit 524e00b36e8c). Encoding (include/linux/maple_tree.h,
 * lib/maple_tree.c): a child pointer is node address | type << 3 | low bits. Bit 1 of ma_root is
 * set if it points to a node. Types 1 (leaf_64) and 2 (range_64) have 15 pivots and 16 slots; type
 * 3 (arange_64) has 9 pivots and 10 slots. The entry for an address is the first slot whose pivot
 * is not below it. A zero pivot after the first one ends the list.
 *
 * The walk takes no lock. Nodes and VMAs are freed by RCU, and interrupts are off here, so
 * everything that is read was a node or a VMA very recently. The final check, vm_start <= address <
 * vm_end, rejects everything else.
 */
#ifndef SFBPF_VMA_BPF_H
#define SFBPF_VMA_BPF_H

#include "core/kload.bpf.h"

#define MAPLE_NODE(e) ((e) & ~0xffull)
#define MAPLE_TYPE(e) ((e) >> 3 & 0xf)
#define MAPLE_LEVELS  8

/* Word i (8 bytes) of a node: word 0 is the parent, pivots start at 1. */
static __always_inline u64 maple_word(struct sf_scratch *s, u64 node, u32 i)
{
	return CAN_CAST ? kload(node + 8 * i) : s->node[INDEX(i, 32)];
}

/* What node `e` has for addr: a node of the next level, at a leaf the VMA, or 0 for a hole. */
static __always_inline u64 maple_find(struct sf_scratch *s, u64 e, u64 addr)
{
	u64 node = MAPLE_NODE(e);
	u32 pivots = MAPLE_TYPE(e) == 3 ? 9 : 15;
	u32 i;

	if (!CAN_CAST && bpf_probe_read_kernel(s->node, sizeof(s->node), (void *)node))
		return 0;
#pragma clang loop unroll(disable)
	for (i = 0; i < 15; i++) {
		u64 pivot;

		if (i >= pivots)
			break;
		pivot = maple_word(s, node, 1 + i);
		if (addr <= pivot || (!pivot && i))
			break;
	}
	return maple_word(s, node, 1 + pivots + i);
}

/* maple_find(), which the verifier goes through once for all levels */
__noinline u64 maple_entry(u32 slot, u64 e, u64 addr)
{
	struct sf_scratch *s = scratch_of(slot);

	return s ? maple_find(s, e, addr) : 0;
}

/*
 * The vm_area_struct that holds addr, as a kernel address; 0 if none. may_call: another frame fits
 * on the stack of calls.
 */
static __always_inline u64 vma_walk(u32 slot, u64 addr, bool may_call)
{
	struct sf_scratch *s = scratch_of(slot);
	bool leaf = false;
	int level;
	u64 e;

	if (!s)
		return 0;
	e = kload(KADDR(s->mm, struct mm_struct, mm_mt.ma_root)); /* a number, not a pointer */
	if ((e & 3) != 2) /* empty, or a single entry: not a user process */
		return 0;
#pragma clang loop unroll(disable)
	for (level = 0; level < MAPLE_LEVELS && !leaf; level++) {
		leaf = MAPLE_TYPE(e) == 1;
		e = may_call ? maple_entry(slot, e, addr) : maple_find(s, e, addr);
		if ((e & 3) == 2 || !e) /* not a node: a hole */
			return 0;
	}
	if (!leaf || KLOAD(e, struct vm_area_struct, vm_start) > addr ||
	    KLOAD(e, struct vm_area_struct, vm_end) <= addr)
		return 0;
	return e;
}

/* vma_walk() for all but vma_find. Seven frames may lie above, and the kernel allows eight. */
__noinline u64 vma_near(u32 slot, u64 addr)
{
	return vma_walk(slot, addr, false);
}

/* Set by a stat() since 4e40eff0b573 (6.13), so that the next change gets another time */
#define CTIME_QUERIED (1u << 31)

static __always_inline u64 inode_ctime_ns(u64 inode)
{
	if (bpf_core_field_exists(struct inode, i_ctime_sec))
		return KLOAD(inode, struct inode, i_ctime_sec) * 1000000000ull +
		       (KLOAD32(inode, struct inode, i_ctime_nsec) & ~CTIME_QUERIED);
	if (bpf_core_field_exists(struct inode___v66, __i_ctime))
		return KLOAD(inode, struct inode___v66, __i_ctime.tv_sec) * 1000000000ull +
		       KLOAD(inode, struct inode___v66, __i_ctime.tv_nsec);
	return KLOAD(inode, struct inode___v61, i_ctime.tv_sec) * 1000000000ull +
	       KLOAD(inode, struct inode___v61, i_ctime.tv_nsec);
}

static __always_inline u64 vma_inode(u64 vma)
{
	u64 file = KLOAD(vma, struct vm_area_struct, vm_file);

	return file ? KLOAD(file, struct file, f_inode) : 0;
}

/*
 * Anonymous memory that processes share (mm/shmem.c, shmem_zero_setup): no file of code, but memory
 * that code is made in. Files without a name and memfds have no such flag.
 */
static __always_inline bool inode_is_anonymous(u64 inode)
{
	return KLOAD32(inode, struct inode, i_flags) & S_PRIVATE;
}

#define BDI_SPREAD 0x9e3779b1u /* odd: different ids give different products */

/*
 * What tells files with equal device, inode number and change time apart: a mix of i_generation,
 * the id of the file system's bdi, and the address of the file's pages. FUSE and network file
 * systems have no generations, and a device number is used again after an unmount, but the id is
 * not. Files of two btrfs subvolumes may have all else in common. A module keeps its file open, so
 * its inode stays where it is.
 */
static __always_inline u32 inode_instance(u64 inode, u64 sb)
{
	u64 bdi = KLOAD(sb, struct super_block, s_bdi);
	u32 id = KLOAD32(bdi, struct backing_dev_info, id);

	return KLOAD32(inode, struct inode, i_generation) + id * BDI_SPREAD +
	       (u32)kload(KADDR(inode, struct inode, i_mapping));
}

static __always_inline void inode_key(u64 inode, struct sf_file_key *key)
{
	u64 sb = KLOAD(inode, struct inode, i_sb);

	key->ino = KLOAD(inode, struct inode, i_ino);
	key->dev = KLOAD32(sb, struct super_block, s_dev);
	key->instance = inode_instance(inode, sb);
	key->ctime_ns = inode_ctime_ns(inode);
}

/* Whose share a user spends. */
__noinline u32 user_account(u32 uid)
{
	for (u32 i = 0; i < SF_USER_RANGES && i < cfg_nranges; i++) {
		u32 at = INDEX(i, SF_USER_RANGES), first = cfg_range_first[at];

		if (uid - first < cfg_range_count[at])
			return first;
	}
	return uid;
}

/*
 * The owner of a process. The real user, not the effective one: files that a set-user-id program
 * maps are charged to the user who runs it.
 */
static __always_inline u32 task_owner(u64 task)
{
	return user_account(KLOAD32(KLOAD(task, struct task_struct, cred), struct cred, uid.val));
}

static __always_inline u32 mm_owner(u64 mm)
{
	u64 task = 0;

	if (bpf_core_field_exists(struct mm_struct___memcg, owner))
		task = KLOAD(mm, struct mm_struct___memcg, owner);
	return task ? task_owner(task) : user_account((u32)bpf_get_current_uid_gid());
}

/*
 * Requests for tables cost user space time. Each user is granted a burst of NEED_BURST, and one per
 * NEED_STEP_NS in the long run. A refused file is requested when it is met again. Concurrent CPUs
 * may let one more through.
 */
#define NEED_BURST   4096
#define NEED_STEP_NS (1000000000ull / 128)

static __always_inline u32 grant_at(u32 owner)
{
	return owner ? (u32)INDEX((owner * cfg_hash_key) >> 32, SF_GRANTS) : SF_GRANTS;
}

static __always_inline bool need_allowed(u32 owner, u64 now)
{
	u32 at = grant_at(owner);
	u64 *until = bpf_map_lookup_elem(&grants, &at), t;

	if (!until)
		return false;
	t = *until > now ? *until : now;
	if (t - now >= NEED_BURST * NEED_STEP_NS)
		return false;
	*until = t + NEED_STEP_NS;
	return true;
}

/* Takes a free module id; 0: none is left. */
static __always_inline u32 take_id(void)
{
	for (int i = 0; i < 8; i++) {
		u32 head = *(volatile u32 *)&free_head, id;

		if (head == *(volatile u32 *)&free_tail)
			return 0;
		id = *(volatile u32 *)&free_ids[INDEX(head, SF_MAX_MODULES)];
		/*
		 * The entry is not rewritten before head moves on, so the id is valid if head has
		 * not moved.
		 */
		if (__sync_val_compare_and_swap(&free_head, head, head + 1) == head)
			return id;
	}
	return 0;
}

static __always_inline struct sf_module *module_at(u32 id)
{
	u32 place = SF_MODULE_PLACE(id);

	return bpf_map_lookup_elem(&modules, &place);
}

static __always_inline bool same_key(const struct sf_file_key *a, const struct sf_file_key *b)
{
	return a->ino == b->ino && a->dev == b->dev && a->instance == b->instance &&
	       a->ctime_ns == b->ctime_ns;
}

/*
 * The module of a file, if it has one. Values of the map may change while they are read, so the key
 * is checked.
 */
static __always_inline struct sf_module *module_known(const struct sf_file_key *key)
{
	u32 *id = bpf_map_lookup_elem(&files, key);
	struct sf_module *m = id ? module_at(*id) : NULL;

	return m && same_key(&m->key, key) ? m : NULL;
}

#define AGAIN_MS 2000 /* time from a request to one for another user */

/*
 * Creates the module of a file that has none. NULL: *ret_why is the reason (enum sf_module_state).
 * *ret_new: its tables were not requested yet. If two CPUs meet a new file at the same time,
 * BPF_NOEXIST lets one win.
 */
static __always_inline struct sf_module *module_new(const struct sf_file_key *key, u32 owner,
						    bool *ret_new, u32 *ret_why)
{
	struct sf_module *m;
	u32 id;

	*ret_why = SF_MOD_NO_PLACE;
	if (!need_allowed(owner, bpf_ktime_get_ns())) {
		*ret_why = SF_MOD_REFUSED;
		return NULL;
	}
	id = take_id();
	m = id ? module_at(id) : NULL;
	if (!m)
		return NULL;
	m->key = *key;
	m->owner = owner;
	m->retry_ms = bpf_ktime_get_ns() / 1000000 + AGAIN_MS;
	if (bpf_map_update_elem(&files, key, &id, BPF_NOEXIST)) {
		m->state = SF_MOD_VOID;
		*ret_why = SF_MOD_RETRY;
		return module_known(key);
	}
	*ret_new = true;
	return m;
}

/*
 * The file system of the file: opening a file may have to wait for a FUSE or network server
 * (userspace/kern/opener.h).
 */
static __always_inline void fill_fs(struct sf_need *need, u64 sb)
{
	u64 name = KLOAD(KLOAD(sb, struct super_block, s_type), struct file_system_type, name);

	bpf_probe_read_kernel_str(need->fs, sizeof(need->fs), (const void *)(unsigned long)name);
	need->fs_level = KLOAD32(KLOAD(sb, struct super_block, s_user_ns), struct user_namespace,
				 level);
}

static __always_inline void fill_need(struct sf_need *need, u64 vma, u64 inode,
				      const struct sf_module *m, u32 pid, u32 owner)
{
	need->type = SF_REC_NEED;
	need->module = m->id;
	need->pid = pid;
	need->owner = owner;
	need->vm_start = KLOAD(vma, struct vm_area_struct, vm_start);
	need->vm_end = KLOAD(vma, struct vm_area_struct, vm_end);
	need->size = KLOAD(inode, struct inode, i_size);
	need->key = m->key;
	*(u64 *)need->fs = 0;
	need->zero = 0;
	fill_fs(need, KLOAD(inode, struct inode, i_sb));
}

static __always_inline u64 vma_delta(u64 vma)
{
	return (KLOAD(vma, struct vm_area_struct, vm_pgoff) << cfg_page_shift) -
	       KLOAD(vma, struct vm_area_struct, vm_start);
}

/*
 * The slot of s->vmas that holds addr, after a walk of the VMA tree if it is not cached. -1: no
 * executable mapping. In mapping.bpf.h.
 */
int vma_find(u32 slot, u64 addr);

#endif
