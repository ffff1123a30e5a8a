/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions without a symbol, in files without .symtab. The unwind tables say where each function
 * begins and ends, or the analysis of code that they leave out. So all addresses of a function get
 * one name, "[file+0xSTART]".
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/radix.h"
#include "base/vec.h"
#include "border/sfbpf_shared.h"
#include "readers/code_rows.h"
#include "readers/row_stream.h"
#include "symtab/symtab_builder.h"

#define TABLES_MAX (64u << 20) /* bytes of unwind tables to read */

/*
 * Code outside of tables is analysed if it is more than the few functions of the C runtime. The
 * analysis delays the names of the whole file, so the file must be small, and the time is short.
 */
#define CODE_GAP_MIN  512	 /* bytes */
#define CODE_FILE_MAX (2u << 20) /* bytes */
#define CODE_NS	      20000000ull
#define PADDING	      16 /* bytes; less code after a function is none */

struct gaps {
	struct symtab_sym *syms;
	size_t n, cap;
};

static int look(const struct builder *b, struct symtab *t, const struct fn *fn, struct gaps *to)
{
	uint64_t off, size = fn->end - fn->start;
	struct symtab_hit hit;
	int err;

	if (!size || size > SYMTAB_SIZE || !builder_code_offset(b, fn->start, &off) ||
	    off > SF_FRAME_OFFSET_MASK)
		return 0;
	if (symtab_find(t, off, &hit)) {
		if (hit.start != off || hit.size >= size || hit.plt)
			return 0;
		/* A root has no size of its own. The rest of any other function has no name. */
		if (t->syms[hit.index].name >= NAME_LOWEST) {
			t->syms[hit.index].size = (uint32_t)size;
			return 0;
		}
		off += hit.size;
		size -= hit.size;
		if (size < PADDING || symtab_find(t, off, &hit))
			return 0;
	}
	err = vec_reserve(&to->syms, &to->cap, to->n + 1, sizeof(*to->syms));
	if (!err)
		to->syms[to->n++] = (struct symtab_sym){ off, (uint32_t)size, NAME_NONE };
	return err;
}

static int merge(struct symtab *t, const struct gaps *gaps)
{
	size_t n = t->n + gaps->n;
	struct symtab_sym *all;
	uint32_t kept = 0;
	int err;

	if (!gaps->n)
		return 0;
	if (n > SYMTAB_MAX)
		return -ENOSPC;
	all = realloc(t->syms, n * sizeof(*all));
	if (!all)
		return -ENOMEM;
	t->syms = all;
	memcpy(all + t->n, gaps->syms, gaps->n * sizeof(*all));
	err = radix_sort(all, n, sizeof(*all));
	if (err)
		return err;
	/* Both kinds of tables may describe a function. */
	for (size_t i = 0; i < n; i++)
		if (!kept || all[i].off != all[kept - 1].off)
			all[kept++] = all[i];
	t->n = kept;
	return 0;
}

static bool in_time(void *ctx)
{
	const uint64_t *until = ctx;

	return clock_ns(CLOCK_PROCESS_CPUTIME_ID) < *until;
}

static int analyse(struct unwind_file *f)
{
	uint64_t until = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + CODE_NS;
	struct code_rows_opts opts = { .tick = in_time, .ctx = &until };

	return f->img.size <= CODE_FILE_MAX && code_gap_bytes(f) >= CODE_GAP_MIN
		       ? code_rows(f, &opts)
		       : 0;
}

bool builder_is_stripped(const struct builder *b)
{
	return b->syms == b->img && !elf_image_section_of_type(b->img, SHT_SYMTAB);
}

struct unwind_file *builder_tables(struct builder *b, bool open)
{
	const struct elf_image *img = b->img;
	struct unwind_file *f;
	int err;

	if (b->tables_tried || !open)
		return b->tables;
	b->tables_tried = true;
	f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	if (img->fd < 0)
		err = unwind_file_open_mem(f, img->mem, img->size, NULL);
	else if (!(err = unwind_file_find(f, img->fd, TABLES_MAX, NULL)))
		err = unwind_file_parse(f, NULL);
	if (err)
		free(f);
	else
		b->tables = f;
	return b->tables;
}

void builder_close_tables(struct builder *b)
{
	if (b->tables)
		unwind_file_close(b->tables);
	free(b->tables);
}

int builder_add_functions(struct builder *b, struct symtab *t)
{
	struct unwind_file *f = builder_is_stripped(b) ? builder_tables(b, true) : NULL;
	struct gaps gaps = { .n = 0 };
	int err = 0;

	if (!f)
		return 0;
	for (size_t i = 0; f->has_sframe && i < f->sframe.fns.n && !err; i++)
		err = look(b, t, &f->sframe.fns.fns[i], &gaps);
	for (size_t i = 0; f->has_eh && i < f->eh.fns.n && !err; i++)
		err = look(b, t, &f->eh.fns.fns[i], &gaps);
	if (!err)
		err = analyse(f);
	for (size_t i = 0; i < f->code_fns.n && !err; i++)
		err = look(b, t, &f->code_fns.fns[i], &gaps);
	if (!err)
		err = merge(t, &gaps);
	free(gaps.syms);
	return err == -ENOSPC ? 0 : err;
}
