/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * frames [SECONDS [COUNT]]: COUNT frames of 3 kB, then COUNT of 70 kB; the hot loop enters and
 * leaves frames of both sizes all the time.
 */
#include "prog.h"

HOT_PARTS(fr)

static NOIPA unsigned long fr_enter3k(unsigned long x)
{
	volatile char buf[3000];

	buf[x % sizeof(buf)] = (char)x;
	x += fr_leaf(x);
	return x + (unsigned char)buf[0];
}

static NOIPA unsigned long fr_enter70k(unsigned long x)
{
	volatile char buf[70000];

	buf[x % sizeof(buf)] = (char)x;
	x += fr_mid(x, x + 1);
	return x + (unsigned char)buf[1];
}

static NOIPA unsigned long fr_hot(unsigned long x)
{
	while (!prog_stop) {
		x += fr_enter3k(x);
		x ^= fr_enter70k(x);
	}
	return x;
}

static NOIPA unsigned long fr_down70k(long n, unsigned long x)
{
	volatile char buf[70000];

	buf[0] = buf[sizeof(buf) - 1] = (char)n;
	x = n > 1 ? fr_down70k(n - 1, x) : fr_hot(x);
	return x + (unsigned char)buf[0];
}

static NOIPA unsigned long fr_down3k(long n, long n70, unsigned long x)
{
	volatile char buf[3000];

	buf[0] = buf[sizeof(buf) - 1] = (char)n;
	x = n > 1 ? fr_down3k(n - 1, n70, x) : fr_down70k(n70, x);
	return x + (unsigned char)buf[0];
}

int main(int argc, char **argv)
{
	long n = prog_arg(argc, argv, 2, 8);
	unsigned long r;

	prog_init(argc, argv);
	r = fr_down3k(n, n, (unsigned long)argc);
	prog_keep(&r);
	return 0;
}
