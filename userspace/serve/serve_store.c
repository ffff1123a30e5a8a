/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/serve_store.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/vec.h"
#include "serve/serve_tables.h"

struct entry { /* a window; by id of its name */
	struct stack_logged *list;
	size_t n;
	bool known, failed;
	struct stacks_meta meta;
};

struct chosen { /* a window that the present question needs */
	uint32_t id;
	uint64_t start_ns;
};

struct store {
	const struct clickhouse *tables; /* NULL: windows of dir */
	int dir;
	uint64_t memory, log_bytes;
	struct stackset all; /* values are not in it but in entries */
	struct strpool *names;
	struct entry *entries;
	size_t nentries, entries_cap;
	struct chosen *chosen;
	size_t nchosen, chosen_cap;
	double *by_group; /* scratch: amount by group */
	size_t by_group_cap;
	pthread_mutex_t lock;
};

static int open_sets(struct store *s)
{
	s->names = strpool_new();
	if (!s->names || stackset_init(&s->all))
		return -ENOMEM;
	s->all.choice.by = STACK_BY_LABEL;
	s->all.choice.by_label = LABEL_SERVICE;
	return 0;
}

static void close_sets(struct store *s)
{
	for (size_t i = 0; i < s->nentries; i++)
		free(s->entries[i].list);
	s->nentries = s->log_bytes = 0;
	stackset_free(&s->all);
	if (s->names)
		strpool_free(s->names);
	s->names = NULL;
}

static struct store *make(const struct clickhouse *tables, int dir, uint64_t memory)
{
	struct store *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->tables = tables;
	s->dir = dir;
	s->memory = memory;
	pthread_mutex_init(&s->lock, NULL);
	if (!open_sets(s))
		return s;
	store_free(s);
	return NULL;
}

struct store *store_new(int dir, uint64_t memory)
{
	return make(NULL, dir, memory);
}

struct store *store_new_tables(const struct clickhouse *tables)
{
	return make(tables, -1, 0);
}

