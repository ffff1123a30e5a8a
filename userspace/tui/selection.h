/* SPDX-License-Identifier: BSD-2-Clause */
/* Which stacks a view is about: those of the CPU that pass every level one has zoomed into, and which of their frames. */
#ifndef SFBPF_TUI_SELECTION_H
#define SFBPF_TUI_SELECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "prof/profile.h"

#define ZOOM_MAX 8
#define ZOOM_LABEL 192

enum zoom_kind { ZOOM_PROCESS, ZOOM_COMM, ZOOM_FUNCTION, ZOOM_MODULE };

struct zoom {
	enum zoom_kind kind;
	uint32_t id;			/* pid; symbol; symbolizer_module_index */
	char comm[SF_COMM];		/* ZOOM_COMM: raw; ZOOM_PROCESS with a comm: this thread name only */
	char label[ZOOM_LABEL];		/* clean, for the breadcrumb */
};

struct selection {
	struct zoom levels[ZOOM_MAX];
	unsigned int n;
	bool user_only, kernel_only;	/* the other part's frames are left out */
	uint32_t cpu1;			/* this CPU's stacks only, plus 1; 0: all */
	bool no_idle;			/* off-CPU: not what was blocked all through the window */
};

/* The frames of a stack that are shown, leaf first; shown_at gives indices into its frames and ids. */
struct shown {
	size_t nu, nk;			/* user and kernel frames shown */
	size_t kernel_at;		/* where the kernel part starts */
};

static inline struct shown shown_frames(const struct selection *sel, const struct profile_stack *s)
{
	return (struct shown){
		.nu = sel->kernel_only ? 0 : s->n_user, .nk = sel->user_only ? 0 : s->n_kernel, .kernel_at = s->n_user,
	};
}

static inline size_t shown_count(const struct shown *f)
{
	return f->nu + f->nk;
}

static inline size_t shown_at(const struct shown *f, size_t i)	/* i < shown_count */
{
	return i < f->nk ? f->kernel_at + i : i - f->nk;
}

/* Whether it is one of the CPU's. Blocked threads have none. */
static inline bool selection_on_cpu(const struct selection *sel, const struct profile_stack *s)
{
	return !sel->cpu1 || !s->cpu1 || s->cpu1 == sel->cpu1;
}

/* ids: the stack's symbols (profile_symbols). */
bool selection_takes(const struct selection *sel, const struct profile_stack *s, const uint32_t *ids,
		     const struct symbolizer *sz);
/* The innermost level of that kind; NULL: none. */
const struct zoom *selection_level(const struct selection *sel, enum zoom_kind kind);

#endif
