/* SPDX-License-Identifier: BSD-2-Clause */
/* The hottest functions and processes as plain tables, and one line that says how far to trust them. */
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "out/out.h"
#include "out/out_table.h"
#include "prof/topview.h"

#define ROWS 40
#define PROCESS_ROWS 10

static void put_functions(const struct out_report *r, const struct topview *tv, FILE *f)
{
	size_t rows = r->opts.rows ? r->opts.rows : ROWS;

	out_table_head(f, r->opts.usec ? "microseconds" : "samples");
	for (size_t i = 0; i < tv->nfunctions && i < rows; i++) {
		const struct topview_function *fn = &tv->functions[i];
		struct out_table_row row = {
			.self_pct = topview_pct(fn->self, tv->sum), .total_pct = topview_pct(fn->total, tv->sum),
			.self = out_shown(r, fn->self), .module = fn->module, .name = fn->name, .suffix = "",
		};

		out_table_row(f, &row, r->opts.columns);
	}
	if (tv->nfunctions > rows)
		fprintf(f, "  ... and %zu more functions\n", tv->nfunctions - rows);
}

static void put_processes(const struct out_report *r, const struct topview *tv, FILE *f)
{
	size_t rows = r->opts.rows && r->opts.rows < PROCESS_ROWS ? r->opts.rows : PROCESS_ROWS;

	fprintf(f, "\n   CPU%% KERNEL%% %12s  %9s %9s  COMM\n", r->opts.usec ? "TIME(us)" : "SAMPLES", "COMPLETE%", "PID");
	for (size_t i = 0; i < tv->nprocesses && i < rows; i++) {
		const struct topview_process *p = &tv->processes[i];
		char comm[4 * SF_COMM];

		fprintf(f, "%7.2f %7.2f %12" PRIu64 "  ", topview_pct(p->self, tv->sum), topview_pct(p->kernel, tv->sum),
			out_shown(r, p->self));
		if (p->user_stacks)
			fprintf(f, "%9.1f", topview_pct(p->complete, p->user_stacks));
		else
			fprintf(f, "%9s", "-");
		text_clean(comm, sizeof(comm), p->comm, strlen(p->comm), 0);
		fprintf(f, " %9" PRIu32 "  %s\n", p->pid, comm);
	}
	if (tv->nprocesses > rows)
		fprintf(f, "  ... and %zu more processes\n", tv->nprocesses - rows);
}

/* "name 12, name 3" of the counts that are not 0, in brackets. */
static void put_causes(FILE *f, const uint64_t *counts, unsigned int from, unsigned int n, bool stops)
{
	const char *sep = " (";

	for (unsigned int i = from; i < n; i++) {
		if (!counts[i])
			continue;
		fprintf(f, "%s%s %" PRIu64, sep, stops ? profile_stop_name((uint8_t)i) : profile_lost_name(i), counts[i]);
		sep = ", ";
	}
	if (*sep == ',')
		putc(')', f);
}

static void put_summary(const struct out_report *r, FILE *f)
{
	const struct profile_account *a = &r->stats->account;

	fprintf(f, "\n%" PRIu64 " samples of %s", r->stats->samples, r->meta->event);
	if (r->meta->hz > 0)
		fprintf(f, " at %g Hz", r->meta->hz);
	fprintf(f, " in %.1f s, %" PRIu64 " lost", r->stats->duration_s, out_lost(r->stats));
	put_causes(f, r->stats->lost, 0, SF_LOST_MAX, false);
	if (!r->opts.kernel_only && a->user_total) {
		fprintf(f, ", %.1f %% of %" PRIu64 " user stacks complete",
			topview_pct(a->stops[SF_STOP_COMPLETE], a->user_total), a->user_total);
		put_causes(f, a->stops, SF_STOP_COMPLETE + 1, SF_STOP_MAX, true);
	}
	putc('\n', f);
}

int out_text(const struct out_report *r, FILE *f)
{
	struct topview_opts opts = {
		.user_only = r->opts.user_only, .kernel_only = r->opts.kernel_only, .by_weight = r->opts.usec,
	};
	struct topview tv = { 0 };
	int err = topview_build(&tv, r->profile, r->symbols, &opts);

	if (err)
		return err;
	put_functions(r, &tv, f);
	put_processes(r, &tv, f);
	put_summary(r, f);
	topview_free(&tv);
	return out_finish(f);
}
