/* SPDX-License-Identifier: BSD-2-Clause */
/* The library in the middle of dlmid's chain. */
#ifdef __clang__
#define NOIPA __attribute__((noinline))
#else
#define NOIPA __attribute__((noipa))
#endif

unsigned long mid_enter(unsigned long (*callback)(unsigned long), unsigned long x);

static NOIPA unsigned long mid_call(unsigned long (*callback)(unsigned long), unsigned long x)
{
	volatile char buf[1000];

	buf[x % sizeof(buf)] = 1;
	return callback(x) + (unsigned long)buf[0];
}

NOIPA unsigned long mid_enter(unsigned long (*callback)(unsigned long), unsigned long x)
{
	return mid_call(callback, x) + 1;
}
