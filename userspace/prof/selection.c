/* SPDX-License-Identifier: BSD-2-Clause */
#include "prof/selection.h"

#include <string.h>

#include "prof/process_users.h"

static bool has_symbol(const struct shown *f, const uint32_t *ids, uint32_t symbol)
{
	for (size_t i = 0; i < shown_count(f); i++)
		if (ids[shown_at(f, i)] == symbol)
			return true;
	return !shown_count(f) && symbol == SYM_NO_STACK;
}

static bool has_module(const struct shown *f, const uint32_t *ids, uint32_t module,
		       const struct symbolizer *sz)
{
	for (size_t i = 0; i < shown_count(f); i++)
		if (symbolizer_module_index(sz, ids[shown_at(f, i)]) == module)
			return true;
	return !shown_count(f) && symbolizer_module_index(sz, SYM_NO_STACK) == module;
}

static bool same_comm(const char *raw, const char *comm)
{
	return strncmp(raw, comm, SF_COMM) == 0;
}

bool selection_takes(const struct selection *sel, const struct profile_stack *s,
		     const uint32_t *ids, const struct symbolizer *sz)
{
	struct shown f = shown_frames(sel, s);

	if (!selection_on_cpu(sel, s))
		return false;
	if (sel->uid1 && process_users_get(sel->users, s->pid, s->comm) + 1ull != sel->uid1)
		return false;
	for (unsigned int i = 0; i < sel->n; i++) {
		const struct zoom *z = &sel->levels[i];
		bool takes = true;

		switch (z->kind) {
		case ZOOM_PROCESS:
			takes = s->pid == z->id && (!z->comm[0] || same_comm(z->comm, s->comm));
			break;
		case ZOOM_NAME:
			takes = same_comm(z->comm, s->process);
			break;
		case ZOOM_COMM:
			takes = same_comm(z->comm, s->comm);
			break;
		case ZOOM_FUNCTION:
			takes = has_symbol(&f, ids, z->id);
			break;
		case ZOOM_MODULE:
			takes = has_module(&f, ids, z->id, sz);
			break;
		}
		if (!takes)
			return false;
	}
	return true;
}

const struct zoom *selection_level(const struct selection *sel, enum zoom_kind kind)
{
	for (unsigned int i = sel->n; i-- > 0;)
		if (sel->levels[i].kind == kind)
			return &sel->levels[i];
	return NULL;
}
