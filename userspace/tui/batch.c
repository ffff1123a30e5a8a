/* SPDX-License-Identifier: BSD-2-Clause */
#include "tui/batch.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/num.h"
#include "base/text.h"
#include "tui/rows.h"

typedef unsigned long long ull;

static uint64_t lost_samples(const struct live_counters *c)
{
	uint64_t lost = 0;

	for (unsigned int i = 0; i < SF_LOST_MAX; i++)
		lost += c->lost[i];
	return lost;
}

/* Percent of one CPU. */
static double own_cpu(uint64_t ns, const struct live_sum *sum)
{
	return sum->seconds > 0 ? (double)ns / sum->seconds / 1e7 : 0;
}

/* Builds the rows of a view. Returns how many of them the page shows. */
static size_t rows_of(struct ui *ui, enum view view, const struct batch_page *page, int *err)
{
	ui->view = view;
	if (!*err)
		*err = rows_build(ui);
	return page->rows && page->rows < ui->nrows ? page->rows : ui->nrows;
}

static int finish(FILE *f, int err)
{
	if (fflush(f) || ferror(f))
		return errno ? -errno : -EIO;
	return err;
}

/* ---- Text ---- */

static void put_head(const struct ui *ui, const struct batch_page *page, FILE *f)
{
	time_t seconds = (time_t)(page->unix_ns / NUM_S);
	const struct live_sum *sum = &ui->sum;
	char when[40] = "?";
	struct tm tm;

	if (gmtime_r(&seconds, &tm))
		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	fprintf(f, "# sfbpf top: page %llu, %s, %.2f s, %s\n", (ull)page->number, when,
		sum->seconds, ui->gauges.what);
	fprintf(f, "# samples %llu, rate %.1f/s, lost %llu, complete %.2f%%, kernel %.2f%%\n",
		(ull)sum->c.taken, sum->seconds > 0 ? (double)sum->c.taken / sum->seconds : 0,
		(ull)lost_samples(&sum->c),
		ui_share(ui->census.all.complete, ui->census.all.user_stacks),
		ui_share(ui->census.all.kernel, ui->census.all.samples));
	fputs("# stops:", f);
	for (uint8_t i = 0; i < SF_STOP_MAX; i++)
		if (i != SF_STOP_COMPLETE && ui->census.all.stops[i])
			fprintf(f, " %s=%llu", profile_stop_name(i), (ull)ui->census.all.stops[i]);
	fputs("\n# lost:", f);
	for (unsigned int i = 0; i < SF_LOST_MAX; i++)
		if (sum->c.lost[i])
			fprintf(f, " %s=%llu", profile_lost_name(i), (ull)sum->c.lost[i]);
	fprintf(f,
		"\n# sfbpf: cpu %.2f%%, bpf %.2f%%, rss %llu kB, "
		"tables %llu bytes of %llu files, evicted %llu, refused %llu, "
		"parsers died %llu, files lost %llu, names lost %llu\n",
		own_cpu(sum->c.cpu_ns, sum), own_cpu(sum->c.bpf_ns, sum), (ull)ui->gauges.rss_kb,
		(ull)ui->gauges.table_bytes, (ull)ui->gauges.table_files,
		(ull)ui->gauges.table_evicted, (ull)ui->gauges.table_refused,
		(ull)worker_totals_ended(&ui->gauges.parsers), (ull)ui->gauges.parsers.failed,
		(ull)worker_totals_names_lost(&ui->gauges.parsers));
}

/* Replaces blanks, so that each column is one word. */
static void one_word(char *s)
{
	for (; *s; s++)
		*s = *s == ' ' ? '_' : *s;
}

static int put_functions(struct ui *ui, const struct batch_page *page, FILE *f)
{
	int err = 0;
	size_t n = rows_of(ui, VIEW_FUNCTIONS, page, &err);

	fprintf(f, "#%6s %7s %7s %-24s %s\n", "SELF%", "TOTAL%", "KERN%", "MODULE", "FUNCTION");
	for (size_t i = 0; i < n; i++) {
		const struct census_function *fn = &ui->census.functions[ui->rows[i].index];
		char module[256];

		/* The name is the last column and may have several words. */
		snprintf(module, sizeof(module), "%s", fn->module);
		one_word(module);
		fprintf(f, "%7.2f %7.2f %7.2f %-24s %s\n", ui_share(fn->self, ui->census.sum),
			ui_share(fn->total, ui->census.sum), ui_share(fn->kernel, fn->total),
			module, fn->name);
	}
	return err;
}

