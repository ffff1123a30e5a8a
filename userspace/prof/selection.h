/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stacks that a view shows: those of one CPU, or all, that match every zoom level. Also selects
 * which of their frames are shown.
 */
#ifndef SFBPF_PROF_SELECTION_H
#define SFBPF_PROF_SELECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "prof/profile.h"

#define ZOOM_MAX   8
#define ZOOM_LABEL 192

/* ZOOM_NAME: all processes of a name. ZOOM_COMM: all threads of a name. */
enum zoom_kind { ZOOM_PROCESS, ZOOM_NAME, ZOOM_COMM, ZOOM_FUNCTION, ZOOM_MODULE };

struct zoom {
	enum zoom_kind kind;
	uint32_t id; /* pid; symbol; symbolizer_module_index */
	/* ZOOM_NAME, ZOOM_COMM: foreign bytes; ZOOM_PROCESS with a comm: only this thread name */
	char comm[SF_COMM];
	char label[ZOOM_LABEL]; /* clean text, for the breadcrumb */
};

struct process_users;

struct selection {
	struct zoom levels[ZOOM_MAX];
	unsigned int n;
	bool user_only, kernel_only; /* frames of the other part are left out */
	bool user_first;	     /* the kernel's are, where there is a user part */
	uint32_t cpu1;		     /* only stacks of this CPU (plus 1); 0: all */
	/* off-CPU: leave out what blocked_is_idle */
	bool no_idle;
	/* Only processes of this user (plus 1); 0: all */
	uint64_t uid1;
	struct process_users *users; /* needed with uid1 */
	bool by_thread; /* trees and processes have the names of threads, not of processes */
};

/* The shown frames of a stack, leaf first; shown_at returns indices into its frames and ids. */
struct shown {
	size_t nu, nk;	  /* user and kernel frames shown */
	size_t kernel_at; /* index where the kernel part starts */
};

static inline struct shown shown_frames(const struct selection *sel, const struct profile_stack *s)
{
	return (struct shown){
		.nu = sel->kernel_only ? 0 : s->n_user,
		.nk = sel->user_only || (sel->user_first && s->n_user) ? 0 : s->n_kernel,
		.kernel_at = s->n_user,
	};
}

static inline size_t shown_count(const struct shown *f)
{
	return f->nu + f->nk;
}

static inline size_t shown_at(const struct shown *f, size_t i) /* i < shown_count */
{
	return i < f->nk ? f->kernel_at + i : i - f->nk;
}

/*
 * Whether a stack belongs to the selected CPU. Stacks of blocked threads have no CPU and always do.
 */
static inline bool selection_on_cpu(const struct selection *sel, const struct profile_stack *s)
{
	return !sel->cpu1 || !s->cpu1 || s->cpu1 == sel->cpu1;
}

/* Whether a stack is selected. ids: its symbols (profile_symbols). */
bool selection_takes(const struct selection *sel, const struct profile_stack *s,
		     const uint32_t *ids, const struct symbolizer *sz);
/* The innermost level of that kind; NULL: none. */
const struct zoom *selection_level(const struct selection *sel, enum zoom_kind kind);

#endif
