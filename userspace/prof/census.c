/* SPDX-License-Identifier: BSD-2-Clause */
#include "prof/census.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/idmap.h"
#include "base/vec.h"

struct tally {
	uint64_t self, total, kernel;
	uint32_t stack; /* the last stack that was counted in total, plus 1 */
};

struct place {		/* the index of a module in c->modules */
	uint32_t row1;	/* plus 1; 0: not in it yet */
	uint32_t stack; /* see struct tally */
};

struct census_scratch {
	unsigned int tables;
	struct tally *by_symbol;
	size_t nsymbols, symbols_cap;
	/* Indexed by module.index; by symbolizer_module_index */
	struct place *by_file, *by_name;
	size_t nfiles, files_cap, nnames, names_cap;
	/* keys: the 16 bytes of a comm; (pid, 0); (pid, id of comm) */
	struct idmap comms, processes, threads;
	/* Self of a function in a process, and in the threads of one name */
	struct hot {
		struct idmap ids; /* (process or thread, symbol) */
		uint64_t *self;	  /* indexed by id */
		size_t cap;
	} hot, thread_hot;
	size_t functions_cap, processes_cap, threads_cap, modules_cap;
};

void census_free(struct census *c)
{
	struct census_scratch *sc = c->scratch;

	free(c->functions);
	free(c->processes);
	free(c->threads);
	free(c->modules);
	if (sc) {
		free(sc->by_symbol);
		free(sc->by_file);
		free(sc->by_name);
		idmap_free(&sc->comms);
		idmap_free(&sc->processes);
		idmap_free(&sc->threads);
		idmap_free(&sc->hot.ids);
		idmap_free(&sc->thread_hot.ids);
		free(sc->hot.self);
		free(sc->thread_hot.self);
		free(sc);
	}
	*c = (struct census){ 0 };
}

static int extend_(void **arr, size_t *cap, size_t *n, size_t want, size_t size)
{
	if (want <= *n)
		return 0;
	if (vec_reserve_(arr, cap, want, size))
		return -ENOMEM;
	memset((char *)*arr + *n * size, 0, (want - *n) * size);
	*n = want;
	return 0;
}

#define extend(arr, cap, n, want) extend_((void **)(arr), (cap), (n), (want), sizeof(**(arr)))

/* ---- Processes and their thread names ---- */

static struct census_task *process_of(struct census *c, uint32_t pid)
{
	struct census_scratch *sc = c->scratch;
	uint32_t id;

	if (idmap_get(&sc->processes, pid, 0, &id) ||
	    vec_reserve(&c->processes, &sc->processes_cap, sc->processes.n, sizeof(*c->processes)))
		return NULL;
	if (id == c->nprocesses)
		c->processes[c->nprocesses++] = (struct census_task){ .pid = pid };
	return &c->processes[id];
}

static struct census_task *thread_of(struct census *c, const struct profile_stack *s)
{
	struct census_task fresh = { .pid = s->pid, .names = 1 };
	struct census_scratch *sc = c->scratch;
	uint64_t comm[2];
	uint32_t id;

	_Static_assert(sizeof(comm) == SF_COMM, "a comm is two words");
	memcpy(fresh.comm, s->comm, strnlen(s->comm, sizeof(fresh.comm) - 1));
	memcpy(comm, fresh.comm, sizeof(comm));
	if (idmap_get(&sc->comms, comm[0], comm[1], &id) ||
	    idmap_get(&sc->threads, s->pid, id, &id) ||
	    vec_reserve(&c->threads, &sc->threads_cap, sc->threads.n, sizeof(*c->threads)))
		return NULL;
	fresh.id = id;
	if (id == c->nthreads)
		c->threads[c->nthreads++] = fresh;
	return &c->threads[id];
}

static int count_hot(struct hot *hot, struct census_task *of, uint64_t index, uint32_t symbol,
		     uint64_t value)
{
	size_t before = hot->ids.n;
	uint32_t id;

	if (idmap_get(&hot->ids, index, symbol, &id) ||
	    vec_reserve(&hot->self, &hot->cap, hot->ids.n, sizeof(*hot->self)))
		return -ENOMEM;
	if (id == before)
		hot->self[id] = 0;
	hot->self[id] += value;
	if (hot->self[id] > of->hottest_self) {
		of->hottest = symbol;
		of->hottest_self = hot->self[id];
	}
	return 0;
}

