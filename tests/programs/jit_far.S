/* SPDX-License-Identifier: BSD-2-Clause */
/* A function of another file that jumps to code made at run time, as orc_executor_run() does. */
	.text
	.globl ji_far_jump
	.type ji_far_jump, @function
ji_far_jump:
	.cfi_startproc
	mov %rdx, %rax
	jmp *%rax
	.cfi_endproc
	.size ji_far_jump, . - ji_far_jump
	.section .note.GNU-stack, "", @progbits
