/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Marks of names that do not tell what ran: identical functions that the linker or the compiler has
 * folded into one, and resolvers of IFUNCs.
 *
 * Two names are of one function if they are shown alike: constructors C1 and C2, overloads, clones.
 * Demangling all names that share an address would take longer than all else. So names are compared
 * as they are linked first, and only those that differ are demangled.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/radix.h"
#include "base/vec.h"
#include "sym/elf_symtab_internal.h"
#include "sym/sym_names.h"

#define DEMANGLE_MAX 16384 /* names; other ones that differ are taken for different functions */
#define RUST_HASH    20	   /* bytes of 17h0123456789abcdefE, the end of legacy Rust's names */
#define MARK_BYTES   32

static bool is_mangled(const char *name, size_t len)
{
	return len > 2 && name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');
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
 * The bytes without what compilers append for a clone (.part.0, .llvm.123). *ret_hash: those of
 * them that are a Rust hash. Dots before it are of the name.
 */
static size_t plain_len(const char *name, size_t len, size_t *ret_hash)
{
	const char *dot = name + len, *first = dot;

	for (; dot; dot = memrchr(name, '.', (size_t)(dot - name))) {
		if (dot - name >= RUST_HASH && is_rust_hash(dot - RUST_HASH)) {
			*ret_hash = RUST_HASH;
			return (size_t)(dot - name);
		}
		first = dot;
	}
	*ret_hash = 0;
	return (size_t)(first - name);
}

/* Skips the length of a source name and its characters, or the number of a substitution. */
static size_t skip_token(const char *name, size_t len, size_t i)
{
	size_t n = 0;

	if (name[i] == 'S' && i + 1 < len &&
	    (isdigit((unsigned char)name[i + 1]) || isupper((unsigned char)name[i + 1]))) {
		while (i < len && name[i] != '_')
			i++;
		return i;
	}
	while (i < len && isdigit((unsigned char)name[i]) && n < SYMTAB_NAME_MAX)
		n = n * 10 + (size_t)(name[i++] - '0');
	return n < len - i ? i + n : len;
}

/* Writes the name with the same number for all kinds of constructors and destructors. */
static void write_alike(const char *name, size_t len, char *ret)
{
	size_t i = 0, next;

	memcpy(ret, name, len);
	while (i < len) {
		next = isdigit((unsigned char)name[i]) || name[i] == 'S' ? skip_token(name, len, i)
									 : i + 1;
		if ((name[i] == 'C' || name[i] == 'D') && next < len && name[next] >= '0' &&
		    name[next] <= '5')
			ret[next++] = '1';
		i = next > i ? next : i + 1;
	}
}

static uint32_t short_hash(const char *s, size_t len)
{
	return (uint32_t)hash_bytes(s, len) | 1;
}

uint32_t builder_kin(const char *name, size_t len)
{
	char alike[SYMTAB_NAME_MAX];
	size_t hash;

	if (!is_mangled(name, len) || len > sizeof(alike))
		return 0;
	len = plain_len(name, len, &hash) - hash;
	write_alike(name, len, alike);
	return short_hash(alike, len);
}

/* ---- Comparing what is shown ---- */

/* Skips the offset of a thunk: h16_, hn16_, v0_n24_. NULL: it is none. */
static const char *skip_offset(const char *s)
{
	int numbers = *s == 'h' ? 1 : *s == 'v' ? 2 : 0;

	if (!numbers)
		return NULL;
	for (s++; numbers; numbers--) {
		s += *s == 'n';
		while (isdigit((unsigned char)*s))
			s++;
		if (*s++ != '_')
			return NULL;
	}
	return s;
}

/* name: _ZThn16_N1A1fEv; it becomes that of the thunk's function, _ZN1A1fEv. */
static void skip_thunk(char *name)
{
	const char *at = name + 3;

	if (strncmp(name, "_ZT", 3) != 0)
		return;
	if (*at == 'c')
		at = skip_offset(at + 1);
	at = at ? skip_offset(at) : NULL;
	if (at)
		memmove(name + 2, at, strlen(at) + 1);
}

/* 0: the name is not mangled. */
static uint32_t shown_kin(const char *name, size_t len)
{
	char raw[SYMTAB_NAME_MAX], shown[SYM_NAME_MAX];
	size_t hash;

	len = plain_len(name, len, &hash);
	memcpy(raw, name, len);
	raw[len] = 0;
	skip_thunk(raw);
	len = sym_demangle(raw, shown, sizeof(shown));
	return is_mangled(shown, len) ? 0 : short_hash(shown, len);
}

/* keys: name << 32 | candidate. */
static int compare_shown(struct builder *b, uint64_t *keys, size_t n)
{
	struct name_window w = { .table = -1 };
	struct bytes name;
	int err = radix_sort(keys, n, sizeof(*keys));

	for (size_t i = 0; i < n && !err; i++) {
		err = name_window_at(&w, b, (uint32_t)(keys[i] >> 32), &name);
		if (!err)
			b->cands[(uint32_t)keys[i]].kin =
				shown_kin((const char *)name.base,
					  strnlen((const char *)name.base, name.len - 1));
	}
	elf_blob_free(&w.blob);
	return err;
}

/* Whether functions of different kins begin where candidate i does. *ret_n: all candidates there */
static bool has_kins(const struct builder *b, size_t i, size_t *ret_n)
{
	uint32_t kin = 0;
	bool several = false;
	size_t n = 0;

	for (; i + n < b->n && b->cands[i + n].off == b->cands[i].off; n++) {
		const struct cand *c = &b->cands[i + n];

		several |= kin && c->kin && c->kin != kin;
		kin = c->kin ? c->kin : kin;
	}
	*ret_n = n;
	return several;
}

int builder_compare_kins(struct builder *b)
{
	uint64_t *keys = malloc(DEMANGLE_MAX * sizeof(*keys));
	size_t n = 0, of;
	int err;

	if (!keys)
		return -ENOMEM;
	for (size_t i = 0; i < b->n; i += of) {
		if (!has_kins(b, i, &of) || of > DEMANGLE_MAX - n)
			continue;
		for (size_t k = i; k < i + of; k++)
			if (b->cands[k].kin)
				keys[n++] = (uint64_t)b->cands[k].name << 32 | k;
	}
	err = compare_shown(b, keys, n);
	free(keys);
	return err;
}

/* ---- Marks ---- */

static int compare_u32(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static int add_mark(struct builder *b, uint64_t off, uint32_t others)
{
	if (vec_reserve(&b->marks, &b->marks_cap, b->nmarks + 1, sizeof(*b->marks)))
		return -ENOMEM;
	b->marks[b->nmarks++] = (struct mark){ off, others };
	return 0;
}

int builder_mark(struct builder *b, const struct cand *group, size_t n, const struct cand *best)
{
	uint32_t *kins, others = 0;
	size_t k = 0;

	if (best->ifunc)
		return add_mark(b, best->off, 0);
	if (!best->kin || n < 2)
		return 0;
	kins = malloc(n * sizeof(*kins));
	if (!kins)
		return -ENOMEM;
	/* Folded functions have one size. One without code may have the address of the next. */
	for (size_t i = 0; i < n; i++)
		if (group[i].kin && group[i].kin != best->kin && group[i].size == best->size)
			kins[k++] = group[i].kin;
	if (k)
		qsort(kins, k, sizeof(*kins), compare_u32);
	for (size_t i = 0; i < k; i++)
		others += !i || kins[i] != kins[i - 1];
	free(kins);
	return others ? add_mark(b, best->off, others) : 0;
}

/* The mark of the function at off, or NULL. */
static const struct mark *find_mark(const struct builder *b, uint64_t off)
{
	size_t lo = 0, hi = b->nmarks; /* marks before lo are below off, those from hi on are not */

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (b->marks[mid].off < off)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < b->nmarks && b->marks[lo].off == off ? &b->marks[lo] : NULL;
}

bool builder_is_marked(const struct builder *b, uint64_t off)
{
	return find_mark(b, off);
}

size_t builder_marked_name(const struct builder *b, uint64_t off, const char *name, size_t len,
			   char *ret)
{
	const struct mark *m = find_mark(b, off);
	char raw[SYMTAB_NAME_MAX];

	memcpy(raw, name, len);
	raw[len] = 0;
	len = sym_demangle(raw, ret, SYM_NAME_MAX - MARK_BYTES);
	if (m->others)
		return len + (size_t)sprintf(ret + len, " [+%u]", m->others);
	return len + (size_t)sprintf(ret + len, " [resolver]");
}
