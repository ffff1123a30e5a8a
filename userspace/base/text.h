/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Foreign strings (comm, symbol, path) on their way to a terminal or a file. Everything that a process chose
 * itself goes through text_clean once; what comes out is valid UTF-8 without anything that moves the cursor
 * or reorders the line. JSON and HTML do their own escaping on top of it.
 */
#ifndef SFBPF_BASE_TEXT_H
#define SFBPF_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEXT_FOLDED 1	/* ';' becomes ':' as well: it separates frames (Rust has it in array types) */

/*
 * src[0..len) into dst, NUL-terminated, cut at a character's border to fit cap (at least 1).
 * Control bytes (C0, DEL, C1) become '.'; invalid or overlong UTF-8, surrogates, bidirectional controls,
 * line and paragraph separators become U+FFFD. Returns the bytes written, without the NUL.
 */
size_t text_clean(char *dst, size_t cap, const char *src, size_t len, unsigned int flags);

/* One character of s[0..len), len > 0: its bytes (always >= 1). Not valid UTF-8: *ret is UINT32_MAX. */
size_t text_decode(const char *s, size_t len, uint32_t *ret);

/* Columns of one character: 0 combining, 2 East Asian wide and emoji, else 1. */
int text_char_width(uint32_t c);
/* Columns of a clean string. */
int text_width(const char *s);
/*
 * The first `columns` columns of a clean string. A longer one ends in the mark: U+2026 if unicode, else '~'.
 * Returns the columns used (<= columns); a wide character that would stick out is left out.
 */
int text_fit(char *dst, size_t cap, const char *s, int columns, bool unicode);

#endif
