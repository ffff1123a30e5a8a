/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * keepreg [SECONDS [WAY]]: assembler functions whose tables say that the CFA is r11 + 8 or rax + 8
 * while they call helpers, as OpenSSL's and GnuTLS's ciphers do. The WAY:
 *
 *   0  r11; the helpers leave it alone
 *   1  rax, in a function that r11's function calls
 *   2  a helper overwrites r11 with another address in the stack
 */
#include "prog.h"

long kr_r11(const volatile sig_atomic_t *stop, long way);

__asm__(".text\n"
	".globl kr_r11\n"
	".type kr_r11, @function\n"
	"kr_r11:\n"
	"	.cfi_startproc\n"
	"	mov %rsp, %r11\n"
	"	.cfi_def_cfa_register %r11\n"
	"	push %rbp\n"
	"	.cfi_offset %rbp, -16\n"
	"	sub $2048, %rsp\n"
	"	and $-64, %rsp\n"
	"	mov %rsi, %rcx\n"
	"1:	cmp $1, %rcx\n"
	"	je 2f\n"
	"	call kr_leaf\n"
	"	jmp 3f\n"
	"2:	call kr_rax\n"
	"3:	mov (%rdi), %edx\n"
	"	test %edx, %edx\n"
	"	jz 1b\n"
	"	mov -8(%r11), %rbp\n"
	"	mov %r11, %rsp\n"
	"	.cfi_def_cfa_register %rsp\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size kr_r11, . - kr_r11\n"
	".type kr_rax, @function\n"
	"kr_rax:\n"
	"	.cfi_startproc\n"
	"	mov %rsp, %rax\n"
	"	.cfi_def_cfa_register %rax\n"
	"	sub $200, %rsp\n"
	"	and $-32, %rsp\n"
	"	call kr_leaf\n"
	"	call kr_leaf\n"
	"	mov %rax, %rsp\n"
	"	.cfi_def_cfa_register %rsp\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size kr_rax, . - kr_rax\n"
	".type kr_leaf, @function\n"
	"kr_leaf:\n"
	"	.cfi_startproc\n"
	"	mov %r11, %r8\n"
	"	cmp $2, %rcx\n"
	"	jne 1f\n"
	"	lea 512(%rsp), %r11\n"
	"1:	mov $2000, %edx\n"
	"2:	dec %edx\n"
	"	jnz 2b\n"
	"	mov %r8, %r11\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size kr_leaf, . - kr_leaf\n");

static NOIPA long kr_caller(long way)
{
	return kr_r11(&prog_stop, way) + 1;
}

int main(int argc, char **argv)
{
	long r;

	prog_init(argc, argv);
	r = kr_caller(prog_arg(argc, argv, 2, 0));
	prog_keep(&r);
	return 0;
}
