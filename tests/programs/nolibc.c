/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nolibc [SECONDS [DEPTH]]: no C library and no start files, so that every frame from _start on is
 * in this file and its unwind tables can be swapped for others. Small, 3 kB, 70 kB and alloca
 * frames.
 */
#ifdef __clang__
#define NOIPA __attribute__((noinline))
#else
#define NOIPA __attribute__((noipa))
#endif

#ifdef __aarch64__
#define ENTRY                   \
	"	.cfi_undefined x30\n" \
	"	mov x29, #0\n"        \
	"	mov x30, #0\n"        \
	"	mov x0, sp\n"         \
	"	bl nl_main\n"         \
	"	brk #0\n"
#define SYS_ALARM 103 /* setitimer */
#define SYS_EXIT  94
#else
#define ENTRY                   \
	"	.cfi_undefined rip\n" \
	"	xorl %ebp, %ebp\n"    \
	"	movq %rsp, %rdi\n"    \
	"	andq $-16, %rsp\n"    \
	"	call nl_main\n"       \
	"	hlt\n"
#define SYS_ALARM 37
#define SYS_EXIT  231
#endif

__asm__("	.text\n"
	"	.globl _start\n"
	"	.type _start, @function\n"
	"_start:\n"
	"	.cfi_startproc\n" ENTRY "	.cfi_endproc\n"
	"	.size _start, .-_start\n");

void nl_main(long *sp);

static inline __attribute__((always_inline)) void keep(const void *p)
{
	__asm__ volatile("" : : "r"(p) : "memory");
}

static inline __attribute__((always_inline)) long system_call(long nr, long a, const void *b)
{
#ifdef __aarch64__
	register long x8 __asm__("x8") = nr, x0 __asm__("x0") = a;
	register const void *x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = 0;

	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
	return x0;
#else
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(nr), "D"(a), "S"(b), "d"(0)
			 : "rcx", "r11", "memory");
	return r;
#endif
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
NOIPA __attribute__((used)) void nl_main(long *sp)
{
	long argc = sp[0];
	char **argv = (char **)(sp + 1);
	long seconds = argc > 1 ? number(argv[1]) : 0;
#ifdef __aarch64__
	const long alarm[4] = { 0, 0, seconds, 0 }; /* there is no alarm(): ITIMER_REAL */
	unsigned long r;

	system_call(SYS_ALARM, 0, alarm);
#else
	unsigned long r;

	system_call(SYS_ALARM, seconds, 0);
#endif
	r = nl_down(argc > 2 ? number(argv[2]) : 30, (unsigned long)argc);
	keep(&r);
	system_call(SYS_EXIT, 0, 0);
}
