/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turns [SECONDS]: four ways to the same functions at the same stack pointer, in turn, each for
 * less than the time between two samples. What was true of the last stack is not true of the next
 * one, though much of it looks alike:
 *
 *   a, b   another return address further out
 *   c, d   the same return addresses, but a frame further out lies elsewhere; only its frame
 *          pointer tells
 */
#include <alloca.h>
#include "prog.h"

HOT_PARTS(tu)

static unsigned long tu_x, tu_i; /* in memory: no caller's register has them */

typedef void burn_fn(void);

#define WAY(name, with_it)                          \
	static NOIPA void name##_burn(void)         \
	{                                           \
		with_it;                            \
		for (tu_i = 0; tu_i < 60; tu_i++) { \
			tu_x += tu_mid(tu_x, tu_i); \
			tu_x += tu_leaf(tu_x);      \
			tu_x += tu_leaf(tu_x);      \
		}                                   \
	}

/* Has something in the frame pointer's register, always the same. */
#ifdef __x86_64__
#define OTHER_FP __asm__ volatile("mov $1, %%ebp" : : : "rbp")
#else
#define OTHER_FP (void)0
#endif

WAY(tua, (void)0)
WAY(tub, (void)0)
WAY(tuc, (void)0)
WAY(tud, OTHER_FP)

/*
 * Two frames that are the same, and burn with or without tu_mid: a profiler need not look at each
 * frame.
 */
static NOIPA void tu_inner(burn_fn *burn)
{
	burn();
	tu_x++;
}

static NOIPA void tu_common(burn_fn *burn)
{
	OTHER_FP;
	tu_inner(burn);
	tu_x++;
}

static NOIPA void tua_path(void)
{
	tu_common(tua_burn);
	tu_x++;
}

static NOIPA void tub_path(void)
{
	tu_common(tub_burn);
	tu_x++;
}

/* Overwrites what was there in another turn. */
#define FILL(room, size)                               \
	do {                                           \
		for (size_t at = 0; at < (size); at++) \
			(room)[at] = 1;                \
	} while (0)

static NOIPA void tu_outer(size_t size, burn_fn *burn)
{
	volatile char *room = alloca(size);

	FILL(room, size);
	tu_common(burn);
	burn();
	tu_x += (unsigned long)room[0];
}

static NOIPA void tu_shift(size_t size, burn_fn *burn)
{
	volatile char *room = alloca(size);

	FILL(room, size);
	tu_outer(4096 - size, burn);
	tu_x += (unsigned long)room[0];
}

static NOIPA void tu_run(void)
{
	for (unsigned long i = 0; !prog_stop; i++) {
		tua_path();
		tub_path();
		tu_shift((i >> 1 & 3) * 256, i & 1 ? tuc_burn : tud_burn);
	}
}

int main(int argc, char **argv)
{
	prog_init(argc, argv);
	tu_run();
	prog_keep(&tu_x);
	return 0;
}
