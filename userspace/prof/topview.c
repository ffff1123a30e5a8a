/* SPDX-License-Identifier: BSD-2-Clause */
#include "prof/topview.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/vec.h"

struct tally {
	uint64_t self, total;
	uint32_t stack;		/* the last one that was counted into total, + 1 */
};

struct topview_scratch {
	struct tally *by_symbol;	/* index: symbol id */
	size_t nsymbols, symbols_cap;	/* the first nsymbols are set up */
	struct tally *by_module;	/* index: symbolizer_module_index */
	size_t nmodules, modules_cap;
	uint32_t *slots;		/* process + 1, 0: free; a power of two, at most half full */
	size_t nslots;
	size_t functions_cap, processes_cap, rows_cap;
};

void topview_free(struct topview *tv)
{
	free(tv->functions);
	free(tv->processes);
	free(tv->modules);
	if (tv->scratch) {
		free(tv->scratch->by_symbol);
		free(tv->scratch->by_module);
		free(tv->scratch->slots);
		free(tv->scratch);
	}
	*tv = (struct topview){ 0 };
}

static int extend(struct tally **arr, size_t *cap, size_t *n, size_t want)
{
	if (want <= *n)
		return 0;
	if (vec_reserve(arr, cap, want, sizeof(**arr)))
		return -ENOMEM;
	memset(*arr + *n, 0, (want - *n) * sizeof(**arr));
	*n = want;
	return 0;
}

static void count_total(struct tally *t, uint32_t stack, uint64_t value)
{
	if (t->stack == stack)
		return;
	t->stack = stack;
	t->total += value;
}

static void count_frame(struct topview *tv, struct symbolizer *sz, uint32_t symbol, uint32_t stack, bool leaf, uint64_t value)
{
	struct tally *f = &tv->scratch->by_symbol[symbol];
	struct tally *m = &tv->scratch->by_module[symbolizer_module_index(sz, symbol)];

	count_total(f, stack, value);
	count_total(m, stack, value);
	if (leaf) {
		f->self += value;
		m->self += value;
	}
}

static int add_frames(struct topview *tv, struct profile *p, size_t i, struct symbolizer *sz, const struct topview_opts *opts,
		      uint64_t value)
{
	struct topview_scratch *sc = tv->scratch;
	const uint32_t no_stack = SYM_NO_STACK, *ids, *inlined;
	uint32_t stack = (uint32_t)i + 1;
	struct profile_stack s;
	size_t nu, nk, n, leaf;

	ids = profile_symbols(p, i, sz);
	if (!ids || extend(&sc->by_symbol, &sc->symbols_cap, &sc->nsymbols, symbolizer_count(sz)) ||
	    extend(&sc->by_module, &sc->modules_cap, &sc->nmodules, symbolizer_module_count(sz)))
		return -ENOMEM;
	profile_stack(p, i, &s);
	nu = opts->kernel_only ? 0 : s.n_user;
	nk = opts->user_only ? 0 : s.n_kernel;
	if (!nu)
		ids += s.n_user;
	n = nu + nk;
	leaf = nk ? nu : 0;
	if (!n) {
		ids = &no_stack;
		n = 1;
	}
	for (size_t k = 0; k < n; k++) {
		size_t nin = k < nu ? symbolizer_inlined(sz, s.frames[k], &inlined) : 0;

		for (size_t d = 0; d < nin; d++)
			count_frame(tv, sz, inlined[d], stack, k == leaf && !d, value);
		count_frame(tv, sz, ids[k], stack, k == leaf && !nin, value);
	}
	return 0;
}

/* ---- Processes ---- */

static uint64_t hash_process(uint32_t pid, const char *comm)
{
	return hash_mix(hash_bytes(comm, strlen(comm)), pid);
}

static int grow_processes(struct topview *tv)
{
	struct topview_scratch *sc = tv->scratch;
	size_t n = sc->nslots ? sc->nslots * 2 : 256;
	uint32_t *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < tv->nprocesses; i++) {
		size_t at = hash_process(tv->processes[i].pid, tv->processes[i].comm) & (n - 1);

		while (slots[at])
			at = (at + 1) & (n - 1);
		slots[at] = (uint32_t)i + 1;
	}
	free(sc->slots);
	sc->slots = slots;
	sc->nslots = n;
	return 0;
}

static struct topview_process *process_of(struct topview *tv, uint32_t pid, const char *comm)
{
	struct topview_scratch *sc = tv->scratch;
	struct topview_process *pr;
	size_t at;

	if (tv->nprocesses * 2 >= sc->nslots && grow_processes(tv))
		return NULL;
	for (at = hash_process(pid, comm) & (sc->nslots - 1); sc->slots[at]; at = (at + 1) & (sc->nslots - 1)) {
		pr = &tv->processes[sc->slots[at] - 1];
		if (pr->pid == pid && strcmp(pr->comm, comm) == 0)
			return pr;
	}
	if (vec_reserve(&tv->processes, &sc->processes_cap, tv->nprocesses + 1, sizeof(*pr)))
		return NULL;
	pr = &tv->processes[tv->nprocesses++];
	*pr = (struct topview_process){ .pid = pid };
	strncpy(pr->comm, comm, sizeof(pr->comm) - 1);
	sc->slots[at] = (uint32_t)tv->nprocesses;
	return pr;
}

