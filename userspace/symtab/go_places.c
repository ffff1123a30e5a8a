/* SPDX-License-Identifier: BSD-2-Clause */
#include "symtab/go_places.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/full_io.h"
#include "base/idmap.h"
#include "elf/go_lines.h"

#define STRING_MAX 1023 /* bytes of a name or a path; longer ones are cut */

struct answer {
	struct go_places *p;
	struct idmap known; /* address of a string of the table -> starts */
	uint32_t *starts;   /* where it is in the text */
	int err;
};

/* False: no room, or out of memory. */
static bool put_string(struct answer *a, const char *s, uint32_t *ret)
{
	size_t before = a->known.n, len = s ? strnlen(s, STRING_MAX) : 0;
	uint32_t id;

	*ret = 0;
	if (!len)
		return true;
	if (a->p->text_len + len + 1 > GO_PLACES_TEXT &&
	    !idmap_find(&a->known, (uintptr_t)s, 0, &id))
		return false;
	if (idmap_get(&a->known, (uintptr_t)s, 0, &id)) {
		a->err = -ENOMEM;
		return false;
	}
	if (id == before) {
		a->starts[id] = a->p->text_len;
		memcpy(a->p->text + a->p->text_len, s, len);
		a->p->text_len += (uint32_t)len;
		a->p->text[a->p->text_len++] = 0;
	}
	*ret = a->starts[id];
	return true;
}

/* False: no room for all frames; none is added then. */
static bool put_place(struct answer *a, uint32_t at, const struct go_frame *frames, size_t n)
{
	struct go_place *to = a->p->v + a->p->n;

	if (n > GO_PLACES_MOST - a->p->n)
		return false;
	for (size_t i = 0; i < n; i++) {
		to[i] = (struct go_place){ .at = at,
					   .line = frames[i].line,
					   .start_line = frames[i].start_line };
		if (!put_string(a, frames[i].name, &to[i].name) ||
		    !put_string(a, frames[i].file, &to[i].file))
			return false;
	}
	a->p->n += (uint32_t)n;
	return true;
}

static int read_places(const struct go_lines *g, const uint64_t *offsets, size_t n,
		       struct go_places *p)
{
	struct answer a = { .p = p };
	struct go_frame frames[GO_FRAMES_MAX];
	uint64_t addr;

	p->v = malloc(GO_PLACES_MOST * sizeof(*p->v));
	p->text = malloc(GO_PLACES_TEXT);
	a.starts = malloc(2 * GO_PLACES_MOST * sizeof(*a.starts));
	if (!p->v || !p->text || !a.starts)
		a.err = -ENOMEM;
	else
		p->text[p->text_len++] = 0;
	for (size_t i = 0; i < n && !a.err; i++)
		if (elf_image_offset_to_vaddr(g->img, offsets[i], &addr) &&
		    !put_place(&a, (uint32_t)i, frames, go_lines_at(g, addr, frames)))
			break;
	idmap_free(&a.known);
	free(a.starts);
	return a.err;
}

int go_places_read(const struct elf_image *img, const uint64_t *offsets, size_t n,
		   struct go_places *ret)
{
	struct go_table table;
	struct go_lines lines;
	int err = go_table_open(img, &table);

	*ret = (struct go_places){ .v = NULL };
	if (err)
		return err;
	err = go_lines_open(img, &table, &lines);
	if (!err)
		err = read_places(&lines, offsets, n, ret);
	go_table_close(&table);
	if (err)
		go_places_free(ret);
	return err;
}

int go_places_write(const struct go_places *p, int fd)
{
	int err = write_full(fd, p->v, p->n * sizeof(*p->v));

	return err ? err : write_full(fd, p->text, p->text_len);
}

static bool is_sound(const struct go_places *p, size_t asked)
{
	uint32_t run = 0;

	for (uint32_t i = 0; i < p->n; i++) {
		const struct go_place *v = &p->v[i];

		run = i && v->at == v[-1].at ? run + 1 : 1;
		if (v->at >= asked || (i && v->at < v[-1].at) || run > GO_FRAMES_MAX ||
		    v->name >= p->text_len || v->file >= p->text_len || v->line > INT32_MAX ||
		    v->start_line > INT32_MAX)
			return false;
	}
	return p->text[p->text_len - 1] == 0;
}

int go_places_take(int fd, uint32_t n, uint32_t text_len, size_t asked, struct go_places *ret)
{
	int err = 0;

	*ret = (struct go_places){ .n = n, .text_len = text_len };
	if (n > GO_PLACES_MOST || !text_len || text_len > GO_PLACES_TEXT)
		return -EBADMSG;
	ret->v = malloc((n + 1) * sizeof(*ret->v));
	ret->text = malloc(text_len);
	if (!ret->v || !ret->text)
		err = -ENOMEM;
	else if (pread_full(fd, ret->v, n * sizeof(*ret->v), 0) ||
		 pread_full(fd, ret->text, text_len, n * sizeof(*ret->v)) || !is_sound(ret, asked))
		err = -EBADMSG;
	if (err)
		go_places_free(ret);
	return err;
}

void go_places_free(struct go_places *p)
{
	free(p->v);
	free(p->text);
	*p = (struct go_places){ .v = NULL };
}
