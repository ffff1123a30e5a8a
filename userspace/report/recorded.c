/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/recorded.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/exitcode.h"
#include "base/result_file.h"
#include "cli/terminal.h"
#include "out/recording.h"

/* Reads and checks a whole recording. Free *ret in either case. */
static int load(FILE *f, struct recording *ret, struct read_error *why)
{
	uint8_t *buf;
	size_t len;
	int err;

	*ret = (struct recording){ 0 };
	*why = (struct read_error){ 0 };
	errno = 0;
	err = read_stacks_slurp(f, &buf, &len);
	if (err)
		return err;
	err = recording_read(bytes_of(buf, len, false), ret, why);
	free(buf);
	return err;
}

FILE *recorded_as_json(FILE *f, struct read_error *why, int *err)
{
	struct recording rec;
	struct out_report r;
	FILE *made;

	*err = 0;
	if (!recording_is(f))
		return f;
	*err = load(f, &rec, why);
	made = *err ? NULL : result_file_stage();
	if (!*err && !made)
		*err = -errno;
	if (made) {
		r = out_report_for(&rec.report, out_format_named("json", OUT_SAMPLES));
		*err = out_json(&r, made);
		rewind(made);
	}
	if (*err && made) {
		fclose(made);
		made = NULL;
	}
	recording_free(&rec);
	return made;
}

bool recorded_is(const char *path)
{
	struct stat st;
	bool is;
	FILE *f;

	if (!strcmp(path, "-"))
		return recording_is(stdin);
	/* What is read from a pipe is gone. */
	if (stat(path, &st) || !S_ISREG(st.st_mode) || !(f = fopen(path, "re")))
		return false;
	is = recording_is(f);
	fclose(f);
	return is;
}

static int make(struct view *v, void *ctx, FILE *f)
{
	struct recording *rec = ctx;
	struct out_report r;
	int err = 0;

	if (v->by_given)
		rec->report.opts.by = v->take.by == STACK_BY_PROCESS  ? OUT_BY_PROCESS
				      : v->take.by == STACK_BY_THREAD ? OUT_BY_THREAD
								      : OUT_BY_CONTAINER;
	if (!v->apart && !rec->report.apart && !v->out->apart)
		err = out_name_threads(&rec->report);
	r = out_report_for(&rec->report, v->out);
	r.opts.rows = v->rows;
	r.opts.columns = v->output ? 0 : terminal_columns();
	if (v->out->timeline && !r.timeline)
		return complain(EXIT_FAILED,
				"%s needs times, which recordings of record have, and this one has "
				"not",
				v->out->name);
	return err ? err : v->out->write(&r, f);
}

int recorded_write(struct view *v, const char *path)
{
	bool is_stdin = !strcmp(path, "-");
	FILE *f = is_stdin ? stdin : fopen(path, "re");
	struct recording rec;
	struct read_error why;
	int err;

	if (!f)
		return complain(EXIT_FAILED, "cannot read '%s': %s", path, strerror(errno));
	err = load(f, &rec, &why);
	if (!is_stdin)
		fclose(f);
	if (err == -EINVAL)
		err = complain(EXIT_FAILED, "%s: %s", path, why.text);
	else if (err)
		err = complain(EXIT_FAILED, "cannot read '%s': %s", path, strerror(-err));
	else
		err = view_output(v, make, &rec);
	recording_free(&rec);
	return err;
}
