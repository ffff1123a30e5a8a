/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of functions that all text outputs begin with. */
#ifndef SFBPF_OUT_OUT_TABLE_H
#define SFBPF_OUT_OUT_TABLE_H

#include <stdint.h>
#include <stdio.h>

struct out_table_row {
	double self_pct, total_pct;
	uint64_t self;
	const char *module, *name, *suffix;	/* clean; module may be "" */
};

/* columns: of the screen, lines are cut there with a mark; 0: as long as they get. */
void out_table_head(FILE *f, const char *unit);	/* "samples" or "microseconds" */
void out_table_row(FILE *f, const struct out_table_row *row, int columns);
/* name and suffix and the end of the line, of which `used` columns are full. */
void out_table_name(FILE *f, const char *name, const char *suffix, int used, int columns);

#endif
