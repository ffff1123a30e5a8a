/* SPDX-License-Identifier: BSD-2-Clause */
/* Which functions changed (changes.h), as a table and as JSON. */
#ifndef SFBPF_OUT_OUT_CHANGES_H
#define SFBPF_OUT_OUT_CHANGES_H

#include "out/out_stacks.h"

/* o is of two sides. 0 or -errno. */
int changes_write_text(const struct stackset *ss, const struct stacks_text *o, FILE *f);
int changes_write_json(const struct stackset *ss, const struct stacks_text *o, FILE *f);

#endif
