/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jit_again [SECONDS [MS]]: code made at run time in memory that is used again. Every MS
 * milliseconds (400), other code is written to one place, and named in /tmp/perf-PID.map: turn_0 to
 * turn_7, over and over. Each is called by the function whose name has its number. Code at another
 * place, "steady", is a tenth of the time.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include "prog.h"

typedef void code_fn(int);

static volatile unsigned long ja_count;

#ifdef __x86_64__
/* push %rbp; mov %rsp, %rbp; mov %edi, %eax; 1: dec %eax; jnz 1b; pop %rbp; ret */
static const uint8_t code[] = { 0x55, 0x48, 0x89, 0xe5, 0x89, 0xf8,
				0xff, 0xc8, 0x75, 0xfc, 0x5d, 0xc3 };
#else
static const uint8_t code[1];
#endif

#define CALLER(n)                                        \
	static NOIPA void ja_##n(code_fn *fn, int loops) \
	{                                                \
		fn(loops);                               \
		ja_count++;                              \
	}                                                \
	_Static_assert(1, "")

CALLER(0);
CALLER(1);
CALLER(2);
CALLER(3);
CALLER(4);
CALLER(5);
CALLER(6);
CALLER(7);

static void (*const callers[])(code_fn *, int) = { ja_0, ja_1, ja_2, ja_3, ja_4, ja_5, ja_6, ja_7 };

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	double every = (argc > 2 ? atof(argv[2]) : 400) / 1000;
	uint8_t *at = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	code_fn *fn = (code_fn *)(void *)at, *steady = (code_fn *)(void *)(at + 4096);
	char path[64];
	FILE *map;

	if (sizeof(code) == 1)
		exit(77);
	prog_init(argc, argv);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map = fopen(path, "w");
	if (at == MAP_FAILED || !map)
		return 1;
	memcpy(at + 4096, code, sizeof(code));
	fprintf(map, "%lx %zx steady\n", (unsigned long)(uintptr_t)steady, sizeof(code));
	for (unsigned int turn = 0; !prog_stop; turn = (turn + 1) % 8) {
		double end = now() + every;

		memcpy(at, code, sizeof(code));
		fprintf(map, "%lx %zx turn_%u\n", (unsigned long)(uintptr_t)fn, sizeof(code), turn);
		fflush(map);
		while (!prog_stop && now() < end) {
			callers[turn](fn, 90000);
			callers[turn](steady, 10000);
		}
	}
	fclose(map);
	unlink(path);
	return 0;
}
