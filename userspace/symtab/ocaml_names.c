/* SPDX-License-Identifier: BSD-2-Clause */
#include "symtab/ocaml_names.h"

#include <string.h>

#define PREFIX	  "caml"
#define ANONYMOUS "fun"

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return is_upper(c) || (c >= 'a' && c <= 'z') || c == '_';
}

/* The value of two hexadecimal digits, which are lower case; -1: others. */
static int hex_at(const char *s)
{
	int value = 0;

	for (int i = 0; i < 2; i++) {
		if (!is_digit(s[i]) && !(s[i] >= 'a' && s[i] <= 'f'))
			return -1;
		value = value * 16 + (is_digit(s[i]) ? s[i] - '0' : s[i] - 'a' + 10);
	}
	return value;
}

bool ocaml_is_mangled(const char *raw)
{
	return strncmp(raw, PREFIX, strlen(PREFIX)) == 0 && is_upper(raw[strlen(PREFIX)]);
}

struct parts {
	const char *unit, *function, *end;
	bool dollars; /* escapes begin with $$ */
};

/*
 * Where __ separates, it may also be part of both names. A unit's other parts begin with a capital
 * letter. Functions do not, but for functors, which come last. NULL: it cannot be told.
 */
static const char *underscores(const char *unit, const char *end)
{
	const char *last = unit, *before = NULL, *at;
	bool lower = false; /* a part before the last one does not begin so */

	for (at = unit; (at = strstr(at, "__")) && at + 2 < end; at += 2) {
		if (is_upper(at[2])) {
			before = at;
			last = at + 2;
		} else if (!before) {
			lower = true;
		}
	}
	at = strstr(last, "__");
	if (!at)
		return lower ? NULL : before;
	return at + 2 < end && (is_letter(at[2]) || at[2] == '$') ? at : NULL;
}

static bool split(const char *raw, struct parts *ret)
{
	const char *at = raw + strlen(PREFIX);

	ret->unit = at;
	ret->end = at + strlen(at);
	ret->dollars = false;
	while (is_letter(*at) || is_digit(*at))
		at++;
	if (*at == '.' ||
	    (*at == '$' && (is_letter(at[1]) || at[1] == '$') && strncmp(at - 2, "__", 2) != 0)) {
		ret->dollars = *at == '$';
		ret->function = at + 1;
		return true;
	}
	at = underscores(ret->unit, ret->end);
	if (!at || at[2] == '_')
		return false;
	ret->function = at + 2;
	return true;
}

/*
 * Cuts the number that makes the symbol unique, and what flambda adds. Symbols without one are not
 * functions, but for a unit's entry.
 */
static bool cut_number(struct parts *p)
{
	static const char code[] = "_code", entry[] = "entry";
	size_t len = (size_t)(p->end - p->function);
	const char *at;

	if (len == strlen(entry) && strncmp(p->function, entry, len) == 0)
		return true;
	if (len > strlen(code) && strcmp(p->end - strlen(code), code) == 0)
		p->end -= strlen(code);
	for (at = p->end; at > p->function && is_digit(at[-1]); at--)
		;
	if (at == p->end || at - p->function < 2 || at[-1] != '_')
		return false;
	if ((size_t)(at - 1 - p->function) != strlen(ANONYMOUS) ||
	    strncmp(p->function, ANONYMOUS, strlen(ANONYMOUS)) != 0)
		p->end = at - 1;
	return true;
}

/* __ before a capital letter, as in Stdlib__List, is a dot of OCaml's path. */
static size_t put_unit(const struct parts *p, const char *to, char *buf)
{
	size_t n = 0;

	for (const char *s = p->unit; s < to; s++) {
		bool dot = to - s > 2 && s > p->unit && s[0] == '_' && s[1] == '_' &&
			   is_upper(s[2]) && s[-1] != '_';

		buf[n++] = dot ? '.' : *s;
		s += dot;
	}
	return n;
}

size_t ocaml_demangle(const char *raw, char *buf, size_t cap)
{
	struct parts p;
	const char *unit_end;
	size_t n;

	if (!ocaml_is_mangled(raw) || strlen(raw) >= cap || !split(raw, &p) || !cut_number(&p))
		return 0;
	unit_end = p.function - 1;
	if (*unit_end == '_')
		unit_end--;
	n = put_unit(&p, unit_end, buf);
	buf[n++] = '.';
	for (const char *s = p.function; s < p.end; s++) {
		int escape = p.dollars ? 2 : 1, value;

		if (*s != '$') {
			buf[n++] = *s;
			continue;
		}
		if (p.dollars && s[1] != '$') { /* a part of the path */
			buf[n++] = '.';
			continue;
		}
		value = p.end - s >= escape + 2 ? hex_at(s + escape) : -1;
		if (value <= ' ')
			return 0;
		buf[n++] = (char)value;
		s += escape + 1;
	}
	return n;
}
