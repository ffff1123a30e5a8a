/* SPDX-License-Identifier: BSD-2-Clause */
#include "out/out_calls.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/num.h"
#include "base/text.h"
#include "out/out_table.h"
#include "prof/wait_notes.h"

#define ROWS_SHOWN  20
#define STRIP	    32	  /* columns of a call's own timeline */
#define CAUSE_LEAST 0.5	  /* share of the difference that the cause has at least */
#define OWN_MOST    0.005 /* share of typical calls that a function of slow calls has at most */

const char *const out_calls_groups[CALLS_GROUPS] = { "typical", "slow" };

/* ---- Functions ---- */

/* A function below the called one. Times are those of it and of all that it called, ns. */
struct row {
	uint32_t symbol;
	bool kernel;
	uint64_t stamp; /* the last stack that it was met in, plus 1; 0: none */
	double ns[CALLS_GROUPS];
	double notes[CALLS_GROUPS][WAIT_NOTES];
	double depth; /* frames below the called function, times ns of slow calls */
};

struct table {
	const struct out_report *r;
	struct row *rows; /* index: symbol, until they are sorted */
	size_t n;
	double per_call[CALLS_GROUPS];
};

/* "f", and "f.constprop.0" for it */
static bool is_called(const struct out_report *r, uint32_t symbol)
{
	const char *pattern = r->calls->function, *name = symbolizer_function(r->symbols, symbol);
	size_t len = strcspn(name, ".");
	char base[256];

	if (!pattern)
		return false;
	if (!fnmatch(pattern, name, 0))
		return true;
	if (!name[len] || len >= sizeof(base))
		return false;
	memcpy(base, name, len);
	base[len] = 0;
	return !fnmatch(pattern, base, 0);
}

/* The place of the outermost activation of the called function; n: it is not there. */
static size_t find_called(const struct out_report *r, const struct profile_frames *f)
{
	for (size_t k = f->n; k-- > 0;)
		if (is_called(r, f->list[k].symbol))
			return k;
	return f->n;
}

static int add_stack(struct table *t, size_t i, struct profile_frames *f)
{
	const struct out_report *r = t->r;
	struct profile_stack s;
	int note = out_wait_note(r, i), err;
	size_t top;

	profile_stack(r->profile, i, &s);
	err = note < 0 ? note : profile_frames(r->profile, i, r->symbols, true, true, f);
	if (err)
		return err;
	top = find_called(r, f);
	for (size_t k = 0; k < f->n && k <= top; k++) {
		struct row *row = &t->rows[f->list[k].symbol];

		if (row->stamp == i + 1)
			continue;
		row->stamp = i + 1;
		row->kernel = f->list[k].kernel;
		row->ns[s.group] += (double)s.weight;
		row->notes[s.group][note] += (double)s.weight;
		if (s.group == CALLS_SLOW)
			row->depth += (double)s.weight * (double)(top - k);
	}
	return 0;
}

static double more_of(const struct table *t, const struct row *row)
{
	return row->ns[CALLS_SLOW] / t->per_call[CALLS_SLOW] -
	       row->ns[CALLS_TYPICAL] / t->per_call[CALLS_TYPICAL];
}

static int by_difference(const void *a, const void *b, void *ctx)
{
	double x = more_of(ctx, a), y = more_of(ctx, b);

	x = x < 0 ? -x : x;
	y = y < 0 ? -y : y;
	return x < y ? 1 : -(x > y);
}

