/* SPDX-License-Identifier: BSD-2-Clause */
/* The line tables of CPython's code objects (Objects/lnotab_notes.txt, Objects/locations.md). */
#ifndef SFBPF_SYM_PYTHON_LINES_H
#define SFBPF_SYM_PYTHON_LINES_H

#include <stddef.h>
#include <stdint.h>

/*
 * The line at a position, in units of two bytes of bytecode, of version 3.`minor`. 0: none. A table
 * that was cut short has no lines for its end.
 */
uint32_t python_line(const uint8_t *table, size_t len, uint32_t minor, uint32_t first_line,
		     uint32_t position);

#endif
