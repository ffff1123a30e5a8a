/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Kernel frames in user space: an address, or the address with the number of what was there when
 * the sample was taken (kern/kernel_names.h). Kernel addresses have bits 63 and 62 set.
 */
#ifndef SFBPF_BASE_KERNEL_WORD_H
#define SFBPF_BASE_KERNEL_WORD_H

#include <stdbool.h>
#include <stdint.h>

#define KERNEL_NUMBERS	 (1u << 14)
#define KERNEL_ADDR_BITS 48
#define KERNEL_ADDR_MASK ((1ull << KERNEL_ADDR_BITS) - 1)
#define KERNEL_WORD(n, at) \
	(1ull << 63 | (uint64_t)(n) << KERNEL_ADDR_BITS | ((at)&KERNEL_ADDR_MASK))

static inline bool kernel_word_numbered(uint64_t word)
{
	return word >> 62 == 2;
}

static inline uint32_t kernel_word_number(uint64_t word)
{
	return (uint32_t)(word >> KERNEL_ADDR_BITS) & (KERNEL_NUMBERS - 1);
}

static inline uint64_t kernel_word_addr(uint64_t word)
{
	return kernel_word_numbered(word) ? word | ~KERNEL_ADDR_MASK : word;
}

#endif