/* Whether the function is of the language's or the system's own libraries. */
static bool is_library(const struct table *t, uint32_t symbol)
{
	static const char *const modules[] = { "[kernel", "[vdso]",	"libc.so", "libc-",
					       "ld-",	  "libpthread", "libm.so", "libstdc++",
					       "libc++",  "libgcc_s",	"ld.so",   "ld-musl" };
	static const char *const functions[] = { "runtime.", "internal/", "sync.",	"syscall.",
						 "time.",    "os.",	  "std::",	"core::",
						 "alloc::",  "__",	  "parking_lot" };
	const char *module = symbolizer_module(t->r->symbols, symbol),
		   *name = symbolizer_function(t->r->symbols, symbol);

	if (*name == '[')
		return true;
	if (is_called(t->r, symbol))
		return false;
	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++)
		if (!strncmp(module, modules[i], strlen(modules[i])))
			return true;
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (!strncmp(name, functions[i], strlen(functions[i])))
			return true;
	return false;
}

/* The innermost frame of stack i of p that is the program's own; 0: there is none. */
static const char *own_function(const struct table *t, struct profile *p, size_t i)
{
	const uint32_t *ids = profile_symbols(p, i, t->r->symbols);
	struct profile_stack s;

	profile_stack(p, i, &s);
	for (size_t k = 0; ids && k < s.n_user; k++)
		if (!is_library(t, ids[k]))
			return symbolizer_name(t->r->symbols, ids[k]);
	return NULL;
}

/*
 * The function to name as the cause, among the program's own that have half of the difference: the
 * outermost one in which typical calls spend no time, as there slow calls part from them. Without
 * such a function, the innermost one. n: there is none.
 */
static size_t find_cause(const struct table *t, double whole)
{
	double most = OWN_MOST * (double)t->r->calls->result.groups[CALLS_TYPICAL].ns;
	double best_depth = 0;
	size_t best = t->n;
	bool apart = false;

	for (size_t i = 0; i < t->n; i++) {
		const struct row *row = &t->rows[i];
		double depth = row->ns[CALLS_SLOW] > 0 ? row->depth / row->ns[CALLS_SLOW] : 0;
		bool own = row->ns[CALLS_TYPICAL] <= most && depth > 0;

		if (more_of(t, row) < CAUSE_LEAST * whole || is_library(t, row->symbol) ||
		    (apart && !own) ||
		    (best < t->n && own == apart &&
		     (own ? depth >= best_depth : depth <= best_depth)))
			continue;
		best_depth = depth;
		best = i;
		apart = own;
	}
	return best;
}

/* How much longer a slow call takes than a typical one, ns. */
static double whole_of(const struct calls_result *c)
{
	const struct calls_sum *typical = &c->groups[CALLS_TYPICAL], *slow = &c->groups[CALLS_SLOW];

	return slow->calls
		       ? (double)slow->ns / (double)slow->calls -
				 (typical->calls ? (double)typical->ns / (double)typical->calls : 0)
		       : 0;
}

/* The cause first, then by difference. Free t->rows in either case. 0 or -errno */
static int make_table(const struct out_report *r, struct table *t)
{
	const struct calls_result *c = &r->calls->result;
	struct profile_frames frames = { 0 };
	size_t n = profile_count(r->profile), kept = 0, cause;
	int err = profile_resolve(r->profile, r->symbols);

	*t = (struct table){ .r = r };
	for (size_t g = 0; g < CALLS_GROUPS; g++)
		t->per_call[g] = c->groups[g].calls ? (double)c->groups[g].calls : 1;
	t->rows = err ? NULL : calloc(symbolizer_count(r->symbols) + 1u, sizeof(*t->rows));
	if (!t->rows)
		return -ENOMEM;
	for (size_t i = 0; i < n && !err; i++)
		err = add_stack(t, i, &frames);
	free(frames.list);
	for (uint32_t i = 0; i < symbolizer_count(r->symbols) && !err; i++) {
		if (!t->rows[i].stamp)
			continue;
		t->rows[kept] = t->rows[i];
		t->rows[kept++].symbol = i;
	}
	t->n = kept;
	if (err)
		return err;
	qsort_r(t->rows, t->n, sizeof(*t->rows), by_difference, t);
	cause = find_cause(t, whole_of(c));
	if (cause < t->n) {
		struct row first = t->rows[cause];

		memmove(&t->rows[1], &t->rows[0], cause * sizeof(first));
		t->rows[0] = first;
	}
	return 0;
}