static int put_processes(struct ui *ui, const struct batch_page *page, FILE *f)
{
	int err = 0;
	size_t n = rows_of(ui, VIEW_PROCESSES, page, &err);

	fprintf(f, "#%6s %7s %7s %7s %s\n", "PID", "SELF%", "KERN%", "COMPL%", "NAME");
	for (size_t i = 0; i < n; i++) {
		const struct census_task *p = &ui->census.processes[ui->rows[i].index];
		char comm[SF_COMM * 3 + 1], complete[16] = "-";

		text_clean(comm, sizeof(comm), p->comm, strnlen(p->comm, SF_COMM), 0);
		if (p->user_stacks)
			snprintf(complete, sizeof(complete), "%.2f",
				 ui_share(p->complete, p->user_stacks));
		fprintf(f, "%7u %7.2f %7.2f %7s %s\n", p->pid, ui_share(p->self, ui->census.sum),
			ui_share(p->kernel, p->self), complete, comm);
	}
	return err;
}

static int put_blocked(struct ui *ui, const struct batch_page *page, FILE *f)
{
	const struct live_sum *sum = &ui->off.sum;
	double seconds = sum->seconds > 0 ? sum->seconds : 1;
	int err = 0;
	size_t n;

	if (!ui->off.window)
		return 0;
	n = rows_of(ui, VIEW_OFFCPU, page, &err);
	fprintf(f, "# blocks %llu, lost %llu, complete %.2f%%, sampled %.2f%%, %.2f s\n",
		(ull)sum->c.taken, (ull)lost_samples(&sum->c),
		ui_share(ui->off.now.all.complete_ns, ui->off.now.all.user_ns),
		ui_share(sum->c.sampled_ns, ui->off.now.all.ns), sum->seconds);
	fprintf(f, "#%6s %9s %9s %9s %s %7s %-15s %s\n", "TIME%", "THREADS", "BLOCKS/s", "EACH_us",
		"S", "PID", "NAME", "BLOCKED_IN");
	for (size_t i = 0; i < n; i++) {
		const struct blocked_stack *b = &ui->off.now.v[ui->rows[i].index];
		char comm[SF_COMM * 3 + 1], text[2048];
		struct profile_stack s;

		profile_stack(ui->off.window, b->stack, &s);
		text_clean(comm, sizeof(comm), s.comm, strlen(s.comm), 0);
		one_word(comm);
		fprintf(f, "%7.2f %9.2f %9.1f %9.0f %c %7u %-15s %s\n",
			ui_share(b->ns, ui->off.now.ns), (double)b->ns / 1e9 / seconds,
			(double)b->blocks / seconds,
			b->blocks ? (double)b->ns / 1e3 / (double)b->blocks : 0,
			SF_OFF_LETTERS[s.state % SF_OFF_STATES], b->pid, comm,
			blocked_text(b, ui->off.window, ui->symbols, &ui->sel, " < ", text,
				     sizeof(text)));
	}
	return err;
}

int batch_text(struct ui *ui, const struct batch_page *page, FILE *f)
{
	int err;

	errno = 0;
	put_head(ui, page, f);
	err = put_functions(ui, page, f);
	if (!err)
		err = put_processes(ui, page, f);
	if (!err)
		err = put_blocked(ui, page, f);
	return finish(f, err);
}

/* ---- JSON ---- */

static void json_head(const struct ui *ui, const struct batch_page *page, struct json *j)
{
	const struct census *c = &ui->census;

	json_u64(j, "schema", 1);
	json_u64(j, "page", page->number);
	json_u64(j, "time_unix_ns", page->unix_ns);
	json_double(j, "duration_s", ui->sum.seconds, 3);
	json_u64(j, "samples", ui->sum.c.taken);
	json_object(j, "lost");
	for (unsigned int i = 0; i < SF_LOST_MAX; i++)
		json_u64(j, profile_lost_name(i), ui->sum.c.lost[i]);
	json_object_end(j);
	json_u64(j, "kernel", c->all.kernel);
	json_object(j, "user_stacks");
	json_u64(j, "total", c->all.user_stacks);
	json_u64(j, "complete", c->all.complete);
	json_u64(j, "bridged", c->all.stops[SF_STOP_BRIDGED]);
	json_object(j, "incomplete");
	for (uint8_t i = 0; i < SF_STOP_MAX; i++)
		if (!profile_at_root(i))
			json_u64(j, profile_stop_name(i), c->all.stops[i]);
	json_object_end(j);
	json_object_end(j);
	json_object(j, "self");
	json_double(j, "cpu_pct", own_cpu(ui->sum.c.cpu_ns, &ui->sum), 2);
	json_double(j, "bpf_pct", own_cpu(ui->sum.c.bpf_ns, &ui->sum), 2);
	json_u64(j, "rss_kb", ui->gauges.rss_kb);
	json_object_end(j);
	json_object(j, "tables");
	json_u64(j, "files", ui->gauges.table_files);
	json_u64(j, "bytes", ui->gauges.table_bytes);
	json_u64(j, "evicted", ui->gauges.table_evicted);
	json_u64(j, "refused", ui->gauges.table_refused);
	json_object_end(j);
	json_object(j, "parsers");
	json_u64(j, "died", worker_totals_ended(&ui->gauges.parsers));
	json_u64(j, "failed", ui->gauges.parsers.failed);
	json_u64(j, "names_lost", worker_totals_names_lost(&ui->gauges.parsers));
	json_object_end(j);
}

