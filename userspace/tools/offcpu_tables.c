/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/offcpu_tables.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"

#define HIST_STACKS 10
#define THREAD_ROWS 100
#define BAR 40

static const char letters[] = SF_OFF_LETTERS;

static void put_states(const struct run_stats *st, FILE *f)
{
	fputs("\nBlocked time by state:", f);
	for (unsigned int i = 0; i < SF_OFF_STATES; i++)
		if (st->off_ns[i])
			fprintf(f, "  %c %.3f ms", letters[i], (double)st->off_ns[i] / 1e6);
	if (st->off_sampled_ns)
		fprintf(f, "  (%.3f ms of it sampled)", (double)st->off_sampled_ns / 1e6);
	if (st->off_lost_ns)
		fprintf(f, "  lost %.3f ms", (double)st->off_lost_ns / 1e6);
	fputc('\n', f);
}

/* ---- --hist ---- */

struct heavy {
	uint64_t ns;
	size_t at;
};

static int heavier(const void *a, const void *b)
{
	const struct heavy *x = a, *y = b;

	return x->ns != y->ns ? (x->ns < y->ns ? 1 : -1) : (x->at > y->at) - (x->at < y->at);
}

static int put_line(const struct out_report *r, size_t i, FILE *f)
{
	const uint32_t *ids = profile_symbols(r->profile, i, r->symbols);
	struct profile_stack s;
	char comm[4 * SF_COMM];

	if (!ids)
		return -ENOMEM;
	profile_stack(r->profile, i, &s);
	text_clean(comm, sizeof(comm), s.comm, strlen(s.comm), 0);
	fprintf(f, "\n%s (%" PRIu32 ")", comm, s.pid);
	for (size_t k = r->opts.kernel_only ? 0 : s.n_user; k-- > 0;)
		fprintf(f, ";%s", symbolizer_name(r->symbols, ids[k]));
	for (size_t k = r->opts.user_only ? 0 : s.n_kernel; k-- > 0;)
		fprintf(f, ";%s", symbolizer_name(r->symbols, ids[s.n_user + k]));
	fputc('\n', f);
	return 0;
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

		fprintf(f, "  %10" PRIu64 " us .. %10" PRIu64 " us %10" PRIu32 " |%.*s\n", i ? UINT64_C(1) << (i - 1) : 0, UINT64_C(1) << i,
			h->slot[i], bar, "@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@");
	}
}

static int put_hists(const struct out_report *r, const struct blocks *b, FILE *f)
{
	size_t n = b->ninfo;
	struct heavy *order = malloc((n ? n : 1) * sizeof(*order));
	int err = 0;

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct profile_stack s;

		profile_stack(r->profile, i, &s);
		order[i] = (struct heavy){ s.weight, i };
	}
	qsort(order, n, sizeof(*order), heavier);
	for (size_t i = 0; i < n && i < HIST_STACKS && !err; i++) {
		struct profile_stack s;

		err = put_line(r, order[i].at, f);
		profile_stack(r->profile, order[i].at, &s);
		fprintf(f, "  state %c, %" PRIu64 " blocks, %.3f ms in all, %.3f ms on average, %.3f ms at most\n", letters[s.state],
			s.count, (double)s.weight / 1e6, (double)s.weight / 1e6 / (double)(s.count ? s.count : 1),
			(double)b->info[order[i].at].max_ns / 1e6);
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
		fprintf(f, "\n%9s %9s %14s %10s %12s %12s %12s %12s  COMM\n", "PID", "TID", "BLOCKED(us)", "BLOCKS", "MAX(us)",
			"S(us)", "D(us)", "R(us)");
	for (size_t i = 0; i < all.n && i < THREAD_ROWS && !err; i++) {
		const struct thread *t = &all.v[i];
		char comm[4 * SF_COMM];

		text_clean(comm, sizeof(comm), t->t.comm, strnlen(t->t.comm, SF_COMM), 0);
		fprintf(f, "%9" PRIu32 " %9" PRIu32 " %14" PRIu64 " %10" PRIu64 " %12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %12" PRIu64 "  %s\n",
			t->t.pid, t->tid, t->ns / 1000, t->t.count, t->t.max_ns / 1000, t->t.ns[SF_OFF_S] / 1000,
			t->t.ns[SF_OFF_D] / 1000, t->t.ns[SF_OFF_R] / 1000, comm);
	}
	if (!err && all.n > THREAD_ROWS)
		fprintf(f, "  ... and %zu more threads\n", all.n - THREAD_ROWS);
	free(all.v);
	return err;
}

int offcpu_tables(const struct out_report *r, const struct blocks *b, const struct offcpu_opts *o, FILE *f)
{
	int err = 0;

	put_states(r->stats, f);
	if (o->threads)
		err = put_threads(b, f);
	if (!err && o->hist)
		err = put_hists(r, b, f);
	return err ? err : out_finish(f);
}
