/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Code in C libraries that is recognised by its bytes, without a symbol. It begins or interrupts
 * stacks, distributions strip its names, and its unwind tables are missing or wrong. x86-64:
 *
 * 	clone3			mov $435, %eax; syscall; then the first frame of glibc's new
 * 				thread. The function's start is not known: the range starts here
 * 	clone, clone3		syscall; test %rax, %rax; jl; je; ret: glibc's, without unwind
 * 				tables for parent and child. The xor %ebp, %ebp after it is
 * 				the new thread's
 * 	__restore_rt		mov $15, %rax; syscall: the frame below every signal handler
 * 	__start_context		mov %rbx, %rsp; mov (%rsp), %rdi; test %rdi, %rdi: glibc, the return
 * 				address of a makecontext() function
 * 	__clone			test %eax, %eax; jne; xor %ebp, %ebp: musl's, for parent and child
 * 	__clone's child		pop %rdi; call *%r9; mov %eax, %edi; ...; syscall: musl, a thread's
 * 				first frame
 * 	swapcontext		mov 0xa0(%rdx), %rsp; ...; mov 0xa8(%rdx), %rcx; push %rcx: glibc,
 * 				up to where the return address is on the other stack
 *
 * AArch64:
 *
 * 	clone			svc #0; cmp x0, #0; b.eq; b.lt; ret: glibc's; its unwind tables are
 * 				right only for the caller's thread
 * 	__restore_rt		mov x8, #139; svc #0: musl's; the vDSO's is __kernel_rt_sigreturn
 * 	__clone's child		ldp x1, x0, [sp], #16; blr x1; mov x8, #93; svc #0: musl, a thread's
 * 				first frame
 *
 * __restore_rt and __start_context are entered by a return to their first byte, and the unwinder
 * looks up the byte before a return address, so their ranges start an instruction or a byte
 * earlier.
 */
#ifndef SFBPF_ELF_KNOWN_CODE_H
#define SFBPF_ELF_KNOWN_CODE_H

#include "base/bytes.h"

enum known_code {
	KNOWN_CLONE3,
	KNOWN_CLONE_RETURN,
	KNOWN_RESTORE_RT,
	KNOWN_START_CONTEXT,
	KNOWN_MUSL_CLONE,
	KNOWN_MUSL_THREAD,
	KNOWN_SWAPCONTEXT,
	KNOWN_A64_RESTORE_RT,
	KNOWN_A64_MUSL_THREAD,
	KNOWN_A64_CLONE_RETURN,
	KNOWN_CODES
};

/*
 * Moves text past the next occurrence of that code. *ret_start is where its range starts, from the
 * view's start, and known_code_size() its length. False if there is none.
 */
bool known_code_next(struct bytes *text, enum known_code which, uint64_t *ret_start);
uint32_t known_code_size(enum known_code which);
uint32_t known_code_before(enum known_code which); /* bytes of the range before the code */

#endif
