/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A function with a frame pointer near the top of the stack, below one without. Neither has rows:
 * both could jump into an instruction.
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
	call fs_stub
	hlt
	.size _start, . - _start

	.type fs_stub, @function
fs_stub:
	push %rbx
	overlap
	call fs_main
	pop %rbx
	ret
	.size fs_stub, . - fs_stub

	.type fs_main, @function
fs_main:
	push %rbp
	mov %rsp, %rbp
	overlap
2:	dec %ecx
	jnz 2b
	jmp 2b
	.size fs_main, . - fs_main
	.section .note.GNU-stack, "", @progbits
