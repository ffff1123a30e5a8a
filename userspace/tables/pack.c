/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows in, tables out.
 *
 * A library has up to a million rows, and a host has thousands of libraries. BPF must find a row in
 * a few cache lines. So a row becomes 4 bytes: the low half of its file offset, and the number of
 * its rule. Equal rules have one number. The number of a usual rule says what the rule is
 * (pack_rule.h). The others are in an array of the file.
 *
 *   tables.first_page
 *     | dir[]             a page: 64 KiB of file offsets
 *     v                   +-----------------------------------------------+
 *   [loc] --------------->| index[]: number of rows before each 256 bytes |
 *   [ 0 ]  no rows        | row: offset & 0xffff | code  ----> what to do |
 *   [loc] ----+           | row: ...               code  --+              |
 *   [loc] --+ |           +---------------------------------|-------------+
 *           | |                                             v
 *           +-+-> pages   rules[]: struct sf_rule, codes with SF_RULE_INDEXED
 *
 * Invariants:
 *
 *   - Rows come in ascending order, so the packer holds the rows of one page only.
 *   - Each page begins with the rule that holds at its first byte: a search needs one page only.
 *   - A range without a rule is a gap (SF_RULE_GAP). Padding keeps the rule before it (PADDING).
 *   - If the rules are full, a row becomes a gap. If a page is full, the row before it goes on.
 *     lost_rows counts both, and rows outside of the executable segments or of the directory.
 *   - All pages together have at most TABLES_OVER_FILE bytes more than the file, whatever the file
 *     says. The directory (4 bytes for each page) and at most RULES_MAX rules come on top.
 *
 * The file is packed once more, with rbx in its indexed rules, if a row's CFA is based on rbx
 * (restart_with_bx).
 */
#include "tables/pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/slots.h"
#include "base/vec.h"
#include "rows/fntab.h"
#include "rows/pack_rule.h"

_Static_assert((int)SF_K_NONE == (int)RULE_NONE && (int)SF_K_SAME == (int)RULE_SAME &&
		       (int)SF_K_UNDEF == (int)RULE_UNDEF && (int)SF_K_CFA == (int)RULE_CFA &&
		       (int)SF_K_CFA_MEM == (int)RULE_CFA_MEM && (int)SF_K_REG == (int)RULE_REG &&
		       (int)SF_K_REG_MEM == (int)RULE_REG_MEM &&
		       (int)SF_K_INDEX_MEM == (int)RULE_INDEX_MEM,
	       "rule kinds are the same on both sides");

/*
 * Limit of the pages: this many bytes more than the file has. Real tables take a tenth of the code.
 * Only a file that is made to fill table memory, with a row for each byte, exceeds the limit.
 */
#define TABLES_OVER_FILE (256u << 10)

#define RULES_MAX 6144

/*
 * Bytes. A shorter hole between two rows is padding, where no code runs: the row before it goes on,
 * unless the next row is the outermost frame's (SF_RULE_END). A hole of this size or more is a gap.
 */
#define PADDING 16

/* File offsets that a directory covers */
#define SF_OFFSET_MAX ((uint64_t)SF_DIR_MAX << SF_PAGE_SHIFT)

#define BLOCK_MAX 16 /* rows of one repeating block that are put together */

struct packer {
	const struct pack_space *space;
	struct pack_result *out;
	enum row_arch arch;
	struct elf_phdr segs[EXEC_SEGMENTS_MAX]; /* ascending by address */
	size_t nsegs, seg;
	/* The segment whose rows are packed in this pass; NULL: all */
	const struct elf_phdr *only;
	bool tracks_bx, restart_with_bx;
	uint64_t max_bytes;

	uint32_t *page_rows; /* rows of the page in progress */
	uint32_t npage_rows;
	uint64_t page; /* file offset >> SF_PAGE_SHIFT; valid if have_page */
	bool have_page;
	uint32_t *dir; /* locations, from out->tables.first_page */
	size_t ndir, dir_cap;
	/* The last page written with one row only; plain_loc 0: none */
	uint32_t plain_row, plain_loc;

	uint64_t end;  /* file offset after the last row; valid if have_page */
	uint16_t code; /* code of the last row */

