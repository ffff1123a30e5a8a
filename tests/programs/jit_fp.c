/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jit_fp [SECONDS [WAY]]: code that was made at run time, with frame pointers. A function with a
 * frame calls a second one, which may have none. The WAY is one of `pieces`.
 *
 * In the first ways the second function loops. In the others all of the code is stepped: after each
 * instruction a signal handler is busy for some milliseconds, and its callee tells where that was.
 */
#include <sys/mman.h>
#include <ucontext.h>
#include "prog.h"

typedef unsigned long code_fn(const volatile sig_atomic_t *stop);

/* jit_fp.S */
struct piece {
	const char *first, *second, *third, *end;
};

#define PIECE(name)                                                               \
	extern const char jf_##name[], jf_##name##_second[], jf_##name##_third[], \
		jf_##name##_end[];                                                \
	static const struct piece piece_##name = { jf_##name, jf_##name##_second, \
						   jf_##name##_third, jf_##name##_end }
#define NO_PIECE(name) static const struct piece piece_##name

PIECE(leaf);   /* the second function has no frame */
PIECE(spills); /* it has one, of a size that its code tells */
PIECE(framed); /* it has a frame pointer, and is called through a pointer */
PIECE(back);   /* it calls, through a pointer, one before it with a large frame */
#ifdef __x86_64__
PIECE(pointer); /* as leaf, called through a pointer */
PIECE(hidden);	/* as spills, called through a pointer */
PIECE(inner);	/* the second function has a frame pointer, and calls one as that of pointer */
/* Those that are stepped. */
PIECE(known);	 /* as spills */
PIECE(direct);	 /* it has a frame pointer */
PIECE(endbr);	 /* as framed, with an endbr64 */
PIECE(late);	 /* as direct, but it saves more before it sets the frame pointer */
PIECE(late_far); /* as late, called through a pointer */
PIECE(plain);	 /* as hidden */
PIECE(tail);	 /* as direct, and it ends with a jump to a function without a frame */
#else
NO_PIECE(pointer), piece_hidden, piece_inner, piece_known, piece_direct, piece_endbr, piece_late,
	piece_late_far, piece_plain, piece_tail;
#endif

static const struct piece *const pieces[] = {
	/* by WAY */
	&piece_leaf,   &piece_spills,	&piece_framed, &piece_back,   &piece_pointer,
	&piece_hidden, &piece_inner,	&piece_known,  &piece_direct, &piece_endbr,
	&piece_late,   &piece_late_far, &piece_plain,  &piece_tail,
};

#define JF_STEPPED 7	 /* the first of those */
#define JF_TF	   0x100 /* flags: single step */

static volatile sig_atomic_t jf_stepping;
static unsigned long jf_first, jf_second, jf_third, jf_end;

#ifdef __x86_64__
static NOIPA void jf_in_first(unsigned int n)
{
	for (volatile unsigned int i = 0; i < n && !prog_stop; i++)
		;
}

static NOIPA void jf_in_second(unsigned int n)
{
	for (volatile unsigned int i = 0; i < n && !prog_stop; i++)
		;
}

static NOIPA void jf_in_third(unsigned int n)
{
	for (volatile unsigned int i = 0; i < n && !prog_stop; i++)
		;
}

/* Is busy where the code is, and goes on by one more instruction. */
static NOIPA void jf_trap(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	unsigned long pc = (unsigned long)uc->uc_mcontext.gregs[REG_RIP];

	(void)sig, (void)info;
	if (pc - jf_first < jf_second - jf_first)
		jf_in_first(10000000);
	else if (pc - jf_second < jf_third - jf_second)
		jf_in_second(10000000);
	else if (pc - jf_third < jf_end - jf_third)
		jf_in_third(10000000);
	if (jf_stepping)
		uc->uc_mcontext.gregs[REG_EFL] |= JF_TF;
	else
		uc->uc_mcontext.gregs[REG_EFL] &= ~JF_TF;
	prog_keep(uc);
}

static inline PROG_HELPER void jf_on_trap(void)
{
	struct sigaction sa;

	memset(&sa, 0, sizeof(sa));
	sa.sa_sigaction = jf_trap;
	sa.sa_flags = SA_SIGINFO;
	sigaction(SIGTRAP, &sa, NULL);
}
#else
static inline PROG_HELPER void jf_on_trap(void)
{
}
#endif

static NOIPA unsigned long jf_call(code_fn *fn)
{
	return fn(&prog_stop) + 1;
}

static NOIPA unsigned long jf_run(code_fn *fn, int stepped)
{
	unsigned long r = 0;

	while (!prog_stop) {
		jf_stepping = stepped;
		if (stepped)
			raise(SIGTRAP);
		r += jf_call(fn);
		jf_stepping = 0;
	}
	return r;
}

int main(int argc, char **argv)
{
	unsigned long way = (unsigned long)prog_arg(argc, argv, 2, 0), r;
	const struct piece *p = pieces[way % (sizeof(pieces) / sizeof(pieces[0]))];
	code_fn *fn;
	char *code;

	if (!p->first)
		return 77; /* it is x86-64's */
	prog_init(argc, argv);
	code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	if (code == MAP_FAILED)
		return 77; /* a policy forbids such memory */
	memcpy(code, p->first, (size_t)(p->end - p->first));
	__builtin___clear_cache(code, code + 4096);
	memcpy(&fn, &code, sizeof(fn));
	jf_first = (unsigned long)code;
	jf_second = jf_first + (unsigned long)(p->second - p->first);
	jf_third = jf_first + (unsigned long)(p->third - p->first);
	jf_end = jf_first + (unsigned long)(p->end - p->first);
	jf_on_trap();
	r = jf_run(fn, way >= JF_STEPPED);
	prog_keep(&r);
	return 0;
}
