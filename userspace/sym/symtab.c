/* SPDX-License-Identifier: BSD-2-Clause */
#include "sym/symtab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/full_io.h"
#include "sfbpf_shared.h"

#define WALK_BACK 16		/* symbols before the nearest that may still reach over the address */

_Static_assert(sizeof(struct symtab_sym) == 16, "16 bytes a symbol");

void symtab_free(struct symtab *t)
{
	if (!t)
		return;
	free(t->syms);
	free(t->names);
	free(t);
}

bool symtab_at(const struct symtab *t, uint32_t index, struct symtab_hit *ret)
{
	const struct symtab_sym *s;

	if (index >= t->n)
		return false;
	s = &t->syms[index];
	*ret = (struct symtab_hit){ .index = index, .start = s->off, .size = s->size & ~SYMTAB_PLT, .plt = s->size & SYMTAB_PLT };
	return true;
}

bool symtab_find(const struct symtab *t, uint64_t offset, struct symtab_hit *ret)
{
	uint32_t lo = 0, hi = t->n;	/* symbols before lo start at or below offset, those from hi on above it */

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (t->syms[mid].off <= offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	/* The nearest one may be nested in a longer one: an entry point in the middle of a function. */
	for (uint32_t k = 1; k <= WALK_BACK && k <= lo; k++)
		if (offset - t->syms[lo - k].off < (t->syms[lo - k].size & ~SYMTAB_PLT))
			return symtab_at(t, lo - k, ret);
	return false;
}

int symtab_name(const struct symtab *t, const struct symtab_hit *hit, char *buf, size_t cap)
{
	const char *name = hit->index < t->n ? t->names + t->syms[hit->index].name : "";
	size_t len = strnlen(name, cap - 1);

	memcpy(buf, name, len);
	buf[len] = 0;
	return len ? (int)len : -ENOENT;
}

size_t symtab_bytes(const struct symtab *t)
{
	return sizeof(*t) + (size_t)t->n * sizeof(*t->syms) + t->names_len;
}

int symtab_write(const struct symtab *t, int fd)
{
	int err = write_full(fd, t->syms, (size_t)t->n * sizeof(*t->syms));

	return err ? err : write_full(fd, t->names, t->names_len);
}

static bool is_sound(const struct symtab *t)
{
	if (t->names[0] || t->names[t->names_len - 1])
		return false;
	for (uint32_t i = 0; i < t->n; i++) {
		const struct symtab_sym *s = &t->syms[i];

		if (s->off > SF_FRAME_OFFSET_MASK || s->name >= t->names_len || (i && s->off <= s[-1].off))
			return false;
	}
	return true;
}

int symtab_read(int fd, uint32_t n, uint32_t names_len, struct symtab **ret)
{
	size_t size = (size_t)n * sizeof(*(*ret)->syms);
	struct symtab *t;
	int err = -ENOMEM;

	if (!names_len || size + names_len > SYMTAB_MAX_BYTES)
		return -EBADMSG;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->n = n;
	t->names_len = names_len;
	t->syms = malloc(size ? size : 1);
	t->names = malloc(names_len);
	/* Each byte is read once, to where it stays: what the writer does to the file later changes nothing. */
	if (t->syms && t->names)
		err = pread_full(fd, t->syms, size, 0) || pread_full(fd, t->names, names_len, size) || !is_sound(t) ? -EBADMSG : 0;
	if (err)
		symtab_free(t);
	else
		*ret = t;
	return err;
}
