/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * made_stack [SECONDS]: a stack that a library made, as libcoro does: the word above the first
 * function's frame is the address of a function, "for alignment", which no call has pushed.
 */
#include <sys/mman.h>
#include "prog.h"

#define STACK 65536

HOT(ms)

void ms_enter(void **sp);
__asm__(".type ms_enter, @function\n"
	"ms_enter:\n"
	"	.cfi_startproc\n"
	"	mov %rdi, %rsp\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size ms_enter, . - ms_enter\n");

static NOIPA void ms_begin(void)
{
	unsigned long r = ms_hot(1);

	prog_keep(&r);
	_exit(0);
}

int main(int argc, char **argv)
{
	void **sp = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	prog_init(argc, argv);
	if (sp == MAP_FAILED)
		return 77;
	sp += STACK / sizeof(*sp) - 64; /* others may be above */
	*--sp = (void *)abort;
	*--sp = (void *)ms_begin;
	ms_enter(sp);
	return 1;
}
