/* SPDX-License-Identifier: BSD-2-Clause */
/* Hashes for tables in memory; nothing stored or sent depends on their values. */
#ifndef SFBPF_BASE_HASH_H
#define SFBPF_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Folded 128-bit multiplication: every input bit reaches the low bits that index a table. */
static inline uint64_t hash_mix(uint64_t a, uint64_t b)
{
	unsigned __int128 p = (unsigned __int128)(a ^ 0x9e3779b97f4a7c15ull) * (b ^ 0xd1b54a32d192ed03ull);

	return (uint64_t)p ^ (uint64_t)(p >> 64);
}

static inline uint64_t hash_u64(uint64_t v)
{
	return hash_mix(v, 0);
}

static inline uint64_t hash_bytes(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t h = len, word;

	for (; len >= 8; p += 8, len -= 8) {
		memcpy(&word, p, 8);
		h = hash_mix(h, word);
	}
	word = 0;
	if (len)
		memcpy(&word, p, len);
	return hash_mix(h, word);
}

#endif
