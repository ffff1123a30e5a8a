/* SPDX-License-Identifier: BSD-2-Clause */
#include "out/out_changes.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "out/changes.h"
#include "out/out.h"
#include "out/out_table.h"

static void name_of(const struct stackset *ss, uint32_t frame, char ret[STACK_TEXT_MAX])
{
	snprintf(ret, STACK_TEXT_MAX, "%s%s", stackset_frame_name(ss, frame),
		 stack_kind_suffix(stackset_frame_kind(ss, frame)));
}

/* ---- The table ---- */

#define NAME_COLUMN 53

/* How numbers of a unit are shown, so that the largest has four or five digits. */
struct scale {
	double factor;
	int decimals;
	char name[64];
};

static struct scale scale_for(const struct changes *c)
{
	double most = fmax(c->all.before, c->all.after), factor = 1;
	const char *prefix = "";
	struct scale ret;

	if (c->unit.share) {
		factor = 100;
		prefix = "percent of the side's ";
	} else if (c->unit.seconds && most < 10) {
		factor = most < 0.01 ? 1e6 : 1e3;
		prefix = most < 0.01 ? "microseconds of " : "milliseconds of ";
	} else if (c->unit.seconds) {
		prefix = "seconds of ";
	}
	most *= factor;
	ret = (struct scale){ .factor = factor,
			      .decimals = most >= 100000 ? 0
					  : most >= 1000 ? 1
					  : most >= 100	 ? 2
							 : 3 };
	/* Counts have no fractions. */
	if (!c->unit.share && !c->unit.seconds && c->unit.per == VERDICT_PER_RUN &&
	    c->nruns == STACK_SIDES)
		ret.decimals = 0;
	snprintf(ret.name, sizeof(ret.name), "%s%s%s", prefix,
		 c->unit.seconds ? c->unit.what : "samples",
		 c->unit.share			     ? ""
		 : c->unit.per == VERDICT_PER_SECOND ? " per second"
		 : c->unit.per == VERDICT_PER_WORK   ? " per unit of work"
						     : "");
	return ret;
}

static void put_change(const struct change_value *v, const struct scale *s, FILE *f)
{
	char change[32];

	snprintf(change, sizeof(change), v->real ? "%+.*f " : "(%+.*f)", s->decimals,
		 (v->after - v->before) * s->factor);
	fprintf(f, "%10s", v->before > 0 || v->after > 0 ? change : "- ");
}

static void put_function(const struct stackset *ss, const struct function_change *c,
			 const struct scale *s, int columns, FILE *f)
{
	char name[STACK_TEXT_MAX + CHANGE_NOTE_TEXT], note[CHANGE_NOTE_TEXT];

	fprintf(f, "%7.*f %7.*f ", s->decimals, c->self.before * s->factor, s->decimals,
		c->self.after * s->factor);
	put_change(&c->self, s, f);
	fprintf(f, "%6.*f %8.*f ", s->decimals, c->self.interval * s->factor, s->decimals,
		c->total.after * s->factor);
	put_change(&c->total, s, f);
	putc(' ', f);
	name_of(ss, c->frame, name);
	if (*change_note_text(ss, c, note)) {
		strncat(name, ", ", sizeof(name) - strlen(name) - 1);
		strncat(name, note, sizeof(name) - strlen(name) - 1);
	}
	out_table_name(f, name, "", NAME_COLUMN, columns);
}

static void put_functions(const struct stackset *ss, const struct stacks_text *o,
			  const struct scale *s, FILE *f)
{
	const struct changes *c = o->changes;
	size_t shown = c->n < o->rows ? c->n : o->rows;

	fprintf(f,
		"%s\n"
		"SELF                                 TOTAL\n"
		" BEFORE   AFTER    CHANGE     +-    AFTER    CHANGE  FUNCTION\n",
		s->name);
	for (size_t i = 0; i < shown; i++)
		put_function(ss, &c->list[i], s, o->columns, f);
	if (c->n > shown)
		fprintf(f, "  ... and %zu more functions\n", c->n - shown);
}

/* What a sum of a side is in the unit, where runs are not told apart. */
static double mean_of(const struct stackset *ss, const struct changes *c,
		      const uint64_t sum[STACK_SIDES], enum stack_side side)
{
	double all = side == STACK_BEFORE ? c->all.before : c->all.after;

	return ss->totals[side] ? all * (double)sum[side] / (double)ss->totals[side] : 0;
}

