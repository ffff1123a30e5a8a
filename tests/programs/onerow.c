/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * onerow [SECONDS]: functions whose unwind table is one row with a frame pointer, as that of code
 * from Dart's compiler: with a frame, without one, with a late frame, and one that is called
 * through a pointer only and ends in a jump.
 */
#include "prog.h"

#ifdef __x86_64__
void or_outer(unsigned long rounds);

#define LOOP "mov $300, %ecx\n 2: imul $31, %rax\n dec %ecx\n jnz 2b\n"

__asm__(".text\n.globl or_outer\n.type or_outer, @function\n"
	".cfi_startproc\n.cfi_def_cfa %rbp, 16\n.cfi_offset %rbp, -16\n"
	"or_outer: push %rbp\n mov %rsp, %rbp\n call or_mid\n mov %rbp, %rsp\n pop %rbp\n ret\n"
	".size or_outer, . - or_outer\n"
	".type or_mid, @function\n"
	"or_mid: push %rbp\n mov %rsp, %rbp\n push %rbx\n push %r12\n mov %rdi, %rbx\n"
	"lea or_pointer(%rip), %r12\n"
	"1: call or_leaf\n call or_framed\n mov $1, %edi\n call or_late\n call *%r12\n"
	"dec %rbx\n jnz 1b\n"
	"lea -16(%rbp), %rsp\n pop %r12\n pop %rbx\n leave\n ret\n"
	".size or_mid, . - or_mid\n"
	".type or_leaf, @function\n"
	"or_leaf: " LOOP "ret\n"
	".size or_leaf, . - or_leaf\n"
	".type or_framed, @function\n"
	"or_framed: push %rbp\n mov %rsp, %rbp\n " LOOP "pop %rbp\n ret\n"
	".size or_framed, . - or_framed\n"
	".type or_late, @function\n"
	"or_late: test %edi, %edi\n jz 1f\n push %rdi\n push %rsi\n " LOOP
	"pop %rsi\n pop %rdi\n ret\n"
	"1: push %rbp\n mov %rsp, %rbp\n call or_leaf\n leave\n ret\n"
	".size or_late, . - or_late\n"
	".type or_pointer, @function\n"
	"or_pointer: " LOOP "jmp or_target\n"
	".size or_pointer, . - or_pointer\n"
	".type or_target, @function\n"
	"or_target: push %rbp\n mov %rsp, %rbp\n " LOOP "leave\n ret\n"
	".size or_target, . - or_target\n"
	".cfi_endproc\n");

int main(int argc, char **argv)
{
	prog_init(argc, argv);
	while (!prog_stop)
		or_outer(1000);
	return 0;
}
#else
int main(void)
{
	return 77;
}
#endif
