/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hottest functions and processes as plain tables, and one line that says how complete they
 * are.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "out/out.h"
#include "out/out_blocks.h"
#include "out/out_locks.h"
#include "out/out_calls.h"
#include "out/out_table.h"
#include "prof/census.h"
#include "prof/wait_notes.h"

#define ROWS	     40
#define PROCESS_ROWS 10

static double share(uint64_t part, uint64_t sum)
{
	return sum ? 100.0 * (double)part / (double)sum : 0;
}

static const char *unit_of(const struct out_report *r)
{
	return r->opts.unit ? r->opts.unit : r->opts.usec ? "microseconds" : "samples";
}

static void put_functions(const struct out_report *r, const struct census *c, FILE *f)
{
	size_t rows = r->opts.rows ? r->opts.rows : ROWS;

	out_table_head(f, unit_of(r));
	for (size_t i = 0; i < c->nfunctions && i < rows; i++) {
		const struct census_function *fn = &c->functions[i];
		struct out_table_row row = {
			.self_pct = share(fn->self, c->sum),
			.total_pct = share(fn->total, c->sum),
			.self = out_shown(r, fn->self),
			.module = fn->module,
			.name = fn->name,
			.suffix = "",
		};

		out_table_row(f, &row, unit_of(r), r->opts.columns);
	}
	if (c->nfunctions > rows)
		fprintf(f, "  ... and %zu more functions\n", c->nfunctions - rows);
}

static void put_processes(const struct out_report *r, const struct census *c, FILE *f)
{
	size_t rows = r->opts.rows && r->opts.rows < PROCESS_ROWS ? r->opts.rows : PROCESS_ROWS;

	if (r->opts.usec)
		fprintf(f, "\n  TIME%% %12s  %9s %9s  COMM\n", r->opts.wall ? "TIME" : "BLOCKED",
			"COMPLETE%", "PID");
	else
		fprintf(f, "\n   CPU%% KERNEL%% %12s  %9s %9s  COMM\n", "SAMPLES", "COMPLETE%",
			"PID");
	for (size_t i = 0; i < c->nthreads && i < rows; i++) {
		const struct census_task *p = &c->threads[i];
		char comm[4 * SF_COMM], time[OUT_TIME];

		if (r->opts.usec)
			fprintf(f, "%7.2f %12s  ", share(p->self, c->sum),
				out_table_time(time, out_shown(r, p->self)));
		else
			fprintf(f, "%7.2f %7.2f %12" PRIu64 "  ", share(p->self, c->sum),
				share(p->kernel, c->sum), p->self);
		if (p->user_stacks)
			fprintf(f, "%9.1f", share(p->complete, p->user_stacks));
		else
			fprintf(f, "%9s", "-");
		text_clean(comm, sizeof(comm), p->comm, strnlen(p->comm, SF_COMM), 0);
		fprintf(f, " %9" PRIu32 "  %s\n", p->pid, comm);
	}
	if (c->nthreads > rows)
		fprintf(f, "  ... and %zu more processes\n", c->nthreads - rows);
}

/* Writes the counts that are not 0, as " (name 12, name 3)". */
static void put_causes(FILE *f, const uint64_t *counts, unsigned int from, unsigned int n,
		       bool stops)
{
	const char *sep = " (";

	for (unsigned int i = from; i < n; i++) {
		if (!counts[i])
			continue;
		fprintf(f, "%s%s %" PRIu64, sep,
			stops ? profile_stop_name((uint8_t)i) : profile_lost_name(i), counts[i]);
		sep = ", ";
	}
	if (*sep == ',')
		putc(')', f);
}

static void put_summary(const struct out_report *r, FILE *f)
{
	const struct profile_account *a = &r->stats->account;

	fprintf(f, "\n%" PRIu64, r->stats->samples);
	if (r->opts.usec)
		fputs(r->opts.wall	       ? " samples and blocks"
		      : r->stats->samples == 1 ? " block"
					       : " blocks",
		      f);
	else
		fprintf(f, " samples of %s", r->meta->event);
	if (r->meta->hz > 0)
		fprintf(f, r->opts.wall ? ", samples at %g Hz," : " at %g Hz", r->meta->hz);
	fprintf(f, " in %.1f s, %" PRIu64 " lost", r->stats->duration_s, run_lost(r->stats));
	put_causes(f, r->stats->lost, 0, SF_LOST_MAX, false);
	if (!r->opts.kernel_only && a->user_total) {
		fprintf(f, ", %.1f %% of %" PRIu64 " user stacks complete",
			share(a->stops[SF_STOP_COMPLETE], a->user_total), a->user_total);
		put_causes(f, a->stops, SF_STOP_COMPLETE + 1, SF_STOP_MAX, true);
	}
	putc('\n', f);
}

