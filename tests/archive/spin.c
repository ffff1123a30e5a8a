/* SPDX-License-Identifier: BSD-2-Clause */
/* main, outer, middle, and leaf, which runs inlined_leaf inside; for ever. */
static volatile unsigned long sink;

static inline __attribute__((always_inline)) void inlined_leaf(void)
{
	for (int i = 0; i < 1000; i++)
		sink = sink * 6364136223846793005ul + 1;
}

__attribute__((noinline)) static void leaf(void)
{
	for (int i = 0; i < 100; i++)
		inlined_leaf();
	__asm__ volatile("" : : : "memory");
}

__attribute__((noinline)) static void middle(void)
{
	leaf();
	__asm__ volatile("" : : : "memory");
}

__attribute__((noinline)) static void outer(void)
{
	middle();
	__asm__ volatile("" : : : "memory");
}

int main(void)
{
	for (;;)
		outer();
}