	struct sf_rule *rules;
	size_t nrules, rules_cap;
	struct slots rule_slots;
	size_t ranges_cap;
	const struct rowbuf *known; /* known rows of the file */
	const struct go_rows *go;   /* Go rows of the file */
	size_t next_known;
};

static struct sf_rule full_rule(const struct row *r, bool tracks_bx)
{
	struct sf_rule rule = {
		.cfa_kind = r->cfa.kind,
		.cfa_reg = r->cfa.reg,
		.cfa_off = r->cfa.off,
		.cfa_off2 = r->cfa_off2,
		.ra_kind = r->ra.kind,
		.ra_reg = r->ra.reg,
		.ra_off = r->ra.off,
		.fp_kind = r->fp.kind,
		.fp_reg = r->fp.reg,
		.fp_off = r->fp.off,
		.bx_kind = SF_K_NONE,
		.flags = (r->flags & ROW_SIGNAL ? SF_RULE_SIGNAL : 0) |
			 (r->flags & ROW_CHILD ? SF_RULE_CHILD : 0) |
			 (r->flags & ROW_LEADS ? SF_RULE_LEADS : 0),
	};

	if (tracks_bx && (r->bx.kind == RULE_SAME || r->bx.kind == RULE_CFA_MEM)) {
		rule.bx_kind = r->bx.kind;
		rule.bx_off = r->bx.kind == RULE_CFA_MEM ? r->bx.off : 0;
	}
	return rule;
}

static uint64_t hash_of_rule(const void *ctx, size_t i)
{
	return hash_bytes(&((const struct packer *)ctx)->rules[i], sizeof(struct sf_rule));
}

/* Index of a rule, added if new; -1: full, or -ENOMEM in *err. */
static int rule_index(struct packer *p, const struct sf_rule *rule, int *err)
{
	size_t at;

	*err = slots_reserve(&p->rule_slots, p->nrules, hash_of_rule, p);
	if (*err)
		return -1;
	slots_each(&p->rule_slots, hash_bytes(rule, sizeof(*rule)), at)
		if (memcmp(&p->rules[p->rule_slots.ids[at] - 1], rule, sizeof(*rule)) == 0)
			return (int)p->rule_slots.ids[at] - 1;
	if (p->nrules >= RULES_MAX)
		return -1;
	*err = vec_reserve(&p->rules, &p->rules_cap, p->nrules + 1, sizeof(*p->rules));
	if (*err)
		return -1;
	p->rules[p->nrules] = *rule;
	p->rule_slots.ids[at] = (uint32_t)++p->nrules;
	return (int)p->nrules - 1;
}

_Static_assert(RULES_MAX < SF_MAX_RULES, "no rule index collides with SF_RULE_END and SF_RULE_GAP");

static int indexed_code(struct packer *p, const struct sf_rule *rule, uint16_t *ret)
{
	int err = 0, i = rule_index(p, rule, &err);

	if (err)
		return err;
	if (i < 0)
		p->out->lost_rows++;
	*ret = i < 0 ? SF_RULE_GAP : (uint16_t)(SF_RULE_INDEXED | i);
	return 0;
}

/* Writes the page in progress as BPF reads it. */
static int write_page(struct packer *p, uint32_t *ret_loc)
{
	uint32_t size = SF_PAGE_ROWS + 4 * p->npage_rows, i;
	uint16_t index[SF_PAGE_INDEX] = { 0 };
	uint8_t *mem;

	if (p->out->bytes + size > p->max_bytes)
		return -E2BIG;
	mem = p->space->alloc(p->space->ctx, size, ret_loc);
	if (!mem)
		return -ENOSPC;
	/* index[k] is the number of rows that start in the first k * 256 bytes. */
	for (i = 0; i < p->npage_rows; i++)
		index[((p->page_rows[i] & 0xffff) >> 8) + 1] = (uint16_t)(i + 1);
	for (i = 1; i < SF_PAGE_INDEX; i++)
		index[i] = index[i] > index[i - 1] ? index[i] : index[i - 1];
	memcpy(mem, index, sizeof(index));
	memcpy(mem + SF_PAGE_ROWS, p->page_rows, 4ul * p->npage_rows);
	p->out->rows += p->npage_rows;
	p->out->bytes += size;
	return 0;
}

