/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/jail.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

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

/* proc(5), statm: all, and private and writable. */
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

/* ---- System calls: seccomp(2), a classic BPF program over struct seccomp_data ---- */

#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_ARCH AUDIT_ARCH_AARCH64
#endif

#define MAX_CALLS 64u	/* jumps reach 255 instructions, and each call takes two at most */

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IF_EQUAL(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (yes), (no))
#define IF_BITS(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (value), (yes), (no))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, (what))

bool jail_can_filter(void)
{
	/* A kernel that can would have read the program. */
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) && errno == EFAULT;
}

int jail_calls(const uint16_t *numbers, size_t n)
{
	const struct sock_filter head[] = {
		LOAD(arch), IF_EQUAL(OWN_ARCH, 1, 0), RETURN(SECCOMP_RET_KILL_PROCESS),
		LOAD(nr),
	}, memory[] = {	/* the third argument's low half: protection */
		LOAD(args[2]), IF_BITS(PROT_EXEC, 0, 1), RETURN(SECCOMP_RET_KILL_PROCESS), RETURN(SECCOMP_RET_ALLOW),
	};
	struct sock_filter code[8 + 2 * MAX_CALLS];
	struct sock_fprog prog = { .filter = code };
	size_t at = 0;

	if (n > MAX_CALLS)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(head) / sizeof(head[0]); i++)
		code[at++] = head[i];
	/* x86-64's calls with bit 30 (x32) are none of the numbers. */
	for (size_t i = 0; i < n; i++) {
		code[at++] = (struct sock_filter)IF_EQUAL(numbers[i], 0, 1);
		code[at++] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
	}
	code[at++] = (struct sock_filter)IF_EQUAL(SYS_mmap, 2, 0);
	code[at++] = (struct sock_filter)IF_EQUAL(SYS_mprotect, 1, 0);
	code[at++] = (struct sock_filter)RETURN(SECCOMP_RET_KILL_PROCESS);
	for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++)
		code[at++] = memory[i];
	prog.len = (unsigned short)at;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		return -errno;
	return 0;
}