static int by_thread_and_self(const void *a, const void *b)
{
	const struct census_hot *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->self != y->self)
		return x->self < y->self ? 1 : -1;
	return x->symbol < y->symbol ? -1 : x->symbol > y->symbol;
}

int census_hottest(const struct census *c, struct census_hot **ret, size_t *ret_n)
{
	const struct hot *hot = &c->scratch->thread_hot;
	struct census_hot *list = calloc(hot->ids.n + 1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < hot->ids.n; i++)
		list[i] = (struct census_hot){ (uint32_t)hot->ids.keys[i].a,
					       (uint32_t)hot->ids.keys[i].b, hot->self[i] };
	qsort(list, hot->ids.n, sizeof(*list), by_thread_and_self);
	*ret = list;
	*ret_n = hot->ids.n;
	return 0;
}

static void count_process(struct census_task *pr, const struct profile_stack *s, uint64_t value)
{
	pr->self += value;
	if (s->flags & SF_SAMPLE_IN_KERNEL)
		pr->kernel += value;
	if (s->flags & SF_SAMPLE_USER) {
		pr->user_stacks += s->count;
		if (s->stop == SF_STOP_COMPLETE)
			pr->complete += s->count;
	}
}

static int add_process(struct census *c, const struct profile_stack *s, uint64_t value,
		       uint32_t leaf)
{
	struct census_task *pr = process_of(c, s->pid), *t = pr ? thread_of(c, s) : NULL;

	if (!t)
		return -ENOMEM;
	count_process(pr, s, value);
	count_process(t, s, value);
	if (count_hot(&c->scratch->hot, pr, (uint64_t)(pr - c->processes), leaf, value))
		return -ENOMEM;
	return count_hot(&c->scratch->thread_hot, t, t->id, leaf, value);
}

/* A process without a name of its own gets the thread name with the most samples. */
static void name_processes(struct census *c, const struct profile *p, bool by_thread)
{
	for (size_t i = 0; i < c->nprocesses && !by_thread; i++) {
		const char *name = profile_process_name(p, c->processes[i].pid);

		c->processes[i].named = name != NULL;
		if (name)
			memcpy(c->processes[i].comm, name, SF_COMM);
	}
	for (size_t i = 0; i < c->nthreads; i++) {
		const struct census_task *t = &c->threads[i];
		struct census_task *pr = process_of(c, t->pid);

		if (!pr)
			continue;
		pr->names++;
		if (pr->named || t->self < pr->comm_self ||
		    (t->self == pr->comm_self && memcmp(t->comm, pr->comm, sizeof(t->comm)) >= 0))
			continue;
		memcpy(pr->comm, t->comm, sizeof(pr->comm));
		pr->comm_self = t->self;
	}
}

static int thread_order(const void *a, const void *b)
{
	const struct census_task *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->self != y->self)
		return x->self < y->self ? 1 : -1;
	return memcmp(x->comm, y->comm, sizeof(x->comm));
}

/* ---- Modules ---- */

static struct census_module *new_module(struct census *c, struct place *at)
{
	if (vec_reserve(&c->modules, &c->scratch->modules_cap, c->nmodules + 1,
			sizeof(*c->modules)))
		return NULL;
	c->modules[c->nmodules] = (struct census_module){ 0 };
	at->row1 = (uint32_t)++c->nmodules;
	return &c->modules[c->nmodules - 1];
}

/*
 * The entry under which a frame's module is counted: by file if it lies in one, otherwise by the
 * name of the module. NULL: out of memory.
 */
static struct place *place_of(struct census *c, const struct symbolizer *sz, uint32_t symbol,
			      const uint64_t *user_frame, const struct modules *ms)
{
	struct census_scratch *sc = c->scratch;
	uint32_t kind = user_frame ? SF_FRAME_KIND(*user_frame) : SF_FRAME_RAW;
	bool in_file = kind == SF_FRAME_ROW || kind == SF_FRAME_NOROW;
	const struct module *file = NULL;
	struct census_module *m;
	struct place *at;

	if (in_file)
		file = modules_find(ms, SF_FRAME_MODULE(*user_frame));
	if (file) {
		if (extend(&sc->by_file, &sc->files_cap, &sc->nfiles, file->index + 1ul))
			return NULL;
		at = &sc->by_file[file->index];
	} else {
		if (extend(&sc->by_name, &sc->names_cap, &sc->nnames, symbolizer_module_count(sz)))
			return NULL;
		at = &sc->by_name[symbolizer_module_index(sz, symbol)];
	}
	if (at->row1)
		return at;
	m = new_module(c, at);
	if (!m)
		return NULL;
	m->file = file;
	m->index = symbolizer_module_index(sz, symbol);
	m->name = symbolizer_module_name(sz, m->index);
	return at;
}

