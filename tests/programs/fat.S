/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unwind tables of half a megabyte, of code that nobody runs: for programs whose tables shall not
 * fit.
 */
	.text
	.rept 25000
	.p2align 4
	.cfi_startproc
	push %rbx
	.cfi_adjust_cfa_offset 8
	sub $16, %rsp
	.cfi_adjust_cfa_offset 16
	add $16, %rsp
	.cfi_adjust_cfa_offset -16
	pop %rbx
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.endr
	.section .note.GNU-stack, "", @progbits
