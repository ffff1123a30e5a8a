/* SPDX-License-Identifier: BSD-2-Clause */
#include "readers/row_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "readers/code_framed.h"
#include "readers/code_inner.h"
#include "readers/eh_return.h"
#include "readers/trampoline.h"
#include "rows/fntab.h"

/* Only out of memory is fatal: other errors were noted, and the other table may be sound. */
static int fatal(int err)
{
	return err == -ENOMEM ? err : 0;
}

static int find_tables(struct unwind_file *f, struct diag *diag)
{
	int err;

	f->arch = row_arch_of_machine(f->img.machine);
	if (f->arch == ROW_ARCH_NONE) {
		diag_add(diag, DIAG_MALFORMED, "ELF header", 18, "machine %u is not known",
			 f->img.machine);
		return -ENOEXEC;
	}
	err = sframe_find(&f->img, &f->sframe_bytes, diag);
	f->found_sframe = !err;
	if (fatal(err))
		return err;
	err = eh_frame_find(&f->img, &f->eh_bytes, &f->debug_frame, diag);
	f->found_eh = !err;
	return fatal(err) ? err : trampolines_find(&f->img, f->arch, &f->known);
}

static int parse_sframe(struct unwind_file *f, struct diag *diag)
{
	struct sframe_bounds bounds = { f->img.phdrs, f->img.nphdrs };
	int err = sframe_open(&f->sframe, f->sframe_bytes.view, f->sframe_bytes.addr, f->arch,
			      &bounds, diag);

	if (err)
		return fatal(err);
	f->has_sframe = true;
	err = fntab_arrange(&f->sframe.fns, &f->img);
	f->fns_sframe = f->sframe.fns.n;
	return err;
}

static int parse_eh_frame(struct unwind_file *f, struct diag *diag)
{
	int err = eh_frame_open(&f->eh, f->eh_bytes.view, f->eh_bytes.addr, f->debug_frame, f->arch,
				&f->img, diag);

	if (err)
		return fatal(err);
	f->has_eh = true;
	err = fntab_arrange(&f->eh.fns, &f->img);
	f->fns_eh = f->eh.fns.n;
	return err;
}

const struct fn *unwind_file_fn_at(const struct unwind_file *f, uint64_t addr)
{
	const struct fn *fn = f->has_eh ? fntab_find(&f->eh.fns, addr) : NULL;

	return fn || !f->has_sframe ? fn : fntab_find(&f->sframe.fns, addr);
}

/* The PLTs that no table describes. */
static int add_plts(struct unwind_file *f)
{
	static const char *const names[] = { ".plt", ".plt.sec", ".iplt" };
	int err = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !err; i++) {
		const struct elf_shdr *s = f->arch == ROW_ARCH_X86_64 && !f->img.be
						   ? elf_image_section(&f->img, names[i])
						   : NULL;

		if (s && !unwind_file_fn_at(f, s->addr))
			err = trampolines_add_plt(&f->img, s, &f->known);
	}
	return err;
}

/* Adds rows of code whose tables are wrong, among those of trampolines. */
static int add_inner(struct unwind_file *f)
{
	const size_t n = f->known.n;
	int err;

	if (f->arch != ROW_ARCH_X86_64 || f->img.be)
		return 0;
	err = code_inner_rows(&f->eh, &f->img, &f->known);
	if (!err)
		err = code_framed_rows(&f->eh, &f->img, &f->known);
	if (!err)
		err = eh_return_rows(&f->eh, &f->img, &f->known);
	if (f->known.n > n)
		rowbuf_sort(&f->known);
	return err;
}

int unwind_file_parse(struct unwind_file *f, struct diag *diag)
{
	int err = f->found_sframe ? parse_sframe(f, diag) : 0;

	if (!err && f->found_eh)
		err = parse_eh_frame(f, diag);
	if (!err)
		err = add_plts(f);
	if (!err && f->has_eh)
		err = add_inner(f);
	if (!err) {
		err = go_rows_open(&f->go, &f->img, f->arch);
		f->has_go = !err;
		err = f->has_go ? trampolines_add_restorer(&f->img, f->arch, f->go.restorer,
							   &f->known)
				: fatal(err);
	}
	if (err)
		unwind_file_close(f);
	return err;
}

static int find(struct unwind_file *f, int err, struct diag *diag)
{
	if (err)
		return err;
	err = find_tables(f, diag);
	if (err)
		unwind_file_close(f);
	return err;
}

