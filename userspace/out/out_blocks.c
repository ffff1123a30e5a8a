/* SPDX-License-Identifier: BSD-2-Clause */
#include "out/out_blocks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/idmap.h"
#include "base/text.h"
#include "base/vec.h"
#include "out/out_table.h"
#include "prof/wait_notes.h"

#define STACKS	    10
#define WAKERS	    3 /* wakers that each stack is shown with */
#define THREAD_ROWS 100
#define BAR	    40

static const char letters[] = SF_OFF_LETTERS;

static void put_states(const struct run_stats *st, FILE *f)
{
	char time[OUT_TIME];

	fputs("Blocked time by state:", f);
	for (unsigned int i = 0; i < SF_OFF_STATES; i++)
		if (st->off_ns[i])
			fprintf(f, "  %c %s", letters[i],
				out_table_time(time, st->off_ns[i] / 1000));
	if (st->off_sampled_ns)
		fprintf(f, "  (%s of it sampled)", out_table_time(time, st->off_sampled_ns / 1000));
	if (st->off_lost_ns)
		fprintf(f, "  lost %s", out_table_time(time, st->off_lost_ns / 1000));
	fputc('\n', f);
}

/* ---- Stacks ---- */

/* Stacks that look the same: of the same process, with the same names of functions. */
struct alike {
	uint64_t ns, count, max_ns;
	size_t first; /* one of them */
	struct sf_off_hist hist;
};

struct stacks {
	const struct out_report *r;
	const struct out_blocks *b;
	struct idmap ids; /* look and pid -> v */
	struct alike *v;
	size_t cap;
	uint32_t *group; /* each stack's; NO_GROUP: the thread was idle */
	uint64_t all_ns, idle_ns;
};

#define NO_GROUP UINT32_MAX

int out_blocks_look(const struct out_report *r, struct profile *p, size_t i, uint64_t *ret)
{
	const uint32_t *ids = profile_symbols(p, i, r->symbols);
	struct profile_stack s;

	if (!ids)
		return -ENOMEM;
	profile_stack(p, i, &s);
	*ret = hash_mix(hash_bytes(s.comm, strnlen(s.comm, SF_COMM)),
			(uint64_t)s.state << 8 | (out_incomplete(r, &s) ? s.stop + 1u : 0));
	for (size_t k = 0; k < s.n_user && !r->opts.kernel_only; k++)
		*ret = hash_mix(*ret, ids[k]);
	*ret = hash_mix(*ret, UINT32_MAX);
	for (size_t k = 0; k < s.n_kernel && !r->opts.user_only; k++)
		*ret = hash_mix(*ret, ids[s.n_user + k]);
	return 0;
}

static void add_hist(struct sf_off_hist *to, const struct sf_off_hist *from)
{
	for (unsigned int i = 0; i < SF_OFF_HIST; i++)
		to->slot[i] += from->slot[i];
}

static int add_to_group(struct stacks *st, size_t i, const struct profile_stack *s)
{
	size_t before = st->ids.n;
	struct alike *a;
	uint64_t look;
	uint32_t id;

	if (out_blocks_look(st->r, st->r->profile, i, &look) ||
	    idmap_get(&st->ids, look, s->pid, &id) ||
	    vec_reserve(&st->v, &st->cap, st->ids.n, sizeof(*st->v)))
		return -ENOMEM;
	a = &st->v[id];
	if (id == before)
		*a = (struct alike){ .first = i };
	a->ns += s->weight;
	a->count += s->count;
	if (st->b->list[i].max_ns > a->max_ns)
		a->max_ns = st->b->list[i].max_ns;
	add_hist(&a->hist, &st->b->list[i].hist);
	st->group[i] = id;
	st->all_ns += s->weight;
	return 0;
}

/* Idle threads, which wait for work to arrive, would come first. */
static int group_stacks(struct stacks *st)
{
	struct profile_stack s;
	int err = 0;

	for (size_t i = 0; i < st->b->n && !err; i++) {
		int note = out_wait_note(st->r, i);

		st->group[i] = NO_GROUP;
		profile_stack(st->r->profile, i, &s);
		if (note < 0)
			err = note;
		else if (wait_note_is_idle((enum wait_note)note))
			st->idle_ns += s.weight;
		else
			err = add_to_group(st, i, &s);
	}
	return err;
}

struct heavy {
	uint64_t ns;
	size_t at;
};

static int heavier(const void *a, const void *b)
{
	const struct heavy *x = a, *y = b;

	return x->ns != y->ns ? (x->ns < y->ns ? 1 : -1) : (x->at > y->at) - (x->at < y->at);
}

