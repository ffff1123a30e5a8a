/* SPDX-License-Identifier: BSD-2-Clause */
/* Inlined frames and source lines of user frames, from DWARF or Go's table. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"
#include "sym/symbolizer_internal.h"

#define PATH_SHOWN 1024 /* bytes of the path of a source file, with its NUL */

const struct chain *symbolizer_chain(const struct symbolizer *sz, uint64_t frame)
{
	uint32_t kind = SF_FRAME_KIND(frame), id;

	if (!sz->chain_of.n || (kind != SF_FRAME_ROW && kind != SF_FRAME_NOROW) ||
	    !idmap_find(&sz->chain_of, symbolizer_place(frame), 0, &id))
		return NULL;
	return &sz->chains[id];
}

/*
 * A name from DWARF as shown. The same few names occur at thousands of places, so each is demangled
 * once.
 */
static const char *name_in_debug(struct symbolizer *sz, const struct module *m, const char *raw)
{
	uint32_t mangled, id;
	uint64_t key;

	if (!sym_is_mangled(raw) || symbolizer_intern_name(sz, raw, &mangled)) {
		symbolizer_demangle(sz, m, raw, sz->name, sizeof(sz->name));
		return sz->name;
	}
	key = KEY_MANGLED | (uint64_t)m->id << SF_FRAME_MODULE_SHIFT | mangled;
	if (symbolizer_cache_get(sz, key, &id))
		return strpool_str(sz->names, id);
	if (symbolizer_demangle(sz, m, raw, sz->name, sizeof(sz->name)) &&
	    !symbolizer_intern_name(sz, sz->name, &id))
		symbolizer_cache_put(sz, key, id);
	return sz->name;
}

/* Interns a frame as shown: "push_back (vector.h:120)_[i]". function may be sz->name. */
static int intern_frame(struct symbolizer *sz, const char *function, uint32_t module,
			const struct dwarf_frame *f, bool inlined, uint32_t *ret)
{
	const char *file = f->file && f->line ? f->file : "", *base;
	char clean[PATH_SHOWN], shown[SYM_NAME_MAX + PATH_SHOWN + 32];
	struct symbol s = { .module = module, .inlined = inlined, .start_line = f->start_line };

	text_clean(clean, sizeof(clean), file, strlen(file), 0);
	snprintf(shown, sizeof(shown), "%s", function);
	if (*clean)
		s.line = f->line;
	if (*clean && sz->show_lines) {
		base = strrchr(clean, '/');
		snprintf(shown + strlen(shown), sizeof(shown) - strlen(shown), " (%.255s:%u)",
			 base && base[1] ? base + 1 : clean, f->line);
	}
	if (inlined)
		strcat(shown, "_[i]");
	return symbolizer_intern_name(sz, function, &s.function) ||
			       symbolizer_intern_name(sz, shown, &s.name) ||
			       symbolizer_intern_name(sz, clean, &s.file) ||
			       symbolizer_intern_symbol(sz, &s, ret)
		       ? -ENOMEM
		       : 0;
}

/* Receives the frames of a place from the DWARF: callback of frame_debug. */
static int take_frames(void *ctx, struct module *m, uint64_t offset,
		       const struct dwarf_frame *frames, size_t n)
{
	struct symbolizer *sz = ctx;
	bool is_final;
	uint32_t own = symbolizer_by_symbol(sz, m, offset, 0, &is_final), id,
		 at = (uint32_t)sz->nchain_ids;
	size_t before = sz->chain_of.n;
	const char *name;

	if (!frames[0].line && n == 1 && strpool_str(sz->names, sz->symbols[own].name)[0] != '[')
		return 0; /* the symbol already says the same */
	if (vec_reserve(&sz->chain_ids, &sz->chain_ids_cap, at + n, sizeof(*sz->chain_ids)) ||
	    vec_reserve(&sz->chains, &sz->chains_cap, before + 1, sizeof(*sz->chains)))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		bool last = i + 1 == n;

		/* The name of the function itself is that of its symbol, as without DWARF. */
		if (last &&
		    (!frames[i].name || strpool_str(sz->names, sz->symbols[own].name)[0] != '['))
			name = strpool_str(sz->names, sz->symbols[own].name);
		else
			name = frames[i].name ? name_in_debug(sz, m, frames[i].name) : "[unknown]";
		if (intern_frame(sz, name, sz->symbols[own].module, &frames[i], !last,
				 &sz->chain_ids[at + i]))
			return -ENOMEM;
	}
	if (idmap_get(&sz->chain_of, (uint64_t)m->id << SF_FRAME_MODULE_SHIFT | offset, 0, &id))
		return -ENOMEM;
	if (id == before) {
		sz->chains[id] = (struct chain){ at, (uint32_t)n };
		sz->nchain_ids += n;
	}
	return 0;
}

int symbolizer_want_debug(struct symbolizer *sz, uint64_t frame, uint32_t pid)
{
	uint32_t kind = SF_FRAME_KIND(frame);

	if (kind != SF_FRAME_ROW && kind != SF_FRAME_NOROW)
		return 0;
	return frame_debug_want(sz->debug, SF_FRAME_MODULE(frame), SF_FRAME_OFFSET(frame), pid);
}

int symbolizer_read_debug(struct symbolizer *sz, const struct symbolizer_debug *opts,
			  unsigned int *ret_files)
{
	struct frame_debug_opts o = {
		.reader = sz->reader,
		.paths = sz->paths,
		.inlined = opts->inlined,
		.lines = opts->lines,
		.go = opts->go,
		.fetch = sz->fetch,
		.limits = DWARF_LIMITS,
		.found = take_frames,
		.failed = opts->failed,
		.ctx = sz,
	};

	o.limits.stopped = opts->stopped;
	sz->show_lines = opts->lines;
	return frame_debug_read(sz->debug, sz->ms, &o, ret_files);
}

size_t symbolizer_inlined(const struct symbolizer *sz, uint64_t frame, const uint32_t **ret)
{
	const struct chain *c = symbolizer_chain(sz, frame);

	if (!c)
		return 0;
	*ret = sz->chain_ids + c->at;
	return c->n - 1;
}

void symbolizer_set_fetch(struct symbolizer *sz, const struct debug_fetch *fetch)
{
	sz->fetch = *fetch;
}
