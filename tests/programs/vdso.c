/* SPDX-License-Identifier: BSD-2-Clause */
/* vdso [SECONDS]: reads the clock, which runs in the vDSO. */
#include <time.h>
#include "prog.h"

static NOIPA unsigned long vd_hot(unsigned long x)
{
	struct timespec ts;

	while (!prog_stop) {
		clock_gettime(CLOCK_MONOTONIC, &ts);
		x += (unsigned long)ts.tv_nsec;
	}
	return x;
}

static NOIPA unsigned long vd_run(unsigned long x)
{
	return vd_hot(x) + 1;
}

int main(int argc, char **argv)
{
	unsigned long r;

	prog_init(argc, argv);
	r = vd_run((unsigned long)argc);
	prog_keep(&r);
	return 0;
}
