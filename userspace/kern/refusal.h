/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Why the kernel refused BPF programs: read from libbpf's warnings and from the verifier's log,
 * which libbpf prints between two lines of its own. The log may have megabytes; a bounded number of
 * its last lines is kept. No libbpf here.
 */
#ifndef SFBPF_KERN_REFUSAL_H
#define SFBPF_KERN_REFUSAL_H

#include <stdbool.h>
#include <stddef.h>

#define REFUSAL_LINE  160 /* longer lines are cut */
#define REFUSAL_LINES 12

struct refusal {
	char program[64]; /* "": it was not a program that was refused */
	char error[64];	  /* libbpf's name of the error; "" without a program */
	/*
	 * The last line of the verifier's log that is neither an instruction nor statistics;
	 * without a log: the last warning that says more than that loading failed. "": none
	 */
	char reason[REFUSAL_LINE];
	char source[REFUSAL_LINE];		/* the last line of C in the log; "": none */
	char last[REFUSAL_LINES][REFUSAL_LINE]; /* lines of the log; see refusal_line */
	size_t lines;				/* how many lines the log had */

	/* The line that is not complete yet */
	bool in_log;
	char line[REFUSAL_LINE];
	size_t len;
};

/* The text that libbpf prints, in any pieces. r is zeroed before the first one. */
void refusal_take(struct refusal *r, const char *text, size_t len);
/* The log of r->program, which libbpf does not print if the caller supplied the buffer. */
void refusal_take_log(struct refusal *r, const char *log);
/* The i-th of the last lines of the log, the oldest first; NULL after the last one. */
const char *refusal_line(const struct refusal *r, size_t i);
/* One line: "on_cpu: R2 unbounded memory access", as much as is known; never empty. */
void refusal_text(const struct refusal *r, char *ret, size_t cap);

#endif
