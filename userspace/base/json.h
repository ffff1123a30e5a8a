/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes JSON (RFC 8259) to a FILE as it goes. It handles commas and escaping; the caller handles
 * nesting. Strings may hold any bytes: invalid UTF-8 becomes U+FFFD, and "</" becomes "<\/", so
 * that the text is safe inside a <script> element.
 */
#ifndef SFBPF_BASE_JSON_H
#define SFBPF_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
	FILE *f;
	bool comma; /* the next value or key is not the first in its container */
	/* escape every '<' in strings: "<!--" and "<script" have a meaning in HTML, too */
	bool html;
};

static inline struct json json_on(FILE *f)
{
	return (struct json){ .f = f };
}

/* key is NULL inside an array and at the top. */
void json_object(struct json *j, const char *key);
void json_object_end(struct json *j);
void json_array(struct json *j, const char *key);
void json_array_end(struct json *j);
void json_str(struct json *j, const char *key, const char *value); /* NULL: null */
void json_u64(struct json *j, const char *key, uint64_t value);
void json_i64(struct json *j, const char *key, int64_t value);
/* decimals: 0 to 9. A value that is not finite is written as null. */
void json_double(struct json *j, const char *key, double value, int decimals);
void json_bool(struct json *j, const char *key, bool value);
void json_newline(struct json *j); /* only for readability */

#endif
