/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of frames of languages. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "languages/lang.h"
#include "sym/symbolizer_internal.h"

void symbolizer_set_codes(struct symbolizer *sz, const struct lang_codes *codes)
{
	sz->codes = codes;
}

/*
 * Names the function "NAME (FILE)", and the frame "NAME (FILE:LINE)" if the line is known. A name
 * that has the class gets a file with the line only. A method in C has no file.
 */
static int intern_frame(struct symbolizer *sz, const struct lang_code *c, uint32_t line,
			struct symbol *s)
{
	const char *name = c->name[0] ? c->name : "(anonymous)", *base;
	char shown[SYM_NAME_MAX + 64]; /* the texts have at most 512 bytes each */
	char room[LANG_PLACE_MAX];

	base = lang_place(c, room);
	snprintf(shown, sizeof(shown),
		 lang_names_class(c) || !base[0] ? "%.512s" : "%.512s (%.512s)", name, base);
	if (symbolizer_intern_name(sz, shown, &s->function))
		return -1;
	if (line && base[0])
		snprintf(shown, sizeof(shown), "%.512s (%.512s:%u)", name, base, line);
	s->line = line;
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
	    (known ? intern_frame(sz, &c, lang_line(&c, SF_FRAME_POSITION(frame)), &s)
		   : symbolizer_intern_name(sz, bracketed, &s.name)))
		return SYM_UNKNOWN;
	if (!known)
		s.function = s.name;
	if (symbolizer_intern_symbol(sz, &s, &id))
		return SYM_UNKNOWN;
	symbolizer_cache_put(sz, frame, id);
	return id;
}
