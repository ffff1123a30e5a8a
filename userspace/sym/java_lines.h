/* SPDX-License-Identifier: BSD-2-Clause */
/* The line tables of HotSpot's methods. */
#ifndef SFBPF_SYM_JAVA_LINES_H
#define SFBPF_SYM_JAVA_LINES_H

#include <stddef.h>
#include <stdint.h>

/* The bytes of a table that other data follow. `excluded` is sf_java.number_excluded. */
size_t java_lines_len(const uint8_t *table, size_t len, uint32_t excluded);
/* The line of the bytecode at an index. 0: none. */
uint32_t java_line(const uint8_t *table, size_t len, uint32_t excluded, uint32_t bci);

#endif
