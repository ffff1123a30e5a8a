/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * made_stack [SECONDS]: a stack that a library made, as libcoro does: the word above the first
 * function's frame is the address of a function, "for alignment", which no call has pushed. With
 * KNOWN the functions have the names that libcoro's have, which prove that the stack ends there.
 */
#include <sys/mman.h>
#include "prog.h"

#define STACK 65536

#ifdef KNOWN
#define MS_ENTER  "coro_transfer"
#define MS_CREATE "coro_create"
#else
#define MS_ENTER  "ms_enter"
#define MS_CREATE "ms_create"
#endif

HOT(ms)

void ms_enter(void **sp) __asm__(MS_ENTER);
__asm__(".globl " MS_ENTER "\n"
	".type " MS_ENTER ", @function\n" MS_ENTER ":\n"
	"	.cfi_startproc\n"
	"	mov %rdi, %rsp\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size " MS_ENTER ", . - " MS_ENTER "\n");

NOIPA void ms_create(void **sp) __asm__(MS_CREATE);

static NOIPA void ms_begin(void)
{
	unsigned long r = ms_hot(1);

	prog_keep(&r);
	_exit(0);
}

void ms_create(void **sp)
{
	*--sp = (void *)abort;
	*--sp = (void *)ms_begin;
	ms_enter(sp);
}

int main(int argc, char **argv)
{
	void **sp = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	prog_init(argc, argv);
	if (sp == MAP_FAILED)
		return 77;
	ms_create(sp + STACK / sizeof(*sp) - 64); /* others may be above */
	return 1;
}
