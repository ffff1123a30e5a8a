/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plt [SECONDS]: calls tiny functions of a library through the PLT. pl_neg's address is taken too,
 * which gives it a stub in .plt.got where the linker makes that section.
 */
#include "prog.h"
#include "libplt.h"

static NOIPA unsigned long plt_hot(unsigned long x, unsigned long (*neg)(unsigned long))
{
	unsigned long a = 1, b = 2;

	while (!prog_stop) {
		a = pl_add(a, x);
		b = pl_xor(b, a);
		x = pl_neg(b) + pl_one();
	}
	prog_keep(&neg);
	return a + b + x;
}

int main(int argc, char **argv)
{
	unsigned long r;

	prog_init(argc, argv);
	r = plt_hot((unsigned long)argc, pl_neg);
	prog_keep(&r);
	return 0;
}
