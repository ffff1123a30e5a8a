/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The off-CPU window as a table of blocked stacks, compared by name. Threads and processes of one
 * command that are blocked in the same functions, in the same state, share one row.
 */
#ifndef SFBPF_TUI_BLOCKED_H
#define SFBPF_TUI_BLOCKED_H

#include <stddef.h>
#include <stdint.h>

#include "base/idmap.h"
#include "prof/profile.h"
#include "prof/selection.h"

struct blocked_stack {
	uint64_t key;	 /* identifies the stack across refreshes */
	uint32_t stack;	 /* index in the profile of one of the row's stacks */
	uint32_t pid;	 /* 0: several */
	uint64_t ns;	 /* blocked time of all threads */
	uint64_t blocks; /* blocks that ended */
};

#define BLOCKED_NONE UINT32_MAX

struct blocked { /* zeroed before its first use */
	struct blocked_stack *v;
	size_t n, cap;
	uint32_t *row_of; /* row of each stack of the profile; BLOCKED_NONE: not selected */
	size_t nstacks, row_of_cap;
	struct idmap ids;
	uint64_t ns; /* sum of the selected stacks: 100 % */
	struct {     /* sums of the whole window */
		uint64_t ns, user_ns, complete_ns, stops[SF_STOP_MAX];
	} all;
};

/* Whether a stack is hidden by selection.no_idle: no block ended, or it waits for work. */
bool blocked_is_idle(const struct profile_stack *s, const uint32_t *ids,
		     const struct symbolizer *sz);
/* 0 or -ENOMEM (b is then empty). */
int blocked_build(struct blocked *b, struct profile *p, struct symbolizer *sz,
		  const struct selection *sel);
void blocked_free(struct blocked *b);
/*
 * The innermost user frame outside the C library, whose functions only lead to the system call.
 * Without one, the first user frame.
 */
size_t blocked_program_frame(const struct shown *f, const uint32_t *ids,
			     const struct symbolizer *sz);
/*
 * "futex_do_wait_[k] < worker < main": the kernel function that blocks, then the program's frames,
 * leaf first. Returns dst.
 */
const char *blocked_text(const struct blocked_stack *row, struct profile *p, struct symbolizer *sz,
			 const struct selection *sel, const char *between, char *dst, size_t cap);

#endif
