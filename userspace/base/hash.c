/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/hash.h"

#include <sys/auxv.h>

struct hash_key hash_key = HASH_UNKEYED;

/*
 * Uses the kernel's 16 random bytes of each execve. This needs no call that could fail or that a
 * filter would have to allow.
 */
__attribute__((constructor)) static void choose_key(void)
{
	const void *random = (const void *)getauxval(AT_RANDOM);
	uint64_t words[2] = { 0 };

	if (random)
		memcpy(words, random, sizeof(words));
	/* libc makes its canaries from the same bytes, which the key does not reveal. */
	hash_key.a = hash_fold(words[0], words[1]);
	hash_key.b = hash_fold(words[1] ^ hash_key.a, words[0]);
}
