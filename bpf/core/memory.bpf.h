/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Memory that the unwinder reads: the tables' chunks, and the user memory of a task. */
#ifndef SFBPF_MEMORY_BPF_H
#define SFBPF_MEMORY_BPF_H

#include "core/regs.bpf.h"

#include "core/call_insn.h"

static __always_inline const unsigned char *sf_chunk(u32 id)
{
	u32 zero = 0;
	void *map = bpf_map_lookup_elem(&chunks, &id);

	return map ? bpf_map_lookup_elem(map, &zero) : NULL;
}

/*
 * Reads user memory of the current task or, in remote.bpf.c, of the sleeping task that the iterator
 * visits.
 */
static __always_inline long copy_user(void *dst, u32 len, u64 addr)
{
#ifdef SF_REMOTE
	struct task_struct *task = bpf_task_from_pid(remote_tid);
	long err;

	if (!task)
		return -1;
	err = bpf_copy_from_user_task(dst, len, (void *)addr, task, 0);
	bpf_task_release(task);
	return err;
#else
	return bpf_probe_read_user(dst, len, (void *)addr);
#endif
}

/* Reads len bytes. 0; negative: len exceeds the constant `most`, or they cannot be read. */
#define copy_user_part(dst, len, most, addr)                                      \
	({                                                                        \
		u32 part_ = (len);                                                \
                                                                                  \
		part_ > (most) ? -1 : copy_user(dst, AT_MOST(part_, most), addr); \
	})

/*
 * Copies a string: at most len bytes with its NUL. Returns its bytes with the NUL, or a negative
 * number. (bpf_probe_read_user_str() reads the current task only. A loop that searches the NUL has
 * as many ends as bytes, and the verifier follows each.)
 */
static __always_inline long copy_user_text(u8 *dst, u32 len, u64 addr)
{
#ifdef SF_REMOTE
	u32 n = len;

	if (copy_user(dst, len, addr)) { /* the next page is not there */
		n = SF_PAGE_MIN - (addr & (SF_PAGE_MIN - 1));
		if (n >= len || copy_user(dst, AT_MOST(n, len), addr))
			return -1;
	}
	return bpf_probe_read_kernel_str(dst, AT_MOST(n, len), dst);
#else
	return bpf_probe_read_user_str(dst, len, (void *)addr);
#endif
}

/* ends_with_call(), which the verifier goes through once. */
__noinline int after_call(u64 before)
{
	return ends_with_call(before);
}

/* Whether the address follows a call. */
static __always_inline bool follows_call(u64 ra)
{
	u64 before;

	return !copy_user(&before, sizeof(before), ra - SF_CALL_BYTES) && after_call(before);
}

/*
 * Whether the word at `at` is an address that follows a call. A search of many words uses
 * code_before(), which limits page faults. Global: verified once.
 */
__noinline int holds_return(u64 at)
{
	u64 ra;

	return !copy_user(&ra, sizeof(ra), at) && ra > SF_PAGE_MIN && follows_call(ra);
}

/*
 * Reads the code before `ra`, a word that may be a return address. 0 or negative. An address that
 * cannot be read is a page fault, which costs up to half of an ordinary deep stack on a virtual
 * machine. So a walk may have CODE_FAULTS page faults (bridge_note() begins anew), and the last
 * absent page is not read again. A word that points to the start of a memory page is skipped: most
 * such words are the start of a mapping after an absent page.
 */
#define CODE_FAULTS 2

static __always_inline long code_before(struct sf_scratch *s, u64 ra, u64 *ret)
{
	u64 page = (ra - SF_CALL_BYTES) / SF_PAGE_MIN;

	if (!(ra & (SF_PAGE_MIN - 1)) || page == s->absent || s->faults >= CODE_FAULTS)
		return -1;
	if (!copy_user(ret, sizeof(*ret), ra - SF_CALL_BYTES))
		return 0;
	s->absent = page;
	s->faults++;
	return -1;
}

/* The thread pointer of the task whose memory copy_user() reads. */
static __always_inline u64 user_tp(void)
{
#ifdef SF_REMOTE
	struct task_struct *task = bpf_task_from_pid(remote_tid);
	u64 tp;

	if (!task)
		return 0;
	tp = TASK_TP(task);
	bpf_task_release(task);
	return tp;
#else
	return TASK_TP(bpf_get_current_task());
#endif
}

#include "core/row_find.h" /* finds rows in the chunks by sf_chunk */

#endif
