/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nolibc [SECONDS [DEPTH]]: no C library and no start files, so that every frame from _start on is in this file
 * and its unwind tables can be swapped for others. Small, 3 kB, 70 kB and alloca frames.
 */
#define NOIPA __attribute__((noipa))

__asm__(
	"	.text\n"
	"	.globl _start\n"
	"	.type _start, @function\n"
	"_start:\n"
	"	.cfi_startproc\n"
	"	.cfi_undefined rip\n"
	"	xorl %ebp, %ebp\n"
	"	movq %rsp, %rdi\n"
	"	andq $-16, %rsp\n"
	"	call nl_main\n"
	"	hlt\n"
	"	.cfi_endproc\n"
	"	.size _start, .-_start\n");

void nl_main(long *sp);

static inline __attribute__((always_inline)) void keep(const void *p)
{
	__asm__ volatile("" : : "r"(p) : "memory");
}

static inline __attribute__((always_inline)) long system_call(long nr, long a)
{
	long r;

	__asm__ volatile("syscall" : "=a"(r) : "a"(nr), "D"(a) : "rcx", "r11", "memory");
	return r;
}

static inline __attribute__((always_inline)) long number(const char *s)
{
	long n = 0;

	while (*s >= '0' && *s <= '9')
		n = n * 10 + (*s++ - '0');
	return n;
}

static NOIPA unsigned long nl_leaf(unsigned long x)
{
	volatile unsigned long acc[4] = { x, 1, 2, 3 };
	unsigned int i;

	for (i = 0; i < 24; i++)
		acc[i & 3] = acc[(i + 1) & 3] * 31 + i;
	return acc[0];
}

static NOIPA unsigned long nl_mid(unsigned long x, unsigned long y)
{
	unsigned long a = nl_leaf(x), b = nl_leaf(x ^ y);
	unsigned long c = nl_leaf(a + y);

	return a + b * c + x - y;
}

static NOIPA unsigned long nl_hot(unsigned long x)
{
	unsigned long y = x;

	for (;;) {
		y += nl_mid(x, y);
		x ^= nl_leaf(y);
		if (x == 0 && y == 0)
			break;
	}
	return x + y;
}

static NOIPA unsigned long nl_alloca(unsigned long n, unsigned long x)
{
	char *p = (char *)__builtin_alloca(n);

	p[0] = 1;
	keep(p);
	return nl_hot(x) + (unsigned long)p[0];
}

static NOIPA unsigned long nl_frame70k(unsigned long x)
{
	volatile char buf[70000];

	buf[x % sizeof(buf)] = 1;
	return nl_alloca(x % 300 + 50, x) + (unsigned long)buf[0];
}

static NOIPA unsigned long nl_frame3k(unsigned long x)
{
	volatile char buf[3000];

	buf[x % sizeof(buf)] = 1;
	return nl_frame70k(x) + (unsigned long)buf[0];
}

static NOIPA unsigned long nl_down(long depth, unsigned long x)
{
	unsigned long a = x * 3, b = x ^ 5;

	x = depth > 1 ? nl_down(depth - 1, x) : nl_frame3k(x);
	keep(&x);
	return a + b + x;
}

/* The alarm keeps its default action: there is no signal trampoline without a C library. */
__attribute__((noipa, used)) void nl_main(long *sp)
{
	long argc = sp[0];
	char **argv = (char **)(sp + 1);
	unsigned long r;

	system_call(37, argc > 1 ? number(argv[1]) : 0);
	r = nl_down(argc > 2 ? number(argv[2]) : 30, (unsigned long)argc);
	keep(&r);
	system_call(231, 0);
}
