/* SPDX-License-Identifier: BSD-2-Clause */
/* again's libraries: the same code at the same places, under other names. */
#include <sys/syscall.h>
#include <time.h>
#include "prog.h"

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)

long ag_enter(long usec);

static NOIPA long JOIN(AGAIN, _block)(long usec)
{
	struct timespec ts = { 0, usec * 1000 };
	long r = syscall(SYS_nanosleep, &ts, NULL);

	prog_keep(&r);
	return r;
}

NOIPA long ag_enter(long usec)
{
	long r = JOIN(AGAIN, _block)(usec);

	prog_keep(&r);
	return r;
}
