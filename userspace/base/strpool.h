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
/* id must come from strpool_intern */
const char *strpool_str(const struct strpool *sp, uint32_t id);
uint32_t strpool_count(const struct strpool *sp);
size_t strpool_bytes(const struct strpool *sp); /* bytes of memory */

#endif