/* What most of the difference of a function is. */
static enum wait_note note_of(const struct table *t, const struct row *row, double *ret_ns)
{
	enum wait_note best = 0;

	for (enum wait_note i = 0; i < WAIT_NOTES; i++) {
		double more = row->notes[CALLS_SLOW][i] / t->per_call[CALLS_SLOW] -
			      row->notes[CALLS_TYPICAL][i] / t->per_call[CALLS_TYPICAL];

		if (!i || more > *ret_ns) {
			best = i;
			*ret_ns = more;
		}
	}
	return best;
}

/* ---- Text ---- */

static const char *time_of(char buf[OUT_TIME], double ns)
{
	return out_table_time(buf, ns > 0 ? (uint64_t)(ns / 1000 + 0.5) : 0);
}

static void put_durations(const struct out_report *r, FILE *f)
{
	const struct sf_call_stats *all = &r->calls->result.all;
	const struct calls_sum *slow = &r->calls->result.groups[CALLS_SLOW];
	static const struct {
		const char *name;
		double share;
	} marks[] = { { "p50", .5 }, { "p90", .9 }, { "p99", .99 }, { "p99.9", .999 } };
	char time[OUT_TIME], over[OUT_TIME];

	fprintf(f, "%s: %" PRIu64 " calls in %.1f s", r->calls->what, all->ended,
		r->stats->duration_s);
	if (slow->calls)
		fprintf(f, ", %" PRIu64 " slow (%s or more)", slow->calls,
			time_of(over, (double)r->calls->result.over_ns));
	else
		fputs(", none slow", f);
	if (all->begun - all->ended + all->alone)
		fprintf(f, ", %" PRIu64 " unmatched", all->begun - all->ended + all->alone);
	putc('\n', f);
	if (!all->ended)
		return;
	putc('\n', f);
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		fprintf(f, "  %s %s", marks[i].name,
			time_of(time, (double)calls_quantile(all, marks[i].share)));
	fprintf(f, "  max %s\n", time_of(time, (double)all->max_ns));
}

/* A line for each power of two. */
static void put_histogram(const struct sf_call_stats *all, FILE *f)
{
	uint64_t sums[64] = { 0 }, most = 1;
	char from[OUT_TIME], bar[41];
	int first = 64, last = -1;

	for (uint32_t i = 0; i < SF_CALL_HIST; i++) {
		int power = i < 32 ? 0 : (int)(i >> SF_CALL_SUB);

		if (power < 64)
			sums[power] += all->hist[i];
	}
	for (int i = 0; i < 64; i++) {
		if (!sums[i])
			continue;
		first = first < i ? first : i;
		last = i;
		most = sums[i] > most ? sums[i] : most;
	}
	if (last >= 0)
		fputs("\n        FROM      CALLS\n", f);
	for (int i = first; i <= last; i++) {
		size_t len = (size_t)((double)sums[i] / (double)most * 40 + 0.5);

		memset(bar, '*', len);
		bar[len] = 0;
		fprintf(f, "%12s %10" PRIu64 " %s\n",
			time_of(from, (double)call_hist_from((uint32_t)i << SF_CALL_SUB)), sums[i],
			bar);
	}
}

static void put_row(const struct table *t, const struct row *row, FILE *f)
{
	char typical[OUT_TIME], slow[OUT_TIME], more[OUT_TIME];
	double difference = more_of(t, row), ns;
	const char *note = wait_note_text(note_of(t, row, &ns));

	fprintf(f, "%11s %11s %c%10s  %-18s ",
		time_of(typical, row->ns[CALLS_TYPICAL] / t->per_call[CALLS_TYPICAL]),
		time_of(slow, row->ns[CALLS_SLOW] / t->per_call[CALLS_SLOW]),
		difference < 0 ? '-' : '+',
		time_of(more, difference < 0 ? -difference : difference), note);
	out_table_name(f, symbolizer_name(t->r->symbols, row->symbol), "", 57, t->r->opts.columns);
}

