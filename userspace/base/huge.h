/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory for megabytes that are soon used: a page fault for each 4 KiB costs more than a copy. */
#ifndef SFBPF_BASE_HUGE_H
#define SFBPF_BASE_HUGE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_LEAST (4u << 20) /* bytes; smaller memory is left alone */

/* Allocates at least a byte, as malloc or calloc; with huge pages where the kernel has them. */
static inline void *huge_alloc(size_t bytes, int zeroed)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	void *mem = zeroed ? calloc(1, bytes ? bytes : 1) : malloc(bytes ? bytes : 1);
	uintptr_t from = ((uintptr_t)mem + page - 1) & -page, to = ((uintptr_t)mem + bytes) & -page;

	if (mem && bytes >= HUGE_LEAST)
		madvise((void *)from, to - from, MADV_HUGEPAGE);
	return mem;
}

#endif
