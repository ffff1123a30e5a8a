/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The off-CPU window as a table: blocked stacks by name, longest time first asked. Threads and processes of one command that
 * are blocked in the same functions for the same reason are one row.
 */
#ifndef SFBPF_TUI_BLOCKED_H
#define SFBPF_TUI_BLOCKED_H

#include <stddef.h>
#include <stdint.h>

#include "base/idmap.h"
#include "prof/profile.h"
#include "tui/selection.h"

struct blocked_stack {
	uint64_t key;			/* the same stack has it at every refresh */
	uint32_t stack;			/* in the profile: one of those that it stands for */
	uint32_t pid;			/* 0: several */
	uint64_t ns;			/* blocked time of all its threads */
	uint64_t blocks;		/* that ended */
};

struct blocked {			/* zeroed before its first use */
	struct blocked_stack *v;
	size_t n, cap;
	struct idmap ids;
	uint64_t ns;			/* selected: 100 % */
	struct {			/* of the whole window, whatever is selected */
		uint64_t ns, user_ns, complete_ns, stops[SF_STOP_MAX];
	} all;
};

/* 0 or -ENOMEM (b is then empty). */
int blocked_build(struct blocked *b, struct profile *p, struct symbolizer *sz, const struct selection *sel);
void blocked_free(struct blocked *b);
/* "futex_do_wait_[k] < pthread_cond_wait < worker < main": where the kernel blocks, then the user part, leaf first. Returns dst. */
const char *blocked_text(const struct blocked_stack *row, struct profile *p, struct symbolizer *sz, const struct selection *sel,
			 const char *between, char *dst, size_t cap);

#endif