int out_blocks_frames(const struct out_report *r, struct profile *p, size_t i, FILE *f)
{
	const uint32_t *ids = profile_symbols(p, i, r->symbols);
	struct profile_stack s;

	if (!ids)
		return -ENOMEM;
	profile_stack(p, i, &s);
	if (out_incomplete(r, &s))
		fprintf(f, "    [incomplete:%s]\n", profile_stop_name(s.stop));
	for (size_t k = s.n_user; k > 0 && !r->opts.kernel_only; k--)
		fprintf(f, "    %s\n", symbolizer_name(r->symbols, ids[k - 1]));
	for (size_t k = s.n_kernel; k > 0 && !r->opts.user_only; k--)
		fprintf(f, "    %s\n", symbolizer_name(r->symbols, ids[s.n_user + k - 1]));
	return 0;
}

static const char *comm_of(const struct profile_stack *s, char buf[4 * SF_COMM])
{
	text_clean(buf, 4 * SF_COMM, s->comm, strnlen(s->comm, SF_COMM), 0);
	return buf;
}

/* The stacks that woke a blocked one, for `pct` of its time, the last waker first. */
static int put_wakers(const struct out_report *r, uint32_t waker, double pct, FILE *f)
{
	char comm[4 * SF_COMM];
	struct profile_stack s;
	bool first = true;
	int err = 0;

	for (; waker && !err; waker = s.waker, first = false) {
		profile_stack(r->wakers, waker - 1, &s);
		fprintf(f, "  woken by %s (%" PRIu32 ")", comm_of(&s, comm), s.pid);
		if (first)
			fprintf(f, ", %.0f %% of it", pct);
		fputs(":\n", f);
		err = out_blocks_frames(r, r->wakers, waker - 1, f);
	}
	return err;
}

/* Wakers that look the same are one; a chain of wakers is one waker. */
static int look_of_wakers(const struct out_report *r, uint32_t waker, uint64_t *ret)
{
	struct profile_stack s;
	uint64_t look;
	int err = 0;

	for (*ret = 0; waker && !err; waker = s.waker) {
		profile_stack(r->wakers, waker - 1, &s);
		err = out_blocks_look(r, r->wakers, waker - 1, &look);
		*ret = hash_mix(hash_mix(*ret, look), s.pid);
	}
	return err;
}

static int put_group_wakers(const struct stacks *st, uint32_t group, FILE *f)
{
	struct idmap looks = { 0 };
	struct heavy *v = NULL;
	size_t cap = 0, more;
	int err = 0;

	for (size_t i = 0; i < st->b->n && !err; i++) {
		struct profile_stack s;
		size_t before = looks.n;
		uint64_t look;
		uint32_t id;

		if (st->group[i] != group)
			continue;
		profile_stack(st->r->profile, i, &s);
		if (!s.waker)
			continue;
		err = look_of_wakers(st->r, s.waker, &look);
		if (err || idmap_get(&looks, look, 0, &id) ||
		    vec_reserve(&v, &cap, looks.n, sizeof(*v))) {
			err = -ENOMEM;
			break;
		}
		if (id == before)
			v[id] = (struct heavy){ 0, s.waker };
		v[id].ns += s.weight;
	}
	if (looks.n)
		qsort(v, looks.n, sizeof(*v), heavier);
	for (size_t i = 0; i < looks.n && i < WAKERS && !err; i++)
		err = put_wakers(st->r, (uint32_t)v[i].at,
				 100 * (double)v[i].ns / (double)st->v[group].ns, f);
	more = looks.n > WAKERS ? looks.n - WAKERS : 0;
	if (more)
		fprintf(f, "  ... and %zu more waker%s\n", more, more == 1 ? "" : "s");
	idmap_free(&looks);
	free(v);
	return err;
}

static int put_group(const struct stacks *st, uint32_t group, FILE *f)
{
	char comm[4 * SF_COMM], sum[OUT_TIME], average[OUT_TIME], most[OUT_TIME];
	const struct alike *a = &st->v[group];
	struct profile_stack s;
	int err;

	profile_stack(st->r->profile, a->first, &s);
	fprintf(f,
		"\n%.2f %%  %s (%" PRIu32 "): %s in %" PRIu64 " block%s, %s on average, "
		"%s at most, state %c\n",
		st->all_ns ? 100 * (double)a->ns / (double)st->all_ns : 0, comm_of(&s, comm), s.pid,
		out_table_time(sum, a->ns / 1000), a->count, a->count == 1 ? "" : "s",
		out_table_time(average, a->ns / 1000 / (a->count ? a->count : 1)),
		out_table_time(most, a->max_ns / 1000), letters[s.state]);
	err = out_blocks_frames(st->r, st->r->profile, a->first, f);
	return err || !st->r->wakers ? err : put_group_wakers(st, group, f);
}

