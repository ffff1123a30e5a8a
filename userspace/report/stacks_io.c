/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/stacks_io.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exitcode.h"
#include "base/num.h"
#include "base/result_file.h"
#include "cli/terminal.h"
#include "out/out_html.h"
#include "out/out_stacks.h"
#include "prof/common_threads.h"
#include "report/read_clickhouse.h"
#include "report/recorded.h"

#define ROWS	 40
#define TREE_MIN 1.0 /* percent */

#define LABEL_VERSION "service.version"

/*
 * Limit on folded output. Folded lines repeat frames that pprof shares between stacks, so one byte
 * of pprof may become 300 bytes.
 */
#define FOLDED_A_BYTE 256
#define FOLDED_SPARE  (256ull << 20)

const char *path_name(const char *path)
{
	const char *slash = strrchr(path, '/'), *host = strstr(path, "://");

	return host ? host + 3 : slash && slash[1] ? slash + 1 : path;
}

static int read_one(struct view *v, FILE *f, const char *path, enum stack_side side)
{
	struct read_error why;
	int err;
	FILE *from = recorded_as_json(f, &why, &err);

	v->stacks.choice = v->take;
	if (from)
		err = read_stacks(from, &v->stacks, side, &v->meta, &why);
	if (from && from != f)
		fclose(from);
	v->bytes += v->meta.bytes;
	if (err == -EINVAL)
		return complain(EXIT_FAILED, "%s: %s", path, why.text);
	if (err)
		return complain(EXIT_FAILED, "cannot read '%s': %s", path, strerror(-err));
	return 0;
}

/*
 * Every window has the services' names, unless it was written in another format or by an older
 * agent; other labels are only where they apply.
 */
static void note_lacking(const struct window_sum *w)
{
	if (w->lacks && (w->lacking == w->n || !strcmp(w->lacks, LABEL_SERVICE)))
		complain(0,
			 "%zu of %zu windows have no label %s; folded windows and those of older "
			 "agents have no labels",
			 w->lacking, w->n, w->lacks);
}

static int read_directory(struct view *v, const char *path, enum stack_side side)
{
	struct window_sum w = { 0 };
	int err;

	v->stacks.choice = v->take;
	err = window_sum_read(path, &v->choice, &v->stacks, side, &w);
	if (err)
		return err;
	v->bytes += w.meta.bytes;
	v->meta = w.meta;
	if (w.unread)
		complain(0, "%s: %zu of %zu windows could not be read and are left out", path,
			 w.unread, w.n + w.unread);
	if (!w.n)
		return complain(EXIT_FAILED,
				"%s: no window of the agent (sfbpf-HOST-TIME-ID.pb.gz, .folded or "
				".json) is there, or none matches the options",
				path);
	note_lacking(&w);
	return 0;
}

static int read_clickhouse(struct view *v, const char *url, enum stack_side side)
{
#ifdef HAVE_AGENT
	struct clickhouse c = { .url = url, .header_file = v->header_file, .ca_file = v->ca_file };
	int err;

	v->stacks.choice = v->take;
	err = clickhouse_read(&c, &v->choice, &v->stacks, side, &v->meta);
	v->bytes += v->meta.bytes;
	return err;
#else
	(void)v, (void)side;
	return complain(EXIT_FAILED, "%s: this build does not read ClickHouse: it needs libcurl",
			url);
#endif
}

int view_read(struct view *v, const char *path, enum stack_side side)
{
	bool is_stdin = !strcmp(path, "-");
	FILE *f;
	struct stat st;
	int err;

	if (clickhouse_is_url(path))
		return read_clickhouse(v, path, side);
	if (!is_stdin && !stat(path, &st) && S_ISDIR(st.st_mode))
		return read_directory(v, path, side);
	f = is_stdin ? stdin : fopen(path, "re");
	if (!f)
		return complain(EXIT_FAILED, "cannot read '%s': %s", path, strerror(errno));
	err = read_one(v, f, path, side);
	if (!is_stdin)
		fclose(f);
	return err;
}

int view_name_threads(struct view *v)
{
	if (!v->apart && stackset_common_threads(&v->stacks))
		return complain(EXIT_FAILED, "out of memory");
	return 0;
}

