/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of frames of languages. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "lang/lang.h"
#include "sym/python_lines.h"
#include "sym/symbolizer_internal.h"

void symbolizer_set_codes(struct symbolizer *sz, const struct lang_codes *codes)
{
	sz->codes = codes;
}

static uint32_t line_of(const struct lang_code *c, uint32_t position)
{
	switch (c->language) {
	case SF_LANG_PYTHON:
		return c->lines ? python_line(c->lines, c->lines_len, c->version, c->first_line,
					      position)
				: 0;
	default:
		return 0;
	}
}

/* Writes "NAME (FILE)", and the same with the line. */
static int intern_frame(struct symbolizer *sz, const struct lang_code *c, uint32_t line,
			struct symbol *s)
{
	const char *base = strrchr(c->file, '/');
	char shown[SYM_NAME_MAX + 64]; /* the texts have at most 512 bytes each */
	size_t n;

	base = base && base[1] ? base + 1 : c->file;
	n = (size_t)snprintf(shown, sizeof(shown), "%.512s (%.512s)",
			     c->name[0] ? c->name : "(anonymous)", base);
	if (!c->file[0]) { /* Java's names have the class */
		n = (size_t)snprintf(shown, sizeof(shown), "%.512s", c->name);
		if (symbolizer_intern_name(sz, shown, &s->function) ||
		    symbolizer_intern_name(sz, "", &s->file))
			return -1;
		s->name = s->function;
		return 0;
	}
	if (symbolizer_intern_name(sz, shown, &s->function))
		return -1;
	s->name = s->function;
	s->line = line;
	if (line)
		snprintf(shown + n - 1, sizeof(shown) - n + 1, ":%u)", line);
	redact_paths(sz->redact, c->file, sz->name, sizeof(sz->name));
	return symbolizer_intern_name(sz, shown, &s->name) ||
	       symbolizer_intern_name(sz, sz->name, &s->file);
}

uint32_t symbolizer_lang(struct symbolizer *sz, uint64_t frame)
{
	struct symbol s = { .line = 0 };
	struct lang_code c;
	char bracketed[32];
	uint32_t id;
	bool known;

	if (symbolizer_cache_get(sz, frame, &id))
		return id;
	snprintf(bracketed, sizeof(bracketed), "[%s]", lang_name(SF_FRAME_LANGUAGE(frame)));
	known = sz->codes && lang_codes_get(sz->codes, SF_FRAME_CODE(frame), &c);
	if (strpool_intern(sz->modules, bracketed, strlen(bracketed), &s.module) ||
	    (known ? intern_frame(sz, &c, line_of(&c, SF_FRAME_POSITION(frame)), &s)
		   : symbolizer_intern_name(sz, bracketed, &s.name)))
		return SYM_UNKNOWN;
	if (!known)
		s.function = s.name;
	if (symbolizer_intern_symbol(sz, &s, &id))
		return SYM_UNKNOWN;
	symbolizer_cache_put(sz, frame, id);
	return id;
}
