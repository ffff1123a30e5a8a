/* SPDX-License-Identifier: BSD-2-Clause */
#include "symtab/symtab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/full_io.h"
#include "border/sfbpf_shared.h"

/* Number of preceding symbols checked for one that covers the address */
#define WALK_BACK 16

_Static_assert(sizeof(struct symtab_sym) == 16, "16 bytes a symbol");

void symtab_free(struct symtab *t)
{
	if (!t)
		return;
	free(t->syms);
	free(t->names);
	if (t->debug_fd >= 0)
		close(t->debug_fd);
	free(t);
}

bool symtab_at(const struct symtab *t, uint32_t index, struct symtab_hit *ret)
{
	const struct symtab_sym *s;

	if (index >= t->n)
		return false;
	s = &t->syms[index];
	*ret = (struct symtab_hit){ .index = index,
				    .start = s->off,
				    .size = s->size & SYMTAB_SIZE,
				    .plt = s->size & SYMTAB_PLT };
	return true;
}

bool symtab_find(const struct symtab *t, uint64_t offset, struct symtab_hit *ret)
{
	/* Symbols before lo start at or below offset, those from hi on above it */
	uint32_t lo = 0, hi = t->n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (t->syms[mid].off <= offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	/*
	 * The nearest symbol may be nested in a longer one, such as an entry point inside a
	 * function.
	 */
	for (uint32_t k = 1; k <= WALK_BACK && k <= lo; k++)
		if (offset - t->syms[lo - k].off < (t->syms[lo - k].size & SYMTAB_SIZE))
			return symtab_at(t, lo - k, ret);
	return false;
}

const char *symtab_root_name(uint32_t name)
{
	static const char *const roots[] = {
		"_start", "clone3", "__restore_rt", "__start_context", "__kernel_rt_sigreturn", ""
	};

	return name >= NAME_LOWEST ? roots[NAME_START - name] : NULL;
}

/* Whether the name is in the table. */
static bool has_name(const struct symtab *t, const struct symtab_sym *s)
{
	return t->names_len && !(s->size & SYMTAB_IN_FILE);
}

int symtab_name(const struct symtab *t, const struct symtab_hit *hit, char *buf, size_t cap)
{
	const struct symtab_sym *s = hit->index < t->n ? &t->syms[hit->index] : NULL;
	const char *str = NULL;
	size_t len;

	if (s)
		str = has_name(t, s) ? t->names + s->name : symtab_root_name(s->name);
	len = str ? strnlen(str, cap - 1) : 0;

	memcpy(buf, str ? str : "", len);
	buf[len] = 0;
	return len ? (int)len : -ENOENT;
}

bool symtab_name_place(const struct symtab *t, const struct symtab_hit *hit, uint64_t *ret_off,
		       uint32_t *ret_len, bool *ret_debug)
{
	uint32_t name = hit->index < t->n ? t->syms[hit->index].name : 0, at = name & ~NAME_DYNSTR;
	const struct string_table *str = &t->str[name & NAME_DYNSTR ? 1 : 0];
	uint64_t left = str->size - at;

	if (!name || has_name(t, &t->syms[hit->index]) || name >= NAME_LOWEST)
		return false;
	*ret_off = str->off + at;
	*ret_len = left < SYMTAB_NAME_MAX - 1 ? (uint32_t)left : SYMTAB_NAME_MAX - 1;
	*ret_debug = !(name & NAME_DYNSTR) && t->debug_fd >= 0;
	return true;
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

static bool name_is_sound(const struct symtab *t, const struct symtab_sym *s)
{
	if (has_name(t, s))
		return s->name < t->names_len;
	return s->name >= NAME_LOWEST ||
	       (s->name & ~NAME_DYNSTR) < t->str[s->name & NAME_DYNSTR ? 1 : 0].size;
}

static bool is_sound(const struct symtab *t)
{
	if (t->names_len && (t->names[0] || t->names[t->names_len - 1]))
		return false;
	for (uint32_t i = 0; i < t->n; i++) {
		const struct symtab_sym *s = &t->syms[i];

		if (s->off > SF_FRAME_OFFSET_MASK || !name_is_sound(t, s) ||
		    (i && s->off <= s[-1].off))
			return false;
	}
	return true;
}

/*
 * Each byte is read once, into its final place, so later changes to the file by its writer have no
 * effect.
 */
static int read_parts(struct symtab *t, int fd)
{
	size_t size = (size_t)t->n * sizeof(*t->syms);

	t->syms = malloc(size ? size : 1);
	t->names = t->names_len ? malloc(t->names_len) : NULL;
	if (!t->syms || (t->names_len && !t->names))
		return -ENOMEM;
	if (pread_full(fd, t->syms, size, 0) ||
	    (t->names && pread_full(fd, t->names, t->names_len, size)) || !is_sound(t))
		return -EBADMSG;
	return 0;
}

int symtab_read(int fd, const struct symtab *head, struct symtab **ret)
{
	struct symtab *t;
	int err;

	if ((uint64_t)head->n * sizeof(*head->syms) + head->names_len > SYMTAB_MAX_BYTES)
		return -EBADMSG;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	*t = (struct symtab){
		.n = head->n, .names_len = head->names_len, .cut = head->cut, .debug_fd = -1
	};
	memcpy(t->str, head->str, sizeof(t->str));
	err = read_parts(t, fd);
	if (err)
		symtab_free(t);
	else
		*ret = t;
	return err;
}
