/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes foreign strings (comm, symbol, path) safe for a terminal or a file. Every string that a
 * process chose itself goes through text_clean once. The result is valid UTF-8 without characters
 * that move the cursor or reorder the line. JSON and HTML escape it further.
 */
#ifndef SFBPF_BASE_TEXT_H
#define SFBPF_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Also turn ';' into ':', as it separates frames (Rust has it in array types) */
#define TEXT_FOLDED 1

/*
 * Copies src[0..len) to dst, NUL-terminated, cut at a character boundary to fit cap (at least 1).
 * Control bytes (C0, DEL, C1) become '.'. Invalid or overlong UTF-8, surrogates, bidirectional
 * controls, line and paragraph separators become U+FFFD. Returns the bytes written, without the
 * NUL.
 */
size_t text_clean(char *dst, size_t cap, const char *src, size_t len, unsigned int flags);

/*
 * Decodes one character of s[0..len), len > 0. Returns its bytes (always >= 1). *ret is UINT32_MAX
 * if it is not valid UTF-8.
 */
size_t text_decode(const char *s, size_t len, uint32_t *ret);

/* Bytes of a path without the " (deleted)" that the kernel appends when the file has no name. */
size_t text_path_len(const char *path);

#define TEXT_CHAR_MAX 4 /* bytes of a character */

/* Writes the low 21 bits of c as UTF-8, surrogates as WTF-8 has them. Returns the bytes. */
size_t text_encode(char *dst, uint32_t c);

/* Columns of one character: 0 combining, 2 East Asian wide and emoji, else 1. */
int text_char_width(uint32_t c);
/* Columns of a clean string. */
int text_width(const char *s);
/*
 * Copies the first `columns` columns of a clean string. A longer string ends in U+2026 if unicode,
 * else in '~'. Returns the columns used (<= columns). A wide character that does not fit is left
 * out.
 */
int text_fit(char *dst, size_t cap, const char *s, int columns, bool unicode);

/* The candidate that is nearest to a word by edits: words that a user may have meant. */
struct text_near {
	const char *word;
	size_t len;
	const char *best; /* NULL: none is near */
	unsigned int edits;
};

void text_near_try(struct text_near *near, const char *candidate);

#endif
