/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks are counted here and not in the kernel: at 19 Hz a CPU takes 190 samples in a window of 10
 * s, most of them with different stacks, and a sample costs a microsecond in user space. See
 * docs/agent.md for the measurement.
 */
#include "agent/window.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
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
		w->groups[w->ngroups++] = (struct window_group){ target, kind, p, 0 };
	return p;
}

/* 0: the sample has no span, or no memory. */
static uint32_t link_of(struct window *w, const struct sf_sample *s)
{
	const uint64_t *ids = s->frames + s->n_user + s->n_kernel;
	uint32_t trace, link;

	if (!(s->flags & SF_SAMPLE_LINKED) || idmap_get(&w->traces, ids[0], ids[1], &trace) ||
	    idmap_get(&w->links, trace, ids[2], &link))
		return 0;
	return link + 1;
}

void window_link(const struct window *w, uint32_t link, uint64_t ret[SF_LINK_WORDS])
{
	const struct idmap_key *of = &w->links.keys[link - 1];

	ret[0] = w->traces.keys[of->a].a;
	ret[1] = w->traces.keys[of->a].b;
	ret[2] = of->b;
}

void window_add(struct window *w, const struct sf_sample *s)
{
	struct profile *p = profile_of(w, targets_of(w->targets, s->cgroup_id), WINDOW_CPU);
	struct profile_times once = { .count = 1, .weight = s->weight, .link = link_of(w, s) };

	if (!p || profile_add_times(p, s, &once, NULL))
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

/* ---- Names that processes have for themselves ---- */

void window_ask(struct window *w, struct contexts *c, bool closing)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct profile_stack s;

	if (!c || (!closing && !contexts_due(c, now)))
		return;
	for (size_t g = 0; g < w->ngroups; g++) {
		struct window_group *group = &w->groups[g];

		for (; group->seen < profile_count(group->profile); group->seen++) {
			profile_stack(group->profile, group->seen, &s);
			if (s.pid && s.flags & SF_SAMPLE_USER) /* not a kernel thread */
				contexts_see(c, s.pid, now);
		}
	}
	contexts_ask(c, now);
}

void window_pods(struct window *w, struct kubelet *k, bool closing)
{
	struct pod_names names;

	if (!k)
		return;
	for (size_t g = closing ? 0 : w->asked; g < w->ngroups; g++) {
		const struct target *t = targets_at(w->targets, w->groups[g].target);

		if (*t->pod && kubelet_find(k, t->container, t->pod, &names) && closing)
			w->groups[g].target = targets_in_pod(w->targets, w->groups[g].target,
							     &names);
	}
	w->asked = w->ngroups;
}

struct naming {
	struct window named;
	struct contexts *contexts;
	struct idmap known; /* target and pid -> index into targets */
	uint32_t *targets;
	size_t cap;
};

/* The target of a stack of that group. 0 or -ENOMEM. */
static int target_of(struct naming *n, uint32_t target, const struct profile_stack *s,
		     uint32_t *ret)
{
	const struct target *names;
	size_t before = n->known.n;
	uint32_t id;

	if (idmap_get(&n->known, target, s->pid, &id) ||
	    vec_reserve(&n->targets, &n->cap, n->known.n, sizeof(*n->targets)))
		return -ENOMEM;
	if (id == before) {
		names = contexts_of(n->contexts, s->pid);
		n->targets[id] = names ? targets_with(n->named.targets, target, names) : target;
	}
	*ret = n->targets[id];
	return 0;
}

static int name_group(struct naming *n, const struct window_group *g)
{
	struct profile_stack s;
	struct profile *p;
	uint32_t target;

	for (size_t i = 0; i < profile_count(g->profile); i++) {
		profile_stack(g->profile, i, &s);
		if (target_of(n, g->target, &s, &target))
			return -ENOMEM;
		p = profile_of(&n->named, target, g->kind);
		if (!p || profile_merge_one(p, g->profile, i))
			return -ENOMEM;
	}
	return 0;
}

void window_name(struct window *w, struct contexts *c)
{
	struct naming n = { .named.targets = w->targets, .contexts = c };
	struct window_group *groups = w->groups;
	size_t ngroups = w->ngroups;
	int err = 0;

	if (!c || !contexts_any(c))
		return;
	for (size_t g = 0; g < w->ngroups && !err; g++)
		err = name_group(&n, &w->groups[g]);
	if (!err) {
		w->groups = n.named.groups;
		w->ngroups = n.named.ngroups;
		w->cap = n.named.cap;
		n.named.groups = groups;
		n.named.ngroups = ngroups;
	}
	window_free(&n.named);
	idmap_free(&n.known);
	free(n.targets);
}

uint64_t window_value(enum window_kind kind, const struct profile_stack *s)
{
	return kind == WINDOW_OFF_CPU ? s->weight : s->count;
}

size_t window_bytes(const struct window *w)
{
	size_t sum = idmap_bytes(&w->traces) + idmap_bytes(&w->links);

	for (size_t i = 0; i < w->ngroups; i++)
		sum += profile_bytes(w->groups[i].profile);
	return sum;
}

int window_close(struct window *w, uint64_t duration_ns, struct symbolizer *symbols, bool keep_pids)
{
	w->duration_ns = duration_ns ? duration_ns : 1;
	for (size_t i = 0; i < w->ngroups; i++) {
		if (profile_resolve(w->groups[i].profile, symbols))
			return -ENOMEM;
		if (!keep_pids)
			profile_forget_processes(w->groups[i].profile);
	}
	return 0;
}

struct profile *window_merged(const struct window *w, enum window_kind kind, bool by_target)
{
	struct profile *all = profile_new();

	for (size_t i = 0; i < w->ngroups && all; i++) {
		const struct window_group *g = &w->groups[i];
		int err = 0;

		if (g->kind == kind)
			err = by_target ? profile_merge_cgroup(all, g->profile, g->target + 1ull)
					: profile_merge(all, g->profile);
		if (err) {
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
	idmap_free(&w->traces);
	idmap_free(&w->links);
	*w = (struct window){ 0 };
}
