/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows of prologues, epilogues and functions without a frame inside of code that .eh_frame
 * describes by one row with a frame pointer, CFA = rbp + 16. Dart's compiler describes all code of
 * a program so, and people do with assembly. x86-64 only.
 *
 * In such code, either rbp is set up, and the row is right, or the return address is a known
 * distance above rsp. A `ret` proves the latter, and so do an entry and the two instructions that
 * set up rbp; `leave` and its like prove the former. From there it is followed in both directions,
 * along jumps too. Where two ways disagree, the row is that of the table.
 */
#ifndef SFBPF_READERS_CODE_FRAMED_H
#define SFBPF_READERS_CODE_FRAMED_H

#include "readers/eh_frame.h"

/* Appends such rows, ascending. 0 or -ENOMEM. */
int code_framed_rows(const struct eh_frame *eh, const struct elf_image *img, struct rowbuf *out);

#endif