/*
 * A function that claims gigabytes of a sparse file would fill the tables with one-row pages. Equal
 * ones in succession are written once.
 */
static int write_plain_page(struct packer *p, uint32_t *ret_loc)
{
	int err = 0;

	if (!p->plain_loc || p->plain_row != p->page_rows[0]) {
		err = write_page(p, &p->plain_loc);
		p->plain_row = p->page_rows[0];
	}
	*ret_loc = p->plain_loc;
	return err;
}

static int flush_page(struct packer *p)
{
	uint32_t loc;
	size_t at;
	int err;

	/* A page that holds only a continued gap is not written. */
	if (p->npage_rows == 1 && p->page_rows[0] == (uint32_t)SF_RULE_GAP << 16)
		p->npage_rows = 0;
	if (!p->npage_rows)
		return 0;
	if (!p->ndir)
		p->out->tables.first_page = (uint32_t)p->page;
	at = (size_t)(p->page - p->out->tables.first_page);
	err = vec_reserve(&p->dir, &p->dir_cap, at + 1, sizeof(*p->dir));
	if (!err)
		err = p->npage_rows == 1 ? write_plain_page(p, &loc) : write_page(p, &loc);
	if (err)
		return err;
	while (p->ndir < at)
		p->dir[p->ndir++] = 0;
	p->dir[p->ndir++] = loc;
	p->npage_rows = 0;
	return 0;
}

static inline void page_row(struct packer *p, uint64_t offset, uint16_t code)
{
	uint32_t low = (uint32_t)(offset & 0xffff);

	if (p->npage_rows && (p->page_rows[p->npage_rows - 1] & 0xffff) == low)
		p->npage_rows--; /* an empty row: replaced */
	if (p->npage_rows && p->page_rows[p->npage_rows - 1] >> 16 == code)
		return;
	if (p->npage_rows == SF_PAGE_MAX_ROWS) {
		p->out->lost_rows++;
		return;
	}
	p->page_rows[p->npage_rows++] = low | (uint32_t)code << 16;
}

/* append_code() for the first row of a page. */
static __attribute__((noinline)) int append_code_to_new_page(struct packer *p, uint64_t offset,
							     uint16_t code)
{
	uint64_t page = offset >> SF_PAGE_SHIFT;
	int err;

	if (!p->have_page) {
		p->have_page = true;
		p->page = page;
		p->code = SF_RULE_GAP;
	}
	while (p->page < page) {
		err = flush_page(p);
		if (err)
			return err;
		if (p->code == SF_RULE_GAP) {
			p->page = page;
			break;
		}
		p->page++;
		if (p->page < page || (offset & 0xffff))
			page_row(p, p->page << SF_PAGE_SHIFT, p->code);
	}
	if (!p->npage_rows && (offset & 0xffff))
		page_row(p, page << SF_PAGE_SHIFT, p->code);
	page_row(p, offset, code);
	p->code = code;
	return 0;
}

/* Sets the rule from `offset` on. Offsets must ascend. */
static inline int append_code(struct packer *p, uint64_t offset, uint16_t code)
{
	if (!p->npage_rows || offset >> SF_PAGE_SHIFT != p->page)
		return append_code_to_new_page(p, offset, code);
	page_row(p, offset, code);
	p->code = code;
	return 0;
}

/* Sets the rule of [start, end), file offsets. The part before p->end is ignored. */
static int put_range(struct packer *p, uint64_t start, uint64_t end, uint16_t code)
{
	int err = 0;

	if (p->have_page) {
		if (start < p->end)
			start = p->end;
		if (start >= end)
			return 0;
		if (start > p->end && p->code != SF_RULE_GAP &&
		    (start - p->end >= PADDING || code == SF_RULE_END))
			err = append_code(p, p->end, SF_RULE_GAP);
	}
	if (!err && (!p->have_page || code != p->code))
		err = append_code(p, start, code);
	p->end = end;
	return err;
}

