/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * noend [SECONDS [WAY]]: hand-written code without call frame information that looks as if its
 * stack ended there. ne_call() knows how long to stay; the WAY:
 *
 *   0  rbp points to two zeros
 *   1  rbp points to a 0 and a return address of a call that is over, in code without tables
 *   2  the same, in code that has tables; what lies above is zeros
 *   3  rbp points to a 0 and the address of a function
 *   4  rbp is 0
 *   5  a helper is called within a function whose tables say nothing of that call: the word that
 *      they take for the return address is 0
 *   6  rbp points to itself
 *   7  rbp points to the last element of argv, above which is a 0, as in a loop of main()
 */
#include "prog.h"

typedef void ne_way(const volatile sig_atomic_t *stop, const void *ra);

ne_way ne_junk, ne_off, ne_none, ne_self, ne_argv;
void ne_call(ne_way *way, const void *ra);
extern const char ne_after_call[];

/* 4 KiB of zeros below the caller's frame; rbp points into them, to 0 and the second argument. */
__asm__(".text\n"
	".globl ne_junk, ne_off, ne_none, ne_self, ne_argv, ne_after_call\n"
	".type ne_junk, @function\n"
	"ne_junk:\n"
	"	push %rbp\n"
	"	push %rdi\n"
	"	push %rsi\n"
	"	sub $4096, %rsp\n"
	"	mov %rsp, %rdi\n"
	"	mov $512, %ecx\n"
	"	xor %eax, %eax\n"
	"	rep stosq\n"
	"	mov 4096(%rsp), %rsi\n"
	"	mov 4104(%rsp), %rdi\n"
	"	lea 64(%rsp), %rbp\n"
	"	mov %rsi, 8(%rbp)\n"
	"1:	mov (%rdi), %eax\n"
	"	test %eax, %eax\n"
	"	jz 1b\n"
	"	add $4112, %rsp\n"
	"	pop %rbp\n"
	"	call 2f\n"
	"ne_after_call:\n"
	"	ret\n"
	"2:	ret\n"
	".size ne_junk, . - ne_junk\n"
	".type ne_none, @function\n"
	"ne_none:\n"
	"	push %rbp\n"
	"	xor %ebp, %ebp\n"
	"1:	mov (%rdi), %eax\n"
	"	test %eax, %eax\n"
	"	jz 1b\n"
	"	pop %rbp\n"
	"	ret\n"
	".size ne_none, . - ne_none\n"
	".type ne_self, @function\n"
	"ne_self:\n"
	"	push %rbp\n"
	"	push %rsi\n"
	"	push %rsi\n"
	"	mov %rsp, %rbp\n"
	"	mov %rbp, (%rbp)\n"
	"1:	mov (%rdi), %eax\n"
	"	test %eax, %eax\n"
	"	jz 1b\n"
	"	add $16, %rsp\n"
	"	pop %rbp\n"
	"	ret\n"
	".size ne_self, . - ne_self\n"
	/* No rows: the jump that is always taken leads to a place with two heights of the stack. */
	".type ne_argv, @function\n"
	"ne_argv:\n"
	"	push %rbp\n"
	"	mov %rsi, %rbp\n"
	"	xor %eax, %eax\n"
	"	test %eax, %eax\n"
	"	jz 1f\n"
	"	push %rax\n"
	"1:	mov (%rdi), %eax\n"
	"	test %eax, %eax\n"
	"	jz 1b\n"
	"	pop %rbp\n"
	"	ret\n"
	".size ne_argv, . - ne_argv\n"
	".type ne_off, @function\n"
	"ne_off:\n"
	"	.cfi_startproc\n"
	"	sub $56, %rsp\n"
	"	.cfi_def_cfa_offset 64\n"
	"	movq $0, 48(%rsp)\n"
	"	call 2f\n"
	"	add $56, %rsp\n"
	"	.cfi_remember_state\n"
	"	.cfi_def_cfa_offset 8\n"
	"	ret\n"
	"	.cfi_restore_state\n"
	"2:	mov (%rdi), %eax\n"
	"	test %eax, %eax\n"
	"	jz 2b\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size ne_off, . - ne_off\n");

NOIPA void ne_call(ne_way *way, const void *ra)
{
	way(&prog_stop, ra);
	prog_keep(&prog_stop);
}

/* A return address in main(). */
static NOIPA const void *ne_own_ra(void)
{
	return __builtin_return_address(0);
}

int main(int argc, char **argv)
{
	const void *ra = ne_own_ra();

	prog_init(argc, argv);
	switch (prog_arg(argc, argv, 2, 0)) {
	case 0:
		ne_call(ne_junk, NULL);
		break;
	case 1:
		ne_call(ne_junk, ne_after_call);
		break;
	case 2:
		ne_call(ne_junk, ra);
		break;
	case 3:
		ne_call(ne_junk, (const void *)ne_call);
		break;
	case 4:
		ne_call(ne_none, NULL);
		break;
	case 5:
		ne_call(ne_off, NULL);
		break;
	case 6:
		ne_call(ne_self, ra);
		break;
	case 7:
		ne_call(ne_argv, argv + argc - 1);
		break;
	}
	return 0;
}