/* What the threads did, most time first. */
static void put_wall(const struct out_report *r, FILE *f)
{
	struct wall_line {
		uint64_t ns;
		enum wait_note note;
	} lines[WAIT_NOTES] = { 0 }, swap;
	struct profile_stack s;
	uint64_t sum = 0;
	char time[OUT_TIME];

	for (size_t i = 0; i < profile_count(r->profile); i++) {
		const uint32_t *ids = profile_symbols(r->profile, i, r->symbols);

		profile_stack(r->profile, i, &s);
		if (ids)
			lines[wait_note_of(&s, ids, r->symbols)].ns += s.weight;
		sum += s.weight;
	}
	for (int i = 0; i < WAIT_NOTES; i++)
		lines[i].note = (enum wait_note)i;
	fputs("\nWall clock of all threads, by what they did (the tables leave idle time out):\n",
	      f);
	for (int i = 0; i < WAIT_NOTES; i++) {
		for (int k = i + 1; k < WAIT_NOTES; k++) {
			if (lines[k].ns > lines[i].ns) {
				swap = lines[i];
				lines[i] = lines[k];
				lines[k] = swap;
			}
		}
		if (lines[i].ns)
			fprintf(f, "%10s %6.2f%%  %s\n", out_table_time(time, lines[i].ns / 1000),
				share(lines[i].ns, sum), wait_note_text(lines[i].note));
	}
}

static int descending(uint64_t a, uint64_t b)
{
	return a < b ? 1 : -(a > b);
}

static int by_self(const void *a, const void *b)
{
	const struct census_function *x = a, *y = b;
	int d = descending(x->self, y->self);

	d = d ? d : descending(x->total, y->total);
	d = d ? d : strcmp(x->name, y->name);
	return d ? d : strcmp(x->module, y->module);
}

static int by_time(const void *a, const void *b)
{
	const struct census_task *x = a, *y = b;
	int d = descending(x->self, y->self);

	d = d ? d : memcmp(x->comm, y->comm, sizeof(x->comm));
	return d ? d : x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* The stacks that are not idle. NULL: out of memory */
static struct profile *without_idle(const struct out_report *r)
{
	struct profile *p = profile_new();
	struct profile_stack s;
	int err = p ? 0 : -ENOMEM;

	for (size_t i = 0; i < profile_count(r->profile) && !err; i++) {
		const uint32_t *ids = profile_symbols(r->profile, i, r->symbols);

		profile_stack(r->profile, i, &s);
		if (ids && !wait_note_is_idle(wait_note_of(&s, ids, r->symbols)))
			err = profile_merge_one(p, r->profile, i);
	}
	if (!err)
		return p;
	profile_free(p);
	return NULL;
}

static int put_tables(const struct out_report *r, struct profile *p, FILE *f)
{
	const struct selection sel = { .user_only = r->opts.user_only,
				       .kernel_only = r->opts.kernel_only,
				       /* All blocks end in the same few functions of the kernel. */
				       .user_first = r->opts.usec && !r->opts.wall &&
						     !r->opts.kernel_only };
	struct census c = { 0 };
	int err = census_build(&c, p, r->symbols, r->modules, &sel,
			       CENSUS_FUNCTIONS | CENSUS_PROCESSES |
				       (r->opts.usec || r->opts.unit ? CENSUS_BY_WEIGHT : 0));

	if (err)
		return err;
	if (c.nfunctions)
		qsort(c.functions, c.nfunctions, sizeof(*c.functions), by_self);
	if (c.nthreads) /* one line per process and thread name */
		qsort(c.threads, c.nthreads, sizeof(*c.threads), by_time);
	put_functions(r, &c, f);
	put_processes(r, &c, f);
	census_free(&c);
	return 0;
}

int out_text(const struct out_report *r, FILE *f)
{
	struct profile *p;
	int err;

	if (r->calls) {
		err = out_calls_text(r, f);
		if (!err)
			put_summary(r, f);
		return err ? err : out_finish(f);
	}
	p = r->opts.usec ? without_idle(r) : r->profile;
	err = p ? put_tables(r, p, f) : -ENOMEM;

	if (r->opts.usec)
		profile_free(p);
	if (err)
		return err;
	if (r->opts.wall)
		put_wall(r, f);
	put_summary(r, f);
	err = r->blocks ? out_blocks_write(r, f) : 0;
	if (!err && r->blocks && r->blocks->locks)
		err = out_locks_text(r, f);
	return err ? err : out_finish(f);
}
