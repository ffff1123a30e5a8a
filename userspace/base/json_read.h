/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads JSON (RFC 8259) from memory, one value at a time. The first error is sticky: from then on
 * all values are empty or 0 and loops end, so a reader checks bytes.err once. Text after the
 * outermost value is ignored.
 *
 * 	if (json_enter(&j, '{'))
 * 		while ((key = json_key(&j)))
 * 			if (!strcmp(key, "count")) n = json_number(&j); else json_skip(&j);
 * 	if (json_enter(&j, '['))
 * 		while (json_element(&j))
 * 			...
 */
#ifndef SFBPF_BASE_JSON_READ_H
#define SFBPF_BASE_JSON_READ_H

#include <stdbool.h>

#include "base/bytes.h"

#define JSON_MAX_DEPTH 64

struct json_reader {
	struct bytes bytes; /* .pos: position of an error */
	bool first;	    /* it is at the first element of a container */
	int depth;
	char key[320]; /* longer keys are cut; no key that we know is longer */
	char *str;     /* scratch of json_string */
	size_t str_cap;
};

void json_reader_init(struct json_reader *j, const void *text, size_t len);
void json_reader_free(struct json_reader *j);
/* Enters an object or array. false: the next value is something else and is skipped. */
bool json_enter(struct json_reader *j, char bracket);
/*
 * The key of the next member, valid until the next call. NULL: the end of the object, which is then
 * left.
 */
const char *json_key(struct json_reader *j);
/* Whether there is another element. false: the end of the array, which is then left. */
bool json_element(struct json_reader *j);
void json_skip(struct json_reader *j);
/*
 * A value of another type is skipped and yields "" or 0. The string is UTF-8 as in the text,
 * without NUL bytes, and valid until the next call.
 */
const char *json_string(struct json_reader *j);
double json_number(struct json_reader *j);
uint64_t json_unsigned(struct json_reader *j); /* also 0 for negative numbers and fractions */

#endif