static int json_functions(struct ui *ui, const struct batch_page *page, struct json *j)
{
	int err = 0;
	size_t n = rows_of(ui, VIEW_FUNCTIONS, page, &err);

	json_array(j, "functions");
	for (size_t i = 0; i < n; i++) {
		const struct census_function *fn = &ui->census.functions[ui->rows[i].index];

		json_object(j, NULL);
		json_str(j, "name", fn->name);
		json_str(j, "module", fn->module);
		json_u64(j, "self", fn->self);
		json_u64(j, "total", fn->total);
		json_u64(j, "kernel", fn->kernel);
		json_object_end(j);
	}
	json_array_end(j);
	return err;
}

static int json_processes(struct ui *ui, const struct batch_page *page, struct json *j)
{
	int err = 0;
	size_t n = rows_of(ui, VIEW_PROCESSES, page, &err);

	json_array(j, "processes");
	for (size_t i = 0; i < n; i++) {
		const struct census_task *p = &ui->census.processes[ui->rows[i].index];
		char comm[SF_COMM * 3 + 1];

		text_clean(comm, sizeof(comm), p->comm, strnlen(p->comm, SF_COMM), 0);
		json_object(j, NULL);
		json_u64(j, "pid", p->pid);
		json_str(j, "comm", comm);
		json_str(j, "cgroup", cgroup_names_get(ui->cgroups, p->pid, p->comm));
		json_u64(j, "samples", p->self);
		json_u64(j, "kernel", p->kernel);
		json_u64(j, "user_stacks", p->user_stacks);
		json_u64(j, "complete", p->complete);
		json_object_end(j);
	}
	json_array_end(j);
	return err;
}

static void json_frames(const struct ui *ui, const struct blocked_stack *b,
			const struct profile_stack *s, struct json *j)
{
	const uint32_t *ids = profile_symbols(ui->off.window, b->stack, ui->symbols);
	struct shown f = shown_frames(&ui->sel, s);

	json_array(j, "frames");
	for (size_t i = 0; ids && i < shown_count(&f); i++)
		json_str(j, NULL, symbolizer_name(ui->symbols, ids[shown_at(&f, i)]));
	json_array_end(j);
}

static int json_blocked(struct ui *ui, const struct batch_page *page, struct json *j)
{
	int err = 0;
	size_t n;

	if (!ui->off.window)
		return 0;
	n = rows_of(ui, VIEW_OFFCPU, page, &err);
	json_object(j, "off_cpu");
	json_double(j, "duration_s", ui->off.sum.seconds, 3);
	json_u64(j, "blocks", ui->off.sum.c.taken);
	json_u64(j, "lost", lost_samples(&ui->off.sum.c));
	json_u64(j, "lost_ns", ui->off.sum.c.lost_ns);
	json_u64(j, "sampled_ns", ui->off.sum.c.sampled_ns);
	json_u64(j, "ns", ui->off.now.all.ns);
	json_array(j, "stacks");
	for (size_t i = 0; i < n; i++) {
		const struct blocked_stack *b = &ui->off.now.v[ui->rows[i].index];
		char comm[SF_COMM * 3 + 1], state[2] = "";
		struct profile_stack s;

		profile_stack(ui->off.window, b->stack, &s);
		text_clean(comm, sizeof(comm), s.comm, strlen(s.comm), 0);
		state[0] = SF_OFF_LETTERS[s.state % SF_OFF_STATES];
		json_object(j, NULL);
		json_u64(j, "pid", b->pid);
		json_str(j, "comm", comm);
		json_str(j, "state", state);
		json_u64(j, "ns", b->ns);
		json_u64(j, "blocks", b->blocks);
		json_frames(ui, b, &s, j);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
	return err;
}

int batch_json(struct ui *ui, const struct batch_page *page, FILE *f)
{
	struct json j = json_on(f);
	int err;

	errno = 0;
	json_object(&j, NULL);
	json_head(ui, page, &j);
	err = json_functions(ui, page, &j);
	if (!err)
		err = json_processes(ui, page, &j);
	if (!err)
		err = json_blocked(ui, page, &j);
	json_object_end(&j);
	fputc('\n', f);
	return finish(f, err);
}
