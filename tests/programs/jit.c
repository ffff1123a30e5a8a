/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jit [SECONDS [WAY [1]]]: code that was made at run time, without tables and frame pointer. It is
 * copied from the templates below. The WAY:
 *
 *   0  a leaf that leaves rbp alone
 *   1  a leaf in whose frame the return addresses of earlier calls of its caller still are
 *   2  a leaf with rbp and its frame as a frame with the right return address at a wrong place
 *   3  it calls back into C
 *   4  it calls more such code, that calls back into C, which enters such code
 *   5  entered by a jump, in a function that was called directly
 *   6  entered by a function that needs its own rbp, which the code has saved
 *   7  as 1, in a memfd
 *   8  a leaf whose frame is too large to search
 *   9  a leaf in whose frame the inner part of a longer chain of earlier calls still is, entered
 *      through a pointer at a constant address
 *  10  as 5, by a function of another file
 *  11  as Mono's: called through a stub without tables, by a function that needs its own rbp. It
 *      saves that far below its return address, and it holds pointers to absent pages.
 *  12  as 1, but an earlier call went through a word of its frame
 *  13  on a stack of its own, as Erlang's: rbx points to a large frame on the thread's stack
 *  14  as 3, but the way to its return is not straight
 *
 * 1: in a thread, whose stack is next to the code and to libraries.
 */
#include <pthread.h>
#include <sys/mman.h>
#include "prog.h"

typedef unsigned long code_fn(const volatile sig_atomic_t *stop, void *next);

extern const char code_leaf[], code_stale_leaf[], code_fp_leaf[], code_calls[], code_huge[],
	code_wiped[], code_mono[], code_other[], code_loads[], code_end[];
unsigned long ji_jump(const volatile sig_atomic_t *stop, void *next, code_fn *code);

#define SPIN                    \
	"1:	mov $20000, %ecx\n" \
	"2:	dec %ecx\n"         \
	"	jnz 2b\n"             \
	"	mov (%rdi), %eax\n"   \
	"	test %eax, %eax\n"    \
	"	jz 1b\n"

