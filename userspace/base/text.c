/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/text.h"

#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* RFC 3629, section 4: the shortest form only, no surrogates, at most U+10FFFF. */
size_t text_decode(const char *s, size_t len, uint32_t *ret)
{
	const uint8_t *p = (const uint8_t *)s;
	uint32_t c = p[0], min;
	size_t n;

	*ret = UINT32_MAX;
	if (c < 0x80) {
		*ret = c;
		return 1;
	}
	if (c >= 0xc2 && c <= 0xdf) {
		n = 2;
		min = 0x80;
		c &= 0x1f;
	} else if (c >= 0xe0 && c <= 0xef) {
		n = 3;
		min = 0x800;
		c &= 0x0f;
	} else if (c >= 0xf0 && c <= 0xf4) {
		n = 4;
		min = 0x10000;
		c &= 0x07;
	} else {
		return 1;
	}
	if (n > len)
		return 1;
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 1;
		c = c << 6 | (p[i] & 0x3f);
	}
	if (c < min || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 1;
	*ret = c;
	return n;
}

size_t text_encode(char *dst, uint32_t c)
{
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const uint8_t first[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

	for (size_t i = n - 1; i; i--, c >>= 6)
		dst[i] = (char)(0x80 | (c & 0x3f));
	dst[0] = (char)(n == 4 ? first[n] | (c & 7) : first[n] | c);
	return n;
}

/* Valid characters that move or reorder the surrounding text. */
static bool moves_text(uint32_t c)
{
	return c == 0x061c || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb);
}

size_t text_path_len(const char *path)
{
	static const char deleted[] = " (deleted)";
	const size_t len = strlen(path), more = sizeof(deleted) - 1;

	return len > more && strcmp(path + len - more, deleted) == 0 ? len - more : len;
}

size_t text_clean(char *dst, size_t cap, const char *src, size_t len, unsigned int flags)
{
	size_t out = 0, i = 0;

	while (i < len) {
		const char *put = src + i;
		size_t n, nput;
		uint32_t c;

		if (*put >= 0x20 && *put < 0x7f && *put != ';') { /* the common case */
			if (cap - out <= 1)
				break;
			dst[out++] = *put;
			i++;
			continue;
		}
		n = nput = text_decode(src + i, len - i, &c);
		if (c < 0x20 || (c >= 0x7f && c < 0xa0)) {
			put = ".";
			nput = 1;
		} else if (c == UINT32_MAX || moves_text(c)) {
			put = REPLACEMENT;
			nput = 3;
		} else if (c == ';' && (flags & TEXT_FOLDED)) {
			put = ":";
		}
		if (nput >= cap - out)
			break;
		memcpy(dst + out, put, nput);
		out += nput;
		i += n;
	}
	dst[out] = 0;
	return out;
}

struct range {
	uint32_t first, last;
};

static bool in_ranges(const struct range *r, size_t n, uint32_t c)
{
	/* Everything before lo ends below c, everything from hi on starts above it */
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (c > r[mid].last)
			lo = mid + 1;
		else if (c < r[mid].first)
			hi = mid;
		else
			return true;
	}
	return false;
}

/*
 * Widths are by block rather than by character: a wrong column now and then is harmless, and the
 * list stays readable.
 */
