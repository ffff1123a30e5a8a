/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* From a mapping to the module and the tables of its file, and the requests for them. */
#ifndef SFBPF_FILE_BPF_H
#define SFBPF_FILE_BPF_H

#include "vma.bpf.h"

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

/* Whether the tables of the file must be requested again. */
static __always_inline bool retry_due(struct sf_module *m)
{
	u32 state = m->state;
	u64 now;

	if (state != SF_MOD_RETRY && state != SF_MOD_FULL)
		return false;
	now = bpf_ktime_get_ns();
	if ((s32)((u32)(now / 1000000) - m->retry_ms) < 0 || !need_allowed(m->owner, now))
		return false;
	return __sync_val_compare_and_swap(&m->state, state, SF_MOD_LOADING) == state;
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
	u32 why;

	if (inode)
		inode_key(inode, &key);
	else
		key.ino = SF_KEY_VDSO;
	m = module_known(&key);
	if (!m)
		m = module_new(&key, mm_owner(s->mm), &need_it, &why);
	if (!m) {
		v->word = 0;
		v->state = why;
		if (why == SF_MOD_REFUSED)
			count_refused();
		return;
	}
	if (need_it || retry_due(m)) {
		struct sf_need need;

		fill_need(&need, vma, inode, m, s->pid);
		if (!send_need(&need)) { /* retried when it is met again */
			m->retry_ms = bpf_ktime_get_ns() / 1000000;
			m->state = SF_MOD_RETRY;
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
