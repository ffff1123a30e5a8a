/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interned strings: equal strings have equal ids, 0, 1, 2, ... in order of insertion. Strings never
 * move.
 */
#ifndef SFBPF_BASE_STRPOOL_H
#define SFBPF_BASE_STRPOOL_H

#include <stddef.h>
#include <stdint.h>

struct strpool;

struct strpool *strpool_new(void); /* NULL: out of memory */
void strpool_free(struct strpool *sp);
/* len bytes, none of them NUL. 0 or -ENOMEM. */
int strpool_intern(struct strpool *sp, const char *str, size_t len, uint32_t *ret);
/*
 * The stages of strpool_fetch, which has the processor load what the search for each of many
 * strings will read: a slot, an entry and the string. Call it before they are interned: one stage
 * for all strings, by their hashes, then the next one.
 */
enum strpool_stage { STRPOOL_SLOT, STRPOOL_ENTRY, STRPOOL_TEXT, STRPOOL_STAGES };
uint32_t strpool_hash(const char *str, size_t len);
void strpool_fetch(const struct strpool *sp, uint32_t hash, enum strpool_stage stage);
/* id must come from strpool_intern */
const char *strpool_str(const struct strpool *sp, uint32_t id);
uint32_t strpool_count(const struct strpool *sp);
size_t strpool_bytes(const struct strpool *sp); /* bytes of memory */

#endif