static int take_time(const char *name, const char *arg, uint64_t *ret)
{
	if (window_time(arg, clock_ns(CLOCK_REALTIME), ret))
		return complain(EXIT_USAGE,
				"--%s: '%s' is not a time: 1h (before now), 2026-01-31 or "
				"2026-01-31T12:00",
				name, arg);
	return 0;
}

static int take_by(struct view *v, const char *arg)
{
	static const struct {
		const char *name;
		enum stack_by by;
		const char *label;
	} names[] = {
		{ "process", STACK_BY_PROCESS, NULL },
		{ "thread", STACK_BY_THREAD, NULL },
		{ "host", STACK_BY_HOST, NULL },
		{ "service", STACK_BY_LABEL, LABEL_SERVICE },
		{ "version", STACK_BY_LABEL, LABEL_VERSION },
		{ "container", STACK_BY_LABEL, STACK_LABEL_CONTAINER },
	};

	v->by_given = true;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(arg, names[i].name) != 0)
			continue;
		v->take.by = names[i].by;
		v->take.by_label = names[i].label;
		return 0;
	}
	v->take.by = STACK_BY_LABEL;
	v->take.by_label = arg;
	if (strchr(arg, '.') || strchr(arg, '_'))
		return 0;
	return complain(EXIT_USAGE,
			"--by: '%s' is not process, thread, container, host, service, version or a "
			"label's name, like k8s.pod.uid",
			arg);
}

static int add_label(struct view *v, const char *option, const char *name, const char *value)
{
	struct stack_choice *c = &v->take;

	if (c->n == STACK_CHOICE_LABELS)
		return complain(EXIT_USAGE, "--%s: more than %d labels", option,
				STACK_CHOICE_LABELS);
	c->labels[c->n].name = name;
	c->labels[c->n++].value = value;
	return 0;
}

/*
 * Cuts "NAME=VALUE" of the command line in two. arg is getopt's optarg, as options_parse passes a
 * constant. False: it is something else.
 */
static bool cut_label(char *arg, const char **ret_name, const char **ret_value)
{
	char *equals = strchr(arg, '=');

	if (!equals || equals == arg)
		return false;
	*equals = 0;
	*ret_name = arg;
	*ret_value = equals + 1;
	return true;
}

static int take_label(struct view *v, const char *arg)
{
	const char *name, *value;

	if (!cut_label(optarg, &name, &value))
		return complain(EXIT_USAGE, "--label: '%s' is not NAME=VALUE", arg);
	return add_label(v, "label", name, value);
}

static int take_against(struct view *v, const char *arg)
{
	if (cut_label(optarg, &v->against.name, &v->against.value))
		return 0;
	return complain(EXIT_USAGE, "--against: '%s' is not NAME=VALUE", arg);
}

static int take_match(struct view *v, const char *arg)
{
	struct stack_renames *m = &v->match;

	if (m->n == STACK_RENAMES)
		return complain(EXIT_USAGE, "--match: more than %d names", STACK_RENAMES);
	if (!cut_label(optarg, &m->list[m->n].from, &m->list[m->n].to) || !*m->list[m->n].to)
		return complain(EXIT_USAGE, "--match: '%s' is not OLD=NEW", arg);
	m->n++;
	return 0;
}

/* "run", "second" or "N1:N2", the units of work before and after. */
static int take_per(struct view *v, const char *arg)
{
	double before, after;
	char end;

	if (!strcmp(arg, "run") || !strcmp(arg, "second")) {
		v->per = *arg == 'r' ? VERDICT_PER_RUN : VERDICT_PER_SECOND;
		return 0;
	}
	if (sscanf(arg, "%lf:%lf%c", &before, &after, &end) != 2 || !(before > 0) || !(after > 0) ||
	    isinf(before) || isinf(after))
		return complain(EXIT_USAGE,
				"--per: '%s' is not run, second, or the units of work before and "
				"after, like 1000:1200",
				arg);
	v->per = VERDICT_PER_WORK;
	v->work[STACK_BEFORE] = before;
	v->work[STACK_AFTER] = after;
	return 0;
}

