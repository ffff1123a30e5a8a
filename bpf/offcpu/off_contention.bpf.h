/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Off-CPU: the programs that see threads begin and end to wait for locks of the kernel. */
#ifndef SFBPF_OFF_CONTENTION_BPF_H
#define SFBPF_OFF_CONTENTION_BPF_H

#include "offcpu/off_block.bpf.h"
#include "offcpu/off_lock.bpf.h"

/* ctx: lock, flags. Interrupts come here with locks that spin. */
SEC("?tp_btf/contention_begin")
int off_contended(u64 *ctx)
{
	struct off_task *t = off_task(bpf_get_current_task_btf());

	if (t)
		off_kernel_lock(&t->contended, ctx[0], ctx[1]);
	return 0;
}

/* ctx: lock */
SEC("?tp_btf/contention_end")
int off_uncontended(u64 *ctx)
{
	struct off_task *t = off_task(bpf_get_current_task_btf());

	if (t && t->contended.addr == ctx[0])
		t->contended = off_no_lock;
	return 0;
}

#endif