/*
 * Upper bound of the tables' size, from the headers. UINT64_MAX: not known before they are
 * decompressed, or a header is wrong.
 */
static uint64_t most_bytes(const struct elf_image *img)
{
	static const char *const names[] = {
		".sframe",	 ".eh_frame",  ".debug_frame",
		".zdebug_frame", ".gopclntab", ".data.rel.ro.gopclntab"
	};
	const struct elf_phdr *sframe = elf_image_segment(img, PT_GNU_SFRAME);
	uint64_t sum = sframe ? sframe->filesz : 0;

	/* A table found by program header may reach to the end of the file. */
	if (!elf_image_section(img, ".eh_frame") && elf_image_segment(img, PT_GNU_EH_FRAME))
		return img->size;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct elf_shdr *s = elf_image_section(img, names[i]);

		if (!s || s->type == SHT_NOBITS || (!i && sframe))
			continue;
		if (s->flags & SHF_COMPRESSED || names[i][1] == 'z' || s->size > img->size)
			return UINT64_MAX;
		sum += s->size;
	}
	return sum;
}

int unwind_file_find(struct unwind_file *f, int fd, uint64_t max_bytes, struct diag *diag)
{
	int err;

	memset(f, 0, sizeof(*f));
	err = elf_image_open_fd(&f->img, fd, diag);
	if (!err && max_bytes && most_bytes(&f->img) > max_bytes) {
		unwind_file_close(f);
		return -EFBIG;
	}
	return find(f, err, diag);
}

int unwind_file_open_fd(struct unwind_file *f, int fd, struct diag *diag)
{
	int err = unwind_file_find(f, fd, 0, diag);

	return err ? err : unwind_file_parse(f, diag);
}

int unwind_file_open_mem(struct unwind_file *f, const void *mem, size_t size, struct diag *diag)
{
	int err;

	memset(f, 0, sizeof(*f));
	err = find(f, elf_image_open_mem(&f->img, mem, size, diag), diag);
	return err ? err : unwind_file_parse(f, diag);
}

void unwind_file_close(struct unwind_file *f)
{
	if (f->has_sframe)
		sframe_close(&f->sframe);
	if (f->has_eh)
		eh_frame_close(&f->eh);
	if (f->has_go)
		go_rows_close(&f->go);
	elf_blob_free(&f->sframe_bytes);
	elf_blob_free(&f->eh_bytes);
	rowbuf_free(&f->known);
	rowbuf_free(&f->code);
	fntab_free(&f->code_fns);
	elf_image_close(&f->img);
	memset(f, 0, sizeof(*f));
}

void row_stream_open(struct row_stream *s, struct unwind_file *file, unsigned int which,
		     struct diag *diag)
{
	memset(s, 0, sizeof(*s));
	s->file = file;
	s->diag = diag;
	s->go = file->has_go && (which & ROWS_CODE);
	if (s->go)
		s->src[ROW_SFRAME].fns = &file->go.fns;
	else if (file->has_sframe && (which & ROWS_SFRAME))
		s->src[ROW_SFRAME].fns = &file->sframe.fns;
	if (file->has_eh && (which & ROWS_EH_FRAME) && !(s->go && file->debug_frame))
		s->src[ROW_EH_FRAME].fns = &file->eh.fns;
	if (which & ROWS_CODE)
		s->code = &file->code;
}

/*
 * Cuts off the part of the row before pos. A repeating block is cut at a whole repetition, so that
 * it keeps its phase.
 */
static void cut_head(struct row *r, uint64_t pos)
{
	if (pos <= r->start)
		return;
	if (r->plt_rep) {
		uint64_t over = (pos - r->start) % r->plt_rep;

		pos = over ? pos + (r->plt_rep - over) : pos;
	}
	r->start = pos < r->end ? pos : r->end;
}

/* Evaluates the source's next function into buf. 1, 0 at the end, -ENOMEM. */
static int next_function(struct row_stream *s, enum row_source which)
{
	struct row_source_state *src = &s->src[which];
	struct diag *diag = src->next < s->file->noted[which] ? NULL : s->diag;
	const struct fn *fn;
	int err;

	src->buf.n = src->at = 0;
	if (!src->fns || src->next == src->fns->n)
		return 0;
	fn = &src->fns->fns[src->next++];
	if (which == ROW_EH_FRAME)
		err = eh_frame_rows(&s->file->eh, fn, &src->buf, diag);
	else if (s->go)
		err = go_rows_of(&s->file->go, &s->file->img, fn, &src->buf);
	else
		err = sframe_rows(&s->file->sframe, fn, &src->buf, diag);
	if (diag)
		s->file->noted[which] = src->next;
	return err ? err : 1;
}

