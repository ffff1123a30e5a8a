/* SPDX-License-Identifier: BSD-2-Clause */
#include "worker/jail.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/huge.h"

void jail_close_others(const int *keep, size_t n)
{
	int next = 3;

	for (size_t left = n; left; left--) {
		int least = -1;

		for (size_t i = 0; i < n; i++)
			if (keep[i] >= next && (least < 0 || keep[i] < least))
				least = keep[i];
		if (least < 0)
			break;
		if (least > next)
			close_range((unsigned int)next, (unsigned int)least - 1, 0);
		next = least + 1;
	}
	close_range((unsigned int)next, ~0u, 0);
}

/* proc(5), statm: total size, and private writable size. */
static void memory_now(uint64_t *space, uint64_t *data)
{
	unsigned long long all = 0, priv = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f) {
		if (fscanf(f, "%llu %*u %*u %*u %*u %llu", &all, &priv) != 2)
			all = priv = 0;
		fclose(f);
	}
	*space = all * (uint64_t)sysconf(_SC_PAGESIZE);
	*data = priv * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void limit(int resource, uint64_t value)
{
	struct rlimit r = { value, value };

	setrlimit((__rlimit_resource_t)resource, &r);
}

void jail_limit(const struct jail_limits *l)
{
	uint64_t space, data;

	memory_now(&space, &data);
	limit(RLIMIT_CORE, 0);
	if (l->data_bytes)
		limit(RLIMIT_DATA, data + l->data_bytes);
	if (l->space_bytes)
		limit(RLIMIT_AS, space + l->space_bytes);
	if (l->file_bytes)
		limit(RLIMIT_FSIZE, l->file_bytes);
	if (l->files)
		limit(RLIMIT_NOFILE, l->files);
	if (l->cpu_seconds)
		limit(RLIMIT_CPU, l->cpu_seconds);
}

/* ---- System calls ---- */

bool jail_can_filter(void)
{
	/* A kernel with filters reads the program and fails with EFAULT. */
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) && errno == EFAULT;
}

int jail_calls(const uint16_t *numbers, size_t n)
{
	const struct scmp_arg_cmp not_executable = SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_KILL_PROCESS);
	int rc = f ? seccomp_attr_set(f, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) : -ENOMEM;

	for (size_t i = 0; i < n && !rc; i++)
		rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, numbers[i], 0);
	if (!rc)
		rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1, not_executable);
	if (!rc)
		rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1, not_executable);
	if (!rc)
		rc = seccomp_load(f);
	if (f)
		seccomp_release(f);
	return rc;
}

/* ---- Readers of foreign files ---- */

#ifndef __SANITIZE_ADDRESS__ /* the sanitizer maps terabytes and uses other system calls */
#define MAX_FILES 8	     /* descriptors: socket, memfd, files */

static const uint16_t calls[] = {
	SYS_recvmsg,	SYS_sendmsg,	  SYS_pread64,	       SYS_write,	    SYS_lseek,
	SYS_ftruncate,	SYS_close,	  SYS_munmap,	       SYS_mremap,	    SYS_madvise,
	SYS_brk,	SYS_futex,	  SYS_clock_gettime,   SYS_clock_nanosleep, SYS_setpriority,
	SYS_exit_group, SYS_rt_sigreturn, SYS_restart_syscall,
};
#endif

static int by_byte(const void *a, const void *b)
{
	return *(const uint8_t *)a - *(const uint8_t *)b;
}

void jail_keep_memory(uint64_t keep)
{
	mallopt(M_MMAP_THRESHOLD, (int)keep);
	mallopt(M_TRIM_THRESHOLD, (int)keep);
}

/* The first large qsort reads the memory size of the machine, so make it call that now. */
static void prepare_libc(uint64_t keep, bool huge)
{
	uint8_t some[4096] = { 0 };

	qsort(some, sizeof(some), 1, by_byte);
	jail_keep_memory(keep);
	/*
	 * Huge pages for the heap, below the size that malloc would map separately or trim. A free
	 * range keeps them, and an unused one costs nothing.
	 */
	if (huge)
		free(huge_alloc(keep - keep / 16, false));
}

void jail_enter_reader(const struct jail_reader *limits)
{
	prepare_libc(limits->keep, limits->huge);
#ifndef __SANITIZE_ADDRESS__
	jail_limit(&(struct jail_limits){
		.space_bytes = limits->memory, .file_bytes = limits->output, .files = MAX_FILES });
	/* The other limits must do if the kernel has no filters (doctor reports it). */
	if (jail_can_filter() && jail_calls(calls, sizeof(calls) / sizeof(calls[0])))
		_exit(1);
#endif
}
