/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * alloca [SECONDS]: frames whose size is only known at run time, in the chain and in the hot loop.
 */
#include <alloca.h>
#include "prog.h"

HOT_PARTS(al)

static NOIPA unsigned long al_enter(unsigned long x)
{
	char *p = (char *)alloca(16 + x % 500);

	p[x % 16] = (char)x;
	prog_keep(p);
	return al_mid(x, x + 3) + (unsigned char)p[0];
}

static NOIPA unsigned long al_hot(unsigned long x)
{
	while (!prog_stop)
		x += al_enter(x);
	return x;
}

static NOIPA unsigned long al_down(long n, unsigned long x)
{
	char *p = (char *)alloca(100 + (unsigned long)n * 37);
	char *q;

	memset(p, (int)n, 100);
	prog_keep(p);
	if (n > 0) {
		x = al_down(n - 1, x);
	} else {
		q = (char *)alloca(x % 64 + 8);
		q[0] = 1;
		prog_keep(q);
		x = al_hot(x);
	}
	return x + (unsigned char)p[1];
}

int main(int argc, char **argv)
{
	unsigned long r;

	prog_init(argc, argv);
	r = al_down(12, (unsigned long)argc);
	prog_keep(&r);
	return 0;
}
