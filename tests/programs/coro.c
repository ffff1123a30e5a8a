/* SPDX-License-Identifier: BSD-2-Clause */
/* coro [SECONDS]: two coroutines that hand over to each other with swapcontext(). */
#include <ucontext.h>
#include "prog.h"

HOT_PARTS(co)

static ucontext_t co_main, co_a, co_b;
static char co_stack_a[65536], co_stack_b[65536];

static NOIPA unsigned long co_hot(unsigned long x)
{
	unsigned int n;

	for (n = 0; n < 200000 && !prog_stop; n++)
		x += co_mid(x, x + 1);
	return x;
}

static NOIPA void co_ping(void)
{
	unsigned long x = 1;

	while (!prog_stop) {
		x = co_hot(x);
		swapcontext(&co_a, &co_b);
	}
	prog_keep(&x);
}

static NOIPA unsigned long co_pong_step(unsigned long x)
{
	return co_hot(x) + 1;
}

static NOIPA void co_pong(void)
{
	unsigned long x = 1;

	while (!prog_stop) {
		x = co_pong_step(x);
		swapcontext(&co_b, &co_a);
	}
	prog_keep(&x);
}

static NOIPA void co_make(ucontext_t *uc, char *stack, size_t size, void (*fn)(void))
{
	getcontext(uc);
	uc->uc_stack.ss_sp = stack;
	uc->uc_stack.ss_size = size;
	uc->uc_link = &co_main;
	makecontext(uc, fn, 0);
}

int main(int argc, char **argv)
{
	prog_init(argc, argv);
	co_make(&co_a, co_stack_a, sizeof(co_stack_a), co_ping);
	co_make(&co_b, co_stack_b, sizeof(co_stack_b), co_pong);
	swapcontext(&co_main, &co_a);
	return 0;
}
