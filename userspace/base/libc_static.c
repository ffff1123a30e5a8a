/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/libc_static.h"

#ifdef SFBPF_STATIC
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <nss.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <wchar.h>
#include <wctype.h>

#include "base/text.h"

void libc_static_init(void)
{
	static const char *const files[] = { "passwd",	 "group",     "initgroups",
					     "services", "protocols", "networks" };

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		__nss_configure_lookup(files[i], "files");
	__nss_configure_lookup("hosts", "files dns");
}

/* ---- The locale ---- */

static bool utf8;

static bool wants_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
	const char *v = NULL;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && (!v || !*v); i++)
		v = getenv(names[i]);
	if (!v)
		return false;
	if (strchr(v, '.'))
		v = strchr(v, '.') + 1;
	return !strncasecmp(v, "UTF-8", 5) || !strncasecmp(v, "UTF8", 4);
}

char *__wrap_setlocale(int category, const char *name);
char *__wrap_nl_langinfo(nl_item item);
char *__real_nl_langinfo(nl_item item);

/* Only LC_CTYPE is ever set. */
char *__wrap_setlocale(int category, const char *name)
{
	static char c_name[] = "C", utf8_name[] = "C.UTF-8";

	if (category != LC_CTYPE && category != LC_ALL)
		return c_name;
	if (name)
		utf8 = !*name && wants_utf8();
	return utf8 ? utf8_name : c_name;
}

char *__wrap_nl_langinfo(nl_item item)
{
	static char name[] = "UTF-8";

	return utf8 && item == CODESET ? name : __real_nl_langinfo(item);
}

/* ---- Characters ---- */

int __wrap_wcwidth(wchar_t c);
int __wrap_iswprint(wint_t c);
wint_t __wrap_btowc(int c);
int __wrap_wctob(wint_t c);
size_t __wrap_mbrtowc(wchar_t *ret, const char *s, size_t n, mbstate_t *state);
int __wrap_mbtowc(wchar_t *ret, const char *s, size_t n);
int __wrap_mblen(const char *s, size_t n);
size_t __wrap_wcrtomb(char *s, wchar_t c, mbstate_t *state);
size_t __wrap_wcsrtombs(char *dst, const wchar_t **src, size_t cap, mbstate_t *state);

int __wrap_iswprint(wint_t c)
{
	if (!utf8)
		return c >= 0x20 && c < 0x7f;
	return c >= 0x20 && !(c >= 0x7f && c < 0xa0) && c <= 0x10ffff;
}

int __wrap_wcwidth(wchar_t c)
{
	if (!c)
		return 0;
	return __wrap_iswprint((wint_t)c) ? text_char_width((uint32_t)c) : -1;
}

wint_t __wrap_btowc(int c)
{
	return c >= 0 && c < 0x80 ? (wint_t)c : WEOF;
}

int __wrap_wctob(wint_t c)
{
	return c < 0x80 ? (int)c : EOF;
}

/* The bytes of a character by its first one; 0: no character begins with it. */
static size_t bytes_of(unsigned char first)
{
	if (first < 0x80 || !utf8)
		return 1;
	return first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
}

/*
 * Keeps no state: the caller repeats a character that is cut, as libncursesw does, which asks with
 * one byte more each time.
 */
size_t __wrap_mbrtowc(wchar_t *ret, const char *s, size_t n, mbstate_t *state)
{
	uint32_t c = UINT32_MAX;
	size_t need;

	(void)state;
	if (!s)
		return 0;
	if (!n)
		return (size_t)-2;
	need = bytes_of((unsigned char)*s);
	if (need > n)
		return (size_t)-2;
	if (need && !utf8)
		c = (unsigned char)*s < 0x80 ? (unsigned char)*s : UINT32_MAX;
	else if (need && text_decode(s, need, &c) != need)
		c = UINT32_MAX;
	if (c == UINT32_MAX) {
		errno = EILSEQ;
		return (size_t)-1;
	}
	if (ret)
		*ret = (wchar_t)c;
	return c ? need : 0;
}

int __wrap_mbtowc(wchar_t *ret, const char *s, size_t n)
{
	size_t len = __wrap_mbrtowc(ret, s, n, NULL);

	return len == (size_t)-2 ? -1 : (int)len;
}

int __wrap_mblen(const char *s, size_t n)
{
	return __wrap_mbtowc(NULL, s, n);
}

size_t __wrap_wcrtomb(char *s, wchar_t c, mbstate_t *state)
{
	uint32_t u = (uint32_t)c;

	(void)state;
	if (!s)
		return 1;
	if (u >= (utf8 ? 0x110000 : 0x80) || (u >= 0xd800 && u < 0xe000)) {
		errno = EILSEQ;
		return (size_t)-1;
	}
	return text_encode(s, u);
}

/* Converts whole strings only: callers have room for all of it, or ask for its length. */
size_t __wrap_wcsrtombs(char *dst, const wchar_t **src, size_t cap, mbstate_t *state)
{
	const wchar_t *p = *src;
	char buf[TEXT_CHAR_MAX];
	size_t len = 0, n;

	for (; *p; p++, len += n) {
		n = __wrap_wcrtomb(buf, *p, state);
		if (n == (size_t)-1)
			return n;
		if (dst && len + n > cap) {
			*src = p;
			return len;
		}
		if (dst)
			memcpy(dst + len, buf, n);
	}
	if (dst && len < cap) {
		dst[len] = 0;
		*src = NULL;
	}
	return len;
}
#endif
