/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * except [SECONDS]: throws through ten frames with destructors, for ever; most time passes in the
 * C++ runtime.
 */
#include "prog.h"

HOT_PARTS(ex)

struct Guard {
	unsigned long *p;
	explicit Guard(unsigned long *target) : p(target)
	{
	}
	NOIPA ~Guard()
	{
		*p += 1;
	}
};

static NOIPA void ex_throw(unsigned long x)
{
	if (ex_mid(x, 3) != 1)
		throw static_cast<int>(x & 7);
}

static NOIPA unsigned long ex_down(int n, unsigned long x)
{
	unsigned long sum = x;
	Guard g(&sum);

	if (n > 1)
		sum += ex_down(n - 1, x);
	else
		ex_throw(x);
	return sum;
}

static NOIPA unsigned long ex_loop(unsigned long x)
{
	while (!prog_stop) {
		try {
			x += ex_down(10, x);
		} catch (int v) {
			x += static_cast<unsigned long>(v) + 1;
		}
	}
	return x;
}

int main(int argc, char **argv)
{
	unsigned long r;

	prog_init(argc, argv);
	r = ex_loop(static_cast<unsigned long>(argc));
	prog_keep(&r);
	return 0;
}
