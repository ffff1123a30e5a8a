/* SPDX-License-Identifier: BSD-2-Clause */
#include "prof/read_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "base/text.h"
#include "base/vec.h"

#define NAME_BYTES 2048
#define HEAD	   "{\"meta\":" /* read_stacks knows it, too */

struct reader {
	struct json_reader j;
	const char *function;
	struct code_places *ret;
	int err;
};

static void copy_clean(struct reader *r, char *dst, size_t cap)
{
	const char *s = json_string(&r->j);

	text_clean(dst, cap, s, strlen(s), 0);
}

/* Reads a frame into *at if it is user code; others end a stack elsewhere, except inlined ones. */
static void read_frame(struct reader *r, struct code_place *at, bool *ret_is_function)
{
	char name[NAME_BYTES], kind[16];
	struct code_place here = { 0 };
	const char *key;

	if (!json_enter(&r->j, '{'))
		return;
	name[0] = kind[0] = 0;
	while ((key = json_key(&r->j))) {
		if (!strcmp(key, "name"))
			copy_clean(r, name, sizeof(name));
		else if (!strcmp(key, "kind"))
			copy_clean(r, kind, sizeof(kind));
		else if (!strcmp(key, "module_id"))
			here.module = json_unsigned(&r->j);
		else if (!strcmp(key, "offset"))
			here.offset = json_unsigned(&r->j);
		else
			json_skip(&r->j);
	}
	if (!strcmp(kind, "inlined"))
		return;
	*ret_is_function = !strcmp(kind, "user") && !strcmp(name, r->function);
	*at = here;
}

static void read_stack(struct reader *r)
{
	struct code_places *p = r->ret;
	struct code_place at = { 0 };
	bool is_function = false;
	uint64_t count = 0;
	const char *key;

	if (!json_enter(&r->j, '{'))
		return;
	while ((key = json_key(&r->j))) {
		if (!strcmp(key, "count"))
			count = json_unsigned(&r->j);
		else if (strcmp(key, "frames") != 0)
			json_skip(&r->j);
		else if (json_enter(&r->j, '['))
			while (json_element(&r->j)) /* root first, so the last one is the leaf */
				read_frame(r, &at, &is_function);
	}
	p->all += count;
	if (!is_function || !count)
		return;
	at.count = count;
	r->err = vec_reserve(&p->list, &p->cap, p->n + 1, sizeof(*p->list));
	if (!r->err)
		p->list[p->n++] = at;
}

static void read_file(struct reader *r)
{
	struct code_places *p = r->ret;
	struct code_file file = { 0 };
	const char *key;

	if (!json_enter(&r->j, '{'))
		return;
	while ((key = json_key(&r->j))) {
		if (!strcmp(key, "id")) {
			file.id = json_unsigned(&r->j);
		} else if (!strcmp(key, "path")) {
			free(file.path);
			file.path = strdup(json_string(&r->j));
		} else if (!strcmp(key, "build_id")) {
			copy_clean(r, file.build_id, sizeof(file.build_id));
		} else {
			json_skip(&r->j);
		}
	}
	r->err = vec_reserve(&p->files, &p->files_cap, p->nfiles + 1, sizeof(*p->files));
	if (r->err)
		free(file.path);
	else
		p->files[p->nfiles++] = file;
}

static void read_list(struct reader *r, void (*read)(struct reader *r))
{
	if (json_enter(&r->j, '['))
		while (!r->err && json_element(&r->j))
			read(r);
}

static void read_unit(struct reader *r, struct stacks_meta *meta)
{
	const char *key;

	if (!json_enter(&r->j, '{'))
		return;
	while ((key = json_key(&r->j)))
		if (!strcmp(key, "unit"))
			copy_clean(r, meta->unit, sizeof(meta->unit));
		else
			json_skip(&r->j);
}

int read_code(FILE *f, const char *function, struct code_places *ret, struct stacks_meta *meta,
	      struct read_error *why)
{
	struct reader r = { .function = function, .ret = ret };
	const char *key;
	uint8_t *text;
	size_t len;
	int err = read_stacks_slurp(f, &text, &len);

	*why = (struct read_error){ 0 };
	if (err)
		return err;
	json_reader_init(&r.j, text, len);
	strcpy(meta->unit, "samples");
	if (len < strlen(HEAD) || memcmp(text, HEAD, strlen(HEAD)) != 0)
		r.j.bytes.err = true;
	if (json_enter(&r.j, '{')) {
		while (!r.err && (key = json_key(&r.j))) {
			if (!strcmp(key, "meta"))
				read_unit(&r, meta);
			else if (!strcmp(key, "modules"))
				read_list(&r, read_file);
			else if (!strcmp(key, "stacks"))
				read_list(&r, read_stack);
			else
				json_skip(&r.j);
		}
	}
	err = r.err;
	if (!err && r.j.bytes.err) {
		snprintf(why->text, sizeof(why->text),
			 "not JSON that sfbpf record wrote, which "
			 "alone says where in a function samples are");
		err = -EINVAL;
	}
	json_reader_free(&r.j);
	free(text);
	return err;
}

void code_places_free(struct code_places *p)
{
	for (size_t i = 0; i < p->nfiles; i++)
		free(p->files[i].path);
	free(p->files);
	free(p->list);
	*p = (struct code_places){ 0 };
}
