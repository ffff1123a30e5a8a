/* SPDX-License-Identifier: BSD-2-Clause */
#include "symtab/sym_names.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "symtab/haskell_names.h"
#include "symtab/ocaml_names.h"

#define MANGLED_MAX 4096 /* bytes, with the NUL */

struct sink {
	char *buf;
	size_t len, cap;
	jmp_buf full;
};

/*
 * A few hundred bytes of substitutions can expand to gigabytes of name, so a full buffer leaves the
 * demangler by longjmp. This leaks nothing, as the demangler uses only its stack, except for a few
 * bytes for a punycode identifier.
 */
static void sink_put(const char *s, size_t n, void *opaque)
{
	struct sink *k = opaque;
	size_t room = k->cap - 1 - k->len;

	if (!n)
		return; /* s may be NULL */
	memcpy(k->buf + k->len, s, n < room ? n : room);
	k->len += n < room ? n : room;
	if (n >= room)
		longjmp(k->full, 1);
}

/* The position of the quote that ends the text which begins with the one at s[at]. */
static size_t skip_quoted(const char *s, size_t at)
{
	const char quote = s[at++];

	while (s[at] && s[at] != quote)
		at += s[at] == '\\' && s[at + 1] ? 2 : 1;
	return at;
}

/*
 * The length of a name of D without its last parameters: a.b!(int).f(char) const is a.b!(int).f.
 * What encloses it keeps its own: a.main().f(int) is a.main().f.
 */
static size_t d_name_len(const char *s)
{
	size_t len = strlen(s), open = len, after = 0, depth = 0;

	for (size_t i = 0; s[i]; i++) {
		if (s[i] == '"' || (s[i] == '\'' && depth))
			i = skip_quoted(s, i);
		else if (s[i] == '(' && !depth++)
			open = i;
		else if (s[i] == ')' && depth && !--depth)
			after = i + 1;
		if (!s[i])
			return len;
	}
	/* Words after it are those of a method's this: const, shared and the like. */
	return after && !strchr(s + after, '.') && open && s[open - 1] != '!' ? open : len;
}

static bool d_is_mangled(const char *raw)
{
	return raw[0] == '_' && raw[1] == 'D' &&
	       ((raw[2] >= '0' && raw[2] <= '9') || !strcmp(raw, "_Dmain"));
}

/* GCC's clones end in .part.0 and the like. */
static void demangle_d(const char *raw, struct sink *k)
{
	char whole[MANGLED_MAX], *name;
	size_t len = strcspn(raw, ".");

	memcpy(whole, raw, len);
	whole[len] = 0;
	name = dlang_demangle(whole, DMGL_NO_OPTS);
	if (!name)
		return;
	len = d_name_len(name);
	k->len = len < k->cap - 1 ? len : k->cap - 1;
	memcpy(k->buf, name, k->len);
	free(name);
}

static int demangle(const char *raw, struct sink *k)
{
	if (setjmp(k->full))
		return 1; /* the name is cut */
	if (raw[0] != '_') {
		k->len = ocaml_demangle(raw, k->buf, k->cap);
		if (!k->len)
			k->len = haskell_demangle(raw, k->buf, k->cap);
		return k->len > 0;
	}
	if (d_is_mangled(raw)) {
		demangle_d(raw, k);
		return k->len > 0;
	}
	if (rust_demangle_callback(raw, DMGL_NO_OPTS, sink_put, k))
		return 1;
	k->len = 0;
	if (cplus_demangle_v3_callback(raw, DMGL_NO_OPTS, sink_put, k))
		return 1;
	k->len = 0;
	return 0;
}

/* _Z: C++ and legacy Rust, _R: Rust v0 */
bool sym_is_mangled(const char *raw)
{
	return (raw[0] == '_' && (raw[1] == 'Z' || raw[1] == 'R')) || d_is_mangled(raw) ||
	       ocaml_is_mangled(raw) || haskell_is_mangled(raw);
}

size_t sym_demangle(const char *raw, char *buf, size_t cap)
{
	char name[SYM_NAME_MAX], linked[MANGLED_MAX];
	struct sink k = { .buf = name, .cap = sizeof(name) };
	size_t len = strnlen(raw, MANGLED_MAX), n = strcspn(raw, " "), mark = len - n;

	if (len == MANGLED_MAX || !sym_is_mangled(raw))
		return text_clean(buf, cap, raw, len, 0);
	memcpy(linked, raw, n);
	linked[n] = 0;
	if (!demangle(linked, &k) || !k.len)
		return text_clean(buf, cap, raw, len, 0);
	/* A name that is cut keeps its mark. */
	len = text_clean(buf, mark < cap ? cap - mark : cap, name, k.len, 0);
	return len + text_clean(buf + len, cap - len, raw + n, mark, 0);
}
