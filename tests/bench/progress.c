// SPDX-License-Identifier: BSD-2-Clause
/*
 * progress FILE DEPTH: works below a recursion of so many frames until killed, and keeps two numbers in FILE: pieces of work done,
 * and the CPU time they took, in ns. Interrupts are part of that time, hence samples too.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PIECE 20000	/* steps: some 20 us */

static volatile uint64_t *shared;
static volatile int stop;

static __attribute__((noipa)) uint64_t progress_piece(uint64_t x)
{
	for (int i = 0; i < PIECE; i++)
		x = x * 6364136223846793005ull + 1442695040888963407ull;
	return x;
}

static __attribute__((noipa)) uint64_t progress_down(long depth, uint64_t x)
{
	volatile char frame[96] = { 0 };
	struct timespec ts;

	if (depth > 0)
		x = progress_down(depth - 1, x);
	else
		while (!stop) {
			x = progress_piece(x);
			clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
			shared[1] = (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
			shared[0]++;
		}
	return x + (uint64_t)frame[x & 63];
}

int main(int argc, char **argv)
{
	int fd = argc == 3 ? open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;

	if (fd < 0 || ftruncate(fd, 2 * sizeof(*shared))) {
		fputs("usage: progress FILE DEPTH\n", stderr);
		return 2;
	}
	shared = mmap(NULL, 2 * sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	return (int)progress_down(strtol(argv[2], NULL, 10), 1);
}
