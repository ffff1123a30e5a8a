/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * asm SECONDS: a program in assembler, without C library, tables, and types or sizes of symbols.
 * Functions remove their arguments, and the exit is a system call that more code follows.
 */
	.text
	.globl _start, as_leaf, as_one, as_two
as_leaf:
	mov $300, %ecx
1:	imul $31, %rax
	dec %ecx
	jnz 1b
	ret

as_one:	/* (x): x, mixed */
	mov 8(%rsp), %rax
	call as_leaf
	ret $8

as_two:	/* (x, y): both, mixed */
	push %rbx
	push 24(%rsp)
	call as_one
	mov %rax, %rbx
	push 16(%rsp)
	call as_one
	add %rbx, %rax
	mov $200, %ecx
1:	rol $3, %rax
	dec %ecx
	jnz 1b
	pop %rbx
	ret $16

_start:
	mov 16(%rsp), %rsi
	xor %edi, %edi
1:	movzbl (%rsi), %eax
	sub $'0', %eax
	cmp $9, %eax
	ja 2f
	lea (%rdi,%rdi,4), %rdi
	lea (%rax,%rdi,2), %rdi
	inc %rsi
	jmp 1b
2:	mov $37, %eax	/* alarm */
	syscall
	mov $-1, %r12
3:	push $7
	push $9
	call as_two
	push %rax
	call as_one
	dec %r12
	jnz 3b
	mov $60, %eax	/* exit */
	xor %edi, %edi
	syscall
	.byte 0x06, 0x06, 0x06, 0x06, 0x06, 0x06, 0x06, 0x06	/* data */
	.section .note.GNU-stack, "", @progbits
