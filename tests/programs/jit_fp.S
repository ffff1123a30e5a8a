/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What jit_fp.c copies: each piece is a function with a frame that calls a second one, which may
 * have none. The first argument is the address of the flag that ends the second one.
 */
	/* What the second function jumps to; nothing, for most. */
	.macro third name
	.balign 16
\name\()_third:
	.endm

	.macro last name
\name\()_end:
	.endm

#ifdef __aarch64__

	/* The function with the frame, up to the call. */
	.macro first name
	.balign 16
	.globl \name, \name\()_second, \name\()_third, \name\()_end
\name:
	stp x29, x30, [sp, #-32]!
	mov x29, sp
	.endm

	.macro second name
	ldp x29, x30, [sp], #32
	ret
	.balign 16
\name\()_second:
	.endm

	.macro spin
1:	mov w1, #20000
2:	subs w1, w1, #1
	b.ne 2b
	ldr w2, [x0]
	cbz w2, 1b
	.endm

	.section .rodata
	first jf_leaf
	bl jf_leaf_second
	second jf_leaf
	spin
	ret
	third jf_leaf
	last jf_leaf

	first jf_spills
	bl jf_spills_second
	second jf_spills
	sub sp, sp, #48
	str x0, [sp, #8]
	spin
	add sp, sp, #48
	ret
	third jf_spills
	last jf_spills

	first jf_framed
	adr x1, jf_framed_second
	blr x1
	second jf_framed
	stp x29, x30, [sp, #-64]!
	mov x29, sp
	str x0, [sp, #40]
	spin
	ldp x29, x30, [sp], #64
	ret
	third jf_framed
	last jf_framed

	first jf_back
	bl jf_back_second
	ldp x29, x30, [sp], #32
	ret
jf_back_leaf:
	sub sp, sp, #8192
	spin
	add sp, sp, #8192
	ret
	second jf_back
	stp x29, x30, [sp, #-32]!
	mov x29, sp
	adr x1, jf_back_leaf
	blr x1
	ldp x29, x30, [sp], #32
	ret
	third jf_back
	last jf_back

#else

	/* The function with the frame, up to the call; %rbx is the second one's address. */
	.macro first name
	.balign 16
	.globl \name, \name\()_second, \name\()_third, \name\()_end
\name:
	push %rbp
	mov %rsp, %rbp
	push %rbx
	sub $24, %rsp
	lea \name\()_second(%rip), %rbx
	.endm

	/* After the call; the second function follows. */
	.macro second name
	add $24, %rsp
	pop %rbx
	pop %rbp
	ret
	.balign 16
\name\()_second:
	.endm

	.macro spin
1:	mov $20000, %ecx
	cs nopw 0(%rax, %rax)
2:	dec %ecx
	jnz 2b
	mov (%rdi), %eax
	test %eax, %eax
	jz 1b
	.endm

	.section .rodata
	first jf_leaf
	call jf_leaf_second
	second jf_leaf
	spin
	ret
	third jf_leaf
	last jf_leaf

	first jf_spills
	call jf_spills_second
	second jf_spills
	push %rbx
	sub $48, %rsp
	spin
	add $48, %rsp
	pop %rbx
	ret
	third jf_spills
	last jf_spills

	first jf_pointer
	call *%rbx
	second jf_pointer
	spin
	ret
	third jf_pointer
	last jf_pointer

	first jf_hidden
	call *%rbx
	second jf_hidden
	sub $72, %rsp
	spin
	add $72, %rsp
	ret
	third jf_hidden
	last jf_hidden

	first jf_framed
	call *%rbx
	second jf_framed
	push %rbp
	mov %rsp, %rbp
	sub $64, %rsp
	movq $0, -8(%rbp)
	spin
	leave
	ret
	third jf_framed
	last jf_framed

	first jf_inner
	call jf_inner_second
	second jf_inner
	push %rbp
	mov %rsp, %rbp
	sub $16, %rsp
	lea jf_inner_third(%rip), %rax
	call *%rax
	leave
	ret
	third jf_inner
	spin
	ret
	last jf_inner

	first jf_back
	call jf_back_second
	add $24, %rsp
	pop %rbx
	pop %rbp
	ret
jf_back_leaf:
	sub $8200, %rsp
	spin
	add $8200, %rsp
	ret
	second jf_back
	push %rbp
	mov %rsp, %rbp
	lea jf_back_leaf(%rip), %rax
	call *%rax
	pop %rbp
	ret
	third jf_back
	last jf_back

	/* Below are those that are stepped. */
	first jf_known
	call jf_known_second
	second jf_known
	endbr64
	push %rbx
	push %r12
	sub $24, %rsp
	mov %rdi, %rbx
	nopw 0(%rax, %rax)
	mov (%rbx), %eax
	imul $77, %eax, %r12d
	movzbl %al, %ecx
	cmp $1000, %r12d
	je 3f
	shl $3, %rcx
	cvtsi2sd %ecx, %xmm0
3:	movq $7, 8(%rsp)
	mov %rcx, (%rsp)
	add $24, %rsp
	pop %r12
	pop %rbx
	ret
	third jf_known
	last jf_known

	first jf_direct
	call jf_direct_second
	second jf_direct
	push %rbp
	mov %rsp, %rbp
	sub $16, %rsp
	movq $7, -8(%rbp)
	mov -8(%rbp), %rax
	cmp $1000, %rax
	je 3f
	mov %rax, -16(%rbp)
3:	leave
	ret
	third jf_direct
	last jf_direct

	first jf_endbr
	call *%rbx
	second jf_endbr
	endbr64
	push %rbp
	mov %rsp, %rbp
	sub $16, %rsp
	movq $7, -8(%rbp)
	mov -8(%rbp), %rax
	mov %rax, -16(%rbp)
	leave
	ret
	third jf_endbr
	last jf_endbr

	/* The frame pointer is set after more registers were saved, as .NET does. */
	.macro late
	push %rbp
	push %r15
	push %rbx
	sub $24, %rsp
	lea 40(%rsp), %rbp
	movq $7, -32(%rbp)
	mov -32(%rbp), %rax
	mov %rax, -40(%rbp)
	add $24, %rsp
	pop %rbx
	pop %r15
	pop %rbp
	ret
	.endm

	first jf_late
	call jf_late_second
	second jf_late
	late
	third jf_late
	last jf_late

	first jf_late_far
	call *%rbx
	second jf_late_far
	late
	third jf_late_far
	last jf_late_far

	first jf_plain
	call *%rbx
	second jf_plain
	mov (%rdi), %eax
	imul $77, %eax, %ecx
	sub $24, %rsp
	mov %rcx, (%rsp)
	mov %rax, 8(%rsp)
	add (%rsp), %rax
	add $24, %rsp
	ret
	third jf_plain
	last jf_plain

	first jf_tail
	call jf_tail_second
	second jf_tail
	push %rbp
	mov %rsp, %rbp
	mov (%rdi), %eax
	pop %rbp
	jmp jf_tail_third
	third jf_tail
	imul $77, %eax, %ecx
	lea (%rax, %rcx), %rax
	ret
	last jf_tail

#endif
	.section .note.GNU-stack, "", %progbits
