/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads JSON (RFC 8259) from memory, a value at a time. The first error is sticky: from then on everything is
 * empty or 0 and loops end, so a reader looks at bytes.err once. Text after the outermost value is not looked at.
 *
 *	if (json_enter(&j, '{'))
 *		while ((key = json_key(&j)))
 *			if (!strcmp(key, "count")) n = json_number(&j); else json_skip(&j);
 *	if (json_enter(&j, '['))
 *		while (json_element(&j))
 *			...
 */
#ifndef SFBPF_BASE_JSON_READ_H
#define SFBPF_BASE_JSON_READ_H

#include <stdbool.h>

#include "base/bytes.h"

#define JSON_MAX_DEPTH 64

struct json_reader {
	struct bytes bytes;	/* .pos is where an error is */
	bool first;		/* of a container */
	int depth;
	char key[64];		/* longer ones are cut: none that we know is */
	char *str;		/* scratch of json_string */
	size_t str_cap;
};

void json_reader_init(struct json_reader *j, const void *text, size_t len);
void json_reader_free(struct json_reader *j);
/* Goes into an object or array; false if the next value is something else, which is then skipped. */
bool json_enter(struct json_reader *j, char bracket);
/* The next member's key, valid until the next call, or NULL at the object's end, which is then left. */
const char *json_key(struct json_reader *j);
/* Whether there is another element; at the array's end, which is then left, false. */
bool json_element(struct json_reader *j);
void json_skip(struct json_reader *j);
/* What is not of that type is skipped: "" and 0. The string is UTF-8 as written, without NUL bytes; valid until the next one. */
const char *json_string(struct json_reader *j);
double json_number(struct json_reader *j);
uint64_t json_unsigned(struct json_reader *j);	/* also 0 for what is negative or has a fraction */

#endif
