/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * same [SECONDS]: built twice, with SAME=sa and SAME=sb, to stand at one path in two file systems.
 * The two have other names and other frame sizes, so the wrong file's tables or symbols would show.
 */
#include "prog.h"

#define JOIN2(a, b)  a##b
#define JOIN(a, b)   JOIN2(a, b)
#define HOT_OF(name) HOT(name)
HOT_OF(SAME)

static NOIPA unsigned long JOIN(SAME, _frame)(unsigned long x)
{
	volatile char buf[SAME_FRAME];

	buf[x % sizeof(buf)] = 1;
	return JOIN(SAME, _hot)(x) + (unsigned long)buf[0];
}

int main(int argc, char **argv)
{
	unsigned long r;

	prog_init(argc, argv);
	r = JOIN(SAME, _frame)((unsigned long)argc);
	prog_keep(&r);
	return 0;
}
