/* SPDX-License-Identifier: BSD-2-Clause */
/* The output formats, and the choice of one. */
#include <stdio.h>
#include <string.h>

#include "out/out.h"
#include "out/out_changes.h"
#include "out/out_html.h"
#include "out/out_stacks.h"

static int recorded_folded(const struct out_recorded *r, FILE *f)
{
	return stacks_write_folded(r->stacks, r->text->two_sides, r->max_bytes, f);
}

static int recorded_json(const struct out_recorded *r, FILE *f)
{
	return changes_write_json(r->stacks, r->text, f);
}

static int recorded_text(const struct out_recorded *r, FILE *f)
{
	return r->text->two_sides ? changes_write_text(r->stacks, r->text, f)
				  : stacks_write_text(r->stacks, r->text, f);
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
		{ .name = "json",
		  .suffixes = { ".json" },
		  .cgroups = true,
		  .apart = true,
		  .write = out_json,
		  .write_compared = recorded_json },
		{ .name = "text", .write = out_text, .write_recorded = recorded_text },
		{ .name = "pprof",
		  .suffixes = { ".pb.gz", ".pprof" },
		  .binary = true,
		  .cgroups = true,
		  .threads = true,
		  .go_lines = true,
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
		  .apart = true,
		  .shared_suffix = true,
		  .write = out_firefox },
		{ .name = "perfetto",
		  .suffixes = { ".pftrace" },
		  .binary = true,
		  .threads = true,
		  .timeline = true,
		  .apart = true,
		  .write = out_perfetto },
		{ .name = "recording",
		  .suffixes = { ".sfb" },
		  .binary = true,
		  .cgroups = true,
		  .threads = true,
		  .go_lines = true,
		  .apart = true,
		  .slices = true,
		  .whole = true,
		  .write = out_recording },
	};

	return i < sizeof(formats) / sizeof(formats[0]) ? &formats[i] : NULL;
}

struct out_report out_report_for(const struct out_report *all, const struct out_format *f)
{
	struct out_report r = *all;

	if (f->whole)
		return r;
	r.opts.mark_idle = r.opts.usec && !r.opts.wall && !strcmp(f->name, "html");
	if (f->timeline) {
		r.opts.wall = OUT_WALL_NONE; /* the timeline's marks say it */
	} else {
		r.timeline = NULL;
		r.wakers = r.opts.wall ? NULL : r.wakers;
	}
	if (!f->slices)
		r.slices = NULL;
	return r;
}

static bool takes(const struct out_format *f, enum out_source source)
{
	switch (source) {
	case OUT_SAMPLES:
		return true;
	case OUT_PROFILE:
		return !f->timeline;
	case OUT_RECORDED:
		return f->write_recorded;
	default:
		return (f->write_recorded && !f->binary) || f->write_compared;
	}
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
