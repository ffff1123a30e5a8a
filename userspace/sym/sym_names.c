/* SPDX-License-Identifier: BSD-2-Clause */
#include "sym/sym_names.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

#include "base/text.h"

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

static int demangle(const char *raw, struct sink *k)
{
	if (setjmp(k->full))
		return 1; /* the name is cut */
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
	return raw[0] == '_' && (raw[1] == 'Z' || raw[1] == 'R');
}

size_t sym_demangle(const char *raw, char *buf, size_t cap)
{
	char name[SYM_NAME_MAX];
	struct sink k = { .buf = name, .cap = sizeof(name) };
	size_t len = strnlen(raw, MANGLED_MAX);

	if (len < MANGLED_MAX && sym_is_mangled(raw) && demangle(raw, &k) && k.len)
		return text_clean(buf, cap, name, k.len, 0);
	return text_clean(buf, cap, raw, len, 0);
}