int text_char_width(uint32_t c)
{
	static const struct range zero[] = {
		{ 0x0300, 0x036f },   { 0x0483, 0x0489 }, { 0x0591, 0x05bd }, { 0x0610, 0x061a },
		{ 0x064b, 0x065f },   { 0x1ab0, 0x1aff }, { 0x1dc0, 0x1dff }, { 0x200b, 0x200d },
		{ 0x2060, 0x2064 },   { 0x20d0, 0x20f0 }, { 0xfe00, 0xfe0f }, { 0xfe20, 0xfe2f },
		{ 0xe0001, 0xe01ef },
	};
	static const struct range wide[] = {
		{ 0x1100, 0x115f },   { 0x231a, 0x231b },   { 0x2329, 0x232a },
		{ 0x23e9, 0x23ec },   { 0x2e80, 0x303e },   { 0x3041, 0x33ff },
		{ 0x3400, 0x4dbf },   { 0x4e00, 0x9fff },   { 0xa000, 0xa4cf },
		{ 0xa960, 0xa97f },   { 0xac00, 0xd7a3 },   { 0xf900, 0xfaff },
		{ 0xfe10, 0xfe19 },   { 0xfe30, 0xfe6f },   { 0xff01, 0xff60 },
		{ 0xffe0, 0xffe6 },   { 0x16fe0, 0x18cff }, { 0x1b000, 0x1b2ff },
		{ 0x1f004, 0x1f004 }, { 0x1f0cf, 0x1f0cf }, { 0x1f18e, 0x1f18e },
		{ 0x1f191, 0x1f19a }, { 0x1f200, 0x1f265 }, { 0x1f300, 0x1f64f },
		{ 0x1f680, 0x1f6ff }, { 0x1f7e0, 0x1f7eb }, { 0x1f90c, 0x1f9ff },
		{ 0x1fa70, 0x1faff }, { 0x20000, 0x3fffd },
	};

	if (c < 0x300)
		return 1;
	if (in_ranges(zero, sizeof(zero) / sizeof(zero[0]), c))
		return 0;
	return in_ranges(wide, sizeof(wide) / sizeof(wide[0]), c) ? 2 : 1;
}

int text_width(const char *s)
{
	size_t len = strlen(s);
	int width = 0;
	uint32_t c;

	for (size_t i = 0; i < len;) {
		i += text_decode(s + i, len - i, &c);
		width += text_char_width(c);
	}
	return width;
}

/* The bytes of s that fit into cap (with a NUL) and `columns`. *ret: columns used. */
static size_t fitting(const char *s, size_t len, size_t cap, int columns, int *ret)
{
	size_t i = 0;
	int used = 0;

	while (i < len) {
		uint32_t c;
		size_t n = text_decode(s + i, len - i, &c);
		int w = text_char_width(c);

		if (used + w > columns || i + n >= cap)
			break;
		used += w;
		i += n;
	}
	*ret = used;
	return i;
}

int text_fit(char *dst, size_t cap, const char *s, int columns, bool unicode)
{
	const char *mark = unicode ? "\xe2\x80\xa6" : "~";
	size_t len = strlen(s), nmark = strlen(mark), n;
	int used;

	n = fitting(s, len, cap, columns, &used);
	if (n < len) {
		if (columns < 1 || cap <= nmark) {
			dst[0] = 0;
			return 0;
		}
		n = fitting(s, len, cap - nmark, columns - 1, &used);
		memcpy(dst, s, n);
		memcpy(dst + n, mark, nmark);
		dst[n + nmark] = 0;
		return used + 1;
	}
	memcpy(dst, s, n);
	dst[n] = 0;
	return used;
}

#define NEAR_LEN   32 /* longer words have no near ones */
#define NEAR_EDITS 2

/* Insertions, deletions, replacements and swaps of neighbours that turn a into b. */
static unsigned int edits_between(const char *a, size_t na, const char *b, size_t nb)
{
	unsigned int d[NEAR_LEN + 1][NEAR_LEN + 1];

	for (size_t i = 0; i <= na; i++) {
		for (size_t j = 0; j <= nb; j++) {
			unsigned int *at = &d[i][j], cost;

			if (!i || !j) {
				*at = (unsigned int)(i + j);
				continue;
			}
			cost = a[i - 1] != b[j - 1];
			*at = d[i - 1][j - 1] + cost;
			if (d[i - 1][j] + 1 < *at)
				*at = d[i - 1][j] + 1;
			if (d[i][j - 1] + 1 < *at)
				*at = d[i][j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    d[i - 2][j - 2] + 1 < *at)
				*at = d[i - 2][j - 2] + 1;
		}
	}
	return d[na][nb];
}

void text_near_try(struct text_near *near, const char *candidate)
{
	size_t len = strlen(candidate);
	unsigned int edits;

	if (near->len > NEAR_LEN || len > NEAR_LEN)
		return;
	edits = edits_between(near->word, near->len, candidate, len);
	if (edits > NEAR_EDITS || edits >= near->len || (near->best && edits >= near->edits))
		return;
	near->best = candidate;
	near->edits = edits;
}
