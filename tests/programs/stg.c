/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stg [SECONDS]: as programs of GHC: code without tables runs in the frame of a function that jumps
 * into it, with a stack of its own in rbp, and calls C with rsp 8 bytes lower. The CFI is that of
 * GHC's StgRun(): another CFA than the caller's sp, which an expression gives.
 */
#include "prog.h"

HOT_PARTS(stg)

/* Called from the code without tables. Not 0: the end. */
int stg_call(unsigned long x)
{
	for (int i = 0; i < 200; i++)
		x += stg_mid(x, x + 1);
	prog_keep(&x);
	return prog_stop;
}

void stg_run(void *stack);
__asm__(".text\n"
	".globl stg_run\n"
	".type stg_run, @function\n"
	"stg_run:\n"
	".cfi_startproc\n"
	"	sub $0x30, %rsp\n"
	"	mov %rsp, %rax\n"
	"	sub $0x4000, %rsp\n"
	"	mov %rbx, (%rax)\n"
	"	mov %rbp, 8(%rax)\n"
	"	mov %r12, 0x10(%rax)\n"
	".cfi_def_cfa rsp, 0\n"
	".cfi_offset rbx, 0x4000\n"
	".cfi_offset rbp, 0x4008\n"
	".cfi_offset r12, 0x4010\n"
	".cfi_offset rip, 0x4030\n"
	".cfi_escape 0x16, 7, 4, 0x77, 0xb8, 0x80, 0x01\n" /* rsp is rsp + 0x4038 */
	"	mov %rdi, %rbp\n"
	"	lea stg_loop(%rip), %rax\n"
	"	jmp *%rax\n"
	"stg_return:\n"
	"	add $0x4000, %rsp\n"
	"	mov (%rsp), %rbx\n"
	"	mov 8(%rsp), %rbp\n"
	"	mov 0x10(%rsp), %r12\n"
	"	add $0x30, %rsp\n"
	"	ret\n"
	".cfi_endproc\n"
	".size stg_run, . - stg_run\n"
	".balign 8\n"
	".type stg_loop, @function\n"
	"stg_loop:\n"
	"	add $-8, %rbp\n"
	"	mov $50000, %ecx\n"
	"1:	mov %rcx, (%rbp)\n"
	"	dec %rcx\n"
	"	jne 1b\n"
	"	jmp stg_next\n"
	".size stg_loop, . - stg_loop\n"
	".balign 8\n"
	".type stg_next, @function\n"
	"stg_next:\n"
	"	sub $8, %rsp\n"
	"	mov %rbp, %rdi\n"
	"	call stg_call\n"
	"	add $8, %rsp\n"
	"	add $8, %rbp\n"
	"	test %eax, %eax\n"
	"	jne stg_return\n"
	"	jmp stg_loop\n"
	".size stg_next, . - stg_next\n");

int main(int argc, char **argv)
{
	static unsigned long stack[512];

	prog_init(argc, argv);
	stg_run(stack + 511);
	return 0;
}
