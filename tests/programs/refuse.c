/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * librefuse.so, for LD_PRELOAD: makes the kernel refuse BPF programs, with the log that its
 * verifier writes itself. REFUSE=NAME[:COUNT]: the first COUNT loads (default: all) of the program
 * with this name begin with an instruction that reads a register that nothing has set. libbpf loads
 * a refused program a second time, for the log, unless the caller has given it a buffer.
 */
#include <dlfcn.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define READ_R5 0xbf /* r0 = r5 */

/* Whether this is a load of the program, and one of the first COUNT. */
static int matches(const union bpf_attr *attr)
{
	static unsigned long seen;
	const char *name = getenv("REFUSE"), *count = name ? strchr(name, ':') : NULL;
	size_t len = !name ? 0 : count ? (size_t)(count - name) : strlen(name);

	if (!len || len >= sizeof(attr->prog_name) || attr->prog_name[len] ||
	    memcmp(attr->prog_name, name, len) || !attr->insn_cnt)
		return 0;
	return !count || seen++ < strtoul(count + 1, NULL, 10);
}

/* libbpf makes its system calls through this function of libc. */
long syscall(long number, ...)
{
	static long (*real)(long, ...);
	struct bpf_insn *insns, *damaged = NULL;
	union bpf_attr *attr;
	long a[6], rc;
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "syscall");
	attr = (union bpf_attr *)(uintptr_t)a[1];
	if (number == SYS_bpf && a[0] == BPF_PROG_LOAD && matches(attr)) {
		insns = (struct bpf_insn *)(uintptr_t)attr->insns;
		damaged = malloc(attr->insn_cnt * sizeof(*insns));
	}
	if (!damaged)
		return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	memcpy(damaged, insns, attr->insn_cnt * sizeof(*insns));
	damaged[0] = (struct bpf_insn){ .code = READ_R5, .dst_reg = 0, .src_reg = 5 };
	attr->insns = (uintptr_t)damaged;
	rc = real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	attr->insns = (uintptr_t)insns;
	free(damaged);
	return rc;
}
