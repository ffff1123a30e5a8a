/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hashes for tables in memory. They use a different key in each run: the input is foreign bytes,
 * which could otherwise be chosen to collide in one slot. hash_fold and hash_stable have no key,
 * for values that must be the same in each run.
 */
#ifndef SFBPF_BASE_HASH_H
#define SFBPF_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct hash_key {
	uint64_t a, b;
};

#define HASH_UNKEYED ((struct hash_key){ 0x9e3779b97f4a7c15ull, 0xd1b54a32d192ed03ull })

extern struct hash_key hash_key; /* random in each run; set before main() */

/* Folded 128-bit multiplication: every input bit reaches the low bits that index a table. */
static inline uint64_t hash_mix_keyed(struct hash_key key, uint64_t a, uint64_t b)
{
	unsigned __int128 p = (unsigned __int128)(a ^ key.a) * (b ^ key.b);

	return (uint64_t)p ^ (uint64_t)(p >> 64);
}

static inline uint64_t hash_fold(uint64_t a, uint64_t b)
{
	return hash_mix_keyed(HASH_UNKEYED, a, b);
}

static inline uint64_t hash_mix(uint64_t a, uint64_t b)
{
	return hash_mix_keyed(hash_key, a, b);
}

static inline uint64_t hash_u64(uint64_t v)
{
	return hash_mix(v, 0);
}

static inline uint64_t hash_bytes_keyed(struct hash_key key, const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t h = len, word;

	for (; len >= 8; p += 8, len -= 8) {
		memcpy(&word, p, 8);
		h = hash_mix_keyed(key, h, word);
	}
	word = 0;
	if (len)
		memcpy(&word, p, len);
	return hash_mix_keyed(key, h, word);
}

static inline uint64_t hash_bytes(const void *data, size_t len)
{
	return hash_bytes_keyed(hash_key, data, len);
}

static inline uint64_t hash_stable(const void *data, size_t len)
{
	return hash_bytes_keyed(HASH_UNKEYED, data, len);
}

#endif