static void put_hist(const struct sf_off_hist *h, FILE *f)
{
	unsigned int first = SF_OFF_HIST, last = 0;
	uint32_t most = 1;

	for (unsigned int i = 0; i < SF_OFF_HIST; i++) {
		if (!h->slot[i])
			continue;
		first = first < i ? first : i;
		last = i;
		most = most > h->slot[i] ? most : h->slot[i];
	}
	for (unsigned int i = first; i <= last && first < SF_OFF_HIST; i++) {
		int bar = (int)((uint64_t)h->slot[i] * BAR / most);

		fprintf(f, "  %10" PRIu64 " us .. %10" PRIu64 " us %10" PRIu32 " |%.*s\n",
			i ? UINT64_C(1) << (i - 1) : 0, UINT64_C(1) << i, h->slot[i], bar,
			"@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@");
	}
}

static int put_heaviest(const struct stacks *st, bool hist, FILE *f)
{
	struct heavy *order = malloc((st->ids.n ? st->ids.n : 1) * sizeof(*order));
	char time[OUT_TIME];
	int err = 0;

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < st->ids.n; i++)
		order[i] = (struct heavy){ st->v[i].ns, i };
	qsort(order, st->ids.n, sizeof(*order), heavier);
	fputs("\nStacks with the longest blocked time", f);
	if (st->idle_ns)
		fprintf(f, ", without %s of idle threads, which wait for work",
			out_table_time(time, st->idle_ns / 1000));
	fputs(":\n", f);
	for (size_t i = 0; i < st->ids.n && i < STACKS && !err; i++) {
		err = put_group(st, (uint32_t)order[i].at, f);
		if (!err && hist)
			put_hist(&st->v[order[i].at].hist, f);
	}
	free(order);
	return err;
}

static int put_stacks(const struct out_report *r, const struct out_blocks *b, FILE *f)
{
	struct stacks st = { .r = r, .b = b };
	int err;

	st.group = malloc((b->n ? b->n : 1) * sizeof(*st.group));
	err = st.group ? group_stacks(&st) : -ENOMEM;
	if (!err)
		err = put_heaviest(&st, b->hist, f);
	idmap_free(&st.ids);
	free(st.v);
	free(st.group);
	return err;
}

/* ---- --threads ---- */

int out_blocks_thread(struct out_blocks *b, uint32_t tid, const struct sf_off_thread *t)
{
	struct out_blocked_thread *to;

	if (vec_reserve(&b->threads, &b->threads_cap, b->nthreads + 1, sizeof(*b->threads)))
		return -ENOMEM;
	to = &b->threads[b->nthreads++];
	*to = (struct out_blocked_thread){ .t = *t, .tid = tid };
	for (unsigned int i = 0; i < SF_OFF_STATES; i++)
		to->ns += t->ns[i];
	return 0;
}

void out_blocks_free(struct out_blocks *b)
{
	free(b->threads);
	*b = (struct out_blocks){ 0 };
}

static int longer(const void *a, const void *b)
{
	const struct out_blocked_thread *x = a, *y = b;

	return x->ns != y->ns ? (x->ns < y->ns ? 1 : -1) : (x->tid > y->tid) - (x->tid < y->tid);
}

static void put_threads(const struct out_blocks *b, FILE *f)
{
	if (b->nthreads)
		qsort(b->threads, b->nthreads, sizeof(*b->threads), longer);
	fprintf(f, "\n%9s %9s %14s %10s %12s %12s %12s %12s  COMM\n", "PID", "TID", "BLOCKED(us)",
		"BLOCKS", "MAX(us)", "S(us)", "D(us)", "R(us)");
	for (size_t i = 0; i < b->nthreads && i < THREAD_ROWS; i++) {
		const struct out_blocked_thread *t = &b->threads[i];
		char comm[4 * SF_COMM];

		text_clean(comm, sizeof(comm), t->t.comm, strnlen(t->t.comm, SF_COMM), 0);
		fprintf(f,
			"%9" PRIu32 " %9" PRIu32 " %14" PRIu64 " %10" PRIu64 " %12" PRIu64
			" %12" PRIu64 " %12" PRIu64 " %12" PRIu64 "  %s\n",
			t->t.pid, t->tid, t->ns / 1000, t->t.count, t->t.max_ns / 1000,
			t->t.ns[SF_OFF_S] / 1000, t->t.ns[SF_OFF_D] / 1000,
			t->t.ns[SF_OFF_R] / 1000, comm);
	}
	if (b->nthreads > THREAD_ROWS)
		fprintf(f, "  ... and %zu more threads\n", b->nthreads - THREAD_ROWS);
}

int out_blocks_write(const struct out_report *r, FILE *f)
{
	int err;

	put_states(r->stats, f);
	err = put_stacks(r, r->blocks, f);
	if (!err && r->blocks->has_threads)
		put_threads(r->blocks, f);
	return err;
}
