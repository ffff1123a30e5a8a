/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks are counted here and not in the kernel: at 19 Hz a CPU takes 190 samples in a window of 10
 * s, most of them with different stacks, and a sample costs a microsecond in user space. See
 * docs/agent.md for the measurement.
 */
#include "agent/window.h"

#include <errno.h>
#include <stdlib.h>

#include "base/vec.h"

void window_open(struct window *w, struct targets *targets, uint64_t now_unix_ns, double hz)
{
	*w = (struct window){ .targets = targets, .start_unix_ns = now_unix_ns, .hz = hz };
}

static struct profile *profile_of(struct window *w, uint32_t target, enum window_kind kind)
{
	struct profile *p;

	for (size_t i = 0; i < w->ngroups; i++)
		if (w->groups[i].target == target && w->groups[i].kind == kind)
			return w->groups[i].profile;
	p = vec_reserve(&w->groups, &w->cap, w->ngroups + 1, sizeof(*w->groups)) ? NULL
										 : profile_new();
	if (p)
		w->groups[w->ngroups++] = (struct window_group){ target, kind, p };
	return p;
}

void window_add(struct window *w, const struct sf_sample *s)
{
	struct profile *p = profile_of(w, targets_of(w->targets, s->cgroup_id), WINDOW_CPU);

	if (!p || profile_add(p, s))
		w->dropped++;
	else
		w->samples++;
}

int window_add_blocks(struct window *w, const struct profile *blocks)
{
	struct profile_stack s;
	struct profile *p;
	int err = 0;

	for (size_t i = 0; i < profile_count(blocks); i++) {
		profile_stack(blocks, i, &s);
		p = profile_of(w, targets_of(w->targets, s.cgroup_id), WINDOW_OFF_CPU);
		if (!p || profile_merge_one(p, blocks, i)) {
			w->dropped += s.count;
			err = -ENOMEM;
			continue;
		}
		w->blocks += s.count;
		w->blocked_ns += s.weight;
	}
	return err;
}

uint64_t window_value(enum window_kind kind, const struct profile_stack *s)
{
	return kind == WINDOW_OFF_CPU ? s->weight : s->count;
}

size_t window_bytes(const struct window *w)
{
	size_t sum = 0;

	for (size_t i = 0; i < w->ngroups; i++)
		sum += profile_bytes(w->groups[i].profile);
	return sum;
}

int window_close(struct window *w, uint64_t duration_ns, struct symbolizer *symbols, bool keep_pids)
{
	w->duration_ns = duration_ns ? duration_ns : 1;
	for (size_t i = 0; i < w->ngroups; i++) {
		struct profile *p = w->groups[i].profile, *merged;

		if (profile_resolve(p, symbols))
			return -ENOMEM;
		if (keep_pids)
			continue;
		merged = profile_new();
		if (!merged || profile_merge_code(merged, p)) {
			profile_free(merged);
			return -ENOMEM;
		}
		profile_free(p);
		w->groups[i].profile = merged;
	}
	return 0;
}

struct profile *window_merged(const struct window *w, enum window_kind kind)
{
	struct profile *all = profile_new();

	for (size_t i = 0; i < w->ngroups && all; i++) {
		if (w->groups[i].kind == kind && profile_merge(all, w->groups[i].profile)) {
			profile_free(all);
			all = NULL;
		}
	}
	return all;
}

void window_free(struct window *w)
{
	for (size_t i = 0; i < w->ngroups; i++)
		profile_free(w->groups[i].profile);
	free(w->groups);
	*w = (struct window){ 0 };
}
