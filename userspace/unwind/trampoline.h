/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Code that nobody calls, known by its bytes: its address is put on a stack by hand, and its tables are
 * missing or wrong. x86-64:
 *
 *   rt_sigreturn restorer   mov $15, %rax; syscall     musl and others give it no CFI, and SFrame cannot describe
 *                                                       it; it is the frame below every interrupted one
 *   __start_context         mov %rbx, %rsp; mov (%rsp), %rdi; test %rdi, %rdi    glibc: where a makecontext()
 *                                                       function returns to. Outermost, but its CFI says otherwise
 *   __clone's child         pop %rdi; call *%r9; mov %eax, %edi; ...; syscall    musl: a thread's first frame, without CFI
 *
 * The first two are return addresses at a function's very first byte, so that the lookup of pc - 1 misses them: their rows
 * start one byte earlier. AArch64:
 *
 *   rt_sigreturn restorer   mov x8, #139; svc #0       musl's; the vDSO's is among vdso_arm64_rows()
 *   __clone's child         ldp x1, x0, [sp], #16; blr x1; mov x8, #93; svc #0    musl, as above
 *   .plt                    neither linker nor assembler describes it: RA is in LR, after PLT0's push on the stack, too
 */
#ifndef SFBPF_UNWIND_TRAMPOLINE_H
#define SFBPF_UNWIND_TRAMPOLINE_H

#include "elf/elf_image.h"
#include "unwind/row.h"

/*
 * Appends what a C library, AArch64's vDSO (by their SONAMEs) or a static program holds, and PLTs; nothing else is searched. Ascending.
 * 0 or -ENOMEM.
 */
int trampolines_find(const struct elf_image *img, enum row_arch arch, struct rowbuf *out);

#endif
