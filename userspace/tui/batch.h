/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pages for scripts. Text: header lines start with #. A table of functions, a table of processes
 * and, with --offcpu, a table of blocked stacks follow. Their columns have fixed positions. JSON:
 * one object per page, on one line; schema 1:
 *
 *   page, time_unix_ns, duration_s, samples, lost {cause: n}, kernel (samples in kernel mode),
 *   user_stacks {total, complete, incomplete {reason: n}},
 *   self {cpu_pct, bpf_pct, rss_kb}, tables {files, bytes, evicted, refused},
 *   parsers {died, failed, names_lost},
 *   functions [{name, module, self, total, kernel}],
 *   processes [{pid, comm, cgroup, samples, kernel, user_stacks, complete}]
 *   and with --offcpu
 *   off_cpu {duration_s, blocks, lost, lost_ns, sampled_ns, ns,
 *            stacks [{pid (0: several), comm, state, ns, blocks, frames [leaf first]}]}
 *
 * JSON has numbers of samples, text has percentages. New keys may be added.
 */
#ifndef SFBPF_TUI_BATCH_H
#define SFBPF_TUI_BATCH_H

#include <stdint.h>
#include <stdio.h>

#include "tui/ui.h"

struct batch_page {
	uint64_t number;  /* counts from 1 */
	uint64_t unix_ns; /* end of its window */
	size_t rows;	  /* maximum per table; 0: all */
};

/* ui_refresh has set the window of the page. 0 or -errno (the output is flushed). */
int batch_text(struct ui *ui, const struct batch_page *page, FILE *f);
int batch_json(struct ui *ui, const struct batch_page *page, FILE *f);

#endif
