/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files that change while processes have them mapped. BPF remembers the files of mappings, so it
 * would not notice. A file that was written, renamed, linked or deleted has another change time,
 * and so is another file for BPF as soon as it looks the mapping up again.
 */
#include "base/clock.h"
#include "base/num.h"
#include "base/vec.h"
#include "kern/loader_internal.h"

#define CHANGE_MS 500

void loader_watch(struct loader *l, const struct module *m)
{
	struct watched *w = &l->watched;

	/* Out of memory, the file is not watched. */
	if (m->ctime_ns && !vec_reserve(&w->ids, &w->cap, w->n + 1, sizeof(*w->ids)))
		w->ids[w->n++] = m->id;
}

int loader_look_for_changes(struct loader *l)
{
	struct watched *w = &l->watched;
	uint64_t now = clock_ns(CLOCK_MONOTONIC), ns;
	bool changed = false;

	if (now - w->looked_ns < CHANGE_MS * NUM_MS)
		return CHANGE_MS;
	w->looked_ns = now;
	for (size_t i = w->nstale; i < w->n; i++) {
		uint32_t id = w->ids[i];

		if (!tables_has(l->tables, id)) {
			w->ids[i--] = w->ids[--w->n];
			continue;
		}
		if (module_change(modules_get(l->modules, id), &ns) == MODULE_SAME)
			continue;
		w->ids[i] = w->ids[w->nstale];
		w->ids[w->nstale++] = id;
		changed = true;
	}
	if (changed)
		tables_forget_mappings(l->tables);
	return CHANGE_MS;
}

size_t loader_stale(struct loader *l, uint32_t *ids, size_t max)
{
	struct watched *w = &l->watched;
	size_t n = 0;

	for (size_t i = 0; i < w->nstale; i++) {
		if (tables_has(l->tables, w->ids[i])) {
			if (n < max)
				ids[n++] = w->ids[i];
			continue;
		}
		w->ids[i--] = w->ids[--w->nstale];
		w->ids[w->nstale] = w->ids[--w->n];
	}
	return n;
}
