/* SPDX-License-Identifier: BSD-2-Clause */
#include "symtab/elf_linked.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/idmap.h"
#include "elf/elf_symbol.h"

#define NAME_MOST 1023 /* bytes of a name; functions with longer ones are left out */
#define NO_NAME	  UINT32_MAX

struct wanted {
	uint64_t addr;
	uint32_t at;	/* index of the question */
	uint32_t name;	/* string of the best symbol there; NO_NAME: none */
	uint32_t index; /* index of that symbol */
	bool local;
	uint32_t text;	 /* id of the name in `locals` */
	uint32_t number; /* local symbols of that name before it */
};

struct reader {
	struct bytes symbols, strings;
	struct wanted *list; /* addresses ascend */
	size_t n;
	struct idmap locals; /* hashes of names of local symbols that are wanted */
};

static const char *name_at(const struct reader *r, uint32_t at)
{
	return elf_symbol_name(r->strings, at, NAME_MOST + 1);
}

static bool is_local(const struct elf_symbol *s)
{
	return ELF64_ST_BIND(s->info) == STB_LOCAL;
}

/* The first one at that address, or after it. */
static size_t first_from(const struct reader *r, uint64_t addr)
{
	size_t lo = 0, hi = r->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (r->list[mid].addr < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Takes the first global function at each address, or else the first local one. */
static void find_symbols(struct reader *r)
{
	struct bytes b = r->symbols;
	struct elf_symbol s;

	for (uint32_t index = 0; elf_symbol_next(&b, &s); index++) {
		uint8_t type = ELF64_ST_TYPE(s.info);

		if (s.section == SHN_UNDEF ||
		    (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE))
			continue;
		for (size_t i = first_from(r, s.addr); i < r->n && r->list[i].addr == s.addr; i++) {
			struct wanted *w = &r->list[i];

			if ((w->name != NO_NAME && (!w->local || is_local(&s))) ||
			    !name_at(r, s.name))
				continue;
			w->name = s.name;
			w->index = index;
			w->local = is_local(&s);
		}
	}
}

static uint64_t hash_of(const struct reader *r, uint32_t name)
{
	const char *s = name_at(r, name);

	return s ? hash_bytes(s, strlen(s)) : 0;
}

/* Numbers local symbols of equal names by address, then by their place in the table. */
static int count_locals(struct reader *r)
{
	struct bytes b = r->symbols;
	struct elf_symbol s;
	uint32_t id;
	int err = 0;

	for (size_t i = 0; i < r->n && !err; i++)
		if (r->list[i].name != NO_NAME && r->list[i].local)
			err = idmap_get(&r->locals, hash_of(r, r->list[i].name), 0,
					&r->list[i].text);
	for (uint32_t index = 0; !err && elf_symbol_next(&b, &s); index++) {
		uint8_t type = ELF64_ST_TYPE(s.info);

		if (!is_local(&s) || s.section == SHN_UNDEF || type == STT_SECTION ||
		    type == STT_FILE || type == STT_TLS ||
		    !idmap_find(&r->locals, hash_of(r, s.name), 0, &id))
			continue;
		for (size_t i = 0; i < r->n; i++) {
			struct wanted *w = &r->list[i];

			w->number += w->name != NO_NAME && w->local && w->text == id &&
				     (s.addr < w->addr || (s.addr == w->addr && index < w->index));
		}
	}
	return err;
}

static int by_addr(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static int by_question(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

static int put_places(struct reader *r, struct go_places *ret)
{
	ret->v = malloc((r->n + 1) * sizeof(*ret->v));
	ret->text = malloc(GO_PLACES_TEXT);
	if (!ret->v || !ret->text)
		return -ENOMEM;
	ret->text[ret->text_len++] = 0;
	if (r->n)
		qsort(r->list, r->n, sizeof(*r->list), by_question);
	for (size_t i = 0; i < r->n; i++) {
		const struct wanted *w = &r->list[i];
		const char *name = w->name == NO_NAME ? NULL : name_at(r, w->name);
		size_t len = name ? strlen(name) + 1 : 0;

		if (!name || ret->text_len + len > GO_PLACES_TEXT)
			continue;
		ret->v[ret->n++] = (struct go_place){ .at = w->at,
						      .name = ret->text_len,
						      .line = w->local ? w->number + 1 : 0 };
		memcpy(ret->text + ret->text_len, name, len);
		ret->text_len += (uint32_t)len;
	}
	return 0;
}

static int read_all(struct reader *r, const struct elf_image *img, const uint64_t *offsets,
		    size_t n, struct go_places *ret)
{
	uint64_t addr;
	int err;

	r->list = malloc((n + 1) * sizeof(*r->list));
	if (!r->list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (elf_image_offset_to_vaddr(img, offsets[i], &addr))
			r->list[r->n++] =
				(struct wanted){ .addr = addr, .at = (uint32_t)i, .name = NO_NAME };
	if (r->n)
		qsort(r->list, r->n, sizeof(*r->list), by_addr);
	find_symbols(r);
	err = count_locals(r);
	return err ? err : put_places(r, ret);
}

int elf_linked_read(const struct elf_image *img, const uint64_t *offsets, size_t n,
		    struct go_places *ret)
{
	const struct elf_shdr *s = elf_image_section_of_type(img, SHT_SYMTAB);
	struct elf_blob symbols = { 0 }, strings = { 0 };
	struct reader r = { .n = 0 };
	int err = s && s->link < img->nshdrs ? elf_image_section_bytes(img, s, &symbols) : -ENOENT;

	*ret = (struct go_places){ .v = NULL };
	if (!err)
		err = elf_image_section_bytes(img, &img->shdrs[s->link], &strings);
	if (!err) {
		r.symbols = symbols.view;
		r.strings = strings.view;
		err = read_all(&r, img, offsets, n, ret);
	}
	idmap_free(&r.locals);
	free(r.list);
	elf_blob_free(&symbols);
	elf_blob_free(&strings);
	if (err)
		go_places_free(ret);
	return err;
}
