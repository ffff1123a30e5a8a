/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Line tables of Ruby, as BPF sends them: the number of entries (u32), the entries, whose first
 * word is a line, and an index that tells the entry of an instruction.
 */
#ifndef SFBPF_SYM_RUBY_LINES_H
#define SFBPF_SYM_RUBY_LINES_H

#include <stddef.h>
#include <stdint.h>

/*
 * The line of the instruction at `position`, in words. version: the minor number. 0: the table does
 * not say.
 */
uint32_t ruby_line(const uint8_t *table, size_t len, uint8_t version, uint32_t position);

#endif
