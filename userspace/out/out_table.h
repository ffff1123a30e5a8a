/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of functions that all text outputs begin with. */
#ifndef SFBPF_OUT_OUT_TABLE_H
#define SFBPF_OUT_OUT_TABLE_H

#include <stdint.h>
#include <stdio.h>

struct out_table_row {
	double self_pct, total_pct;
	uint64_t self;			    /* own value in the unit of the table */
	const char *module, *name, *suffix; /* clean; module may be "" */
};

/* unit: "microseconds" are shown as a time, all other units as a number. */
void out_table_head(FILE *f, const char *unit);
/* columns: width of the screen; longer lines are cut with a mark. 0: lines are not cut. */
void out_table_row(FILE *f, const struct out_table_row *row, const char *unit, int columns);
#define OUT_TIME 16
/* A time for people: "28.016 s", "1.250 ms" or "85 us". Returns buf. */
const char *out_table_time(char buf[OUT_TIME], uint64_t usec);
/* Writes name, suffix and newline. `used`: columns of the line that are already used. */
void out_table_name(FILE *f, const char *name, const char *suffix, int used, int columns);

#endif
