/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/stacks_io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exitcode.h"
#include "base/num.h"
#include "base/result_file.h"
#include "out/out_html.h"
#include "out/out_stacks.h"
#include "tools/terminal.h"

#define ROWS	 40
#define TREE_MIN 1.0 /* percent */

/*
 * Limit on folded output. Folded lines repeat frames that pprof shares between stacks, so one byte
 * of pprof may become 300 bytes.
 */
#define FOLDED_A_BYTE 256
#define FOLDED_SPARE  (256ull << 20)

const char *path_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* path NULL: errors are not printed. */
static int read_one(struct view *v, FILE *f, const char *path, enum stack_side side)
{
	struct read_error why;
	int err;

	v->stacks.only_comm = v->comm;
	v->stacks.by_process = v->by == OUT_BY_PROCESS;
	err = read_stacks(f, &v->stacks, side, &v->meta, &why);
	v->bytes += v->meta.bytes;
	if (!path)
		return err;
	if (err == -EINVAL)
		return complain(EXIT_FAILED, "%s: %s", path, why.text);
	if (err)
		return complain(EXIT_FAILED, "cannot read '%s': %s", path, strerror(-err));
	return 0;
}

void view_add_meta(struct stacks_meta *sum, const struct stacks_meta *m)
{
	struct stacks_meta before = *sum;

	*sum = *m;
	if (!before.bytes)
		return;
	sum->bytes += before.bytes;
	sum->duration_s += before.duration_s;
	sum->lost += before.lost;
	sum->user_stacks += before.user_stacks;
	sum->complete += before.complete;
	if (before.start_unix_ns < sum->start_unix_ns)
		sum->start_unix_ns = before.start_unix_ns;
	if (strcmp(before.host, sum->host) != 0)
		*sum->host = 0;
	if (before.hz != sum->hz)
		sum->hz = 0;
}

struct directory {
	const char *path;
	int fd;
	size_t n, unread; /* windows added; damaged ones */
	struct stacks_meta meta;
};

