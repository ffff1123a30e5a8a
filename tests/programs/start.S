/* SPDX-License-Identifier: BSD-2-Clause */
/* The entry of a static program, as glibc's crt1.o has it, but without tables. */
	.text
	.globl _start
	.type _start, @function
_start:
	xor %ebp, %ebp
	mov %rdx, %r9
	pop %rsi
	mov %rsp, %rdx
	and $-16, %rsp
	push %rax
	push %rsp
	xor %r8d, %r8d
	xor %ecx, %ecx
	mov $main, %rdi
	call __libc_start_main
	hlt
	.size _start, . - _start

/* crt1.o of programs that are not position-independent has this too. */
	.globl _dl_relocate_static_pie
	.type _dl_relocate_static_pie, @function
_dl_relocate_static_pie:
	ret
	.size _dl_relocate_static_pie, . - _dl_relocate_static_pie
	.section .note.GNU-stack, "", @progbits
