/* SPDX-License-Identifier: BSD-2-Clause */
/* offcpu --locks: which locks threads waited for, who had them, and where (text and JSON). */
#ifndef SFBPF_OUT_OUT_LOCKS_H
#define SFBPF_OUT_OUT_LOCKS_H

#include "out/out.h"

/* The locks are those of r->blocks. 0 or -errno. */
int out_locks_text(const struct out_report *r, FILE *f);
int out_locks_json(const struct out_report *r, FILE *f);

#endif
