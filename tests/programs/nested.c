/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nested [SECONDS]: a nested function of GNU C, called through a trampoline on the stack: run-time
 * code without a frame, which ends in a jump.
 */
#include "prog.h"

static NOIPA void ne_apply(void (*fn)(int))
{
	while (!prog_stop)
		fn(1);
	prog_keep(fn);
}

static NOIPA unsigned long ne_outer(unsigned long x)
{
	unsigned long sum = x;

	__extension__ NOIPA void ne_inner(int n)
	{
		sum += (unsigned long)n;
	}

	ne_apply(ne_inner);
	return sum;
}

static NOIPA unsigned long ne_run(void)
{
	return ne_outer(1) + 1;
}

int main(int argc, char **argv)
{
	unsigned long r;

	prog_init(argc, argv);
	r = ne_run();
	prog_keep(&r);
	return 0;
}
