/* SPDX-License-Identifier: BSD-2-Clause */
/* dlswap's libraries: other names, other frame sizes, other function addresses. */
#include "prog.h"

#define JOIN2(a, b)    a##b
#define JOIN(a, b)     JOIN2(a, b)
#define PARTS_OF(name) HOT_PARTS(name)

unsigned long sw_enter(volatile sig_atomic_t *stop, unsigned long rounds);

PARTS_OF(SWAP)

static NOIPA unsigned long JOIN(SWAP, _frame)(volatile sig_atomic_t *stop, unsigned long rounds)
{
	volatile char buf[SWAP_FRAME];
	unsigned long x = rounds;

	buf[rounds % sizeof(buf)] = 1;
	while (rounds-- > 0 && !*stop)
		x += JOIN(SWAP, _mid)(x, rounds);
	return x + (unsigned long)buf[0];
}

NOIPA unsigned long sw_enter(volatile sig_atomic_t *stop, unsigned long rounds)
{
	return JOIN(SWAP, _frame)(stop, rounds) | 2;
}
