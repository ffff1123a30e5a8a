/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rawclone [SECONDS]: a thread made with the bare clone system call, and one by libc's clone(). The
 * bare one starts in rc_entry, which has no caller and says so in its unwind table.
 */
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "prog.h"

HOT(rca)
HOT(rcb)

#define RC_FLAGS (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | SIGCHLD)
#define RC_STACK 65536

static char rc_stack_a[RC_STACK] __attribute__((aligned(16)));
static char rc_stack_b[RC_STACK] __attribute__((aligned(16)));

long rc_spawn(unsigned long flags, void *stack);
void rca_main(void);

NOIPA __attribute__((used)) void rca_main(void)
{
	unsigned long r = rca_hot(1);

	prog_keep(&r);
}

#ifdef __aarch64__
#define SPAWN                               \
	"	mov x8, #220\n" /* clone */ \
	"	mov x2, #0\n"                     \
	"	mov x3, #0\n"                     \
	"	mov x4, #0\n"                     \
	"	svc #0\n"                         \
	"	cbz x0, rc_entry\n"               \
	"	ret\n"
#define ENTRY                             \
	"	.cfi_undefined x30\n"           \
	"	mov x29, #0\n"                  \
	"	bl rca_main\n"                  \
	"	mov x0, #0\n"                   \
	"	mov x8, #93\n" /* exit */ \
	"	svc #0\n"                       \
	"	brk #0\n"
#else
#define SPAWN                                 \
	"	movl $56, %eax\n" /* clone */ \
	"	xorl %edx, %edx\n"                  \
	"	xorl %r10d, %r10d\n"                \
	"	xorl %r8d, %r8d\n"                  \
	"	syscall\n"                          \
	"	testq %rax, %rax\n"                 \
	"	jz rc_entry\n"                      \
	"	ret\n"
#define ENTRY                                \
	"	.cfi_undefined rip\n"              \
	"	xorl %ebp, %ebp\n"                 \
	"	call rca_main\n"                   \
	"	xorl %edi, %edi\n"                 \
	"	movl $60, %eax\n" /* exit */ \
	"	syscall\n"                         \
	"	hlt\n"
#endif

__asm__("	.text\n"
	"	.globl rc_spawn\n"
	"	.type rc_spawn, @function\n"
	"rc_spawn:\n"
	"	.cfi_startproc\n" SPAWN "	.cfi_endproc\n"
	"	.size rc_spawn, .-rc_spawn\n"
	"	.type rc_entry, @function\n"
	"rc_entry:\n"
	"	.cfi_startproc\n" ENTRY "	.cfi_endproc\n"
	"	.size rc_entry, .-rc_entry\n");

static NOIPA int rcb_main(void *arg)
{
	unsigned long r = rcb_hot((unsigned long)arg);

	prog_keep(&r);
	return 0;
}

int main(int argc, char **argv)
{
	long a, b;

	prog_init(argc, argv);
	a = rc_spawn(RC_FLAGS, rc_stack_a + RC_STACK);
	b = clone(rcb_main, rc_stack_b + RC_STACK, RC_FLAGS, (void *)2);
	if (a < 0 || b < 0)
		return 1;
	while (!prog_stop)
		pause();
	while (wait(NULL) > 0)
		;
	return 0;
}
