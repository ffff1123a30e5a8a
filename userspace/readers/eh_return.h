/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows of functions that end in GCC's __builtin_eh_return: libgcc's unwinder, when it enters a
 * landing pad. x86-64 only.
 *
 * Before the last instructions, a function that it calls overwrites the registers that it saved on
 * its stack with those of the landing pad's frame, in a loop, the return address last. The tables
 * go on to describe a frame that is as it was. In the loop, the caller's frame pointer is not
 * known: its row has one that no other row can use. From the end of the loop on, the caller is
 * lost. The last instructions have correct rows, but lead to an address that does not follow a
 * call, and may be a function's first.
 */
#ifndef SFBPF_READERS_EH_RETURN_H
#define SFBPF_READERS_EH_RETURN_H

#include "readers/eh_frame.h"

/* Appends such rows. 0 or -ENOMEM. */
int eh_return_rows(const struct eh_frame *eh, const struct elf_image *img, struct rowbuf *out);

#endif
