/* SPDX-License-Identifier: BSD-2-Clause */
/* sfbpf diff: compares two profiles. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/exitcode.h"
#include "cli/tools.h"
#include "report/match_names.h"
#include "report/stacks_io.h"

static const struct option_spec options[] = {
	VIEW_OPTIONS,
	{ OPT_AGO, "ago", "TIME",
	  "compare the windows of one directory with those this much earlier: 1h, 1d" },
	{ OPT_AGAINST, "against", "NAME=VALUE",
	  "compare with the stacks of the same directory that have this label, in place of one of "
	  "--label with the same name" },
	{ OPT_PER, "per", "UNIT",
	  "what is compared: values per run or second, or N1:N2, the units of work that "
	  "were done before and after (default: second; run if a command was run or the duration "
	  "is unknown)" },
	{ OPT_SHARE, "share", NULL,
	  "compare functions by their shares of their side, in place of the unit of the "
	  "verdict" },
	{ OPT_MATCH, "match", "OLD=NEW",
	  "compare the processes, threads or functions of BEFORE that are called OLD, a name or "
	  "a pattern like 'old_*', with NEW; may be repeated" },
	{ 0 }
};

static int diff_run(int argc, char **argv);

const struct tool_spec diff_tool = {
	.name = "diff",
	.usage = "diff [options] BEFORE AFTER | BEFORE... -- AFTER...",
	.brief = "compare two recorded profiles, or several runs of each side",
	.summary = "Compares two profiles that 'sfbpf record' or 'sfbpf offcpu' wrote as folded "
		   "lines, JSON or pprof. The first line says whether AFTER is faster or slower, "
		   "with the 95 % interval of the change: several runs of each side make it "
		   "narrower. Then comes a table of the functions that changed, in the same unit. "
		   "Other formats are a red and blue flame graph, JSON and folded lines. "
		   "Each may be a directory of windows that 'sfbpf agent' wrote, or the URL of a "
		   "ClickHouse that it sends to.",
	.options = options,
	.permute = true,
	.examples = "  sfbpf diff old.folded new.folded           the largest changes\n"
		    "  sfbpf diff old.json new.json -o diff.html  red: more, blue: less\n"
		    "  sfbpf diff old?.json -- new?.json          several runs of each\n"
		    "  sfbpf diff --since 1h --ago 1d DIRECTORY   this hour and yesterday's\n"
		    "  sfbpf diff --service web --label service.version=1.5 \\\n"
		    "      --against service.version=1.4 DIRECTORY\n",
	.run = diff_run,
};

/* Reads BEFORE from the directory of AFTER, v->ago_ns earlier. */
static int read_earlier(struct view *v, const char *path)
{
	struct window_choice after = v->choice;
	int err;

	if (!after.until_ns)
		after.until_ns = clock_ns(CLOCK_REALTIME);
	v->choice.since_ns = after.since_ns > v->ago_ns ? after.since_ns - v->ago_ns : 0;
	v->choice.until_ns = after.until_ns - v->ago_ns;
	err = view_read(v, path, STACK_BEFORE);
	v->choice = after;
	return err;
}

/* Reads BEFORE from the directory of AFTER, with another label. */
static int read_against(struct view *v, const char *path)
{
	struct stack_choice after = v->take;
	size_t i = 0;
	int err;

	while (i < v->take.n && strcmp(v->take.labels[i].name, v->against.name) != 0)
		i++;
	v->take.labels[i].name = v->against.name;
	v->take.labels[i].value = v->against.value;
	v->take.n += i == v->take.n;
	err = view_read(v, path, STACK_BEFORE);
	if (!err)
		err = view_check(v, STACK_BEFORE);
	v->take = after;
	return err;
}

static int read_before(struct view *v, const char *path)
{
	return v->ago_ns	 ? read_earlier(v, path)
	       : v->against.name ? read_against(v, path)
				 : view_read(v, path, STACK_BEFORE);
}

/* The operands: n of them, of which the first `before` are BEFORE. One operand: BEFORE is in it. */
struct operands {
	char **paths;
	int n, before;
};

#define COMMAND_BYTES sizeof(((struct stacks_meta *)0)->command)

/* The runs of a side are told by how much each adds to the side's total. */
static int read_runs(struct view *v, char *const *paths, int n, enum stack_side side,
		     struct verdict_side *ret, char command[COMMAND_BYTES])
{
	char unit[sizeof(v->meta.unit)];
	int err = 0;

	v->stacks.renames = side == STACK_BEFORE ? &v->match : NULL;
	for (int i = 0; i < n && !err; i++) {
		uint64_t had = v->stacks.totals[side];

		strcpy(unit, v->meta.unit);
		err = side == STACK_BEFORE ? read_before(v, paths[i])
					   : view_read(v, paths[i], side);
		if (!err && *unit && strcmp(unit, v->meta.unit) != 0)
			err = complain(EXIT_FAILED, "%s counts %s, the file before it %s", paths[i],
				       v->meta.unit, unit);
		if (!err && !verdict_add(ret, &v->meta, v->stacks.totals[side] - had))
			err = complain(EXIT_USAGE, "more than %d runs of a side", VERDICT_RUNS);
		if (!err && changes_add_run(&v->changes, &v->stacks, side))
			err = complain(EXIT_FAILED, "out of memory");
		if (!i)
			strcpy(command, v->meta.command);
		else if (strcmp(command, v->meta.command) != 0)
			*command = 0;
	}
	ret->work = v->work[side];
	return err;
}

