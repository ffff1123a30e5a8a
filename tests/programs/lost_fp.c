/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lost-fp [SECONDS]: a function whose table says that it loses the caller's frame pointer. While
 * the function runs, the register points two frames up. The caller's row needs the register.
 */
#include "prog.h"

long lf_lose(const volatile sig_atomic_t *stop);

__asm__(".text\n"
	".globl lf_lose\n"
	".type lf_lose, @function\n"
	"lf_lose:\n"
	"	.cfi_startproc\n"
	"	push %rbp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	.cfi_offset %rbp, -16\n"
	"	mov (%rbp), %rbp\n"
	"	.cfi_undefined %rbp\n"
	"1:	mov (%rdi), %eax\n"
	"	test %eax, %eax\n"
	"	jz 1b\n"
	"	pop %rbp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	.cfi_same_value %rbp\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size lf_lose, . - lf_lose\n");

static NOIPA long lf_caller(void)
{
	return lf_lose(&prog_stop) + 1;
}

static NOIPA long lf_middle(void)
{
	return lf_caller() + 1;
}

static NOIPA long lf_outer(void)
{
	return lf_middle() + 1;
}

int main(int argc, char **argv)
{
	long r;

	prog_init(argc, argv);
	r = lf_outer();
	prog_keep(&r);
	return 0;
}
