/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probed N: calls probed_outer, _middle, _leaf N times with the numbers 0, 1, ..., N - 1, and
 * allocates that many bytes plus 1 in each. USDT probes stand in the leaf: sfbpf:number with the
 * number as a register, as 4 bytes in memory, and a constant; sfbpf:quiet with a semaphore. Prints
 * N, the sum of the numbers, how many are odd, and in how many calls sfbpf:quiet was on.
 */
#include <stdio.h>
#include <stdlib.h>

#include "prog.h"

static unsigned short quiet_on __attribute__((section(".probes"), used));
static int stored;
static long quiet_calls;

/* A note as <sys/sdt.h> writes it: pc, base, semaphore, provider, name, operands */
#define PROBE(name, semaphore, operands, ...)                                      \
	__asm__ volatile("990: nop\n"                                              \
			 ".pushsection .note.stapsdt,\"\",\"note\"\n"              \
			 ".balign 4\n"                                             \
			 ".4byte 992f-991f, 994f-993f, 3\n"                        \
			 "991: .asciz \"stapsdt\"\n"                               \
			 "992: .balign 4\n"                                        \
			 "993: .8byte 990b, _.stapsdt.base, " semaphore "\n"       \
			 ".asciz \"sfbpf\"\n.asciz \"" name "\"\n.asciz " operands \
			 "\n994: .balign 4\n.popsection\n" ::__VA_ARGS__)

__asm__(".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"
	".weak _.stapsdt.base\n.hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n"
	".size _.stapsdt.base, 1\n.popsection\n");

#ifdef __x86_64__
#define OPERANDS "\"8@%0 -4@%1 -4@$5\""
#else
#define OPERANDS "\"8@%0 -4@%1 -4@5\""
#endif

NOIPA void probed_leaf(int number, char *room)
{
	int *at = &stored;

	stored = number;
	__asm__ volatile("" : "+r"(at));
	PROBE("number", "0", OPERANDS, "r"((long)number), "m"(*at));
	quiet_calls += *(volatile unsigned short *)&quiet_on != 0;
	PROBE("quiet", "quiet_on", "\"\"", "r"(room));
}

NOIPA int probed_middle(int number, char *room)
{
	probed_leaf(number, room);
	__asm__ volatile("");
	return number & 1 ? number : -number;
}

NOIPA int probed_outer(int number)
{
	char *room = malloc((size_t)number + 1);
	int result = probed_middle(number, room);

	free(room);
	return result;
}

int main(int argc, char **argv)
{
	long n = prog_arg(argc, argv, 1, 1000), sum = 0, odd = 0;

	for (long i = 0; i < n; i++) {
		sum += i;
		odd += probed_outer((int)i) > 0;
	}
	printf("%ld %ld %ld %ld\n", n, sum, odd, quiet_calls);
	return 0;
}