/* Notes the source of [start, end), file offsets, if it is not .eh_frame. */
static int note_source(struct packer *p, enum row_source source, uint64_t start, uint64_t end)
{
	struct pack_result *out = p->out;
	struct module_range *last = out->nranges ? &out->ranges[out->nranges - 1] : NULL;
	const bool from_code = source == ROW_CODE;
	int err;

	if (source == ROW_EH_FRAME)
		return 0;
	if (last && start < last->end) /* segments that share bytes of the file */
		start = last->end;
	if (start >= end)
		return 0;
	if (last && last->code == from_code && start <= last->end + PADDING) {
		last->end = end;
		return 0;
	}
	err = vec_reserve(&out->ranges, &p->ranges_cap, out->nranges + 1ul, sizeof(*out->ranges));
	if (!err)
		out->ranges[out->nranges++] = (struct module_range){ start, end, from_code };
	return err;
}

/* The segment that holds the address, or NULL. Nearly all addresses ascend within a pass. */
static inline const struct elf_phdr *segment_of(struct packer *p, uint64_t addr)
{
	if (p->seg && (p->seg == p->nsegs || addr < p->segs[p->seg].vaddr))
		p->seg = 0; /* a trampoline behind the last function of a segment */
	while (p->seg < p->nsegs && addr >= p->segs[p->seg].vaddr + p->segs[p->seg].filesz)
		p->seg++;
	return p->seg < p->nsegs && addr >= p->segs[p->seg].vaddr ? &p->segs[p->seg] : NULL;
}

enum place { PLACE_OK, PLACE_OTHER_PASS, PLACE_NOWHERE };

/* File offsets of a row's range. */
static enum place row_offsets(struct packer *p, const struct row *r, uint64_t *start, uint64_t *end)
{
	const struct elf_phdr *seg = segment_of(p, r->start);

	if (!seg)
		return PLACE_NOWHERE;
	if (p->only && seg != p->only)
		return PLACE_OTHER_PASS;
	*start = r->start - seg->vaddr + seg->offset;
	*end = *start + (r->end - r->start);
	return *end <= SF_OFFSET_MAX ? PLACE_OK : PLACE_NOWHERE;
}

static int put_row(struct packer *p, const struct row *r);

/*
 * Puts the trampolines that start before `end`, and the part of `around` before each of them. Moves
 * *start past them.
 */
static int put_known(struct packer *p, uint64_t *start, uint64_t end, const struct row *around)
{
	int err = 0;

	while (!err && p->next_known < p->known->n && p->known->rows[p->next_known].start < end) {
		const struct row *k = &p->known->rows[p->next_known++];
		struct row head;

		if (around && k->start > *start) {
			head = *around;
			head.start = *start;
			head.end = k->start;
			err = put_row(p, &head);
		}
		if (!err)
			err = put_row(p, k);
		if (k->end > *start)
			*start = k->end;
	}
	return err;
}

static int code_of_unpackable(struct packer *p, const struct row *r, uint16_t *ret)
{
	struct sf_rule rule;

	if (r->go) {
		memcpy(&rule, &p->go->rules[r->go - 1], sizeof(rule));
		return indexed_code(p, &rule, ret);
	}
	if (r->flags & ROW_LOST) {
		rule = (struct sf_rule){ .cfa_kind = SF_K_NONE };
		return indexed_code(p, &rule, ret);
	}
	if (r->cfa.kind == RULE_NONE || r->ra.kind == RULE_NONE) {
		*ret = SF_RULE_GAP;
		return 0;
	}
	if (p->arch == ROW_ARCH_X86_64 &&
	    (r->cfa.kind == RULE_REG || r->cfa.kind == RULE_REG_MEM) && r->cfa.reg == X86_RBX &&
	    !p->tracks_bx)
		p->restart_with_bx = true;
	rule = full_rule(r, p->tracks_bx);
	return indexed_code(p, &rule, ret);
}

/* The row's rule as BPF reads it; SF_RULE_GAP, and counted, if the rules are full. */
static int code_of(struct packer *p, const struct row *r, uint16_t *ret)
{
	*ret = pack_rule(p->arch, r, p->tracks_bx);
	return *ret == SF_RULE_INDEXED ? code_of_unpackable(p, r, ret) : 0;
}

