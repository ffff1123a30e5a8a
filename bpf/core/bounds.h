/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Bounds that the verifier has to see.
 *
 * A variable index into map memory, and the length of a copy, need a bound that the verifier can
 * prove. A mask or a comparison in C does not guarantee it: a compiler drops a mask that it can
 * prove redundant, tests the 32-bit half of a 64-bit register, or compares a copy of the value. The
 * verifier then does not know the bound, and which compiler does what changes from release to
 * release. These macros bound a value by an instruction in inline assembler. The compiler cannot
 * see through it, so it stays, it works on the whole register, and its result is what is used.
 *
 * Use the result at once: then it is in a register. Linux 6.1 forgets the bounds of a value that is
 * stored to the stack in less than 8 bytes.
 *
 * On the host (row_find.h and row_step.h in unit tests) they are plain C.
 */
#ifndef SFBPF_BOUNDS_H
#define SFBPF_BOUNDS_H

#ifdef __bpf__

/* x & mask; the mask is a constant below 2^31. x is taken as 32 bits. */
#define MASKED(x, mask)                                                                \
	({                                                                             \
		_Static_assert((mask) <= 0x7fffffffull, "an immediate of 32 bits");    \
		unsigned long masked_ = (unsigned int)(x);                             \
                                                                                       \
		asm volatile("%0 &= %1" : "+r"(masked_) : "i"((unsigned long)(mask))); \
		masked_;                                                               \
	})

/* x, or `most` if x is greater, as unsigned numbers. `most` is a constant after inlining. */
#define AT_MOST(x, most)                                      \
	({                                                    \
		unsigned long least_ = (x);                   \
                                                              \
		asm volatile("if %0 <= %1 goto +1\n\t%0 = %1" \
			     : "+r"(least_)                   \
			     : "i"((unsigned long)(most)));   \
		least_;                                       \
	})

/* x, of which the compiler knows nothing: what is known before is not used after. */
#define OPAQUE(x)                                 \
	({                                        \
		__typeof__(x) opaque_ = (x);      \
                                                  \
		asm volatile("" : "+r"(opaque_)); \
		opaque_;                          \
	})

#else

#define MASKED(x, mask)	 ((unsigned long)((unsigned int)(x) & (mask)))
#define AT_MOST(x, most) ((unsigned long)(x) <= (most) ? (unsigned long)(x) : (most))
#define OPAQUE(x)	 (x)

#endif

/* An index into an array whose size is a power of two: x modulo the size. */
#define INDEX(x, size)                                                        \
	({                                                                    \
		_Static_assert(!((size) & ((size)-1)), "not a power of two"); \
		MASKED(x, (size)-1);                                          \
	})

#endif
