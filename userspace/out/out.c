/* SPDX-License-Identifier: BSD-2-Clause */
#include "out/out.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "out/out_html.h"
#include "out/out_stacks.h"
#include "prof/stackset.h"
#include "prof/wait_notes.h"

static int recorded_folded(const struct out_recorded *r, FILE *f)
{
	return stacks_write_folded(r->stacks, r->text->two_sides, r->max_bytes, f);
}

static int recorded_text(const struct out_recorded *r, FILE *f)
{
	return stacks_write_text(r->stacks, r->text, f);
}

static int recorded_pprof(const struct out_recorded *r, FILE *f)
{
	return stacks_write_pprof(r->stacks, r->meta, r->text->by, f);
}

static int recorded_html(const struct out_recorded *r, FILE *f)
{
	return html_write(r->stacks, r->meta, f);
}

static int recorded_svg(const struct out_recorded *r, FILE *f)
{
	return svg_write(r->stacks, r->meta, f);
}

const struct out_format *out_format_at(size_t i)
{
	static const struct out_format formats[] = {
		{ .name = "folded",
		  .suffixes = { ".folded", ".txt" },
		  .write = out_folded,
		  .write_recorded = recorded_folded },
		{ .name = "json", .suffixes = { ".json" }, .cgroups = true, .write = out_json },
		{ .name = "text", .write = out_text, .write_recorded = recorded_text },
		{ .name = "pprof",
		  .suffixes = { ".pb.gz", ".pprof" },
		  .binary = true,
		  .cgroups = true,
		  .threads = true,
		  .write = out_pprof,
		  .write_recorded = recorded_pprof },
		{ .name = "html",
		  .suffixes = { ".html", ".htm" },
		  .slices = true,
		  .write = out_html,
		  .write_recorded = recorded_html },
		{ .name = "svg",
		  .suffixes = { ".svg" },
		  .write = out_svg,
		  .write_recorded = recorded_svg },
		{ .name = "firefox",
		  .suffixes = { ".json.gz" },
		  .binary = true,
		  .threads = true,
		  .timeline = true,
		  .shared_suffix = true,
		  .write = out_firefox },
		{ .name = "perfetto",
		  .suffixes = { ".pftrace" },
		  .binary = true,
		  .threads = true,
		  .timeline = true,
		  .write = out_perfetto },
	};

	return i < sizeof(formats) / sizeof(formats[0]) ? &formats[i] : NULL;
}

static bool takes(const struct out_format *f, enum out_source source)
{
	return source == OUT_SAMPLES ||
	       (source == OUT_PROFILE ? !f->timeline : !!f->write_recorded);
}

const char *out_format_names(enum out_source source)
{
	static char names[128];
	const struct out_format *f;
	size_t len = 0;

	for (size_t i = 0; (f = out_format_at(i)) && len < sizeof(names); i++)
		if (takes(f, source))
			len += (size_t)snprintf(names + len, sizeof(names) - len, " %s", f->name);
	return names;
}

const char *out_format_suffixes(enum out_source source)
{
	static char names[128];
	const struct out_format *f;
	size_t len = 0;

	for (size_t i = 0; (f = out_format_at(i)); i++)
		for (const char *const *s = f->suffixes; *s && len < sizeof(names); s++)
			if (takes(f, source) && !f->shared_suffix)
				len += (size_t)snprintf(names + len, sizeof(names) - len, " %s",
							*s);
	return names;
}

const struct out_format *out_format_named(const char *name, enum out_source source)
{
	const struct out_format *f = NULL;

	for (size_t i = 0; (f = out_format_at(i)); i++)
		if (takes(f, source) && strcmp(f->name, name) == 0)
			break;
	return f;
}

const struct out_format *out_format_choose(const char *name, const char *path,
					   const char *otherwise, enum out_source source)
{
	const char *file = path ? strrchr(path, '/') : NULL;
	size_t len = path ? strlen(path) : 0;
	const struct out_format *f;

	if (name)
		return out_format_named(name, source);
	for (size_t i = 0; (f = out_format_at(i)); i++) {
		for (const char *const *s = f->suffixes; *s; s++)
			if (takes(f, source) && len > strlen(*s) &&
			    strcmp(path + len - strlen(*s), *s) == 0)
				return f;
	}
	file = file ? file + 1 : path;
	return file && *file && strchr(file + 1, '.') ? NULL : out_format_named(otherwise, source);
}

bool out_is_clock(const struct out_meta *meta)
{
	return meta->hz > 0 && meta->event &&
	       (strstr(meta->event, "clock") || strstr(meta->event, "cycles"));
}

uint64_t out_value(const struct out_report *r, const struct profile_stack *s)
{
	return r->opts.usec ? s->weight : s->count;
}

uint64_t out_shown(const struct out_report *r, uint64_t sum)
{
	return r->opts.usec ? sum / 1000 : sum;
}

bool out_incomplete(const struct out_report *r, const struct profile_stack *s)
{
	return !r->opts.kernel_only && (s->flags & SF_SAMPLE_USER) && !profile_at_root(s->stop);
}

enum out_by out_by_named(const char *name)
{
	return !strcmp(name, "process")	    ? OUT_BY_PROCESS
	       : !strcmp(name, "thread")    ? OUT_BY_THREAD
	       : !strcmp(name, "container") ? OUT_BY_CONTAINER
					    : OUT_BY_DEFAULT;
}

int out_wait_note(const struct out_report *r, size_t i)
{
	const uint32_t *ids = profile_symbols(r->profile, i, r->symbols);
	struct profile_stack s;

	profile_stack(r->profile, i, &s);
	return ids ? (int)wait_note_of(&s, ids, r->symbols) : -ENOMEM;
}

void out_thread_text(char ret[OUT_THREAD_TEXT], const char *comm, uint32_t tid)
{
	char clean[OUT_THREAD_TEXT - 16];

	text_clean(clean, sizeof(clean), comm, strlen(comm), 0);
	snprintf(ret, OUT_THREAD_TEXT, tid ? "%s (%u)" : "%s", *clean ? clean : "[unknown]", tid);
}

const char *out_state_frame(const struct out_report *r, size_t i)
{
	struct profile_stack s;
	int note;

	profile_stack(r->profile, i, &s);
	if (r->timeline) /* its marks say it */
		return NULL;
	if (!r->opts.wall && s.state == SF_OFF_R)
		return STACK_RUNNABLE;
	if (!r->opts.wall && !r->opts.mark_idle)
		return NULL;
	note = out_wait_note(r, i);
	if (note < 0)
		return NULL;
	return r->opts.wall || wait_note_is_idle((enum wait_note)note)
		       ? wait_note_text((enum wait_note)note)
		       : NULL;
}

int out_finish(FILE *f)
{
	/*
	 * stdio does not store error numbers. Writers stop at the first failure, so errno is still
	 * from that write.
	 */
	if (fflush(f) || ferror(f))
		return errno ? -errno : -EIO;
	return 0;
}