void store_free(struct store *s)
{
	if (!s)
		return;
	close_sets(s);
	free(s->entries);
	free(s->chosen);
	free(s->by_group);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

void store_lock(struct store *s)
{
	pthread_mutex_lock(&s->lock);
}

void store_unlock(struct store *s)
{
	pthread_mutex_unlock(&s->lock);
}

void store_sum_free(struct store_sum *sum)
{
	free(sum->services);
	free(sum->hosts);
}

static uint64_t bytes_used(const struct store *s)
{
	return stackset_bytes(&s->all) + s->log_bytes + strpool_bytes(s->names) +
	       s->entries_cap * sizeof(*s->entries);
}

/* ---- Reading ---- */

struct question {
	struct store *s;
	const struct store_range *range;
	uint64_t until_ns; /* CLOCK_MONOTONIC, for reading */
	struct store_sum *sum;
};

static void read_entry(struct store *s, struct entry *e, int folder, const char *name,
		       const struct window_name *w)
{
	FILE *f = window_open_file(folder, name);
	struct stack_log log = { 0 };
	struct read_error why;

	e->known = true;
	e->failed = !f;
	if (!f)
		return;
	s->all.log = &log;
	s->all.choice.host = w->host;
	e->failed = read_stacks(f, &s->all, STACK_AFTER, &e->meta, &why) != 0;
	s->all.choice.host = NULL;
	s->all.log = NULL;
	fclose(f);
	if (!e->failed && !*e->meta.host)
		strcpy(e->meta.host, w->host);
	if (e->failed || !log.n) {
		free(log.list);
		return;
	}
	e->list = realloc(log.list, log.n * sizeof(*log.list));
	if (!e->list)
		e->list = log.list;
	e->n = log.n;
	s->log_bytes += log.n * sizeof(*log.list);
}

static int entry_of(struct store *s, const char *name, uint32_t *ret)
{
	if (strpool_intern(s->names, name, strlen(name), ret) ||
	    vec_reserve(&s->entries, &s->entries_cap, *ret + 1ull, sizeof(*s->entries)))
		return -ENOMEM;
	if (*ret == s->nentries)
		s->entries[s->nentries++] = (struct entry){ 0 };
	return 0;
}

static int on_window(void *ctx, int folder, const char *name, const struct window_name *w)
{
	struct question *q = ctx;
	struct store *s = q->s;
	struct entry *e;
	uint32_t id;

	if (entry_of(s, name, &id) ||
	    vec_reserve(&s->chosen, &s->chosen_cap, s->nchosen + 1, sizeof(*s->chosen)))
		return -ENOMEM;
	e = &s->entries[id];
	q->sum->all++;
	if (!e->known) {
		if (clock_ns(CLOCK_MONOTONIC) > q->until_ns)
			return 0;
		read_entry(s, e, folder, name, w);
		if (bytes_used(s) > s->memory)
			return -EFBIG;
	}
	q->sum->windows++;
	if (e->failed)
		q->sum->unread++;
	else
		s->chosen[s->nchosen++] = (struct chosen){ id, w->start_ns };
	return 0;
}

/* ---- Sums ---- */

static bool is_off_cpu(const struct entry *e)
{
	return !strcmp(e->meta.unit, "microseconds");
}

/* Seconds of a CPU for each sample, or of blocked time for each unit; 1 if that is not known. */
static double seconds_of(const struct entry *e)
{
	return is_off_cpu(e) ? 1e-6 : e->meta.hz > 0 ? 1 / e->meta.hz : 1;
}

static void add_meta(struct stacks_meta *sum, const struct stacks_meta *m)
{
	bool first = !sum->bytes;

	if (first)
		*sum = *m;
	else
		sum->bytes += m->bytes;
	if (first)
		return;
	sum->lost += m->lost;
	sum->user_stacks += m->user_stacks;
	sum->complete += m->complete;
	if (m->start_unix_ns < sum->start_unix_ns)
		sum->start_unix_ns = m->start_unix_ns;
	if (sum->hz != m->hz)
		sum->hz = 0;
}

static int add_host(struct store_sum *sum, const char *name)
{
	for (size_t i = 0; i < sum->nhosts; i++)
		if (!strcmp(sum->hosts[i].name, name))
			return 0;
	if (vec_reserve(&sum->hosts, &sum->hosts_cap, sum->nhosts + 1, sizeof(*sum->hosts)))
		return -ENOMEM;
	strcpy(sum->hosts[sum->nhosts++].name, name);
	return 0;
}

static size_t step_of(const struct store_range *r, uint64_t start_ns)
{
	uint64_t from = r->windows.since_ns, length = r->windows.until_ns - from;
	size_t step = (size_t)((double)(start_ns - from) * STORE_STEPS / (double)length);

	return step < STORE_STEPS ? step : STORE_STEPS - 1;
}

static uint32_t group_name(const struct store *s, uint32_t leaf)
{
	return (uint32_t)s->all.groups.keys[s->all.leaves.keys[leaf].b].a;
}

/* The id of a service's name among the strings; UINT32_MAX: all services, or an unknown one. */
static bool service_id(const struct store *s, const char *service, uint32_t *ret)
{
	*ret = UINT32_MAX;
	for (size_t g = 0; service && g < s->all.groups.n; g++) {
		uint32_t id = (uint32_t)s->all.groups.keys[g].a;

		if (!strcmp(strpool_str(s->all.strings, id), service))
			*ret = id;
	}
	return !service || *ret != UINT32_MAX;
}

static void add_window(struct question *q, const struct chosen *c, uint32_t service)
{
	struct store *s = q->s;
	const struct entry *e = &s->entries[c->id];
	double seconds = seconds_of(e), sum = 0, selected = 0;
	size_t step = step_of(q->range, c->start_ns);

	for (size_t i = 0; i < e->n; i++) {
		double amount = (double)e->list[i].value * seconds;
		uint32_t leaf = e->list[i].leaf;

		sum += amount;
		s->by_group[s->all.leaves.keys[leaf].b] += amount;
		if (group_name(s, leaf) == service)
			selected += amount;
	}
	q->sum->amount += sum;
	q->sum->steps[step] += sum;
	q->sum->selected += selected;
	q->sum->selected_steps[step] += selected;
	add_meta(&q->sum->meta, &e->meta);
}

static int by_amount(const void *a, const void *b)
{
	const struct store_service *x = a, *y = b;

	if (x->amount != y->amount)
		return x->amount < y->amount ? 1 : -1;
	return strcmp(x->name, y->name);
}

/* Groups are services and pids: pids of a service become one. */
static int list_services(struct store *s, struct store_sum *sum)
{
	struct idmap names = { 0 };
	size_t cap = 0;
	uint32_t id;
	int err = 0;

	for (size_t g = 0; g < s->all.groups.n && !err; g++) {
		if (s->by_group[g] <= 0)
			continue;
		if (idmap_get(&names, s->all.groups.keys[g].a, 0, &id) ||
		    vec_reserve(&sum->services, &cap, names.n, sizeof(*sum->services))) {
			err = -ENOMEM;
			break;
		}
		if (id == sum->nservices)
			sum->services[sum->nservices++] = (struct store_service){
				.name = strpool_str(s->all.strings,
						    (uint32_t)s->all.groups.keys[g].a),
			};
		sum->services[id].amount += s->by_group[g];
	}
	idmap_free(&names);
	if (sum->nservices)
		qsort(sum->services, sum->nservices, sizeof(*sum->services), by_amount);
	return err;
}

static int add_up(struct question *q)
{
	struct store *s = q->s;
	uint32_t service;
	int err = 0;

	service_id(s, q->range->service, &service);
	if (vec_reserve(&s->by_group, &s->by_group_cap, s->all.groups.n + 1, sizeof(*s->by_group)))
		return -ENOMEM;
	memset(s->by_group, 0, s->by_group_cap * sizeof(*s->by_group));
	for (size_t i = 0; i < s->nchosen && !err; i++) {
		err = add_host(q->sum, s->entries[s->chosen[i].id].meta.host);
		add_window(q, &s->chosen[i], service);
	}
	return err ? err : list_services(s, q->sum);
}

static int gather(struct question *q)
{
	struct store *s = q->s;
	int err;

	s->nchosen = 0;
	*q->sum = (struct store_sum){ 0 };
	err = windows_each(s->dir, &q->range->windows, on_window, q);
	return err && err != -EFBIG && err != -ENOMEM ? -EIO : err;
}

int store_ask(struct store *s, const struct store_range *range, uint64_t patience_ns,
	      struct store_sum *ret)
{
	struct question q = { .s = s, .range = range, .sum = ret };
	int err;

	if (s->tables)
		return serve_tables_ask(s->tables, range, s->names, ret);
	q.until_ns = clock_ns(CLOCK_MONOTONIC) + patience_ns;
	err = gather(&q);
	if (err == -EFBIG || err == -ENOMEM) {
		/* What other questions needed goes, and this one begins again. */
		close_sets(s);
		if (open_sets(s))
			return -ENOMEM;
		err = gather(&q);
	}
	return err ? err : add_up(&q);
}

int store_stacks(struct store *s, const struct store_range *range, enum stack_side side,
		 struct stackset *ss)
{
	uint64_t(*values)[STACK_SIDES];
	uint32_t service;
	bool any = service_id(s, range->service, &service);
	int err;

	if (s->tables)
		return serve_tables_stacks(s->tables, range, side, ss);
	values = calloc(s->all.leaves.n + 1, sizeof(*values));
	if (!values)
		return -ENOMEM;
	for (size_t c = 0; c < s->nchosen && any; c++) {
		const struct entry *e = &s->entries[s->chosen[c].id];

		for (size_t i = 0; i < e->n; i++)
			if (!range->service || group_name(s, e->list[i].leaf) == service)
				values[e->list[i].leaf][side] += e->list[i].value;
	}
	err = stackset_copy(ss, &s->all, (const uint64_t(*)[STACK_SIDES])values);
	free(values);
	return err;
}