static int put_groups(const struct stackset *ss, const struct stacks_text *o, const struct scale *s,
		      FILE *f)
{
	struct stacks_group *list;
	size_t n, shown;
	int err = stacks_groups(ss, &list, &n);

	if (err)
		return err;
	shown = n < o->rows ? n : o->rows;
	fprintf(f, "%s\n BEFORE   AFTER    CHANGE  %s\n", s->name, o->by);
	for (size_t i = 0; i < shown; i++) {
		double before = s->factor * mean_of(ss, o->changes, list[i].sum, STACK_BEFORE),
		       after = s->factor * mean_of(ss, o->changes, list[i].sum, STACK_AFTER);

		fprintf(f, "%7.*f %7.*f %+9.*f  ", s->decimals, before, s->decimals, after,
			s->decimals, after - before);
		out_table_name(f, list[i].name, "", 27, o->columns);
	}
	if (n > shown)
		fprintf(f, "  ... and %zu more\n", n - shown);
	putc('\n', f);
	free(list);
	return 0;
}

int changes_write_text(const struct stackset *ss, const struct stacks_text *o, FILE *f)
{
	const struct scale s = scale_for(o->changes);
	int err = 0;

	fprintf(f, "%s\n\n", o->verdict_line);
	if (o->by)
		err = put_groups(ss, o, &s, f);
	if (err)
		return err;
	put_functions(ss, o, &s, f);
	fprintf(f,
		"\n%" PRIu64 " %s before, %" PRIu64 " after; changes in parentheses may be "
		"chance, +- is half of the 95 %% interval\n",
		ss->totals[STACK_BEFORE], o->unit, ss->totals[STACK_AFTER]);
	return out_finish(f);
}

/* ---- JSON ---- */

#define DECIMALS 9

/* "cpu_s_per_s", "wall_s", "per_unit", "share", ... */
static void put_unit(struct json *j, const char *key, const struct verdict_unit *u)
{
	char name[64];

	snprintf(name, sizeof(name), "%s%s",
		 !u->seconds	     ? "samples"
		 : u->what[0] == 'w' ? "wall_s"
		 : u->what[0] == 'b' ? "blocked_s"
				     : "cpu_s",
		 u->per == VERDICT_PER_SECOND ? "_per_s" : "");
	json_str(j, key, u->share ? "share" : u->per == VERDICT_PER_WORK ? "per_unit" : name);
}

static void put_numbers(struct json *j, const char *prefix, const struct change_value *v)
{
	double change = v->after - v->before;
	const struct {
		const char *name;
		double value;
	} numbers[] = {
		{ "before", v->before },
		{ "after", v->after },
		{ "change", change },
		{ "low", change - v->interval },
		{ "high", change + v->interval },
	};
	char key[32];

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		snprintf(key, sizeof(key), "%s%s", prefix, numbers[i].name);
		json_double(j, key, numbers[i].value, DECIMALS);
	}
	snprintf(key, sizeof(key), "%sreal", prefix);
	json_bool(j, key, v->real);
}

static void json_function(struct json *j, const struct stackset *ss,
			  const struct function_change *c)
{
	char name[STACK_TEXT_MAX], note[CHANGE_NOTE_TEXT];

	name_of(ss, c->frame, name);
	json_newline(j);
	json_object(j, NULL);
	json_str(j, "name", name);
	if (*change_note_text(ss, c, note))
		json_str(j, "note", note);
	put_numbers(j, "", &c->self);
	put_numbers(j, "total_", &c->total);
	json_object_end(j);
}

/* low and high: of the change, in the unit, like the change itself */
static void put_verdict(struct json *j, const struct verdict *v)
{
	static const char *const words[] = { "same", "faster", "slower" };
	double low = v->log_change - v->log_interval, high = v->log_change + v->log_interval;

	json_double(j, "before", v->before, DECIMALS);
	json_double(j, "after", v->after, DECIMALS);
	json_double(j, "change", v->after - v->before, DECIMALS);
	json_double(j, "low", v->before * (exp(low) - 1), DECIMALS);
	json_double(j, "high", v->before * (exp(high) - 1), DECIMALS);
	json_double(j, "smallest_visible", v->before * (exp(v->log_visible) - 1), DECIMALS);
	json_double(j, "change_percent", 100 * (exp(v->log_change) - 1), DECIMALS);
	json_double(j, "low_percent", 100 * (exp(low) - 1), DECIMALS);
	json_double(j, "high_percent", 100 * (exp(high) - 1), DECIMALS);
	json_double(j, "smallest_visible_percent", 100 * (exp(v->log_visible) - 1), DECIMALS);
	json_str(j, "verdict", words[v->word]);
}

int changes_write_json(const struct stackset *ss, const struct stacks_text *o, FILE *f)
{
	const struct function_change **list;
	struct json j = json_on(f);
	int err = changes_by_size(o->changes, &list);

	if (err)
		return err;
	json_object(&j, NULL);
	json_u64(&j, "schema", 1);
	put_unit(&j, "unit", &o->changes->unit);
	put_unit(&j, "verdict_unit", &o->verdict->unit);
	put_verdict(&j, o->verdict);
	json_array(&j, "functions");
	for (size_t i = 0; i < o->changes->n; i++)
		json_function(&j, ss, list[i]);
	json_array_end(&j);
	json_object_end(&j);
	json_newline(&j);
	free(list);
	return out_finish(f);
}
