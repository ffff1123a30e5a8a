/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "kern/offcpu_internal.h"

void offcpu_keep_single(struct offcpu *off, const struct sf_off_single *rec)
{
	struct off_singles *w = &off->singles;

	if (rec->state >= SF_OFF_STATES || rec->end_ns < rec->woken_ns ||
	    rec->woken_ns < rec->start_ns ||
	    vec_reserve(&w->list, &w->cap, w->n + 1, sizeof(*w->list))) {
		w->dropped++;
		return;
	}
	w->list[w->n++] = *rec;
}

void offcpu_singles(struct offcpu *off, bool last, offcpu_single_fn fn, void *ctx)
{
	struct off_singles *w = &off->singles;
	size_t seen = w->seen, left = 0;

	for (size_t i = 0; i < w->n; i++) {
		const struct sf_off_single *rec = &w->list[i];
		struct offcpu_single one = { .rec = rec,
					     .stack = offcpu_stack(off, rec->stack),
					     .waker = offcpu_stack(off, rec->waker) };
		struct sf_sample none;

		/* Another CPU may send the stacks a moment later. */
		if (i >= seen && !last && (!one.stack || (rec->waker && !one.waker))) {
			w->list[left++] = *rec;
			continue;
		}
		if (!one.stack)
			one.stack = offcpu_missing_stack(&none, rec->stack, rec->pid, rec->comm);
		fn(ctx, &one);
	}
	w->n = w->seen = left;
}
