/* SPDX-License-Identifier: BSD-2-Clause */
/* Symbols that are known without their files, from a recording. */
#include <errno.h>

#include "base/vec.h"
#include "sym/symbolizer_internal.h"

int symbolizer_restore(struct symbolizer *sz, const struct symbolizer_symbol *from, uint32_t *ret)
{
	struct symbol s = { .line = from->line, .start_line = from->start_line };

	return symbolizer_intern_name(sz, from->name, &s.name) ||
			       symbolizer_intern_name(sz, from->function, &s.function) ||
			       symbolizer_intern_name(sz, from->file, &s.file) ||
			       strpool_intern(sz->modules, from->module, strlen(from->module),
					      &s.module) ||
			       symbolizer_intern_symbol(sz, &s, ret)
		       ? -ENOMEM
		       : 0;
}

int symbolizer_restore_inlined(struct symbolizer *sz, uint64_t frame, const uint32_t *ids, size_t n)
{
	size_t before = sz->chain_of.n;
	uint32_t at = (uint32_t)sz->nchain_ids, id;

	if (vec_reserve(&sz->chain_ids, &sz->chain_ids_cap, at + n, sizeof(*sz->chain_ids)) ||
	    vec_reserve(&sz->chains, &sz->chains_cap, before + 1, sizeof(*sz->chains)) ||
	    idmap_get(&sz->chain_of, symbolizer_place(frame), 0, &id))
		return -ENOMEM;
	if (id != before)
		return 0;
	memcpy(sz->chain_ids + at, ids, n * sizeof(*ids));
	sz->chains[id] = (struct chain){ at, (uint32_t)n };
	sz->nchain_ids += n;
	return 0;
}
