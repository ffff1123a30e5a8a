/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pages for scripts. Text: lines with # in front tell what is behind them, a table of functions, a table of processes, with --offcpu one of blocked stacks,
 * in columns that stay where they are. JSON: one object a page, on one line; schema 1:
 *
 *   page, time_unix_ns, duration_s, samples, lost {cause: n}, kernel (samples in kernel mode), user_stacks {total, complete,
 *   incomplete {reason: n}}, self {cpu_pct, bpf_pct, rss_kb}, tables {files, bytes},
 *   functions [{name, module, self, total, kernel}], processes [{pid, comm, cgroup, samples, kernel, user_stacks, complete}]
 *   and with --offcpu off_cpu {duration_s, blocks, lost, lost_ns, sampled_ns, ns, stacks [{pid (0: several), comm, state, ns, blocks,
 *   frames [leaf first]}]}
 *
 * Numbers of samples there, percentages in the text. New keys may be added.
 */
#ifndef SFBPF_TUI_BATCH_H
#define SFBPF_TUI_BATCH_H

#include <stdint.h>
#include <stdio.h>

#include "tui/ui.h"

struct batch_page {
	uint64_t number;		/* from 1 */
	uint64_t unix_ns;		/* its end */
	size_t rows;			/* of each table at most; 0: all */
};

/* ui has been refreshed with what the page is about. 0 or -errno (the output is flushed). */
int batch_text(struct ui *ui, const struct batch_page *page, FILE *f);
int batch_json(struct ui *ui, const struct batch_page *page, FILE *f);

#endif
