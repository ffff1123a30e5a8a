/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A row as a line of text, for users and for tests:
 *
 * 	START END SOURCE CFA RA FP[ FLAG...]
 * 	0000000000001040 0000000000001046 eh_frame cfa=rsp+8 ra=*(cfa-8) fp=same
 *
 * Offsets are decimal and always signed, registers have the assembler's names. `?` is a rule that
 * the table does not give or the model cannot express; `ra=lr` is a return address still in the
 * link register, `ra=undef` the outermost frame. Flags: `signal`, `pac`, `plt rep=N at=K` (see
 * struct row).
 */
#ifndef SFBPF_ROWS_ROW_TEXT_H
#define SFBPF_ROWS_ROW_TEXT_H

#include <stddef.h>

#include "rows/row.h"

#define ROW_TEXT_MAX 256 /* any row with its NUL */

/* Both write at most ROW_TEXT_MAX bytes and return them without the NUL. */
size_t row_text(char *buf, enum row_arch arch, const struct row *row);
size_t row_text_rules(char *buf, enum row_arch arch, const struct row *row); /* starts at CFA */

const char *row_source_name(enum row_source source); /* "sframe", "eh_frame" */

#endif
