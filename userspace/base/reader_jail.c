/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/reader_jail.h"

#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/jail.h"

#ifndef __SANITIZE_ADDRESS__	/* which maps terabytes, and has calls of its own */
#define MAX_FILES 8		/* descriptors: socket, memfd, files */

static const uint16_t calls[] = {
	SYS_recvmsg, SYS_sendmsg, SYS_pread64, SYS_write, SYS_lseek, SYS_ftruncate, SYS_close, SYS_munmap, SYS_mremap, SYS_madvise, SYS_brk,
	SYS_futex, SYS_clock_gettime, SYS_clock_nanosleep, SYS_setpriority, SYS_exit_group, SYS_rt_sigreturn, SYS_restart_syscall,
};
#endif

static int by_byte(const void *a, const void *b)
{
	return *(const uint8_t *)a - *(const uint8_t *)b;
}

void reader_keep_memory(uint64_t keep)
{
	mallopt(M_MMAP_THRESHOLD, (int)keep);
	mallopt(M_TRIM_THRESHOLD, (int)keep);
}

/* Of the heap that follows: it stays when it is free, and costs nothing before it is used. */
static void want_huge_pages(uint64_t bytes)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	void *mem = malloc(bytes);
	uintptr_t from = ((uintptr_t)mem + page - 1) & -page, to = ((uintptr_t)mem + bytes) & -page;

	if (mem)
		madvise((void *)from, to - from, MADV_HUGEPAGE);
	free(mem);
}

/* The first large qsort asks how much memory the machine has. */
static void prepare_libc(uint64_t keep, bool huge)
{
	uint8_t some[4096] = { 0 };

	qsort(some, sizeof(some), 1, by_byte);
	reader_keep_memory(keep);
	if (huge)
		want_huge_pages(keep - keep / 16);	/* below what malloc would map by itself, or give back */
}

void reader_jail_enter(const struct reader_limits *limits)
{
	prepare_libc(limits->keep, limits->huge);
#ifndef __SANITIZE_ADDRESS__
	jail_limit(&(struct jail_limits){ .space_bytes = limits->memory, .file_bytes = limits->output, .files = MAX_FILES });
	/* A kernel without filters: the rest must do (doctor says so). */
	if (jail_can_filter() && jail_calls(calls, sizeof(calls) / sizeof(calls[0])))
		_exit(1);
#endif
}
