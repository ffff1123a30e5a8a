// SPDX-License-Identifier: BSD-2-Clause
// A hot function with another one inlined into it, for profiles of compilers. It runs until it is
// killed, or as many rounds as it is told.
#include <stdlib.h>

static unsigned step(unsigned x, unsigned i)
{
	if (x % 3 == 0)
		return x * 5 + i;
	return x / 2 + i;
}

__attribute__((noinline)) static unsigned hot(unsigned n)
{
	unsigned x = 1;

	for (unsigned i = 0; i < n; i++) {
		x = step(x, i);
		if (x % 1024 == 7)
			x += 3;
	}
	return x;
}

__attribute__((noinline)) static unsigned cold(unsigned n)
{
	return step(n, 7) * 3;
}

volatile unsigned result;

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 0;

	for (unsigned i = 0; !rounds || i < rounds; i++)
		result += hot(100000 + i);
	result += cold(rounds);
	return 0;
}
