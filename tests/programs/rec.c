/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rec [SECONDS [DEPTH]]: a recursion through frames of three shapes. Five levels are seven frames:
 * rec_down each, then rec_small on the first and rec_buffer on the last.
 */
#include "prog.h"

HOT(rec)

static NOIPA unsigned long rec_down(long depth, unsigned long x);

static NOIPA unsigned long rec_small(long depth, unsigned long x)
{
	return rec_down(depth - 1, x) + 1;
}

static NOIPA unsigned long rec_buffer(long depth, unsigned long x)
{
	char buf[200];

	memset(buf, (int)depth, sizeof(buf));
	prog_keep(buf);
	x = rec_down(depth - 1, x);
	return x + (unsigned char)buf[x % sizeof(buf)];
}

static NOIPA unsigned long rec_down(long depth, unsigned long x)
{
	unsigned long a = x * 3, b = x ^ 5;

	if (depth <= 0)
		x = rec_hot(x);
	else if (depth % 5 == 0)
		x = rec_small(depth, x);
	else if (depth % 5 == 1)
		x = rec_buffer(depth, x);
	else
		x = rec_down(depth - 1, x);
	prog_keep(&prog_stop);
	return a + b + x;
}

int main(int argc, char **argv)
{
	unsigned long r;

	prog_init(argc, argv);
	r = rec_down(prog_arg(argc, argv, 2, 60), (unsigned long)argc);
	prog_keep(&r);
	return 0;
}