/*
 * The current row of src was cut at pos. If it is the first of a block, the whole block is returned
 * again from pos on.
 */
static void block_again(struct row_source_state *src, uint64_t pos)
{
	const struct row *row = &src->buf.rows[src->at - 1];

	if (src->at > 1 && row_same_block(row - 1, row))
		return;
	src->block_at = src->at - 1;
	src->block_from = pos;
}

static void rewind_block(struct row_source_state *src)
{
	const struct row first = src->buf.rows[src->block_at];

	for (size_t i = src->block_at; i < src->buf.n && row_same_block(&first, &src->buf.rows[i]);
	     i++)
		cut_head(&src->buf.rows[i], src->block_from);
	src->at = src->block_at;
	src->block_from = 0;
}

/*
 * Makes src->cur the source's next row. `merging`: unusable .sframe rows are skipped. 0 or -ENOMEM.
 */
static int advance(struct row_stream *s, enum row_source which, bool merging)
{
	struct row_source_state *src = &s->src[which];
	int err;

	src->have = false;
	if (!src->fns)
		return 0;
	for (;;) {
		if (src->block_from &&
		    (src->at == src->buf.n ||
		     !row_same_block(&src->buf.rows[src->block_at], &src->buf.rows[src->at])))
			rewind_block(src);
		if (src->at < src->buf.n) {
			src->cur = src->buf.rows[src->at++];
			if (merging && which == ROW_SFRAME && !row_usable(&src->cur) &&
			    !(src->cur.flags & ROW_LOST &&
			      !fntab_find(&s->file->eh.fns, src->cur.start)))
				continue;
			if (which == ROW_EH_FRAME)
				cut_head(&src->cur, s->sframe_end);
			if (src->cur.start >= src->cur.end)
				continue;
			src->have = true;
			return 0;
		}
		err = next_function(s, which);
		if (err <= 0)
			return err;
	}
}

/* Where the tables' next row starts, or a lower address. */
static uint64_t tables_at(const struct row_stream *s)
{
	uint64_t at = UINT64_MAX;

	for (size_t i = 0; i < 2; i++) {
		const struct row_source_state *src = &s->src[i];
		uint64_t from = UINT64_MAX;

		if (src->have)
			from = src->cur.start;
		else if (src->block_from)
			from = src->block_from;
		else if (src->at < src->buf.n)
			from = src->buf.rows[src->at].start;
		else if (src->fns && src->next < src->fns->n)
			from = src->fns->fns[src->next].start;
		at = from < at ? from : at;
	}
	return at;
}

/* Whether a row from machine code comes before those of the tables. */
static bool code_is_next(const struct row_stream *s)
{
	return s->code && s->code_at < s->code->n && s->code->rows[s->code_at].start < tables_at(s);
}

int row_stream_next(struct row_stream *s, struct row *ret)
{
	struct row_source_state *sf = &s->src[ROW_SFRAME], *eh = &s->src[ROW_EH_FRAME];
	bool merging = sf->fns && eh->fns;
	int err = 0;

	if (code_is_next(s)) {
		*ret = s->code->rows[s->code_at++];
		return 1;
	}
	for (;;) {
		if (!sf->have)
			err = advance(s, ROW_SFRAME, merging);
		if (!err && !eh->have)
			err = advance(s, ROW_EH_FRAME, merging);
		if (err)
			return err;
		if (!sf->have && !eh->have)
			return 0;
		if (!eh->have || (sf->have && sf->cur.start <= eh->cur.start)) {
			*ret = sf->cur;
			sf->have = false;
			s->sframe_end = ret->end;
			if (!eh->have)
				return 1;
			cut_head(&eh->cur, ret->end);
			if (eh->cur.start >= eh->cur.end)
				eh->have = false;
			return 1;
		}
		*ret = eh->cur;
		eh->have = false;
		if (sf->have && sf->cur.start < ret->end) {
			/* The part after the .sframe row comes later. */
			ret->end = sf->cur.start;
			if (ret->plt_rep) {
				block_again(eh, ret->end);
			} else {
				eh->have = true;
				cut_head(&eh->cur, ret->end);
			}
		}
		if (ret->start < ret->end)
			return 1;
	}
}

void row_stream_close(struct row_stream *s)
{
	rowbuf_free(&s->src[0].buf);
	rowbuf_free(&s->src[1].buf);
	memset(s, 0, sizeof(*s));
}
