/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of Ada's and Nim's functions. They look like names of C: pkg__child__run, run__module_u12.
 * So a name is one of these only if the file's symbol table lists the source file of its unit or
 * module: pkg-child.adb, module.nim.c.
 */
#include <errno.h>
#include <libiberty/demangle.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/vec.h"
#include "symtab/symtab_builder.h"

#define SOURCES_MAX 65536

enum language { ADA, NIM };

static bool ends(const char *s, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len > n && memcmp(s + len - n, end, n) == 0;
}

int builder_note_source(struct builder *b, uint32_t name)
{
	if (b->nsources == SOURCES_MAX)
		return 0;
	if (vec_reserve(&b->sources, &b->sources_cap, b->nsources + 1, sizeof(*b->sources)))
		return -ENOMEM;
	b->sources[b->nsources++] = name;
	return 0;
}

static int add_unit(struct builder *b, const char *unit, size_t len, enum language of)
{
	uint32_t id;

	return idmap_get(&b->units, hash_bytes(unit, len), of, &id);
}

/* Nim's files are named @mMODULE.nim.c, and @s stands for the slashes of a path. */
static int take_source(struct builder *b, const char *name, size_t len)
{
	const char *module = name + 2;

	/* A program with this file contains the runtime library */
	b->gnat |= len == strlen("s-stalib.adb") && !memcmp(name, "s-stalib.adb", len);
	if (ends(name, len, ".adb") || ends(name, len, ".ads"))
		return add_unit(b, name, len - 4, ADA);
	if (len < 2 || memcmp(name, "@m", 2) != 0 || !ends(name, len, ".nim.c"))
		return 0;
	for (const char *at = module; at + 2 < name + len; at++)
		if (at[0] == '@' && at[1] == 's')
			module = at + 2;
	return add_unit(b, module, (size_t)(name + len - strlen(".nim.c") - module), NIM);
}

static int by_offset(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

int builder_read_sources(struct builder *b)
{
	struct name_window w = { .table = -1 };
	struct bytes name;
	int err = 0;

	if (b->nsources) /* the string table is then read once, in order */
		qsort(b->sources, b->nsources, sizeof(*b->sources), by_offset);
	for (size_t i = 0; i < b->nsources && !err; i++) {
		err = name_window_at(&w, b, b->sources[i], &name);
		if (!err)
			err = take_source(b, (const char *)name.base,
					  strnlen((const char *)name.base, name.len));
	}
	elf_blob_free(&w.blob);
	/* GNAT's own libraries have exported symbols only. */
	return err;
}

static bool has_unit(const struct builder *b, const char *unit, size_t len, enum language of)
{
	uint32_t id;

	return len && idmap_find(&b->units, hash_bytes(unit, len), of, &id);
}

/* ---- Nim ---- */

/* "module.run" of run__module_u12 or run__dirZmodule_12. Returns its bytes; 0: it is none. */
static size_t nim_name(const struct builder *b, const char *name, size_t len, char *ret)
{
	const char *dot = memchr(name, '.', len), *end = dot ? dot : name + len, *module, *last;
	size_t n, digits = 0;

	while (end > name && end[-1] >= '0' && end[-1] <= '9') {
		end--;
		digits++;
	}
	if (end > name && end[-1] == 'u')
		end--;
	if (!digits || end - name < 5 || end[-1] != '_')
		return 0;
	end--;
	for (module = end - 1; module > name + 2 && (module[-1] != '_' || module[-2] != '_');)
		module--;
	if (module <= name + 2)
		return 0;
	for (last = end; last > module && last[-1] != 'Z';)
		last--;
	if (has_unit(b, module, (size_t)(end - module), NIM))
		last = module;
	else if (!has_unit(b, last, (size_t)(end - last), NIM))
		return 0;
	n = (size_t)(end - last);
	memcpy(ret, last, n);
	ret[n++] = '.';
	memcpy(ret + n, name, (size_t)(module - 2 - name));
	return n + (size_t)(module - 2 - name);
}

/* ---- Ada ---- */

/* Whether the name begins with a unit of the file: a__b with a.adb or a-b.adb. */
static bool is_ada(const struct builder *b, const char *name)
{
	static const char *const roots[] = { "ada__", "gnat__", "interfaces__", "system__" };
	char unit[SYMTAB_NAME_MAX];
	size_t n = 0;
	const char *at;

	if (!strncmp(name, "_ada_", 5))
		return has_unit(b, name + 5, strcspn(name + 5, "."), ADA);
	if (name[0] < 'a' || name[0] > 'z')
		return false;
	for (at = name; *at && *at != '.'; at++) {
		if (at[0] == '_' && at[1] == '_') {
			if (has_unit(b, unit, n, ADA))
				return true;
			unit[n++] = '-';
			at++;
		} else {
			unit[n++] = *at;
		}
	}
	/* The runtime library's files have short names, such as a-textio.adb. */
	for (size_t i = 0; b->gnat && i < sizeof(roots) / sizeof(roots[0]); i++)
		if (!strncmp(name, roots[i], strlen(roots[i])))
			return true;
	return false;
}

size_t builder_source_name(const struct builder *b, const char *name, size_t len, char *ret)
{
	char raw[SYMTAB_NAME_MAX], *shown;
	size_t n;

	if ((!b->units.n && !b->gnat) || len >= sizeof(raw))
		return 0;
	n = nim_name(b, name, len, ret);
	if (n)
		return n;
	memcpy(raw, name, len);
	raw[len] = 0;
	if (!is_ada(b, raw))
		return 0;
	shown = ada_demangle(raw, DMGL_NO_OPTS);
	/* Angle brackets mark a name that it does not understand */
	n = shown && shown[0] != '<' ? strnlen(shown, SYMTAB_NAME_MAX - 1) : 0;
	memcpy(ret, shown ? shown : "", n);
	free(shown);
	return n;
}
