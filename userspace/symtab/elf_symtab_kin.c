/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether two linked names of one address are of one function: of a constructor or destructor that
 * the compiler emitted in several variants (C1 and C2, Itanium ABI 5.1.4.3), of a clone, or of
 * copies that differ in the hash of a legacy Rust name. The names are not demangled: a demangler
 * may never end, and this runs without a limit of its own.
 */
#include <ctype.h>
#include <string.h>

#include "base/hash.h"
#include "symtab/symtab_builder.h"

#define RUST_HASH 20 /* bytes of 17h0123456789abcdefE, the end of legacy Rust's names */

static bool is_digit(char ch)
{
	return ch >= '0' && ch <= '9';
}

static bool is_rust_hash(const char *s)
{
	if (memcmp(s, "17h", 3) != 0 || s[RUST_HASH - 1] != 'E')
		return false;
	for (int i = 3; i < RUST_HASH - 1; i++)
		if (!isxdigit((unsigned char)s[i]))
			return false;
	return true;
}

/*
 * The bytes without a Rust hash, and without what compilers append for a clone (.part.0, .llvm.1).
 * Dots before a hash are of the name.
 */
static size_t plain_len(const char *name, size_t len)
{
	const char *dot = name + len, *first = dot;

	for (; dot; dot = memrchr(name, '.', (size_t)(dot - name))) {
		if (dot - name >= RUST_HASH && is_rust_hash(dot - RUST_HASH))
			return (size_t)(dot - name) - RUST_HASH;
		first = dot;
	}
	return (size_t)(first - name);
}

/* Whether a number at i is not the length of an identifier: Li128E, Lin3E, S12_, T0_, A16_ */
static bool is_plain_number(const char *s, size_t i)
{
	if (strchr("STA", s[i - 1]))
		return true;
	i -= s[i - 1] == 'n';
	return i > 1 && s[i - 2] == 'L' && islower((unsigned char)s[i - 1]);
}

/* The length of an identifier, at the end of its digits; 0 at other places. */
static size_t identifier_len(const char *s, size_t len, size_t *i)
{
	bool plain = is_plain_number(s, *i);
	size_t n = 0;

	while (*i < len && is_digit(s[*i]) && n < len)
		n = n * 10 + (size_t)(s[(*i)++] - '0');
	return plain ? 0 : n < len - *i ? n : len - *i;
}

uint32_t builder_kin(const char *name, size_t len)
{
	char out[SYMTAB_NAME_MAX];

	if (len < 3 || len >= sizeof(out) || name[0] != '_' ||
	    !(name[1] == 'Z' || (name[1] == 'R' && strchr("CMXYNI", name[2]))))
		return 0;
	len = plain_len(name, len);
	memcpy(out, name, len);
	/* All variants of constructors, and those of destructors, become variant 1. */
	for (size_t i = 2; name[1] == 'Z' && i < len;) {
		if (is_digit(out[i])) {
			size_t n = identifier_len(out, len, &i);

			i += n;
			continue;
		}
		if ((out[i] == 'C' || out[i] == 'D') && i + 1 < len && is_digit(out[i + 1]))
			out[++i] = '1';
		i++;
	}
	return (uint32_t)hash_bytes(out, len) | 1;
}
