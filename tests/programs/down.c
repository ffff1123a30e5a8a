/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * down [SECONDS]: a thread whose stack is in the program's own data calls a function on a mapped
 * stack, which is above: the caller's frame is at a lower address. Rust's stacker and gcc's
 * -fsplit-stack do this.
 */
#include <pthread.h>
#include <sys/mman.h>
#include "prog.h"

#define STACK_BYTES (256 << 10)

HOT_PARTS(dn)

static char dn_low[STACK_BYTES] __attribute__((aligned(4096)));

static NOIPA unsigned long dn_hot(unsigned long x)
{
	while (!prog_stop)
		x += dn_mid(x, x + 1);
	return x;
}

NOIPA unsigned long dn_on_other(unsigned long x)
{
	return dn_hot(x) + 1;
}

/* dn_call(fn, x, sp): calls fn(x) on the stack that ends at sp. */
unsigned long dn_call(unsigned long (*fn)(unsigned long), unsigned long x, void *sp);
__asm__(".text\n"
	".globl dn_call\n"
	".type dn_call, @function\n"
	"dn_call:\n"
	".cfi_startproc\n"
	"	push %rbp\n"
	".cfi_def_cfa rsp, 16\n"
	".cfi_offset rbp, -16\n"
	"	mov %rsp, %rbp\n"
	".cfi_def_cfa_register rbp\n"
	"	mov %rdi, %rax\n"
	"	mov %rsi, %rdi\n"
	"	mov %rdx, %rsp\n"
	"	call *%rax\n"
	"	mov %rbp, %rsp\n"
	"	pop %rbp\n"
	".cfi_def_cfa rsp, 8\n"
	"	ret\n"
	".cfi_endproc\n"
	".size dn_call, . - dn_call\n");

static NOIPA unsigned long dn_switch(unsigned long x)
{
	char *high = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);

	return high == MAP_FAILED ? 0 : dn_call(dn_on_other, x, high + STACK_BYTES) + 1;
}

static NOIPA void *dn_thread(void *arg)
{
	unsigned long x = dn_switch((unsigned long)arg);

	prog_keep(&x);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_attr_t attr;
	pthread_t thread;

	prog_init(argc, argv);
	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, dn_low, sizeof(dn_low));
	if (pthread_create(&thread, &attr, dn_thread, NULL))
		return 1;
	pthread_join(thread, NULL);
	return 0;
}