/*
 * Puts the rows of one repeating block: one rule if it has the form that linkers make, else the
 * rows of every repetition.
 */
static int put_block(struct packer *p, struct row *rows, size_t n, uint64_t start, uint64_t end)
{
	uint32_t rep = rows[0].plt_rep;
	uint16_t code;
	int err = 0;

	for (size_t i = 0; i < n; i++)
		rows[i].plt_rep = 0;
	if (n == 1 && !rows[0].plt_at) {
		err = code_of(p, &rows[0], &code);
		return err ? err : put_range(p, start, end, code);
	}
	if (n == 2 && rep == 16 && !(start & 15) && !rows[0].plt_at && rows[1].plt_at < 16 &&
	    rows[0].cfa.kind == RULE_REG && rows[1].cfa.kind == RULE_REG &&
	    rows[0].cfa.reg == rows[1].cfa.reg && rule_equal(&rows[0].ra, &rows[1].ra) &&
	    rule_equal(&rows[0].fp, &rows[1].fp)) {
		struct sf_rule rule = full_rule(&rows[0], p->tracks_bx);

		rule.flags |= SF_RULE_PLT;
		rule.plt_at = (uint8_t)rows[1].plt_at;
		rule.cfa_off2 = rows[1].cfa.off - rows[0].cfa.off;
		err = indexed_code(p, &rule, &code);
		return err ? err : put_range(p, start, end, code);
	}
	for (uint64_t at = start; at < end && !err; at += rep) {
		for (size_t i = 0; i < n && !err; i++) {
			uint64_t from = at + rows[i].plt_at;
			uint64_t to = i + 1 < n ? at + rows[i + 1].plt_at : at + rep;

			if (from >= end || from >= to)
				continue;
			err = code_of(p, &rows[i], &code);
			if (!err)
				err = put_range(p, from, to < end ? to : end, code);
		}
	}
	return err;
}

static int put_row(struct packer *p, const struct row *r)
{
	uint64_t start, end;
	enum place place;
	uint16_t code;
	int err;

	if (r->start >= r->end)
		return 0;
	place = row_offsets(p, r, &start, &end);
	p->out->lost_rows += place == PLACE_NOWHERE;
	if (place != PLACE_OK)
		return 0;
	err = note_source(p, r->source, start, end);
	if (!err)
		err = code_of(p, r, &code);
	return err ? err : put_range(p, start, end, code);
}

/* Puts a row, or the n rows of one repeating block. */
static int put_rows(struct packer *p, struct row *rows, size_t n)
{
	uint64_t start, end;
	enum place place;
	int err;

	if (!rows[0].plt_rep) {
		err = put_known(p, &rows[0].start, rows[0].end, &rows[0]);
		return err ? err : put_row(p, &rows[0]);
	}
	place = row_offsets(p, &rows[0], &start, &end);
	p->out->lost_rows += place == PLACE_NOWHERE ? n : 0;
	if (place != PLACE_OK)
		return 0;
	err = note_source(p, rows[0].source, start, end);
	return err ? err : put_block(p, rows, n, start, end);
}

/* Puts all rows of the stream. -EAGAIN: a CFA is based on rbx, see pack_file(). */
static int pack_rows(struct packer *p, struct row_stream *stream)
{
	struct row rows[BLOCK_MAX], next;
	uint64_t from = 0;
	int more = row_stream_next(stream, &next), err = 0;
	size_t n;

	while (more > 0 && !err) {
		n = 0;
		do {
			rows[n++] = next;
			more = row_stream_next(stream, &next);
		} while (more > 0 && n < BLOCK_MAX && row_same_block(&rows[0], &next));
		err = put_rows(p, rows, n);
		if (!err && p->restart_with_bx)
			err = -EAGAIN;
	}
	if (err)
		return err;
	return more ? more : put_known(p, &from, UINT64_MAX, NULL);
}

