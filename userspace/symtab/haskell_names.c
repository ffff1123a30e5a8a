/* SPDX-License-Identifier: BSD-2-Clause */
#include "symtab/haskell_names.h"

#include <stdint.h>
#include <string.h>

#include "base/text.h"

#define INFO "_info"
#define CON  "_con" /* suffix of a constructor */

struct out {
	char *buf;
	size_t n, cap;
};

static bool put(struct out *o, const char *s, size_t n)
{
	if (n > o->cap - o->n)
		return false;
	memcpy(o->buf + o->n, s, n);
	o->n += n;
	return true;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* zNNNU: a character by its number, in hexadecimal. *s is at the first digit. */
static bool put_number(struct out *o, const char **s, const char *end)
{
	char text[TEXT_CHAR_MAX];
	uint32_t c = 0;

	for (; *s < end && **s != 'U'; ++*s) {
		if (!is_digit(**s) && !(**s >= 'a' && **s <= 'f'))
			return false;
		c = c << 4 | (uint32_t)(is_digit(**s) ? **s - '0' : **s - 'a' + 10);
		if (c > 0x10ffff)
			return false;
	}
	return *s < end && (++*s, put(o, text, text_encode(text, c)));
}

/* ZnT and ZnH: tuples of n, boxed and not. *s is at the first digit. */
static bool put_tuple(struct out *o, const char **s, const char *end)
{
	unsigned int n = 0;
	bool hash, ok;

	for (; *s < end && is_digit(**s) && n < 100; ++*s)
		n = n * 10 + (unsigned int)(**s - '0');
	if (*s == end || n > 64 || (**s != 'T' && **s != 'H'))
		return false;
	hash = *(*s)++ == 'H';
	ok = put(o, "(#", hash ? 2 : 1);
	for (unsigned int i = 1; i < n && ok; i++)
		ok = put(o, ",", 1);
	return ok && put(o, hash ? "#)" : ")", hash ? 2 : 1);
}

static bool decode(struct out *o, const char *s, const char *end)
{
	static const char small[] = "a&b|c^d$e=g>h#i.l<m-n!p+q'r\\s/t*u_v%zz",
			  large[] = "L(R)M[N]C:ZZ";

	while (s < end) {
		bool lower = *s == 'z';
		const char *pairs = lower ? small : large;

		if (!lower && *s != 'Z') {
			if (!put(o, s++, 1))
				return false;
			continue;
		}
		if (++s == end)
			return false;
		if (is_digit(*s)) {
			if (!(lower ? put_number(o, &s, end) : put_tuple(o, &s, end)))
				return false;
			continue;
		}
		while (*pairs && *pairs != *s)
			pairs += 2;
		if (!*pairs || !put(o, pairs + 1, 1))
			return false;
		s++;
	}
	return true;
}

#define PARTS 4

/* Cuts at each _. 0: there are more parts than such names have, or an empty one. */
static size_t split(const char *s, const char *end, const char *parts[PARTS + 1])
{
	size_t n = 0;

	parts[n++] = s;
	for (; s < end; s++) {
		if (*s != '_')
			continue;
		if (n == PARTS || s == parts[n - 1] || s + 1 == end)
			return 0;
		parts[n++] = s + 1;
	}
	parts[n] = end + 1;
	return n;
}

static bool has(const char *s, const char *end, const char *escape)
{
	for (; s + 1 < end; s++)
		if (s[0] == escape[0] && s[1] == escape[1])
			return true;
	return false;
}

static const char *end_of(const char *raw, size_t *len, const char *end)
{
	size_t n = strlen(end);

	if (*len > n && strncmp(raw + *len - n, end, n) == 0)
		*len -= n;
	return raw + *len;
}

bool haskell_is_mangled(const char *raw)
{
	size_t len = strlen(raw), n = strlen(INFO);

	return len > n && !strcmp(raw + len - n, INFO) && strpbrk(raw, "zZ") && *raw != '_';
}

size_t haskell_demangle(const char *raw, char *buf, size_t cap)
{
	struct out o = { .buf = buf, .cap = cap };
	const char *parts[PARTS + 1], *end, *module_end, *name;
	size_t len = strlen(raw), n, module;

	if (!haskell_is_mangled(raw))
		return 0;
	end_of(raw, &len, INFO);
	end = end_of(raw, &len, CON);
	n = split(raw, end, parts);
	/* Packages begin with a small letter, modules with a capital one. */
	module = n && raw[0] >= 'A' && raw[0] <= 'Z' ? 0 : 1;
	if (n < module + 2 || n > module + 3 || *parts[module] < 'A' || *parts[module] > 'Z')
		return 0;
	module_end = parts[module + 1] - 1;
	name = parts[module + 1];
	if (!has(parts[module], module_end, "zi") &&
	    !(module && has(raw, parts[1] - 1, "zm") && has(raw, parts[1] - 1, "zi")) &&
	    strncmp(name, "zd", 2) != 0)
		return 0;
	/* The number that makes a local name unique may follow the name. */
	if (!decode(&o, parts[module], module_end) || !put(&o, ".", 1) ||
	    !decode(&o, name, parts[module + 2] - 1))
		return 0;
	return o.n;
}
