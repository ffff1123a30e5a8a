/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A keyed 128-bit digest, for data of megabytes in a fraction of the time that reading them takes: four lanes of folded 64-bit
 * multiplications. No cryptographic hash: who does not know the key and sees no digest cannot aim at one, more is not promised.
 */
#ifndef SFBPF_BASE_DIGEST_H
#define SFBPF_BASE_DIGEST_H

#include "base/hash.h"

#define DIGEST_LANES 4

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

/* Each piece counts with its length: (ab, c) is not (a, bc). */
static inline void digest_add(struct digest *d, const void *data, size_t len)
{
	uint64_t word[DIGEST_LANES], a = d->lane[0] ^ len, b = d->lane[1], c = d->lane[2], e = d->lane[3];
	const uint64_t *key = d->key.words;
	const uint8_t *p = data;

	for (size_t left = len;; left -= sizeof(word), p += sizeof(word)) {
		if (left >= sizeof(word)) {
			memcpy(word, p, sizeof(word));
		} else {
			memset(word, 0, sizeof(word));
			if (left)
				memcpy(word, p, left);
		}
		a = hash_mix(a ^ word[0], key[0]);
		b = hash_mix(b ^ word[1], key[1]);
		c = hash_mix(c ^ word[2], key[2]);
		e = hash_mix(e ^ word[3], key[3]);
		if (left < sizeof(word))
			break;
	}
	d->lane[0] = a;
	d->lane[1] = b;
	d->lane[2] = c;
	d->lane[3] = e;
}

static inline struct digest_value digest_end(const struct digest *d)
{
	const uint64_t *l = d->lane, *key = d->key.words;
	uint64_t x = hash_mix(hash_mix(l[0], key[2]) ^ l[1], hash_mix(l[2], key[3]) ^ l[3]);

	return (struct digest_value){ { x, hash_mix(hash_mix(l[3] ^ key[1], l[1] ^ key[0]) ^ l[2], hash_mix(l[0], x)) } };
}

#endif
