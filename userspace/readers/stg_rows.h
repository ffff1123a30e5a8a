/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The code that GHC generates has no tables. All of it runs in the frame of StgRun(), the function
 * of Haskell's runtime that jumps into it (rts/StgCRun.c): it has its own stack, and leaves rsp
 * alone but for calls of C. So the row of StgRun() at that jump holds in all of it. x86-64 only.
 */
#ifndef SFBPF_READERS_STG_ROWS_H
#define SFBPF_READERS_STG_ROWS_H

#include "readers/row_stream.h"

/* The row of StgRun() at its jump. False: the file is no program of GHC's. */
bool stg_row(const struct unwind_file *file, struct row *ret);
/*
 * Appends that row for the code [start, end), unless `brief` also with a lower rsp: at calls of C
 * that are followed by an addition to it. 0, -ENOMEM, -EIO.
 */
int stg_fill(const struct unwind_file *file, struct row row, bool brief, uint64_t start,
	     uint64_t end, struct rowbuf *out);

#endif
