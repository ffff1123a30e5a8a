/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * leap [SECONDS [WAY]]: functions that jump to other frames all the time. WAY 0: longjmp() with a
 * buffer on the stack; 1: setcontext(); 2: swapcontext() between two stacks; 3: as 0 with functions
 * of its own, which have no tables and load registers from the buffer in plain words.
 */
#include <setjmp.h>
#include <stdlib.h>
#include <ucontext.h>
#include "prog.h"

static int way;
static ucontext_t le_context, le_ping_context, le_pong_context;
static char le_stacks[2][65536];
static volatile unsigned long le_count;

struct le_buffer {
	unsigned long words[8];
};

int le_set(struct le_buffer *b) __attribute__((returns_twice));
void le_jump(struct le_buffer *b) __attribute__((noreturn));

#ifdef __x86_64__
__asm__(".text\n.globl le_set\n.type le_set, @function\n"
	"le_set: mov %rbx, (%rdi); mov %rbp, 8(%rdi); mov %r12, 16(%rdi); mov %r13, 24(%rdi)\n"
	"mov %r14, 32(%rdi); mov %r15, 40(%rdi); lea 8(%rsp), %rdx; mov %rdx, 48(%rdi)\n"
	"mov (%rsp), %rdx; mov %rdx, 56(%rdi); xor %eax, %eax; ret\n"
	".size le_set, . - le_set\n"
	".globl le_jump\n.type le_jump, @function\n"
	"le_jump: mov $1, %eax; mov (%rdi), %rbx; mov 8(%rdi), %rbp; mov 16(%rdi), %r12\n"
	"mov 24(%rdi), %r13; mov 32(%rdi), %r14; mov 40(%rdi), %r15; mov 48(%rdi), %rsp\n"
	"jmp *56(%rdi)\n"
	".size le_jump, . - le_jump\n");
#else
int le_set(struct le_buffer *b)
{
	(void)b;
	exit(77);
}

void le_jump(struct le_buffer *b)
{
	(void)b;
	abort();
}
#endif

union buffer {
	jmp_buf jmp;
	struct le_buffer own;
};

static NOIPA void le_throw(unsigned int depth, union buffer *b)
{
	if (depth)
		le_throw(depth - 1, b);
	else if (way == 1)
		setcontext(&le_context);
	else if (way == 3)
		le_jump(&b->own);
	else
		longjmp(b->jmp, 1);
	le_count++;
}

static NOIPA void le_catch(void)
{
	union buffer b;

	if (way == 1)
		getcontext(&le_context);
	else if (way == 3)
		le_set(&b.own);
	else
		setjmp(b.jmp);
	if (!prog_stop)
		le_throw(3, &b);
	le_count++;
}

static NOIPA void le_up(unsigned int depth)
{
	if (depth)
		le_up(depth - 1);
	else
		le_catch();
	le_count++;
}

static NOIPA void le_ping(void)
{
	while (!prog_stop)
		swapcontext(&le_ping_context, &le_pong_context);
	exit(0);
}

static NOIPA void le_pong(void)
{
	while (!prog_stop)
		swapcontext(&le_pong_context, &le_ping_context);
	exit(0);
}

static void make(ucontext_t *uc, char *stack, void (*fn)(void))
{
	getcontext(uc);
	uc->uc_stack.ss_sp = stack;
	uc->uc_stack.ss_size = sizeof(le_stacks[0]);
	makecontext(uc, fn, 0);
}

int main(int argc, char **argv)
{
	prog_init(argc, argv);
	way = argc > 2 ? atoi(argv[2]) : 0;
	make(&le_ping_context, le_stacks[0], le_ping);
	make(&le_pong_context, le_stacks[1], le_pong);
	if (way == 2)
		swapcontext(&le_context, &le_ping_context);
	le_up(20);
	return 0;
}