static void count_module(struct census *c, struct place *at, const struct profile_stack *s,
			 uint64_t value, uint32_t stack, bool leaf, bool last_user)
{
	struct census_module *m = &c->modules[at->row1 - 1];
	bool user = s->flags & SF_SAMPLE_USER;

	if (leaf)
		m->self += value;
	if (last_user && user && !profile_at_root(s->stop))
		m->ended[s->stop] += s->count;
	if (at->stack == stack)
		return;
	at->stack = stack;
	m->total += value;
	if (user) {
		m->user_stacks += s->count;
		if (s->stop == SF_STOP_COMPLETE)
			m->complete += s->count;
	}
}

/* Adds loaded files without samples, so that their tables can be shown. */
static int add_idle_modules(struct census *c, const struct modules *ms)
{
	struct census_scratch *sc = c->scratch;

	for (uint32_t i = 0; ms && i < modules_count(ms); i++) {
		const struct module *file = modules_at(ms, i);
		struct census_module *m;

		if (!file || file->retired_at || file->known == KNOWN_ID)
			continue;
		if (extend(&sc->by_file, &sc->files_cap, &sc->nfiles, i + 1ul))
			return -ENOMEM;
		if (sc->by_file[i].row1)
			continue;
		m = new_module(c, &sc->by_file[i]);
		if (!m)
			return -ENOMEM;
		m->file = file;
	}
	return 0;
}

uint8_t census_worst_stop(const struct census_module *m)
{
	uint8_t worst = SF_STOP_COMPLETE;

	for (uint8_t i = 0; i < SF_STOP_MAX; i++)
		if (i != SF_STOP_COMPLETE && m->ended[i] &&
		    (worst == SF_STOP_COMPLETE || m->ended[i] > m->ended[worst]))
			worst = i;
	return worst;
}

/* ---- Stacks ---- */

static void count_function(struct census *c, uint32_t symbol, const struct profile_stack *s,
			   uint64_t value, uint32_t stack, bool leaf)
{
	struct tally *t = &c->scratch->by_symbol[symbol];

	if (leaf)
		t->self += value;
	if (t->stack == stack)
		return;
	t->stack = stack;
	t->total += value;
	if (s->flags & SF_SAMPLE_IN_KERNEL)
		t->kernel += value;
}

static int add_functions(struct census *c, const struct profile_stack *s, uint64_t value,
			 const uint32_t *ids, uint32_t stack, const struct symbolizer *sz,
			 const struct shown *f)
{
	struct census_scratch *sc = c->scratch;
	size_t n = shown_count(f);
	const uint32_t *inlined;

	if (extend(&sc->by_symbol, &sc->symbols_cap, &sc->nsymbols, symbolizer_count(sz)))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		size_t k = shown_at(f, i), ninlined = 0;

		if (k < s->n_user)
			ninlined = symbolizer_inlined(sz, s->frames[k], &inlined);
		for (size_t d = 0; d < ninlined; d++)
			count_function(c, inlined[d], s, value, stack, i + d == 0);
		count_function(c, ids[k], s, value, stack, i + ninlined == 0);
	}
	if (!n)
		count_function(c, SYM_NO_STACK, s, value, stack, true);
	return 0;
}

static int add_modules(struct census *c, const struct profile_stack *s, uint64_t value,
		       const uint32_t *ids, uint32_t stack, const struct symbolizer *sz,
		       const struct modules *ms, const struct shown *f)
{
	size_t n = shown_count(f);

	for (size_t i = 0; i < (n ? n : 1); i++) {
		size_t k = n ? shown_at(f, i) : 0;
		struct place *at = place_of(c, sz, n ? ids[k] : SYM_NO_STACK,
					    n && k < s->n_user ? &s->frames[k] : NULL, ms);

		if (!at)
			return -ENOMEM;
		count_module(c, at, s, value, stack, i == 0, n && k + 1 == s->n_user);
	}
	return 0;
}

