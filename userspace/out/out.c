/* SPDX-License-Identifier: BSD-2-Clause */
#include "out/out.h"

#include <errno.h>
#include <string.h>

const struct out_format *out_format_at(size_t i)
{
	static const struct out_format formats[] = {
		{ .name = "folded", .suffixes = { ".folded", ".txt" }, .write = out_folded },
		{ .name = "json", .suffixes = { ".json" }, .cgroups = true, .write = out_json },
		{ .name = "text", .write = out_text },
		{ .name = "pprof", .suffixes = { ".pb.gz", ".pprof" }, .binary = true, .cgroups = true, .threads = true, .write = out_pprof },
		{ .name = "html", .suffixes = { ".html", ".htm" }, .write = out_html },
	};

	return i < sizeof(formats) / sizeof(formats[0]) ? &formats[i] : NULL;
}

const struct out_format *out_format_named(const char *name)
{
	const struct out_format *f = NULL;

	for (size_t i = 0; (f = out_format_at(i)); i++)
		if (strcmp(f->name, name) == 0)
			break;
	return f;
}

const struct out_format *out_format_for_path(const char *path)
{
	size_t len = strlen(path);
	const struct out_format *f;

	for (size_t i = 0; (f = out_format_at(i)); i++) {
		for (const char *const *s = f->suffixes; *s; s++)
			if (len > strlen(*s) && strcmp(path + len - strlen(*s), *s) == 0)
				return f;
	}
	return NULL;
}

bool out_is_clock(const struct out_meta *meta)
{
	return meta->hz > 0 && meta->event && (strstr(meta->event, "clock") || strstr(meta->event, "cycles"));
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
	return !r->opts.kernel_only && (s->flags & SF_SAMPLE_USER) && s->stop != SF_STOP_COMPLETE;
}

uint64_t out_lost(const struct run_stats *st)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < SF_LOST_MAX; i++)
		sum += st->lost[i];
	return sum;
}

int out_finish(FILE *f)
{
	/* stdio keeps no error numbers; writers stop at the first failure, so errno is still the one of that write. */
	if (fflush(f) || ferror(f))
		return errno ? -errno : -EIO;
	return 0;
}
