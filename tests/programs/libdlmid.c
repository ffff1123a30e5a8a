/* SPDX-License-Identifier: BSD-2-Clause */
/* The library in the middle of dlmid's chain. */
unsigned long mid_enter(unsigned long (*callback)(unsigned long), unsigned long x);

static __attribute__((noipa)) unsigned long mid_call(unsigned long (*callback)(unsigned long),
						     unsigned long x)
{
	volatile char buf[1000];

	buf[x % sizeof(buf)] = 1;
	return callback(x) + (unsigned long)buf[0];
}

__attribute__((noipa)) unsigned long mid_enter(unsigned long (*callback)(unsigned long),
					       unsigned long x)
{
	return mid_call(callback, x) + 1;
}