/* "; 3 functions explain 94 % of it" */
static void put_explanation(const struct view *v, char *buf, size_t cap)
{
	double part;
	size_t n = v->verdict.word == VERDICT_SAME ? 0 : changes_explain(&v->changes, &part);

	if (!n)
		return;
	if (part >= 0.995)
		snprintf(buf, cap, "; %zu function%s all of it", n,
			 n == 1 ? " explains" : "s explain");
	else
		snprintf(buf, cap, "; %zu function%s %.0f %% of it", n,
			 n == 1 ? " explains" : "s explain", 100 * part);
}

/* Both sides were read. */
static int judge(struct view *v, const struct verdict_side sides[STACK_SIDES], char *line,
		 size_t cap)
{
	struct verdict_unit unit;
	int len;

	if (verdict_make(&sides[STACK_BEFORE], &sides[STACK_AFTER], v->per, &v->verdict))
		return complain(EXIT_FAILED, "--per second: the duration of a file is unknown");
	unit = v->verdict.unit;
	unit.share = v->share;
	if (changes_make(&v->changes, &v->stacks, sides, &unit))
		return complain(EXIT_FAILED, "out of memory");
	len = verdict_text(&v->verdict, line, cap);
	if (!v->share && len > 0 && (size_t)len < cap)
		put_explanation(v, line + len, cap - (size_t)len);
	v->verdict_line = line;
	if (v->output && strcmp(v->output, "-") != 0)
		complain(0, "%s", line);
	return 0;
}

static int compare(struct view *v, const struct operands *o)
{
	const int after = o->n == 1 ? 0 : o->before;
	struct verdict_side sides[STACK_SIDES] = { 0 };
	char line[512], commands[STACK_SIDES][COMMAND_BYTES] = { "", "" };
	int err;

	v->before = v->ago_ns	      ? "earlier"
		    : v->against.name ? v->against.value
				      : path_name(o->paths[0]);
	v->title = path_name(o->paths[after]);
	/* Folded lines have no modules, and library versions may differ. */
	v->stacks.no_modules = true;
	err = read_runs(v, o->paths, o->before, STACK_BEFORE, &sides[STACK_BEFORE],
			commands[STACK_BEFORE]);
	if (!err)
		err = read_runs(v, o->paths + after, o->n - after, STACK_AFTER, &sides[STACK_AFTER],
				commands[STACK_AFTER]);
	if (!err)
		err = view_name_threads(v);
	/* What is on one side only is a difference, but not of two labels. */
	if (!err && (v->against.name || !v->stacks.totals[STACK_BEFORE]))
		err = view_check(v, STACK_AFTER);
	if (!err && (v->take.by == STACK_BY_PROCESS || v->take.by == STACK_BY_THREAD) &&
	    match_names(&v->stacks, (const char *const[]){ commands[0], commands[1] }))
		err = complain(EXIT_FAILED, "out of memory");
	if (!err)
		err = judge(v, sides, line, sizeof(line));
	return err ? err : view_write(v);
}

/* The number of arguments after "--"; 0: there is no "--". */
static int after_dashes(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--"))
			return argc - i - 1;
	return 0;
}

/* 0, or an exit code after printing the error. */
static int check(const struct view *v, const struct operands *o)
{
	int inputs = 0;

	if (v->out->binary)
		return complain(EXIT_USAGE, "%s holds one profile; for two:%s", v->out->name,
				out_format_names(OUT_COMPARED));
	if (v->ago_ns && (o->n != 1 || !v->choice.since_ns))
		return complain(EXIT_USAGE, "--ago compares two times of one directory: "
					    "sfbpf diff --since 1h --ago 1d DIRECTORY");
	if (v->against.name && (o->n != 1 || v->ago_ns || v->take.n == STACK_CHOICE_LABELS))
		return complain(EXIT_USAGE, "--against compares two labels of one directory: "
					    "sfbpf diff --label NAME=A --against NAME=B DIRECTORY");
	if (o->n == 1 && !v->ago_ns && !v->against.name)
		return complain(EXIT_USAGE, "a file is missing; usage: sfbpf %s", diff_tool.usage);
	for (int i = 0; i < o->n; i++)
		inputs += !strcmp(o->paths[i], "-");
	if (inputs > 1)
		return complain(EXIT_USAGE, "only one of the files can be - (standard input)");
	return 0;
}

static int diff_run(int argc, char **argv)
{
	struct view v = { .compares = true };
	const int after = after_dashes(argc, argv);
	int err = view_parse(&v, &diff_tool, argc, argv, 1, after ? 2 * VERDICT_RUNS : 2);
	struct operands o = { .paths = argv + optind, .n = argc - optind, .before = 1 };

	if (err)
		return err;
	if (after && after < o.n)
		o.before = o.n - after;
	else if (o.n > 2)
		return complain(EXIT_USAGE, "no file is before --; usage: sfbpf %s",
				diff_tool.usage);
	err = check(&v, &o);
	if (err)
		return err;
	if (stackset_init(&v.stacks))
		return complain(EXIT_FAILED, "out of memory");
	err = compare(&v, &o);
	stackset_free(&v.stacks);
	changes_free(&v.changes);
	free(v.match.known);
	return err;
}
