/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/offcpu_tables.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"
#include "out/out_table.h"

#define STACKS	    10
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

struct heavy {
	uint64_t ns;
	size_t at;
};

static int heavier(const void *a, const void *b)
{
	const struct heavy *x = a, *y = b;

	return x->ns != y->ns ? (x->ns < y->ns ? 1 : -1) : (x->at > y->at) - (x->at < y->at);
}

/* The frames of a stack, innermost first, kernel before user. */
static int put_frames(const struct out_report *r, struct profile *p, size_t i, FILE *f)
{
	const uint32_t *ids = profile_symbols(p, i, r->symbols);
	struct profile_stack s;

	if (!ids)
		return -ENOMEM;
	profile_stack(p, i, &s);
	for (size_t k = 0; k < s.n_kernel && !r->opts.user_only; k++)
		fprintf(f, "    %s\n", symbolizer_name(r->symbols, ids[s.n_user + k]));
	for (size_t k = 0; k < s.n_user && !r->opts.kernel_only; k++)
		fprintf(f, "    %s\n", symbolizer_name(r->symbols, ids[k]));
	if (out_incomplete(r, &s))
		fprintf(f, "    [incomplete:%s]\n", profile_stop_name(s.stop));
	return 0;
}

static const char *comm_of(const struct profile_stack *s, char buf[4 * SF_COMM])
{
	text_clean(buf, 4 * SF_COMM, s->comm, strnlen(s->comm, SF_COMM), 0);
	return buf;
}

/* The stacks that woke a blocked stack, the last waker first. */
static int put_wakers(const struct out_report *r, uint32_t waker, FILE *f)
{
	char comm[4 * SF_COMM];
	struct profile_stack s;
	int err = 0;

	for (; waker && !err; waker = s.waker) {
		profile_stack(r->wakers, waker - 1, &s);
		fprintf(f, "  woken by %s (%" PRIu32 "):\n", comm_of(&s, comm), s.pid);
		err = put_frames(r, r->wakers, waker - 1, f);
	}
	return err;
}

static int put_stack(const struct out_report *r, const struct blocks *b, size_t i, double all_ns,
		     FILE *f)
{
	char comm[4 * SF_COMM], sum[OUT_TIME], average[OUT_TIME], most[OUT_TIME];
	struct profile_stack s;
	int err;

	profile_stack(r->profile, i, &s);
	fprintf(f,
		"\n%.2f %%  %s (%" PRIu32 "): %s in %" PRIu64 " block%s, %s on average, "
		"%s at most, state %c\n",
		all_ns > 0 ? 100 * (double)s.weight / all_ns : 0, comm_of(&s, comm), s.pid,
		out_table_time(sum, s.weight / 1000), s.count, s.count == 1 ? "" : "s",
		out_table_time(average, s.weight / 1000 / (s.count ? s.count : 1)),
		out_table_time(most, b->info[i].max_ns / 1000), letters[s.state]);
	err = put_frames(r, r->profile, i, f);
	return err || !r->wakers ? err : put_wakers(r, s.waker, f);
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

static int put_stacks(const struct out_report *r, const struct blocks *b, bool hist, FILE *f)
{
	size_t n = b->ninfo;
	struct heavy *order = malloc((n ? n : 1) * sizeof(*order));
	double all_ns = 0;
	int err = 0;

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct profile_stack s;

		profile_stack(r->profile, i, &s);
		order[i] = (struct heavy){ s.weight, i };
		all_ns += (double)s.weight;
	}
	qsort(order, n, sizeof(*order), heavier);
	fputs("\nStacks with the longest blocked time:\n", f);
	for (size_t i = 0; i < n && i < STACKS && !err; i++) {
		err = put_stack(r, b, order[i].at, all_ns, f);
		if (!err && hist)
			put_hist(&b->info[order[i].at].hist, f);
	}
	free(order);
	return err;
}

/* ---- --threads ---- */

struct thread {
	struct sf_off_thread t;
	uint64_t ns;
	uint32_t tid;
};

struct threads {
	struct thread *v;
	size_t n, cap;
	bool full;
};

static void add_thread(void *ctx, uint32_t tid, const struct sf_off_thread *t)
{
	struct threads *all = ctx;
	struct thread *to;

	if (vec_reserve(&all->v, &all->cap, all->n + 1, sizeof(*all->v))) {
		all->full = true;
		return;
	}
	to = &all->v[all->n++];
	*to = (struct thread){ .t = *t, .tid = tid };
	for (unsigned int i = 0; i < SF_OFF_STATES; i++)
		to->ns += t->ns[i];
}

static int longer(const void *a, const void *b)
{
	const struct thread *x = a, *y = b;

	return x->ns != y->ns ? (x->ns < y->ns ? 1 : -1) : (x->tid > y->tid) - (x->tid < y->tid);
}

static int put_threads(const struct blocks *b, FILE *f)
{
	struct threads all = { 0 };
	int err = offcpu_threads(collector_offcpu(b->session->collector), add_thread, &all);

	if (all.full)
		err = -ENOMEM;
	if (all.n)
		qsort(all.v, all.n, sizeof(*all.v), longer);
	if (!err)
		fprintf(f, "\n%9s %9s %14s %10s %12s %12s %12s %12s  COMM\n", "PID", "TID",
			"BLOCKED(us)", "BLOCKS", "MAX(us)", "S(us)", "D(us)", "R(us)");
	for (size_t i = 0; i < all.n && i < THREAD_ROWS && !err; i++) {
		const struct thread *t = &all.v[i];
		char comm[4 * SF_COMM];

		text_clean(comm, sizeof(comm), t->t.comm, strnlen(t->t.comm, SF_COMM), 0);
		fprintf(f,
			"%9" PRIu32 " %9" PRIu32 " %14" PRIu64 " %10" PRIu64 " %12" PRIu64
			" %12" PRIu64 " %12" PRIu64 " %12" PRIu64 "  %s\n",
			t->t.pid, t->tid, t->ns / 1000, t->t.count, t->t.max_ns / 1000,
			t->t.ns[SF_OFF_S] / 1000, t->t.ns[SF_OFF_D] / 1000,
			t->t.ns[SF_OFF_R] / 1000, comm);
	}
	if (!err && all.n > THREAD_ROWS)
		fprintf(f, "  ... and %zu more threads\n", all.n - THREAD_ROWS);
	free(all.v);
	return err;
}

int offcpu_tables(const struct out_report *r, const struct blocks *b, const struct offcpu_opts *o,
		  FILE *f)
{
	int err;

	put_states(r->stats, f);
	err = put_stacks(r, b, o->hist, f);
	if (!err && o->threads)
		err = put_threads(b, f);
	return err ? err : out_finish(f);
}
