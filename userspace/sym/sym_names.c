/* SPDX-License-Identifier: BSD-2-Clause */
#include "sym/sym_names.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

#include "base/text.h"

#define MANGLED_MAX 4096

struct sink {
	char *buf;
	size_t len, cap;
	jmp_buf full;
};

/*
 * A few hundred bytes of substitutions can stand for gigabytes of name. The demangler cannot be told to stop, so
 * a full buffer leaves it by longjmp; it works on its own stack (but for a punycode identifier's few bytes).
 */
static void sink_put(const char *s, size_t n, void *opaque)
{
	struct sink *k = opaque;
	size_t room = k->cap - 1 - k->len;

	memcpy(k->buf + k->len, s, n < room ? n : room);
	k->len += n < room ? n : room;
	if (n >= room)
		longjmp(k->full, 1);
}

static int demangle(const char *raw, struct sink *k)
{
	if (setjmp(k->full))
		return 1;	/* cut, but a name */
	if (rust_demangle_callback(raw, DMGL_NO_OPTS, sink_put, k))
		return 1;
	k->len = 0;
	if (cplus_demangle_v3_callback(raw, DMGL_NO_OPTS, sink_put, k))
		return 1;
	k->len = 0;
	return 0;
}

size_t sym_demangle(const char *raw, char *buf, size_t cap)
{
	char name[SYM_NAME_MAX];
	struct sink k = { .buf = name, .cap = sizeof(name) };
	size_t len = strnlen(raw, MANGLED_MAX);

	/* _Z: C++ and legacy Rust, _R: Rust v0; anything else is not worth a parser's time. */
	if (len > 2 && len < MANGLED_MAX && raw[0] == '_' && (raw[1] == 'Z' || raw[1] == 'R') && demangle(raw, &k) && k.len)
		return text_clean(buf, cap, name, k.len, 0);
	return text_clean(buf, cap, raw, len, 0);
}