static int take_rows(struct view *v, const char *arg)
{
	if (num_u64(arg, 1, 1000000, &v->rows))
		return complain(EXIT_USAGE, "-n: '%s' is not a number from 1 to 1000000", arg);
	return 0;
}

static int take_option(void *ctx, int id, const char *arg)
{
	struct view *v = ctx;

	switch (id) {
	case 'o':
		return options_take_once("-o", arg, &v->output);
	case OPT_FORMAT:
		v->format = arg;
		return 0;
	case OPT_SINCE:
		return take_time("since", arg, &v->choice.since_ns);
	case OPT_UNTIL:
		return take_time("until", arg, &v->choice.until_ns);
	case OPT_HOST:
		v->choice.host = arg;
		return 0;
	case OPT_BY:
		return take_by(v, arg);
	case OPT_COMM_ONLY:
		v->take.comm = arg;
		return 0;
	case OPT_SERVICE:
		return add_label(v, "service", LABEL_SERVICE, arg);
	case OPT_LABEL:
		return take_label(v, arg);
	case OPT_AGAINST:
		return take_against(v, arg);
	case OPT_ANNOTATE:
		v->annotate = arg;
		return 0;
	case OPT_PGO:
		return options_take_once("--pgo", arg, &v->pgo);
	case OPT_HEADER_FILE:
		v->header_file = arg;
		return 0;
	case OPT_CA_FILE:
		v->ca_file = arg;
		return 0;
	case OPT_PER:
		return take_per(v, arg);
	case OPT_APART:
	case OPT_SHARE:
	case OPT_OFF_CPU:
		*(id == OPT_SHARE   ? &v->share
		  : id == OPT_APART ? &v->apart
				    : &v->choice.off_cpu) = true;
		return 0;
	case OPT_MATCH:
		return take_match(v, arg);
	case OPT_AGO:
		if (num_duration(arg, NUM_S, &v->ago_ns) || !v->ago_ns)
			return complain(EXIT_USAGE, "--ago: '%s' is not a duration like 1h or 1d",
					arg);
		return 0;
	default:
		return take_rows(v, arg);
	}
}

static bool any_url(int argc, char **argv)
{
	for (int i = optind; i < argc; i++)
		if (clickhouse_is_url(argv[i]))
			return true;
	return false;
}

/* Whether record's writers write what is asked for: a whole recording, in a format */
static bool is_exact(const struct view *v, const char *path)
{
	const struct stack_choice *c = &v->take;
	bool by = !v->by_given || c->by == STACK_BY_PROCESS || c->by == STACK_BY_THREAD ||
		  (c->by_label && !strcmp(c->by_label, STACK_LABEL_CONTAINER));

	return !v->compares && (v->output || v->format) && by && !c->comm && !c->n &&
	       !v->annotate && recorded_is(path);
}

int view_parse(struct view *v, const struct tool_spec *spec, int argc, char **argv, int min,
	       int max)
{
	int err = options_parse(spec, argc, argv, take_option, v);

	if (err)
		return err;
	if (argc - optind < min)
		return complain(EXIT_USAGE, "a file is missing; usage: sfbpf %s", spec->usage);
	if (argc - optind > max)
		return complain(EXIT_USAGE, "unexpected '%s'", argv[optind + max]);
	if ((v->header_file || v->ca_file) && !any_url(argc, argv))
		return complain(EXIT_USAGE, "--header-file and --ca-file need a URL of ClickHouse");
	if (v->choice.until_ns && v->choice.until_ns <= v->choice.since_ns)
		return complain(EXIT_USAGE, "--until is not after --since");
	if (v->pgo)
		return 0;
	v->take.lines = !v->compares;
	v->exact = max > 2 && argc - optind == 1 && is_exact(v, argv[optind]);
	v->out = out_format_choose(v->format, v->output, "text",
				   v->exact ? OUT_SAMPLES : OUT_RECORDED);
	if (!v->out && v->compares)
		v->out = out_format_choose(v->format, v->output, "text", OUT_COMPARED);
	if (!v->out)
		return options_unknown_format(v->format, v->output,
					      v->compares ? OUT_COMPARED : OUT_RECORDED);
	if (!v->by_given && (!strcmp(v->out->name, "html") || !strcmp(v->out->name, "svg")))
		v->take.by = STACK_BY_PROCESS;
	return 0;
}

