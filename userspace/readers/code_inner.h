/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows of functions inside of code that .eh_frame describes by one row with a frame. LuaJIT
 * describes its whole interpreter so, but that also holds the code which makes and removes the
 * frame, and functions that the interpreter calls. x86-64 only.
 *
 * The instructions themselves prove each row. The return address of a `ret` is at rsp. So in front
 * of one, pops that remove just the frame of the row begin with that frame; and code that a direct
 * call leads to, and that returns on all ways without moving rsp, has no frame. Where nothing runs
 * on into pushes that make just that frame, they begin at an entry.
 */
#ifndef SFBPF_READERS_CODE_INNER_H
#define SFBPF_READERS_CODE_INNER_H

#include "readers/eh_frame.h"

/* Appends such rows, ascending. 0 or -ENOMEM. */
int code_inner_rows(const struct eh_frame *eh, const struct elf_image *img, struct rowbuf *out);

#endif
