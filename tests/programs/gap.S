/* SPDX-License-Identifier: BSD-2-Clause */
/* 1.5 MB of code without tables that does not run: too much for the first pass over a file. */
	.text
	.globl gap
	.type gap, @function
gap:
	.rept 150000
	lea 8(%rdi, %rax), %rax
	imul %rax, %rdi
	nop
	.endr
	ret
	.size gap, . - gap
	.section .note.GNU-stack, "", @progbits
