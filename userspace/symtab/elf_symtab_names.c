/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the names of symbols in the order of the string tables. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/radix.h"
#include "base/vec.h"
#include "symtab/symtab_builder.h"

#define WINDOW	   65536
/* Average bytes of a name: with more symbols the names cannot fit, so they are not read */
#define SHORTEST   4
#define MARKED_MAX (4u << 20) /* bytes of marked names in a table without the others */
#define SMALL	   32	      /* bytes of code: functions below this are left out first */

int name_window_at(struct name_window *w, const struct builder *b, uint32_t name, struct bytes *ret)
{
	int of = name & NAME_DYNSTR ? 1 : 0, err;
	uint64_t at = name & ~NAME_DYNSTR, left = b->str[of].size - at,
		 want = left < SYMTAB_NAME_MAX ? left : SYMTAB_NAME_MAX;

	if (of != w->table || at < w->from || at + want > w->from + w->blob.view.len) {
		elf_blob_free(&w->blob);
		err = elf_image_read(of ? b->img : b->syms, b->str[of].off + at,
				     left < WINDOW ? left : WINDOW, &w->blob);
		if (err)
			return err;
		w->from = at;
		w->table = of;
	}
	*ret = bytes_sub(&w->blob.view, at - w->from, want);
	return 0;
}

static int read_name(struct name_window *w, struct builder *b, uint32_t name, const char **ret,
		     size_t *ret_len)
{
	struct bytes bytes;
	int err;

	*ret = symtab_root_name(name);
	if (*ret) {
		*ret_len = strlen(*ret);
		return 0;
	}
	err = name_window_at(w, b, name, &bytes);
	if (err)
		return err;
	*ret = (const char *)bytes.base;
	*ret_len = elf_versions_cut(&b->versions, b->img, *ret,
				    bytes.len < SYMTAB_NAME_MAX - 1 ? bytes.len
								    : SYMTAB_NAME_MAX - 1);
	return 0;
}

struct names {
	char *at;
	size_t len, cap, most;
};

/* -ENOSPC: the names do not fit. */
static int append(struct names *to, const char *name, size_t len)
{
	if (to->len + len + 1 > to->most)
		return -ENOSPC;
	if (vec_reserve(&to->at, &to->cap, to->len + len + 1, 1))
		return -ENOMEM;
	memcpy(to->at + to->len, name, len);
	to->len += len;
	to->at[to->len++] = 0;
	return 0;
}

/*
 * keys: name << 32 | symbol, sorted. Symbols with the same name share it, unless it is marked. ret
 * receives the new name offsets, parallel to t->syms.
 */
static int copy_names(struct builder *b, const struct symtab *t, const uint64_t *keys, uint32_t n,
		      struct names *to, uint32_t *ret)
{
	struct name_window w = { .table = -1 };
	uint32_t last = 0, at = 0;
	char own[SYMTAB_NAME_MAX];
	int err = 0;

	for (uint32_t i = 0; i < n && !err; i++) {
		uint32_t name = (uint32_t)(keys[i] >> 32);
		const struct mark *mark = builder_find_mark(b, t->syms[(uint32_t)keys[i]].off);
		const char *str;
		size_t len, shown;

		if (name != last || mark) {
			at = (uint32_t)to->len;
			err = read_name(&w, b, name, &str, &len);
			shown = 0;
			if (!err && mark)
				shown = builder_marked_name(mark, str, len, own);
			else if (!err)
				shown = builder_source_name(b, str, len, own);
			if (shown) {
				str = own;
				len = shown;
			}
			if (!err && len)
				err = append(to, str, len);
			else
				at = 0;
			last = mark ? 0 : name;
		}
		ret[(uint32_t)keys[i]] = at;
	}
	elf_blob_free(&w.blob);
	return err;
}

/* some: only marked names; the others stay in the file. -ENOSPC: t is as before. */
static int try_names(struct builder *b, struct symtab *t, size_t most, bool some)
{
	struct names to = { .most = most };
	uint32_t *names, n = 0;
	uint64_t *keys;
	int err;

	if (!some && t->n > most / SHORTEST)
		return -ENOSPC;
	keys = malloc((t->n + 1ul) * sizeof(*keys));
	names = malloc((t->n + 1ul) * sizeof(*names));
	err = keys && names ? append(&to, "", 0) : -ENOMEM;
	for (uint32_t i = 0; i < t->n && !err; i++)
		if (!some || builder_find_mark(b, t->syms[i].off))
			keys[n++] = (uint64_t)t->syms[i].name << 32 | i;
	if (!err)
		err = radix_sort(keys, n, sizeof(*keys));
	if (!err)
		err = copy_names(b, t, keys, n, &to, names);
	for (uint32_t i = 0; i < t->n && some && !err; i++)
		t->syms[i].size |= SYMTAB_IN_FILE;
	for (uint32_t i = 0; i < n && !err; i++) {
		struct symtab_sym *s = &t->syms[(uint32_t)keys[i]];

		s->size &= ~SYMTAB_IN_FILE;
		s->name = names[(uint32_t)keys[i]];
	}
	if (!err) {
		t->names = to.at;
		t->names_len = (uint32_t)to.len;
	} else {
		free(to.at);
	}
	free(keys);
	free(names);
	return err;
}

static void leave_out(struct symtab *t, uint32_t below)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->n; i++)
		if ((t->syms[i].size & SYMTAB_SIZE) >= below)
			t->syms[n++] = t->syms[i];
	t->cut += t->n - n;
	t->n = n;
}

static int name_marked(struct builder *b, struct symtab *t, size_t room)
{
	int err = b->nmarks ? try_names(b, t, room < MARKED_MAX ? room : MARKED_MAX, true) : 0;

	return err == -ENOSPC ? 0 : err;
}

int builder_name_symbols(struct builder *b, struct symtab *t, uint32_t along)
{
	uint32_t below = SMALL;
	int err = 0;

	for (; t->n; below *= 2) {
		size_t table = (size_t)t->n * sizeof(*t->syms),
		       room = table < SYMTAB_MAX_BYTES ? SYMTAB_MAX_BYTES - table : 0;

		err = room ? try_names(b, t, room < along ? room : along, false) : -ENOSPC;
		if (err == -ENOSPC && room && along < SYMTAB_MAX_BYTES)
			return name_marked(b, t, room); /* the other names stay in the file */
		if (err != -ENOSPC)
			return err;
		leave_out(t, below);
	}
	return try_names(b, t, along, false);
}