__asm__(".section .rodata\n"
	"code_leaf:\n"
	"	sub $72, %rsp\n" SPIN "	add $72, %rsp\n"
	"	ret\n"
	"code_stale_leaf:\n"
	"	push %rbp\n"
	"	push %rbx\n"
	"	sub $1000, %rsp\n"
	"	mov $77, %ebp\n" SPIN "	add $1000, %rsp\n"
	"	pop %rbx\n"
	"	pop %rbp\n"
	"	ret\n"
	"code_fp_leaf:\n"
	"	mov (%rsp), %rax\n"
	"	push %rbp\n"
	"	sub $400, %rsp\n"
	"	movq $0, 120(%rsp)\n"
	"	mov %rax, 128(%rsp)\n"
	"	lea 120(%rsp), %rbp\n" SPIN "	add $400, %rsp\n"
	"	pop %rbp\n"
	"	ret\n"
	"code_calls:\n"
	"	push %rbp\n"
	"	push %r12\n"
	"	sub $200, %rsp\n"
	"	xor %ebp, %ebp\n"
	"	mov %rsi, %rax\n"
	"	call *%rax\n"
	"	add $200, %rsp\n"
	"	pop %r12\n"
	"	pop %rbp\n"
	"	ret\n"
	"code_huge:\n"
	"	sub $65544, %rsp\n" SPIN "	add $65544, %rsp\n"
	"	ret\n"
	"code_wiped:\n"
	"	sub $1208, %rsp\n"
	"	lea 800(%rsp), %rcx\n"
	"3:	movq $0, (%rcx)\n"
	"	add $8, %rcx\n"
	"	lea 1208(%rsp), %rax\n"
	"	cmp %rax, %rcx\n"
	"	jb 3b\n" SPIN "	add $1208, %rsp\n"
	"	ret\n"
	"code_mono:\n"
	"	sub $328, %rsp\n"
	"	mov %rbp, 160(%rsp)\n"
	"	mov %rsi, (%rsp)\n"
	"	add $4096, %rsi\n"
	"	mov %rsi, 8(%rsp)\n"
	"	add $4096, %rsi\n"
	"	mov %rsi, 16(%rsp)\n"
	"	mov $77, %ebp\n" SPIN "	mov 160(%rsp), %rbp\n"
	"	add $328, %rsp\n"
	"	ret\n"
	"code_other:\n"
	"	push %rbp\n"
	"	push %rbx\n"
	"	sub $17000, %rsp\n"
	"	mov %rsp, %rbx\n"
	"	mov %rsi, %rsp\n"
	"	mov $77, %ebp\n" SPIN "	mov %rbx, %rsp\n"
	"	add $17000, %rsp\n"
	"	pop %rbx\n"
	"	pop %rbp\n"
	"	ret\n"
	"code_loads:\n"
	"	push %rbp\n"
	"	sub $208, %rsp\n"
	"	xor %ebp, %ebp\n"
	"	call *%rsi\n"
	"	mov (%rsp), %rcx\n"
	"	add $208, %rsp\n"
	"	pop %rbp\n"
	"	ret\n"
	"code_end:\n"
	".text\n"
	"ji_stub: jmp *ji_entry(%rip)\n"
	".type ji_mono, @function\n"
	"ji_mono:\n"
	"	.cfi_startproc\n"
	"	push %rbp\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset rbp, -16\n"
	"	mov %rsp, %rbp\n"
	"	.cfi_def_cfa_register rbp\n"
	"	sub $64, %rsp\n"
	"	call ji_stub\n"
	"	leave\n"
	"	.cfi_def_cfa rsp, 8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size ji_mono, . - ji_mono\n"
	".type ji_through, @function\n"
	"ji_through:\n"
	"	.cfi_startproc\n"
	"	sub $24, %rsp\n"
	"	.cfi_def_cfa_offset 32\n"
	"	mov %rsi, 8(%rsp)\n"
	"	call *8(%rsp)\n"
	"	add $24, %rsp\n"
	"	.cfi_def_cfa_offset 8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size ji_through, . - ji_through\n"
	".globl ji_jump\n"
	".type ji_jump, @function\n"
	"ji_jump:\n"
	"	.cfi_startproc\n"
	"	mov %rdx, %rax\n"
	"	jmp *%rax\n"
	"	.cfi_endproc\n"
	".size ji_jump, . - ji_jump\n");

unsigned long ji_mono(const volatile sig_atomic_t *stop, void *next);
unsigned long ji_through(unsigned long x, unsigned long (*fn)(unsigned long));
unsigned long ji_far_jump(const volatile sig_atomic_t *stop, void *next, code_fn *code);

static char *ji_memory;

static code_fn *ji_code(const char *template)
{
	code_fn *fn;
	char *at = ji_memory + (template - code_leaf);

	memcpy(&fn, &at, sizeof(fn));
	return fn;
}

HOT(ji)

static NOIPA unsigned long ji_deep3(unsigned long x)
{
	volatile unsigned long a[4] = { x, x, x, x };

	return a[x & 3];
}

static NOIPA unsigned long ji_deep2(unsigned long x)
{
	volatile unsigned long a[12] = { x, x };

	return ji_deep3(a[0]) + a[1];
}

static NOIPA unsigned long ji_deep(unsigned long x)
{
	volatile unsigned long a[20] = { x, x };

	return ji_deep2(a[0]) + a[1];
}

static NOIPA unsigned long ji_enter(code_fn *fn, void *next)
{
	unsigned long r = ji_deep(1);

	return fn(&prog_stop, next) + r;
}

static NOIPA unsigned long ji_jumped(code_fn *fn, void *next)
{
	unsigned long r = ji_deep(1);

	return ji_jump(&prog_stop, next, fn) + r;
}

code_fn *ji_entry;

static NOIPA unsigned long ji_chain(unsigned long n, unsigned long (*volatile last)(unsigned long))
{
	volatile unsigned long a[4] = { n, n };

	return (n ? ji_chain(n - 1, last) : last(a[0])) + a[1];
}

static NOIPA unsigned long ji_sure(void)
{
	unsigned long r = ji_chain(11, ji_deep3);

	return ji_entry(&prog_stop, NULL) + r;
}

static NOIPA unsigned long ji_far(code_fn *fn)
{
	unsigned long r = ji_deep(1);

	return ji_far_jump(&prog_stop, NULL, fn) + r;
}

