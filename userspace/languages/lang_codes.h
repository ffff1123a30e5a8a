/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The code of languages that was met in a run. The kernel numbers code objects, which processes
 * have at any address and drop at any time (struct sf_code). Here, equal code has one number in all
 * processes and for the whole run, so that equal stacks are equal. One thread only.
 */
#ifndef SFBPF_LANGUAGES_LANG_CODES_H
#define SFBPF_LANGUAGES_LANG_CODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "border/sfbpf_shared.h"
#include "languages/lang.h"

#define LANG_CODE_UNKNOWN 0u /* the number of code whose name could not be read */

struct lang_codes;

struct lang_codes *lang_codes_new(void); /* NULL: out of memory */
void lang_codes_free(struct lang_codes *lc);
void lang_codes_reset(struct lang_codes *lc); /* forgets all code */
size_t lang_codes_bytes(const struct lang_codes *lc);
/* Takes a record of len bytes, whose code is unknown if its user holds much. false: malformed. */
bool lang_codes_add(struct lang_codes *lc, const struct sf_code *rec, size_t len);
/* Replaces the kernel's id in the word of a language's frame by the number of the code. */
uint64_t lang_codes_word(const struct lang_codes *lc, uint64_t word);
/* False: LANG_CODE_UNKNOWN. Valid until the next lang_codes_add. */
bool lang_codes_get(const struct lang_codes *lc, uint32_t number, struct lang_code *ret);

#endif
