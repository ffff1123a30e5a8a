/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/stacks_io.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/exitcode.h"
#include "base/num.h"
#include "base/result_file.h"
#include "out/out_html.h"
#include "out/out_stacks.h"
#include "tools/terminal.h"

#define ROWS 40
#define TREE_MIN 1.0	/* percent */

const char *path_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

int view_read(struct view *v, const char *path, enum stack_side side)
{
	bool is_stdin = !strcmp(path, "-");
	FILE *f = is_stdin ? stdin : fopen(path, "re");
	struct read_error why;
	int err;

	if (!f)
		return complain(EXIT_FAILED, "cannot read '%s': %s", path, strerror(errno));
	err = read_stacks(f, &v->stacks, side, &v->meta, &why);
	if (!is_stdin)
		fclose(f);
	if (err == -EINVAL)
		return complain(EXIT_FAILED, "%s: %s", path, why.text);
	if (err)
		return complain(EXIT_FAILED, "cannot read '%s': %s", path, strerror(-err));
	return 0;
}

static int take_option(struct view *v, int id, const char *arg)
{
	switch (id) {
	case 'o':
		v->output = arg;
		return 0;
	case OPT_FORMAT:
		v->format = arg;
		return 0;
	default:
		if (num_u64(arg, 1, 1000000, &v->rows))
			return complain(EXIT_USAGE, "-n: '%s' is not a number of rows", arg);
		return 0;
	}
}

int view_parse(struct view *v, const struct tool_spec *spec, int argc, char **argv, const char **operands, size_t n)
{
	const char *arg;
	bool dashes = false;
	size_t have = 0;
	int id, err;

	/* Options may stand behind operands too, but not behind "--". */
	for (;;) {
		id = dashes ? -1 : options_next(spec, argc, argv, &arg);
		if (id == -2)
			exit(EXIT_OK);
		if (id == '?')
			return EXIT_USAGE;
		if (id != -1) {
			err = take_option(v, id, arg);
			if (err)
				return err;
			continue;
		}
		if (optind == argc)
			break;
		dashes |= optind > 1 && !strcmp(argv[optind - 1], "--");
		if (have == n)
			return complain(EXIT_USAGE, "unexpected '%s'", argv[optind]);
		operands[have++] = argv[optind++];
	}
	if (have < n)
		return complain(EXIT_USAGE, "usage: sfbpf %s", spec->usage);
	return 0;
}

static bool has_suffix(const char *s, const char *suffix)
{
	size_t len = strlen(s), n = strlen(suffix);

	return len > n && !strcmp(s + len - n, suffix);
}

static int choose_format(const struct view *v, enum view_format *ret)
{
	static const char *const names[] = { "text", "folded", "html" };
	const struct out_format *other;

	*ret = VIEW_TEXT;
	if (v->format) {
		for (int i = 0; i < 3; i++) {
			if (!strcmp(v->format, names[i])) {
				*ret = (enum view_format)i;
				return 0;
			}
		}
		return complain(EXIT_USAGE, "unknown format '%s'; known: text folded html", v->format);
	}
	other = v->output ? out_format_for_path(v->output) : NULL;
	if (other && (!strcmp(other->name, "json") || !strcmp(other->name, "pprof")))
		return complain(EXIT_USAGE, "'%s' would be %s; this writes text, folded lines and html", v->output, other->name);
	if (v->output && (has_suffix(v->output, ".html") || has_suffix(v->output, ".htm")))
		*ret = VIEW_HTML;
	else if (v->output && has_suffix(v->output, ".folded"))
		*ret = VIEW_FOLDED;
	return 0;
}

static int write_html(const struct view *v, FILE *f)
{
	const struct stacks_meta *m = &v->meta;
	struct html_meta meta = { .title = v->title, .before = v->before, .unit = *m->unit ? m->unit : "samples" };
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
	return html_write(&v->stacks, &meta, f);
}

int view_write(struct view *v)
{
	struct stacks_text text = {
		.two_sides = v->before != NULL, .unit = *v->meta.unit ? v->meta.unit : "samples",
		.rows = v->rows ? v->rows : ROWS, .columns = v->output ? 0 : terminal_columns(), .tree_min = TREE_MIN,
	};
	bool to_stdout = !v->output || !strcmp(v->output, "-");
	enum view_format format;
	const char *why = NULL;
	FILE *f = stdout;
	int err = choose_format(v, &format);

	if (err)
		return err;
	if (!to_stdout) {
		err = result_file_open(v->output, &f, &why);
		if (err)
			return complain(EXIT_FAILED, "cannot write '%s': %s", v->output, why ? why : strerror(-err));
		err = result_file_begin(f);
		if (err) {
			fclose(f);
			return complain(EXIT_FAILED, "writing %s: %s", v->output, strerror(-err));
		}
	}
	if (format == VIEW_HTML)
		err = write_html(v, f);
	else if (format == VIEW_FOLDED)
		err = stacks_write_folded(&v->stacks, text.two_sides, f);
	else
		err = stacks_write_text(&v->stacks, &text, f);
	if (!to_stdout && fclose(f) && !err)
		err = -errno;
	return err ? complain(EXIT_FAILED, "writing %s: %s", to_stdout ? "the output" : v->output, strerror(-err)) : 0;
}
