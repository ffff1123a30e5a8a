/* SPDX-License-Identifier: BSD-2-Clause */
/* The headers of an x86-64 ELF file in memory, for tests of Go's tables. */
#ifndef SFBPF_TESTS_UNIT_GO_FILE_H
#define SFBPF_TESTS_UNIT_GO_FILE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Writes the ELF header and one segment: `size` bytes from file offset 0x1000 on, at vaddr. names:
 * the section names, which begin with "\0.text\0.gopclntab\0.shstrtab"; they are the last of n
 * sections.
 */
void go_file_init(uint8_t *file, uint16_t n, uint64_t vaddr, uint64_t size, const char *names,
		  size_t names_len);
/* Section i, below n - 1. name: its offset in the names. */
void go_file_section(uint8_t *file, int i, uint32_t name, uint64_t addr, uint64_t offset,
		     uint64_t size);

#endif
