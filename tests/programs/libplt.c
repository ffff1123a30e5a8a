/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions so small that a large part of the samples falls on the PLT. */
#include "libplt.h"

unsigned long pl_add(unsigned long a, unsigned long b)
{
	return a + b;
}
unsigned long pl_xor(unsigned long a, unsigned long b)
{
	return a ^ b;
}
unsigned long pl_neg(unsigned long a)
{
	return -a;
}
unsigned long pl_one(void)
{
	return 1;
}