static void count_all(struct census *c, const struct profile_stack *s)
{
	uint32_t language = SF_SAMPLE_LANG(s->flags) % SF_LANG_MAX;

	c->all.lang_stacks[language] += s->count;
	if (s->lang_stop == SF_STOP_COMPLETE)
		c->all.lang_complete[language] += s->count;
	c->all.samples += s->count;
	if (s->flags & SF_SAMPLE_IN_KERNEL)
		c->all.kernel += s->count;
	if (s->flags & SF_SAMPLE_USER) {
		c->all.user_stacks += s->count;
		c->all.stops[s->stop] += s->count;
		if (s->stop == SF_STOP_COMPLETE)
			c->all.complete += s->count;
	}
}

static int add_stack(struct census *c, struct profile *p, size_t i, struct symbolizer *sz,
		     const struct modules *ms, const struct selection *sel)
{
	unsigned int tables = c->scratch->tables;
	struct profile_stack s;
	const uint32_t *ids;
	struct shown f;
	uint64_t value;
	int err = 0;

	profile_stack(p, i, &s);
	if (!selection_on_cpu(sel, &s))
		return 0;
	count_all(c, &s);
	ids = profile_symbols(p, i, sz);
	if (!ids)
		return -ENOMEM;
	if (!selection_takes(sel, &s, ids, sz))
		return 0;
	value = tables & CENSUS_BY_WEIGHT ? s.weight : s.count;
	c->sum += value;
	f = shown_frames(sel, &s);
	if (tables & CENSUS_PROCESSES)
		err = add_process(c, &s, value,
				  shown_count(&f) ? ids[shown_at(&f, 0)] : SYM_NO_STACK);
	if (!err && tables & CENSUS_FUNCTIONS)
		err = add_functions(c, &s, value, ids, (uint32_t)i + 1, sz, &f);
	if (!err && tables & CENSUS_MODULES)
		err = add_modules(c, &s, value, ids, (uint32_t)i + 1, sz, ms, &f);
	return err;
}

static int collect_functions(struct census *c, const struct symbolizer *sz,
			     const struct selection *sel)
{
	const struct zoom *in = selection_level(sel, ZOOM_MODULE);
	struct census_scratch *sc = c->scratch;

	for (size_t id = 0; id < sc->nsymbols; id++) {
		const struct tally *t = &sc->by_symbol[id];

		if (!t->stack || (in && symbolizer_module_index(sz, (uint32_t)id) != in->id))
			continue;
		if (vec_reserve(&c->functions, &sc->functions_cap, c->nfunctions + 1,
				sizeof(*c->functions)))
			return -ENOMEM;
		c->functions[c->nfunctions++] = (struct census_function){
			.symbol = (uint32_t)id,
			.name = symbolizer_name(sz, (uint32_t)id),
			.module = symbolizer_module(sz, (uint32_t)id),
			.self = t->self,
			.total = t->total,
			.kernel = t->kernel,
		};
	}
	return 0;
}

static int start(struct census *c)
{
	struct census_scratch *sc = c->scratch;

	c->nfunctions = c->nprocesses = c->nthreads = c->nmodules = 0;
	c->sum = 0;
	memset(&c->all, 0, sizeof(c->all));
	if (!sc) {
		sc = c->scratch = calloc(1, sizeof(*sc));
		return sc ? 0 : -ENOMEM;
	}
	sc->nsymbols = sc->nfiles = sc->nnames = 0;
	idmap_reset(&sc->comms);
	idmap_reset(&sc->processes);
	idmap_reset(&sc->threads);
	idmap_reset(&sc->hot.ids);
	idmap_reset(&sc->thread_hot.ids);
	return 0;
}

int census_build(struct census *c, struct profile *p, struct symbolizer *sz,
		 const struct modules *ms, const struct selection *sel, unsigned int tables)
{
	int err = start(c);

	if (!err)
		c->scratch->tables = tables;
	for (size_t i = 0; i < profile_count(p) && !err; i++)
		err = add_stack(c, p, i, sz, ms, sel);
	if (!err)
		err = collect_functions(c, sz, sel);
	if (!err && !sel->n && tables & CENSUS_MODULES)
		err = add_idle_modules(c, ms);
	if (err) {
		census_free(c);
		return err;
	}
	name_processes(c, p, sel->by_thread);
	if (c->nthreads)
		qsort(c->threads, c->nthreads, sizeof(*c->threads), thread_order);
	return 0;
}
