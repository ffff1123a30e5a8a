// SPDX-License-Identifier: BSD-2-Clause
/* sleeper DEPTH: sleeps 50 us at a time below a recursion of so many frames, until killed. */
#include <stdlib.h>
#include <time.h>

static volatile int stop;

static __attribute__((noipa)) int sleeper_down(long depth)
{
	static const struct timespec moment = { 0, 50000 };
	volatile char frame[96] = { 0 };
	int n = 0;

	if (depth > 0)
		n = sleeper_down(depth - 1);
	else
		while (!stop)
			n += nanosleep(&moment, NULL);
	return n + frame[n & 63];
}

int main(int argc, char **argv)
{
	return sleeper_down(argc > 1 ? strtol(argv[1], NULL, 10) : 10);
}
