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
#include "prof/selection.h"

struct blocked_stack {
	uint64_t key;			/* the same stack has it at every refresh */
	uint32_t stack;			/* in the profile: one of those that it stands for */
	uint32_t pid;			/* 0: several */
	uint64_t ns;			/* blocked time of all its threads */
	uint64_t blocks;		/* that ended */
};

#define BLOCKED_NONE UINT32_MAX

struct blocked {			/* zeroed before its first use */
	struct blocked_stack *v;
	size_t n, cap;
	uint32_t *row_of;		/* by stack of the profile; BLOCKED_NONE: it is not selected */
	size_t nstacks, row_of_cap;
	struct idmap ids;
	uint64_t ns;			/* selected: 100 % */
	struct {			/* of the whole window, whatever is selected */
		uint64_t ns, user_ns, complete_ns, stops[SF_STOP_MAX];
	} all;
};

/* 0 or -ENOMEM (b is then empty). */
int blocked_build(struct blocked *b, struct profile *p, struct symbolizer *sz, const struct selection *sel);
void blocked_free(struct blocked *b);
/* The innermost frame that is the program's own: not one of the C library, whose functions only lead to the system call. */
size_t blocked_program_frame(const struct shown *f, const uint32_t *ids, const struct symbolizer *sz);
/* "futex_do_wait_[k] < worker < main": where the kernel blocks, then the program from there on, leaf first. Returns dst. */
const char *blocked_text(const struct blocked_stack *row, struct profile *p, struct symbolizer *sz, const struct selection *sel,
			 const char *between, char *dst, size_t cap);

#endif
