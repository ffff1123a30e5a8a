/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads a recording (out_recording.c). The bytes are foreign: all numbers are checked, names are
 * cleaned again, and no file that they name is opened.
 */
#ifndef SFBPF_OUT_RECORDING_H
#define SFBPF_OUT_RECORDING_H

#include "base/bytes.h"
#include "out/out.h"
#include "out/out_blocks.h"
#include "prof/read_stacks.h"
#include "prof/slices.h"
#include "prof/timeline.h"

struct recording { /* zeroed: empty */
	struct out_report report;
	/* What the report points to */
	struct out_meta meta;
	struct run_stats stats;
	struct modules *modules;
	struct symbolizer *symbols;
	struct profile *profile, *wakers;
	struct timeline times;
	struct slices slices;
	struct out_containers *containers;
	struct out_blocks blocks;
	struct out_block *block_list; /* what blocks points to */
	struct strpool *texts;
	const char *groups[SF_EVENTS];
};

/* Whether the file is a recording, by the first byte, which it does not take. */
bool recording_is(FILE *f);
/*
 * 0; -EINVAL: damaged, see *why; -ENOMEM. Free *ret in either case. The report has what was kept:
 * pass it through out_report_for.
 */
int recording_read(struct bytes file, struct recording *ret, struct read_error *why);
void recording_free(struct recording *rec);

#endif