static void put_functions(const struct table *t, FILE *f)
{
	const struct out_report *r = t->r;
	double whole = whole_of(&r->calls->result), ns;
	size_t shown = 0;
	char time[OUT_TIME], part[OUT_TIME];

	if (!r->calls->result.groups[CALLS_SLOW].calls || !t->n)
		return;
	fprintf(f, "\nA slow call takes %s more than a typical one", time_of(time, whole));
	if (more_of(t, &t->rows[0]) >= CAUSE_LEAST * whole) {
		enum wait_note note = note_of(t, &t->rows[0], &ns);

		fprintf(f, ", %s of it %s in %s", time_of(part, ns), wait_note_text(note),
			symbolizer_name(r->symbols, t->rows[0].symbol));
	}
	fputs(".\n\n    TYPICAL        SLOW  DIFFERENCE  MOSTLY             FUNCTION AND WHAT IT "
	      "CALLED\n",
	      f);
	for (size_t i = 0; i < t->n; i++) {
		/* What the kernel did is in the column MOSTLY. */
		if (t->rows[i].kernel)
			continue;
		if (++shown <= ROWS_SHOWN)
			put_row(t, &t->rows[i], f);
	}
	if (shown > ROWS_SHOWN)
		fprintf(f, "  ... and %zu more functions\n", shown - ROWS_SHOWN);
}

/* ---- The slowest calls ---- */

/* Fills strip with what the thread did: '#' ran, '-' wanted a CPU, '.' waited */
static void make_strip(const struct calls_one *one, char strip[STRIP + 1])
{
	uint64_t start = one->call.start_ns, ns = one->call.end_ns - start;

	memset(strip, '#', STRIP);
	strip[STRIP] = 0;
	for (size_t i = 0; i < STRIP && ns; i++) {
		uint64_t at = start + (uint64_t)(((double)i + 0.5) / STRIP * (double)ns);

		for (size_t k = 0; k < one->n; k++) {
			const struct calls_piece *p = &one->pieces[k];

			if (at >= p->start_ns && at < p->end_ns)
				strip[i] = at < p->woken_ns ? '.' : '-';
		}
	}
}

/* The longest wait of the call; NULL: it has none. */
static const struct calls_piece *longest_wait(const struct calls_one *one)
{
	const struct calls_piece *best = NULL;

	for (size_t i = 0; i < one->n; i++) {
		const struct calls_piece *p = &one->pieces[i];

		if (p->end_ns > p->start_ns &&
		    (!best || p->end_ns - p->start_ns > best->end_ns - best->start_ns))
			best = p;
	}
	return best;
}

static void put_one(const struct table *t, const struct calls_one *one, FILE *f)
{
	const struct out_report *r = t->r;
	const struct calls_piece *wait = longest_wait(one);
	char strip[STRIP + 1], took[OUT_TIME], longest[OUT_TIME], comm[4 * SF_COMM];
	const struct sf_call *c = &one->call;
	double at = c->start_ns > r->calls->start_ns
			    ? (double)(c->start_ns - r->calls->start_ns) / 1e9
			    : 0;

	make_strip(one, strip);
	text_clean(comm, sizeof(comm), c->comm, strnlen(c->comm, SF_COMM), 0);
	fprintf(f, "%9.3f s %11s  %s  %s (%u)", at,
		time_of(took, (double)(c->end_ns - c->start_ns)), strip, comm, c->tid);
	if (wait) {
		struct profile_stack s;
		const uint32_t *ids = profile_symbols(r->calls->pieces, wait->stack, r->symbols);
		const char *own = own_function(t, r->calls->pieces, wait->stack);

		profile_stack(r->calls->pieces, wait->stack, &s);
		if (ids)
			fprintf(f, "  %s %s",
				time_of(longest, (double)(wait->end_ns - wait->start_ns)),
				wait_note_text(wait_note_of(&s, ids, r->symbols)));
		if (own)
			fprintf(f, " in %s", own);
	}
	putc('\n', f);
}

