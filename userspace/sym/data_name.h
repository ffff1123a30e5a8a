/* SPDX-License-Identifier: BSD-2-Clause */
/* The name of a variable in a running process, by its address. */
#ifndef SFBPF_SYM_DATA_NAME_H
#define SFBPF_SYM_DATA_NAME_H

#include <stddef.h>
#include <stdint.h>

struct elf_reader;
struct path_opener;

/*
 * Writes "cache_lock", "pool+0x28" or, where the file has no symbol, "[libfoo.so.1+0x4040]": clean
 * text. 0; -ENOENT: the address is in no mapped file (heap, stack); -EAGAIN: ask later; or another
 * -errno.
 */
int data_name(struct path_opener *paths, struct elf_reader *reader, uint32_t pid, uint64_t addr,
	      char *ret, size_t cap);
/* Writes the name of the kernel's variable that begins at the address. 0; -ENOENT: none does. */
int kernel_data_name(uint64_t addr, char *ret, size_t cap);

#endif