static struct html_meta html_meta_of(const struct view *v)
{
	const struct stacks_meta *m = &v->meta;
	struct html_meta meta = { .title = v->title,
				  .before = v->before,
				  .verdict = v->verdict_line,
				  .changes = v->before ? &v->changes : NULL,
				  .unit = *m->unit ? m->unit : "samples" };
	struct out_meta event = { .event = m->event, .hz = m->hz };

	if (!v->before) {
		meta.event = *m->event ? m->event : NULL;
		meta.host = *m->host ? m->host : NULL;
		meta.hz = out_is_clock(&event) ? m->hz : 0;
		meta.duration_s = m->duration_s;
		meta.start_unix_ns = m->start_unix_ns;
		meta.lost = m->lost;
		meta.user_stacks = m->user_stacks;
		meta.complete = m->complete;
	}
	return meta;
}

int view_check(const struct view *v, enum stack_side side)
{
	const char *label = v->take.n ? v->take.labels[0].name : NULL;

	if (v->stacks.totals[side] || (!label && !v->take.comm))
		return 0;
	return complain(EXIT_FAILED,
			"no stack has %s%s%s%s; 'sfbpf report --by %s' lists what there is",
			label ? label : "a thread of the name ", label ? "=" : "",
			label ? v->take.labels[0].value : v->take.comm,
			v->take.n + (v->take.comm != NULL) > 1 ? " and the rest of the options"
							       : "",
			label ? label : "thread");
}

int view_output(struct view *v, int (*make)(struct view *v, void *ctx, FILE *f), void *ctx)
{
	bool to_stdout = !v->output || !strcmp(v->output, "-");
	FILE *f, *made;
	int err;

	if (to_stdout && v->out->binary && isatty(STDOUT_FILENO))
		return complain(EXIT_USAGE,
				"%s is a binary format and not written to a terminal: use -o FILE",
				v->out->name);
	err = options_open_output(v->output, &f);
	if (err)
		return err;
	made = result_file_stage();
	err = made ? make(v, ctx, made) : -errno;
	if (!err)
		err = result_file_fill(f, made);
	if (made)
		fclose(made);
	if (!to_stdout && fclose(f) && !err)
		err = -errno;
	if (err > 0)
		return err;
	return err ? complain(EXIT_FAILED, "writing %s: %s", to_stdout ? "the output" : v->output,
			      strerror(-err))
		   : 0;
}

static int make_recorded(struct view *v, void *ctx, FILE *f)
{
	const struct out_recorded *r = ctx;
	int (*write)(const struct out_recorded *r, FILE *f) = v->out->write_recorded;
	int err;

	if (v->before && v->out->write_compared)
		write = v->out->write_compared;
	err = write(r, f);
	return err != -EFBIG ? err
			     : complain(EXIT_FAILED,
					"the folded lines would exceed %llu MB, the limit for "
					"%llu kB of input; use --format text or html",
					(unsigned long long)r->max_bytes >> 20,
					(unsigned long long)v->bytes >> 10);
}

int view_write(struct view *v)
{
	const struct html_meta meta = html_meta_of(v);
	struct stacks_text text = {
		.two_sides = v->before != NULL,
		.unit = *v->meta.unit ? v->meta.unit : "samples",
		.rows = v->rows ? v->rows : ROWS,
		.columns = v->output ? 0 : terminal_columns(),
		.tree_min = TREE_MIN,
		.by = v->take.by == STACK_BY_HOST      ? "host.name"
		      : v->take.by == STACK_BY_LABEL   ? v->take.by_label
		      : !v->by_given		       ? NULL
		      : v->take.by == STACK_BY_PROCESS ? "process"
						       : "thread",
		.verdict = &v->verdict,
		.verdict_line = v->verdict_line,
		.changes = &v->changes,
		.unicode = terminal_unicode(),
		.meta = v->before ? NULL : &meta,
	};
	struct out_recorded r = { &v->stacks, &meta, &text,
				  FOLDED_SPARE + FOLDED_A_BYTE * v->bytes };

	return view_output(v, make_recorded, &r);
}
