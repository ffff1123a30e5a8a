/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A function without a frame, called by one with a frame pointer. Neither has rows: both could jump
 * into an instruction.
 */
	.macro overlap
	test %esp, %esp
	jz 1f + 1
1:	mov $0x90909090, %eax
	.endm

	.text
	.globl _start
	.type _start, @function
_start:
	xor %ebp, %ebp
	and $-16, %rsp
	call fl_main
	hlt
	.size _start, . - _start

	.type fl_main, @function
fl_main:
	push %rbp
	mov %rsp, %rbp
	overlap
	call fl_leaf
	pop %rbp
	ret
	.size fl_main, . - fl_main

	.type fl_leaf, @function
fl_leaf:
	overlap
2:	dec %ecx
	jnz 2b
	jmp 2b
	.size fl_leaf, . - fl_leaf
	.section .note.GNU-stack, "", @progbits
