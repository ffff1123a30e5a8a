/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables that offcpu appends to the text output: by state, --hist and --threads. */
#ifndef SFBPF_TOOLS_OFFCPU_TABLES_H
#define SFBPF_TOOLS_OFFCPU_TABLES_H

#include "tools/blocks.h"

int offcpu_tables(const struct out_report *r, const struct blocks *b, const struct offcpu_opts *o,
		  FILE *f); /* 0 or -errno */

#endif