/* A damaged window does not keep the others from being read. Nonzero: an exit code. */
static int read_window(struct view *v, struct directory *d, const char *name, enum stack_side side)
{
	int fd = openat(d->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	char unit[sizeof(v->meta.unit)];
	struct stat st;

	strcpy(unit, d->meta.unit);
	if (!f || fstat(fd, &st) || !S_ISREG(st.st_mode) ||
	    read_one(v, f, d->unread ? NULL : name, side)) {
		d->unread++;
	} else {
		d->n++;
		view_add_meta(&d->meta, &v->meta);
	}
	if (f)
		fclose(f);
	else if (fd >= 0)
		close(fd);
	if (*unit && strcmp(unit, d->meta.unit) != 0)
		return complain(EXIT_FAILED, "%s: %s counts %s, the windows before it %s", d->path,
				name, d->meta.unit, unit);
	return 0;
}

/* One window at a time: memory is needed for the sum only. */
static int read_directory(struct view *v, const char *path, enum stack_side side)
{
	struct directory d = { .path = path };
	struct dirent *e;
	DIR *dir = opendir(path);
	int err = 0;

	if (!dir)
		return complain(EXIT_FAILED, "cannot read '%s': %s", path, strerror(errno));
	d.fd = dirfd(dir);
	while (!err && (e = readdir(dir)))
		if (window_chosen(&v->choice, e->d_name))
			err = read_window(v, &d, e->d_name, side);
	closedir(dir);
	v->meta = d.meta;
	if (!err && d.unread)
		complain(0, "%s: %zu of %zu windows could not be read and are left out", path,
			 d.unread, d.n + d.unread);
	if (!err && !d.n)
		err = complain(EXIT_FAILED,
			       "%s: no window of the agent (sfbpf-HOST-TIME-ID.pb.gz, .folded or "
			       ".json) is there, or none matches the options",
			       path);
	return err;
}

int view_read(struct view *v, const char *path, enum stack_side side)
{
	bool is_stdin = !strcmp(path, "-");
	FILE *f;
	struct stat st;
	int err;

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

static int take_time(const char *name, const char *arg, uint64_t *ret)
{
	if (window_time(arg, clock_ns(CLOCK_REALTIME), ret))
		return complain(EXIT_USAGE,
				"--%s: '%s' is not a time: 1h (before now), 2026-01-31 or "
				"2026-01-31T12:00",
				name, arg);
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
	case OPT_SINCE:
		return take_time("since", arg, &v->choice.since_ns);
	case OPT_UNTIL:
		return take_time("until", arg, &v->choice.until_ns);
	case OPT_HOST:
		v->choice.host = arg;
		return 0;
	case OPT_BY:
		v->by = out_by_named(arg);
		return v->by ? 0 : complain(EXIT_USAGE, "--by: '%s' is not process or thread", arg);
	case OPT_COMM_ONLY:
		v->comm = arg;
		return 0;
	case OPT_OFF_CPU:
		v->choice.off_cpu = true;
		return 0;
	case OPT_AGO:
		if (num_duration(arg, NUM_S, &v->ago_ns) || !v->ago_ns)
			return complain(EXIT_USAGE, "--ago: '%s' is not a duration like 1h or 1d",
					arg);
		return 0;
	default:
		if (num_u64(arg, 1, 1000000, &v->rows))
			return complain(EXIT_USAGE, "-n: '%s' is not a number from 1 to 1000000",
					arg);
		return 0;
	}
}

int view_parse(struct view *v, const struct tool_spec *spec, int argc, char **argv, int min,
	       int max)
{
	const char *arg;
	int id, err;

	while ((id = options_next(spec, argc, argv, &arg)) != -1) {
		if (id == -2)
			exit(EXIT_OK);
		err = id == '?' ? EXIT_USAGE : take_option(v, id, arg);
		if (err)
			return err;
	}
	if (argc - optind < min)
		return complain(EXIT_USAGE, "a file is missing; usage: sfbpf %s", spec->usage);
	if (argc - optind > max)
		return complain(EXIT_USAGE, "unexpected '%s'", argv[optind + max]);
	if (v->choice.until_ns && v->choice.until_ns <= v->choice.since_ns)
		return complain(EXIT_USAGE, "--until is not after --since");
	v->out = out_format_choose(v->format, v->output, "text", OUT_RECORDED);
	if (!v->out)
		return options_unknown_format(v->format, v->output, OUT_RECORDED);
	if (!v->by && (!strcmp(v->out->name, "html") || !strcmp(v->out->name, "svg")))
		v->by = OUT_BY_PROCESS;
	return 0;
}

static struct html_meta html_meta_of(const struct view *v)
{
	const struct stacks_meta *m = &v->meta;
	struct html_meta meta = { .title = v->title,
				  .before = v->before,
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

int view_write(struct view *v)
{
	struct stacks_text text = {
		.two_sides = v->before != NULL,
		.unit = *v->meta.unit ? v->meta.unit : "samples",
		.rows = v->rows ? v->rows : ROWS,
		.columns = v->output ? 0 : terminal_columns(),
		.tree_min = TREE_MIN,
		.unicode = terminal_unicode(),
	};
	bool to_stdout = !v->output || !strcmp(v->output, "-");
	struct html_meta meta = html_meta_of(v);
	uint64_t max = FOLDED_SPARE + FOLDED_A_BYTE * v->bytes;
	const char *why = NULL;
	FILE *f = stdout;
	int err;

	if (!to_stdout) {
		err = result_file_open(v->output, &f, &why);
		if (err)
			return complain(EXIT_FAILED, "cannot write '%s': %s", v->output,
					why ? why : strerror(-err));
		err = result_file_begin(f);
		if (err) {
			fclose(f);
			return complain(EXIT_FAILED, "writing %s: %s", v->output, strerror(-err));
		}
	}
	err = v->out->write_recorded(&(struct out_recorded){ &v->stacks, &meta, &text, max }, f);
	if (err == -EFBIG)
		err = complain(EXIT_FAILED,
			       "the folded lines would exceed %llu MB, the limit for "
			       "%llu kB of input; use --format text or html",
			       (unsigned long long)max >> 20, (unsigned long long)v->bytes >> 10);
	if (!to_stdout && fclose(f) && !err)
		err = -errno;
	if (err > 0)
		return err;
	return err ? complain(EXIT_FAILED, "writing %s: %s", to_stdout ? "the output" : v->output,
			      strerror(-err))
		   : 0;
}
