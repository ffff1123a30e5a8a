/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The way from a mapping to the module and the tables of its file, and the requests for them. */
#ifndef SFBPF_FILE_BPF_H
#define SFBPF_FILE_BPF_H

#include "core/vma.bpf.h"

/* Requests the tables of a file. Wakes the consumer at once: the process may be short-lived. */
static __always_inline bool send_need(const struct sf_need *need)
{
	struct sf_cpu_stats *st = stats_here();

	if (bpf_ringbuf_output(&ring, (void *)need, sizeof(*need), BPF_RB_FORCE_WAKEUP)) {
		if (st)
			st->needs_dropped++;
		return false;
	}
	if (st)
		st->needs++;
	return true;
}

/*
 * Whether the tables of the file must be requested again for this user: they are not loaded, or
 * have been loading for a while for another user, who may have no CPU time left for them
 * (userspace/kern/load_queue.h).
 */
static __always_inline bool retry_due(struct sf_module *m, u32 owner)
{
	u32 state = m->state, due = m->retry_ms, ms;
	u64 now;

	if (state == SF_MOD_LOADING ? owner == m->owner
				    : state != SF_MOD_RETRY && state != SF_MOD_FULL)
		return false;
	now = bpf_ktime_get_ns();
	ms = now / 1000000;
	if ((s32)(ms - due) < 0 || !need_allowed(owner, now) ||
	    __sync_val_compare_and_swap(&m->retry_ms, due, ms + AGAIN_MS) != due ||
	    __sync_val_compare_and_swap(&m->state, state, SF_MOD_LOADING) != state)
		return false;
	if (state != SF_MOD_LOADING)
		m->owner = owner;
	return true;
}

static __always_inline void count_refused(void)
{
	struct sf_cpu_stats *st = stats_here();

	if (st)
		st->needs_refused++;
}

/* Resolves the file of a VMA: its module and tables. Requests the tables if the file is new. */
static __always_inline void vma_file(struct sf_scratch *s, struct sf_vma *v, u64 vma, u64 inode)
{
	struct sf_file_key key = {};
	struct sf_module *m;
	bool need_it = false;
	u32 owner = mm_owner(s->mm), why;

	if (inode)
		inode_key(inode, &key);
	else
		key.ino = SF_KEY_VDSO;
	m = module_known(&key);
	if (!m)
		m = module_new(&key, owner, &need_it, &why);
	if (!m) {
		v->word = 0;
		v->state = why;
		if (why == SF_MOD_REFUSED)
			count_refused();
		return;
	}
	if (need_it || retry_due(m, owner)) {
		struct sf_need need;

		fill_need(&need, vma, inode, m, s->pid, owner);
		if (!send_need(&need)) { /* retried when it is met again */
			m->retry_ms = bpf_ktime_get_ns() / 1000000;
			__sync_val_compare_and_swap(&m->state, SF_MOD_LOADING, SF_MOD_RETRY);
		}
	}
	v->word = (u64)m->id << SF_FRAME_MODULE_SHIFT;
	v->state = *(volatile u32 *)&m->state;
	v->first_page = m->first_page;
	v->npages = m->npages;
	v->dir = m->dir;
	v->rules = m->rules;
	v->nrules = m->nrules;
	v->flags = m->flags;
	m->used++;
}

#endif