static void put_slowest(const struct table *t, FILE *f)
{
	const struct calls_result *c = &t->r->calls->result;

	if (!c->nslowest)
		return;
	fputs("\nThe slowest calls (# ran, . waited, - wanted a CPU; with their longest wait):\n",
	      f);
	for (size_t i = 0; i < c->nslowest; i++)
		put_one(t, &c->slowest[i], f);
}

int out_calls_text(const struct out_report *r, FILE *f)
{
	struct table t;
	int err = make_table(r, &t);

	if (!err) {
		put_durations(r, f);
		put_histogram(&r->calls->result.all, f);
		put_functions(&t, f);
		put_slowest(&t, f);
	}
	free(t.rows);
	return err;
}

/* ---- JSON ---- */

static void json_us(struct json *j, const char *key, double ns)
{
	json_double(j, key, ns / 1000, 3);
}

static void json_functions(struct json *j, const struct table *t)
{
	json_array(j, "functions");
	for (size_t i = 0; i < t->n; i++) {
		const struct row *row = &t->rows[i];
		double ns;

		json_object(j, NULL);
		json_str(j, "name", symbolizer_name(t->r->symbols, row->symbol));
		json_str(j, "module", symbolizer_module(t->r->symbols, row->symbol));
		json_us(j, "typical_us_per_call",
			row->ns[CALLS_TYPICAL] / t->per_call[CALLS_TYPICAL]);
		json_us(j, "slow_us_per_call", row->ns[CALLS_SLOW] / t->per_call[CALLS_SLOW]);
		json_str(j, "mostly", wait_note_text(note_of(t, row, &ns)));
		json_object_end(j);
	}
	json_array_end(j);
}

static void json_slowest(struct json *j, const struct calls_result *c)
{
	json_array(j, "slowest");
	for (size_t i = 0; i < c->nslowest; i++) {
		const struct sf_call *call = &c->slowest[i].call;

		json_object(j, NULL);
		json_us(j, "start_us", (double)call->start_ns);
		json_us(j, "us", (double)(call->end_ns - call->start_ns));
		json_u64(j, "pid", call->pid);
		json_u64(j, "tid", call->tid);
		json_object_end(j);
	}
	json_array_end(j);
}

int out_calls_json(const struct out_report *r, FILE *f)
{
	const struct calls_result *c = &r->calls->result;
	const struct sf_call_stats *all = &c->all;
	struct json j = json_on(f);
	struct table t;
	int err = make_table(r, &t);

	if (!err) {
		json_object(&j, NULL);
		json_u64(&j, "schema", 1);
		json_str(&j, "function", r->calls->what);
		json_double(&j, "duration_s", r->stats->duration_s, 3);
		json_u64(&j, "calls", all->ended);
		json_u64(&j, "slow", c->groups[CALLS_SLOW].calls);
		json_u64(&j, "unmatched", all->begun - all->ended + all->alone);
		json_u64(&j, "lost", all->lost + all->no_room);
		json_us(&j, "over_us", c->over_ns == UINT64_MAX ? 0 : (double)c->over_ns);
		json_us(&j, "p50_us", (double)calls_quantile(all, .5));
		json_us(&j, "p99_us", (double)calls_quantile(all, .99));
		json_us(&j, "p99_9_us", (double)calls_quantile(all, .999));
		json_us(&j, "max_us", (double)all->max_ns);
		json_us(&j, "total_us", (double)all->ns);
		json_us(&j, "slow_us", (double)c->groups[CALLS_SLOW].ns);
		json_functions(&j, &t);
		json_slowest(&j, c);
		json_object_end(&j);
		json_newline(&j);
	}
	free(t.rows);
	return err;
}
