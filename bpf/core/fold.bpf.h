/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * One step of a 64-bit hash: mixes a word into h. Each step is a bijection (the multipliers are
 * odd), so inputs that differ in a single word always have different hashes.
 */
#ifndef SFBPF_FOLD_BPF_H
#define SFBPF_FOLD_BPF_H

#define FOLD_MUL1 0x9fb21c651e98df25ull
#define FOLD_MUL2 0xd6e8feb86659fd93ull
#define FOLD(h, w, k)                    \
	({                               \
		(h) = ((h) ^ (w)) * (k); \
		(h) ^= (h) >> 32;        \
	})

#endif
