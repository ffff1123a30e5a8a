/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/json_read.h"

#include <stdlib.h>

#include "base/text.h"
#include "base/vec.h"

void json_reader_init(struct json_reader *j, const void *text, size_t len)
{
	*j = (struct json_reader){ .bytes = bytes_of(text, len, false) };
}

void json_reader_free(struct json_reader *j)
{
	free(j->str);
	j->str = NULL;
}

/* The next byte that is not white space, without taking it; 0 at the end. */
static char peek(struct json_reader *j)
{
	struct bytes at;
	uint8_t c;

	for (;;) {
		at = j->bytes;
		c = bytes_u8(&at);
		if (at.err)
			return 0;
		if (c != ' ' && c != '\t' && c != '\n' && c != '\r')
			return (char)c;
		bytes_skip(&j->bytes, 1);
	}
}

static void expect(struct json_reader *j, char c)
{
	if (peek(j) == c)
		bytes_skip(&j->bytes, 1);
	else
		j->bytes.err = true;
}

static bool append(struct json_reader *j, size_t *len, const void *bytes, size_t n)
{
	if (vec_reserve(&j->str, &j->str_cap, *len + n, 1)) {
		j->bytes.err = true;
		return false;
	}
	memcpy(j->str + *len, bytes, n);
	*len += n;
	return true;
}

static uint32_t hex4(struct json_reader *j)
{
	uint32_t v = 0;

	for (int i = 0; i < 4; i++) {
		uint8_t c = bytes_u8(&j->bytes);

		if (c >= '0' && c <= '9')
			v = v << 4 | (uint32_t)(c - '0');
		else if ((c | 32) >= 'a' && (c | 32) <= 'f')
			v = v << 4 | (uint32_t)((c | 32) - 'a' + 10);
		else
			j->bytes.err = true;
	}
	return v;
}

/*
 * \uXXXX as UTF-8. A lone surrogate becomes invalid UTF-8, which is replaced when the text is
 * shown.
 */
static void put_escaped(struct json_reader *j, size_t *len)
{
	uint32_t c = hex4(j);
	struct bytes back = j->bytes;
	char utf8[TEXT_CHAR_MAX];

	if (c >= 0xd800 && c < 0xdc00 && bytes_u8(&j->bytes) == '\\' &&
	    bytes_u8(&j->bytes) == 'u') {
		uint32_t low = hex4(j);

		if (low >= 0xdc00 && low < 0xe000)
			c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
		else
			j->bytes = back;
	} else {
		j->bytes = back;
	}
	if (!c)
		c = 0xfffd;
	append(j, len, utf8, text_encode(utf8, c));
}

/* Takes the bytes up to the next quote, backslash or control character. */
static void take_plain(struct json_reader *j, size_t *len)
{
	size_t n = bytes_text_until(&j->bytes, '"', '\\');

	if (n)
		append(j, len, bytes_take(&j->bytes, n), n);
}

static const char *take_string(struct json_reader *j)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	size_t len = 0;
	const char *at;
	uint8_t c = 0;

	expect(j, '"');
	take_plain(j, &len);
	while (!j->bytes.err && (c = bytes_u8(&j->bytes)) == '\\') {
		c = bytes_u8(&j->bytes);
		at = c ? strchr(from, c) : NULL;
		if (c == 'u')
			put_escaped(j, &len);
		else if (at)
			append(j, &len, &to[at - from], 1);
		else
			j->bytes.err = true;
		take_plain(j, &len);
	}
	if (c != '"')
		j->bytes.err = true;
	if (!append(j, &len, "", 1) || j->bytes.err)
		return "";
	return j->str;
}

bool json_enter(struct json_reader *j, char bracket)
{
	if (peek(j) != bracket) {
		json_skip(j);
		return false;
	}
	if (++j->depth > JSON_MAX_DEPTH)
		j->bytes.err = true;
	bytes_skip(&j->bytes, 1);
	j->first = true;
	return !j->bytes.err;
}

/* Moves to the next element. false: after the closing bracket. */
static bool advance(struct json_reader *j, char close)
{
	bool first = j->first;

	j->first = false;
	if (j->bytes.err)
		return false;
	if (peek(j) == close) {
		bytes_skip(&j->bytes, 1);
		j->depth--;
		return false;
	}
	if (!first)
		expect(j, ',');
	return !j->bytes.err;
}

const char *json_key(struct json_reader *j)
{
	const char *s;
	size_t len;

	if (!advance(j, '}'))
		return NULL;
	s = take_string(j);
	len = strnlen(s, sizeof(j->key) - 1);
	memcpy(j->key, s, len);
	j->key[len] = 0;
	expect(j, ':');
	return j->bytes.err ? NULL : j->key;
}

bool json_element(struct json_reader *j)
{
	return advance(j, ']');
}

void json_skip(struct json_reader *j)
{
	/* characters of numbers, true, false, null */
	static const char scalar[] = "+-.0123456789Eaeflnrstu";
	struct bytes at;
	bool any = false;
	uint8_t c;

	switch (peek(j)) {
	case '"':
		take_string(j);
		return;
	case '{':
		if (json_enter(j, '{'))
			while (json_key(j))
				json_skip(j);
		return;
	case '[':
		if (json_enter(j, '['))
			while (json_element(j))
				json_skip(j);
		return;
	default:
		break;
	}
	at = j->bytes;
	while ((c = bytes_u8(&at)) && strchr(scalar, c)) {
		bytes_skip(&j->bytes, 1);
		any = true;
	}
	if (!any)
		j->bytes.err = true; /* not JSON */
}

const char *json_string(struct json_reader *j)
{
	if (peek(j) == '"')
		return take_string(j);
	json_skip(j);
	return "";
}

/* Reads the text of a number. Text longer than any number that we write is not a number. */
static const char *take_number(struct json_reader *j, char buf[40])
{
	const uint8_t *text = NULL;
	struct bytes at;
	size_t n;

	peek(j);
	at = j->bytes;
	json_skip(j);
	n = j->bytes.pos - at.pos;
	if (!j->bytes.err && n < 40)
		text = bytes_take(&at, n);
	if (text)
		memcpy(buf, text, n);
	buf[text ? n : 0] = 0;
	return buf[0] == '-' || (buf[0] >= '0' && buf[0] <= '9') ? buf : "";
}

double json_number(struct json_reader *j)
{
	char buf[40];

	return strtod(take_number(j, buf), NULL);
}

uint64_t json_unsigned(struct json_reader *j)
{
	char buf[40], *end;
	const char *s = take_number(j, buf);
	uint64_t v = strtoull(s, &end, 10);

	return *s == '-' || *end ? 0 : v;
}