static int add_process(struct topview *tv, const struct profile_stack *s, uint64_t value)
{
	struct topview_process *pr = process_of(tv, s->pid, s->comm);

	if (!pr)
		return -ENOMEM;
	pr->self += value;
	if (s->flags & SF_SAMPLE_IN_KERNEL)
		pr->kernel += value;
	if (s->flags & SF_SAMPLE_USER) {
		pr->user_stacks += s->count;
		tv->user_stacks += s->count;
		if (s->stop == SF_STOP_COMPLETE) {
			pr->complete += s->count;
			tv->complete += s->count;
		}
	}
	return 0;
}

/* ---- Rows ---- */

static int collect(struct topview *tv, struct symbolizer *sz)
{
	struct topview_scratch *sc = tv->scratch;

	for (size_t id = 0; id < sc->nsymbols; id++) {
		const struct tally *t = &sc->by_symbol[id];

		if (!t->stack)
			continue;
		if (vec_reserve(&tv->functions, &sc->functions_cap, tv->nfunctions + 1, sizeof(*tv->functions)))
			return -ENOMEM;
		tv->functions[tv->nfunctions++] = (struct topview_function){
			.symbol = (uint32_t)id, .name = symbolizer_name(sz, (uint32_t)id),
			.module = symbolizer_module(sz, (uint32_t)id), .self = t->self, .total = t->total,
		};
	}
	for (size_t m = 0; m < sc->nmodules; m++) {
		const struct tally *t = &sc->by_module[m];

		if (!t->stack)
			continue;
		if (vec_reserve(&tv->modules, &sc->rows_cap, tv->nmodules + 1, sizeof(*tv->modules)))
			return -ENOMEM;
		tv->modules[tv->nmodules++] = (struct topview_module){
			.name = symbolizer_module_name(sz, (uint32_t)m), .self = t->self, .total = t->total,
		};
	}
	return 0;
}

static int descending(uint64_t a, uint64_t b)
{
	return a < b ? 1 : -(a > b);
}

static int by_self(const void *a, const void *b)
{
	const struct topview_function *x = a, *y = b;
	int c = descending(x->self, y->self);

	c = c ? c : descending(x->total, y->total);
	c = c ? c : strcmp(x->name, y->name);
	return c ? c : strcmp(x->module, y->module);
}

static int by_total(const void *a, const void *b)
{
	const struct topview_function *x = a, *y = b;
	int c = descending(x->total, y->total);

	return c ? c : by_self(a, b);
}

static int module_by_self(const void *a, const void *b)
{
	const struct topview_module *x = a, *y = b;
	int c = descending(x->self, y->self);

	c = c ? c : descending(x->total, y->total);
	return c ? c : strcmp(x->name, y->name);
}

static int module_by_total(const void *a, const void *b)
{
	const struct topview_module *x = a, *y = b;
	int c = descending(x->total, y->total);

	return c ? c : module_by_self(a, b);
}

static int process_order(const void *a, const void *b)
{
	const struct topview_process *x = a, *y = b;
	int c = descending(x->self, y->self);

	c = c ? c : strcmp(x->comm, y->comm);
	return c ? c : x->pid < y->pid ? -1 : x->pid > y->pid;
}

static void sort_rows(struct topview *tv, enum topview_sort sort)
{
	bool total = sort == TOPVIEW_TOTAL;

	if (tv->nfunctions)
		qsort(tv->functions, tv->nfunctions, sizeof(*tv->functions), total ? by_total : by_self);
	if (tv->nmodules)
		qsort(tv->modules, tv->nmodules, sizeof(*tv->modules), total ? module_by_total : module_by_self);
	if (tv->nprocesses)
		qsort(tv->processes, tv->nprocesses, sizeof(*tv->processes), process_order);
}

static int start(struct topview *tv)
{
	struct topview_scratch *sc = tv->scratch;

	tv->nfunctions = tv->nprocesses = tv->nmodules = 0;
	tv->sum = tv->samples = tv->user_stacks = tv->complete = 0;
	if (!sc) {
		sc = tv->scratch = calloc(1, sizeof(*sc));
		return sc ? 0 : -ENOMEM;
	}
	sc->nsymbols = sc->nmodules = 0;
	if (sc->nslots)
		memset(sc->slots, 0, sc->nslots * sizeof(*sc->slots));
	return 0;
}

int topview_build(struct topview *tv, struct profile *p, struct symbolizer *sz, const struct topview_opts *opts)
{
	int err = start(tv);

	for (size_t i = 0; i < profile_count(p) && !err; i++) {
		struct profile_stack s;
		uint64_t value;

		profile_stack(p, i, &s);
		value = opts->by_weight ? s.weight : s.count;
		tv->sum += value;
		tv->samples += s.count;
		err = add_process(tv, &s, value);
		if (!err)
			err = add_frames(tv, p, i, sz, opts, value);
	}
	if (!err)
		err = collect(tv, sz);
	if (err) {
		topview_free(tv);
		return err;
	}
	sort_rows(tv, opts->sort);
	return 0;
}
