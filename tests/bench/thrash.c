// SPDX-License-Identifier: BSD-2-Clause
/*
 * thrash MEGABYTES: a neighbour that empties the caches. Reads so much memory, sleeps a random 4 to
 * 6 ms (so that it keeps no step with a sampling clock), until killed.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	size_t size = argc > 1 ? strtoul(argv[1], NULL, 10) << 20 : 0;
	volatile unsigned char *mem = size ? malloc(size) : NULL;
	uint32_t random = 12345;

	if (!mem) {
		fputs("usage: thrash MEGABYTES\n", stderr);
		return 2;
	}
	memset((void *)mem, 1, size);
	for (;;) {
		for (size_t i = 0; i < size; i += 64)
			mem[i]++;
		random = random * 1664525 + 1013904223;
		usleep(4000 + (random >> 16) % 2000);
	}
}
