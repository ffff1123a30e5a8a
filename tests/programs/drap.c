/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drap [SECONDS]: frames that realign their stack, between ordinary ones. Built with -mavx2.
 * dr_vector only rounds rsp down; dr_args needs its caller's arguments as well and dr_alloca a
 * frame of unknown size: GCC keeps the caller's stack pointer for these in r10 and in a slot
 * (DRAP).
 */
#include <alloca.h>
#include <immintrin.h>
#include "prog.h"

HOT_PARTS(dr)

static volatile int dr_zero;

static NOIPA unsigned long dr_vector(long n, unsigned long x);

static NOIPA unsigned long dr_enter(unsigned long x)
{
	volatile __m256i v = _mm256_set1_epi64x((long long)x);
	char *p = (char *)alloca(16 + x % 200);

	p[0] = (char)x;
	prog_keep(p);
	x = dr_mid(x, x + 1);
	return x + (unsigned long)_mm256_extract_epi64(v, 2);
}

static NOIPA unsigned long dr_hot(unsigned long x)
{
	while (!prog_stop)
		x += dr_enter(x);
	return x;
}

static NOIPA unsigned long dr_plain(long n, unsigned long x)
{
	return (n > 0 ? dr_vector(n - 1, x) : dr_hot(x)) + (unsigned long)n;
}

static NOIPA unsigned long dr_alloca(long n, unsigned long x)
{
	volatile __m256i v = _mm256_set1_epi64x((long long)x);
	char *p = (char *)alloca(64 + (unsigned long)n);

	p[0] = 1;
	prog_keep(p);
	x = dr_plain(n, x);
	return x + (unsigned long)_mm256_extract_epi64(v, 1) + (unsigned char)p[0];
}

static NOIPA unsigned long dr_args(long n, unsigned long x, long c, long d, long e, long f, long g,
				   long h)
{
	volatile __m256i v = _mm256_set1_epi64x((long long)(x + (unsigned long)h));
	char *p = (char *)alloca(32 + (unsigned long)dr_zero);

	p[0] = (char)g;
	prog_keep(p);
	x = dr_alloca(n, x);
	return x + (unsigned long)(c + d + e + f + g + h) +
	       (unsigned long)_mm256_extract_epi64(v, 0);
}

static NOIPA unsigned long dr_vector(long n, unsigned long x)
{
	volatile __m256i v = _mm256_set1_epi64x((long long)x);

	x = dr_args(n, x, 1, 2, 3, 4, 5, n);
	return x + (unsigned long)_mm256_extract_epi64(v, 3);
}

int main(int argc, char **argv)
{
	unsigned long r;

	if (!__builtin_cpu_supports("avx2"))
		return 77;
	prog_init(argc, argv);
	r = dr_vector(2, (unsigned long)argc);
	prog_keep(&r);
	return 0;
}