static int finish(struct packer *p)
{
	struct pack_result *out = p->out;
	uint8_t *mem;
	int err;

	if (!p->have_page)
		return -ENODATA;
	err = append_code(p, p->end, SF_RULE_GAP);
	if (!err)
		err = flush_page(p);
	if (err)
		return err;
	if (!p->ndir)
		return -ENODATA;
	mem = p->space->alloc(p->space->ctx, (uint32_t)(4 * p->ndir), &out->tables.dir);
	if (!mem)
		return -ENOSPC;
	memcpy(mem, p->dir, 4 * p->ndir);
	out->tables.npages = (uint32_t)p->ndir;
	out->bytes += 4 * p->ndir;
	if (p->nrules) {
		size_t size = p->nrules * sizeof(struct sf_rule);

		mem = p->space->alloc(p->space->ctx, (uint32_t)size, &out->tables.rules);
		if (!mem)
			return -ENOSPC;
		memcpy(mem, p->rules, size);
		out->bytes += size;
	}
	out->tables.nrules = (uint16_t)p->nrules;
	out->tables.flags = p->tracks_bx ? SF_MODULE_TRACKS_BX : 0;
	out->rules = p->nrules;
	return 0;
}

static int by_offset(const void *a, const void *b)
{
	const struct elf_phdr *const *x = a, *const *y = b;

	return (*x)->offset < (*y)->offset ? -1 : (*x)->offset > (*y)->offset;
}

static int pack_pass(struct packer *p, struct unwind_file *file, const struct elf_phdr *only,
		     struct diag *diag)
{
	struct row_stream stream;
	int err;

	p->seg = 0;
	p->next_known = 0;
	p->only = only;
	row_stream_open(&stream, file, ROWS_MERGED, diag);
	err = pack_rows(p, &stream);
	row_stream_close(&stream);
	return err;
}

/*
 * Tables are ordered by file offset, rows by address. If the two orders differ, each segment gets a
 * separate pass.
 */
static int pack_segments(struct packer *p, struct unwind_file *file, struct diag *diag)
{
	const struct elf_phdr *order[EXEC_SEGMENTS_MAX];
	bool ascend = true;
	int err = 0;

	for (size_t i = 0; i < p->nsegs; i++) {
		order[i] = &p->segs[i];
		ascend &= !i || p->segs[i - 1].offset <= p->segs[i].offset;
	}
	if (ascend)
		return pack_pass(p, file, NULL, diag);
	qsort(order, p->nsegs, sizeof(order[0]), by_offset);
	for (size_t i = 0; i < p->nsegs && !err; i++)
		err = pack_pass(p, file, order[i], diag);
	return err;
}

static int pack_once(struct unwind_file *file, const struct pack_space *space,
		     struct pack_result *ret, struct diag *diag, bool tracks_bx)
{
	struct packer *p = calloc(1, sizeof(*p));
	int err;

	memset(ret, 0, sizeof(*ret));
	if (!p)
		return -ENOMEM;
	p->space = space;
	p->out = ret;
	p->arch = file->arch;
	p->tracks_bx = tracks_bx;
	p->max_bytes = file->img.size + TABLES_OVER_FILE;
	p->nsegs = exec_segments(&file->img, p->segs, EXEC_SEGMENTS_MAX);
	p->page_rows = malloc(4ul * (SF_PAGE_MAX_ROWS + 1));
	p->known = &file->known;
	p->go = &file->go;
	err = p->page_rows ? pack_segments(p, file, diag) : -ENOMEM;
	if (!err)
		err = finish(p);
	free(p->page_rows);
	free(p->dir);
	free(p->rules);
	slots_free(&p->rule_slots);
	free(p);
	if (err) {
		free(ret->ranges);
		ret->ranges = NULL;
		ret->nranges = 0;
	}
	return err;
}

int pack_file(struct unwind_file *file, const struct pack_space *space, struct pack_result *ret,
	      struct diag *diag)
{
	int err = pack_once(file, space, ret, diag, false);

	/*
	 * -EAGAIN: a CFA is based on rbx (the important case is ld.so's lazy resolver), so this
	 * file's rows must say where rbx was saved. That costs rules, so only such files do it. The
	 * pages of the first try, up to that row, remain with the allocator: few in ld.so.
	 */
	return err == -EAGAIN ? pack_once(file, space, ret, diag, true) : err;
}
