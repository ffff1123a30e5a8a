/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A keyed 128-bit digest, for data of megabytes in a fraction of the time that reading them takes: four lanes of folded
 * multiplications, each of two words at once. No cryptographic hash: who does not know the key and sees no digest cannot aim at one, more is not promised.
 */
#ifndef SFBPF_BASE_DIGEST_H
#define SFBPF_BASE_DIGEST_H

#include "base/hash.h"

#define DIGEST_LANES 4
#define DIGEST_WORDS (2 * DIGEST_LANES)

struct digest_key {
	uint64_t words[DIGEST_LANES];
};

struct digest {
	uint64_t lane[DIGEST_LANES];
	struct digest_key key;
};

struct digest_value {
	uint64_t words[2];
};

static inline void digest_init(struct digest *d, const struct digest_key *key)
{
	d->key = *key;
	for (int i = 0; i < DIGEST_LANES; i++)
		d->lane[i] = key->words[(i + 1) % DIGEST_LANES];
}

static inline void digest_mix(uint64_t *lane, const uint64_t *word, const struct digest_key *key)
{
	lane[0] = hash_mix(lane[0] ^ word[0], key->words[0] ^ word[1]);
	lane[1] = hash_mix(lane[1] ^ word[2], key->words[1] ^ word[3]);
	lane[2] = hash_mix(lane[2] ^ word[4], key->words[2] ^ word[5]);
	lane[3] = hash_mix(lane[3] ^ word[6], key->words[3] ^ word[7]);
}

/* Each piece counts with its length: (ab, c) is not (a, bc). */
static inline void digest_add(struct digest *d, const void *data, size_t len)
{
	uint64_t word[DIGEST_WORDS], lane[DIGEST_LANES];
	const uint8_t *p = data;

	memcpy(lane, d->lane, sizeof(lane));
	lane[0] ^= len;
	for (; len >= sizeof(word); len -= sizeof(word), p += sizeof(word)) {
		memcpy(word, p, sizeof(word));
		digest_mix(lane, word, &d->key);
	}
	memset(word, 0, sizeof(word));
	if (len)
		memcpy(word, p, len);
	digest_mix(lane, word, &d->key);
	memcpy(d->lane, lane, sizeof(lane));
}

static inline struct digest_value digest_end(const struct digest *d)
{
	const uint64_t *l = d->lane, *key = d->key.words;
	uint64_t x = hash_mix(hash_mix(l[0], key[2]) ^ l[1], hash_mix(l[2], key[3]) ^ l[3]);

	return (struct digest_value){ { x, hash_mix(hash_mix(l[3] ^ key[1], l[1] ^ key[0]) ^ l[2], hash_mix(l[0], x)) } };
}

#endif
