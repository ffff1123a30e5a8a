/* SPDX-License-Identifier: BSD-2-Clause */
/* again's libraries: the same code at the same places, under other names. */
#include <sys/syscall.h>
#include <time.h>
#include "prog.h"

#define JOIN2(a, b) a##b
#define JOIN(a, b)  JOIN2(a, b)

void ag_enter(const volatile long *usec);

static NOIPA void JOIN(AGAIN, _block)(const volatile long *usec)
{
	struct timespec ts = { 0, *usec * 1000 };
	long r = syscall(SYS_nanosleep, &ts, NULL);

	prog_keep(&r);
}

NOIPA void ag_enter(const volatile long *usec)
{
	JOIN(AGAIN, _block)(usec);
	prog_keep(usec);
}