static NOIPA unsigned long ji_after(code_fn *fn)
{
	unsigned long r = ji_through(1, ji_deep3);

	return fn(&prog_stop, NULL) + r;
}

static NOIPA unsigned long ji_stubbed(void)
{
	char *absent = mmap(NULL, 4 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ji_entry = ji_code(code_mono);
	return ji_mono(&prog_stop, absent + 64) + 1;
}

static unsigned long ji_other(void)
{
	char *stack = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			   0);

	memset(stack, 1, 1 << 16);
	return ji_jumped(ji_code(code_other), stack + (1 << 15));
}

static NOIPA unsigned long ji_alloca(code_fn *fn, void *next)
{
	volatile char *room = __builtin_alloca(ji_deep(1) * 16 + 16);

	room[0] = 1;
	return fn(&prog_stop, next) + (unsigned long)room[0];
}

static NOIPA unsigned long ji_back(const volatile sig_atomic_t *stop, void *next)
{
	(void)stop, (void)next;
	return ji_hot(1) + 1;
}

static NOIPA unsigned long ji_again(const volatile sig_atomic_t *stop, void *next)
{
	(void)next;
	return ji_code(code_stale_leaf)(stop, NULL) + 1;
}

/* Run-time code that calls run-time code that calls ji_again. */
static unsigned long ji_nested(void)
{
	static const unsigned char head[] = { 0x48, 0xbe }; /* mov $ji_again, %rsi */
	char *at = ji_memory + 2048;
	code_fn *again = ji_again, *fn;

	memcpy(at, head, sizeof(head));
	memcpy(at + 2, &again, sizeof(again));
	memcpy(at + 10, code_calls, (size_t)(code_huge - code_calls));
	memcpy(&fn, &at, sizeof(fn));
	return ji_enter(ji_code(code_calls), fn);
}

static NOIPA unsigned long ji_run(long way)
{
	switch (way) {
	case 0:
		return ji_enter(ji_code(code_leaf), NULL) + 1;
	case 2:
		return ji_enter(ji_code(code_fp_leaf), NULL) + 1;
	case 3:
		return ji_enter(ji_code(code_calls), ji_back) + 1;
	case 4:
		return ji_nested() + 1;
	case 5:
		return ji_jumped(ji_code(code_stale_leaf), NULL) + 1;
	case 6:
		return ji_alloca(ji_code(code_calls), ji_back) + 1;
	case 8:
		return ji_enter(ji_code(code_huge), NULL) + 1;
	case 9:
		ji_entry = ji_code(code_wiped);
		return ji_sure() + 1;
	case 10:
		return ji_far(ji_code(code_stale_leaf)) + 1;
	case 11:
		return ji_stubbed() + 1;
	case 12:
		return ji_after(ji_code(code_stale_leaf)) + 1;
	case 13:
		return ji_other() + 1;
	case 14:
		return ji_enter(ji_code(code_loads), ji_back) + 1;
	default:
		return ji_enter(ji_code(code_stale_leaf), NULL) + 1;
	}
}

static void *ji_thread(void *way)
{
	unsigned long r = ji_run((long)way);

	prog_keep(&r);
	return NULL;
}

int main(int argc, char **argv)
{
	long way = prog_arg(argc, argv, 2, 0);
	pthread_t thread;
	int fd = -1, flags = MAP_PRIVATE | MAP_ANONYMOUS;
	unsigned long r;

	prog_init(argc, argv);
	if (way == 7) {
		fd = memfd_create("jit", MFD_CLOEXEC);
		flags = MAP_SHARED;
		if (fd < 0 || ftruncate(fd, 4096))
			return 77;
	}
	ji_memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, flags, fd, 0);
	if (ji_memory == MAP_FAILED)
		return 77; /* a policy forbids such memory */
	memcpy(ji_memory, code_leaf, (size_t)(code_end - code_leaf));
	if (prog_arg(argc, argv, 3, 0)) {
		if (pthread_create(&thread, NULL, ji_thread, (void *)way))
			return 1;
		pthread_join(thread, NULL);
		return 0;
	}
	r = ji_run(way);
	prog_keep(&r);
	return 0;
}
