/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probe [SECONDS [WAY]]: a program with probes as of another tool in its functions, set by
 * perf_event_open(2). The WAY: 1 return probes, 2 entry probes, 3 (x86-64) an entry probe on a
 * function after bytes that look like a breakpoint, in which the time is spent.
 */
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/syscall.h>
#include "prog.h"

#define TYPE	   "/sys/bus/event_source/devices/uprobe/type"
#define OF_RETURNS 1 /* perf_event_attr.config, by .../format/retprobe */

HOT(pr)

static NOIPA unsigned long pr_again(unsigned long depth)
{
	return depth ? pr_again(depth - 1) + 1 : pr_hot(depth + 1);
}

static NOIPA unsigned long pr_outer(unsigned long depth)
{
	return pr_again(depth) + 1;
}

#ifdef __x86_64__
void pr_padded(void);

__asm__(".pushsection .text\n"
	".p2align 4\n"
	".byte 0xcc, 0xcc\n"
	".type pr_padded, @function\n"
	"pr_padded:\n"
	".cfi_startproc\n"
	"ret\n"
	".cfi_endproc\n"
	".size pr_padded, . - pr_padded\n"
	".popsection\n");

static NOIPA void pr_calls(void)
{
	while (!prog_stop)
		pr_padded();
}
#endif

/* Where that function is in the program's file; 0: not known. */
static unsigned long file_offset(unsigned long addr)
{
	unsigned long start, end, offset, found = 0;
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 && addr >= start &&
		    addr < end)
			found = addr - start + offset;
	if (f)
		fclose(f);
	return found;
}

static int probe(unsigned long addr, unsigned long long config)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.config = config,
		.uprobe_path = (unsigned long)"/proc/self/exe",
		.probe_offset = file_offset(addr),
	};
	FILE *f = fopen(TYPE, "r");
	int ok = f && fscanf(f, "%u", &attr.type) == 1;

	if (f)
		fclose(f);
	return ok && attr.probe_offset &&
	       syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC) >= 0;
}

int main(int argc, char **argv)
{
	const long way = prog_arg(argc, argv, 2, 1);
	const unsigned long long config = way == 1 ? OF_RETURNS : 0;
	unsigned long r;

#ifdef __x86_64__
	if (way == 3) {
		if (!probe((unsigned long)pr_padded, 0))
			return 77;
		prog_init(argc, argv);
		pr_calls();
		return 0;
	}
#endif
	if (!probe((unsigned long)pr_outer, config) || !probe((unsigned long)pr_again, config) ||
	    !probe((unsigned long)pr_mid, config))
		return 77;
	prog_init(argc, argv);
	r = pr_outer(6);
	prog_keep(&r);
	return 0;
}
