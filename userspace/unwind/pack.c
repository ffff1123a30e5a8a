/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "unwind/fntab.h"
#include "unwind/pack_rule.h"

_Static_assert((int)SF_K_NONE == (int)RULE_NONE && (int)SF_K_SAME == (int)RULE_SAME && (int)SF_K_UNDEF == (int)RULE_UNDEF &&
	       (int)SF_K_CFA == (int)RULE_CFA && (int)SF_K_CFA_MEM == (int)RULE_CFA_MEM &&
	       (int)SF_K_REG == (int)RULE_REG && (int)SF_K_REG_MEM == (int)RULE_REG_MEM, "rule kinds are the same on both sides");

#define X86_RBX 3

/* Padding between functions needs no row of its own: nothing runs there. Longer holes get one that says "nothing known". */
#define PADDING 16

/*
 * Tables larger than the file itself are nobody's: real ones take a tenth of the code. Only a file made to fill the
 * tables' memory gets there, with a rule for each byte.
 */
#define TABLES_OVER_FILE (256u << 10)

#define SF_OFFSET_MAX ((uint64_t)SF_DIR_MAX << SF_PAGE_SHIFT)	/* what a directory reaches */
#define NO_CODE 1u
#define RULE_HASH 8192		/* slots; a power of two */

struct packer {
	const struct pack_space *space;
	struct pack_result *out;
	enum row_arch arch;
	struct elf_phdr segs[EXEC_SEGMENTS_MAX];	/* by address */
	size_t nsegs, seg;
	const struct elf_phdr *only;	/* the segment whose rows are packed in this pass; NULL: all */
	uint64_t plain_from, plain_limit, plain_shift;	/* see find_plain() */
	bool tracks_bx, restart_with_bx;
	uint64_t max_bytes;

	uint32_t *page_rows;		/* of the page in progress */
	uint32_t npage_rows;
	uint64_t page;			/* file offset >> SF_PAGE_SHIFT; valid if have_page */
	bool have_page;
	uint32_t *dir;			/* locations, from out->tables.first_page */
	size_t ndir, dir_cap;
	uint32_t plain_row, plain_loc;	/* the last page that has one row only; plain_loc 0: none */

	uint64_t end;			/* file offset behind the last row; valid if have_page */
	uint16_t code;			/* of the last row */

	struct {			/* of the rows in brief that the pass has met, by enum row_source and their rules' number */
		uint32_t *code;		/* << 16, or NO_CODE: not asked for, or asked for again each time */
		size_t n, cap;
	} brief[2];

	struct sf_rule *rules;
	size_t nrules, rules_cap;
	uint16_t hash[RULE_HASH];	/* rule index + 1 */
	size_t sframe_cap;
	const struct rowbuf *known;	/* of the file */
	size_t next_known;
};

static inline __attribute__((always_inline)) uint16_t packed_code(enum row_arch arch, const struct row *r, bool tracks_bx)
{
	return arch == ROW_ARCH_X86_64 ? pack_rule_x86(r, tracks_bx) : pack_rule(arch, r, tracks_bx);
}

static struct sf_rule full_rule(const struct row *r, bool tracks_bx)
{
	struct sf_rule rule = {
		.cfa_kind = r->cfa.kind, .cfa_reg = r->cfa.reg, .cfa_off = r->cfa.off, .cfa_off2 = r->cfa_off2,
		.ra_kind = r->ra.kind, .ra_reg = r->ra.reg, .ra_off = r->ra.off,
		.fp_kind = r->fp.kind, .fp_reg = r->fp.reg, .fp_off = r->fp.off,
		.bx_kind = SF_K_NONE,
		.flags = (r->flags & ROW_SIGNAL ? SF_RULE_SIGNAL : 0) | (r->flags & ROW_CHILD ? SF_RULE_CHILD : 0),
	};

	if (tracks_bx && (r->bx.kind == RULE_SAME || r->bx.kind == RULE_CFA_MEM)) {
		rule.bx_kind = r->bx.kind;
		rule.bx_off = r->bx.kind == RULE_CFA_MEM ? r->bx.off : 0;
	}
	return rule;
}

/* Index of a rule, added if new; -1: full. -ENOMEM is told through *err. */
static int rule_index(struct packer *p, const struct sf_rule *rule, int *err)
{
	const uint8_t *b = (const uint8_t *)rule;
	uint32_t h = 2166136261u;
	size_t i, slot;

	for (i = 0; i < sizeof(*rule); i++)
		h = (h ^ b[i]) * 16777619u;
	for (slot = h & (RULE_HASH - 1); p->hash[slot]; slot = (slot + 1) & (RULE_HASH - 1))
		if (memcmp(&p->rules[p->hash[slot] - 1], rule, sizeof(*rule)) == 0)
			return p->hash[slot] - 1;
	if (p->nrules >= RULE_HASH * 3 / 4)
		return -1;
	*err = vec_reserve(&p->rules, &p->rules_cap, p->nrules + 1, sizeof(*p->rules));
	if (*err)
		return -1;
	p->rules[p->nrules] = *rule;
	p->hash[slot] = (uint16_t)++p->nrules;
	return (int)p->nrules - 1;
}

_Static_assert(RULE_HASH * 3 / 4 < SF_MAX_RULES, "no rule index collides with SF_RULE_END and SF_RULE_GAP");

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

/* The page in progress as BPF reads it. */
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
	/* The last row of each block says how many there are up to it, blocks without rows repeat the one before. */
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

/* One function that claims gigabytes of a sparse file would fill the tables with its pages: they are all the same one. */
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

	/* A page that holds nothing but a continued gap is left out of the directory. */
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
		p->npage_rows--;	/* an empty row: replaced */
	if (p->npage_rows && p->page_rows[p->npage_rows - 1] >> 16 == code)
		return;
	if (p->npage_rows == SF_PAGE_MAX_ROWS) {
		p->out->lost_rows++;
		return;
	}
	p->page_rows[p->npage_rows++] = low | (uint32_t)code << 16;
}

/* put() where a page begins. */
static __attribute__((noinline)) int put_first(struct packer *p, uint64_t offset, uint16_t code)
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

/* From `offset` on the rule is `code`. Ascending offsets only. */
static inline int put(struct packer *p, uint64_t offset, uint16_t code)
{
	if (!p->npage_rows || offset >> SF_PAGE_SHIFT != p->page)
		return put_first(p, offset, code);
	page_row(p, offset, code);
	p->code = code;
	return 0;
}

static int put_range(struct packer *p, uint64_t start, uint64_t end, uint16_t code)
{
	int err = 0;

	if (p->have_page) {
		if (start < p->end)
			start = p->end;
		if (start >= end)
			return 0;
		if (start > p->end && p->code != SF_RULE_GAP && (start - p->end >= PADDING || code == SF_RULE_END))
			err = put(p, p->end, SF_RULE_GAP);
	}
	if (!err && (!p->have_page || code != p->code))
		err = put(p, start, code);
	p->end = end;
	return err;
}

static int note_sframe(struct packer *p, uint64_t start, uint64_t end)
{
	struct pack_result *out = p->out;
	int err;

	if (out->nsframe && start <= out->sframe[out->nsframe - 1].end + PADDING) {
		if (end > out->sframe[out->nsframe - 1].end)
			out->sframe[out->nsframe - 1].end = end;
		return 0;
	}
	err = vec_reserve(&out->sframe, &p->sframe_cap, out->nsframe + 1ul, sizeof(*out->sframe));
	if (!err)
		out->sframe[out->nsframe++] = (struct module_range){ start, end };
	return err;
}

enum place { PLACE_OK, PLACE_LATER, PLACE_NOWHERE };

/* The segment that holds the address, or NULL. Rows ascend by address, so the segments do. */
static inline const struct elf_phdr *segment_of(struct packer *p, uint64_t addr)
{
	while (p->seg < p->nsegs && addr >= p->segs[p->seg].vaddr + p->segs[p->seg].filesz)
		p->seg++;
	return p->seg < p->nsegs && addr >= p->segs[p->seg].vaddr ? &p->segs[p->seg] : NULL;
}

/* File offsets of a row's range. */
static enum place row_offsets(struct packer *p, const struct row *r, uint64_t *start, uint64_t *end)
{
	const struct elf_phdr *seg = segment_of(p, r->start);

	if (!seg)
		return PLACE_NOWHERE;
	if (p->only && seg != p->only)
		return PLACE_LATER;
	*start = r->start - seg->vaddr + seg->offset;
	*end = *start + (r->end - r->start);
	return *end <= SF_OFFSET_MAX ? PLACE_OK : PLACE_NOWHERE;
}

static int put_row(struct packer *p, const struct row *r);

/* Trampolines that start before `end`, cut out of *start..: put first, and *start moved behind them. */
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

	if (r->cfa.kind == RULE_NONE || r->ra.kind == RULE_NONE) {
		*ret = SF_RULE_GAP;
		return 0;
	}
	if (p->arch == ROW_ARCH_X86_64 && (r->cfa.kind == RULE_REG || r->cfa.kind == RULE_REG_MEM) && r->cfa.reg == X86_RBX && !p->tracks_bx)
		p->restart_with_bx = true;
	rule = full_rule(r, p->tracks_bx);
	return indexed_code(p, &rule, ret);
}

static int code_of(struct packer *p, const struct row *r, uint16_t *ret)
{
	*ret = packed_code(p->arch, r, p->tracks_bx);
	return *ret == SF_RULE_INDEXED ? code_of_unpackable(p, r, ret) : 0;
}

/* The rows of one repeating block: one rule if it is what linkers make, else spelled out for every repetition. */
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
	    rows[0].cfa.kind == RULE_REG && rows[1].cfa.kind == RULE_REG && rows[0].cfa.reg == rows[1].cfa.reg &&
	    rule_equal(&rows[0].ra, &rows[1].ra) && rule_equal(&rows[0].fp, &rows[1].fp)) {
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
	err = r->source == ROW_SFRAME ? note_sframe(p, start, end) : 0;
	if (!err)
		err = code_of(p, r, &code);
	return err ? err : put_range(p, start, end, code);
}

/* A row, or the n rows of one repeating block. */
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
	err = rows[0].source == ROW_SFRAME ? note_sframe(p, start, end) : 0;
	return err ? err : put_block(p, rows, n, start, end);
}

/* Where rows from `addr` on need no thought: one segment, and no trampoline is near. [plain_from, plain_limit), offset is address + plain_shift. */
static __attribute__((noinline)) bool find_plain(struct packer *p, uint64_t addr)
{
	const struct elf_phdr *seg = segment_of(p, addr);

	p->plain_from = addr;
	p->plain_limit = 0;
	if (!seg || (p->only && seg != p->only) || seg->filesz > SF_OFFSET_MAX || seg->offset > SF_OFFSET_MAX - seg->filesz)
		return false;
	p->plain_limit = seg->vaddr + seg->filesz;
	p->plain_shift = seg->offset - seg->vaddr;
	if (p->next_known < p->known->n && p->known->rows[p->next_known].start < p->plain_limit)
		p->plain_limit = p->known->rows[p->next_known].start;
	return true;
}

/* The code of one row in brief. */
static int brief_code(struct packer *p, const struct row_stream *stream, enum row_source source, uint32_t rule,
						uint16_t *ret)
{
	struct row row;
	int err;

	*ret = (uint16_t)(p->brief[source].code[rule] >> 16);
	if (p->brief[source].code[rule] != NO_CODE)
		return 0;
	row_stream_rule(stream, source, rule, &row);
	err = code_of(p, &row, ret);
	/* Each row that is lost is counted. */
	if (!err && (*ret != SF_RULE_GAP || !row_usable(&row)))
		p->brief[source].code[rule] = (uint32_t)*ret << 16;
	return err;
}

/* Room for the codes of all rules that there are. */
static int brief_room(struct packer *p, enum row_source source, size_t n)
{
	int err;

	if (n <= p->brief[source].n)
		return 0;
	err = vec_reserve(&p->brief[source].code, &p->brief[source].cap, n, sizeof(*p->brief[source].code));
	while (!err && p->brief[source].n < n)
		p->brief[source].code[p->brief[source].n++] = NO_CODE;
	return err;
}

/* put_known_codes()'s loop: rows from `addr` on, up to page_end if they do not end before. */
static inline __attribute__((always_inline)) const struct brief_row *put_codes(const struct brief_row *row, const struct brief_row *stop,
		const uint32_t *codes, uint64_t shift, uint64_t page_end, bool ends, uint64_t *addr, uint32_t **out, uint32_t *last)
{
	do {
		uint32_t code = codes[row->rule];

		if (code == NO_CODE)
			break;
		**out = (uint32_t)((*addr + shift) & 0xffff) | code;
		*out += code != *last;
		*last = code;
		*addr = row->end;
	} while (++row < stop && (ends || *addr < page_end));
	return row;
}

/*
 * Puts rows [row, stop) as long as they stay in the page in progress and their codes are known. Nearly all do, and this loop is what
 * they cost. Returns the first that is left; offsets are addresses + plain_shift.
 */
static inline const struct brief_row *put_known_codes(struct packer *p, const struct brief_row *row, const struct brief_row *stop,
						      const uint32_t *codes)
{
	const uint64_t shift = p->plain_shift, page_end = ((p->page + 1) << SF_PAGE_SHIFT) - shift;
	uint64_t addr = row[-1].end, gap = addr + shift - p->end;
	uint32_t *out = p->page_rows + p->npage_rows, last = (uint32_t)p->code << 16;

	/* Nor where segments share bytes of the file, and what was put reaches behind addr. */
	if (!p->npage_rows || (size_t)(stop - row) > SF_PAGE_MAX_ROWS - p->npage_rows || gap >= PADDING || addr >= page_end ||
	    codes[row->rule] == NO_CODE || (gap && codes[row->rule] == (uint32_t)SF_RULE_END << 16))
		return row;
	/* The function ends in the page, nearly always. */
	if (stop[-1].end <= page_end)
		row = put_codes(row, stop, codes, shift, page_end, true, &addr, &out, &last);
	else
		row = put_codes(row, stop, codes, shift, page_end, false, &addr, &out, &last);
	p->npage_rows = (uint32_t)(out - p->page_rows);
	p->code = (uint16_t)(last >> 16);
	p->end = addr + shift;
	return row;
}

static int put_function(struct packer *p, struct row *rows, size_t n);

/* Rows in brief where segments or trampolines are in the way. */
static int put_in_full(struct packer *p, const struct row_stream *stream, const struct fn_rows *f)
{
	struct row row;
	int err = 0;

	for (size_t i = 1; i <= f->brief->n && !err; i++) {
		row_stream_rule(stream, f->source, f->brief->rows[i].rule, &row);
		row.start = f->brief->rows[i - 1].end;
		row.end = f->brief->rows[i].end;
		err = put_function(p, &row, 1);
	}
	return err;
}

static int put_brief(struct packer *p, const struct row_stream *stream, const struct fn_rows *f)
{
	const struct brief_row *row = f->brief->rows + 1, *stop = row + f->brief->n;
	uint64_t start = row[-1].end, end = stop[-1].end;
	int err = brief_room(p, f->source, f->brief->rules);
	uint16_t code;

	if (err)
		return err;
	if (((start < p->plain_from || start >= p->plain_limit) && !find_plain(p, start)) || end > p->plain_limit)
		return put_in_full(p, stream, f);
	while (!err && row < stop) {
		row = put_known_codes(p, row, stop, p->brief[f->source].code);
		if (row == stop)
			break;
		err = brief_code(p, stream, f->source, row->rule, &code);
		if (!err)
			err = put_range(p, row[-1].end + p->plain_shift, row->end + p->plain_shift, code);
		row++;
	}
	if (!err && f->source == ROW_SFRAME)
		err = note_sframe(p, start + p->plain_shift, end + p->plain_shift);
	return err ? err : p->restart_with_bx ? -EAGAIN : 0;
}

/* Rows of one function: repeating blocks are put as one, all others by themselves. */
static int put_function(struct packer *p, struct row *rows, size_t n)
{
	size_t i, len;
	int err = 0;

	for (i = 0; i < n && !err; i += len) {
		len = 1;
		if (rows[i].plt_rep)
			while (i + len < n && rows[i + len].plt_rep && rows[i + len].start == rows[i].start && len < ROW_BLOCK_MAX)
				len++;
		err = put_rows(p, &rows[i], len);
	}
	return err ? err : p->restart_with_bx ? -EAGAIN : 0;
}

static int pack_rows(struct packer *p, struct row_stream *stream)
{
	struct fn_rows f;
	uint64_t from = 0;
	int more, err = 0;

	while (!err && (more = row_stream_function(stream, &f)) > 0)
		err = f.brief ? put_brief(p, stream, &f) : put_function(p, f.rows, f.n);
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
	err = put(p, p->end, SF_RULE_GAP);
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

static int pack_pass(struct packer *p, struct unwind_file *file, const struct elf_phdr *only, struct diag *diag)
{
	struct row_stream stream;
	int err;

	p->seg = 0;
	p->next_known = 0;
	p->plain_limit = 0;
	p->brief[ROW_SFRAME].n = p->brief[ROW_EH_FRAME].n = 0;	/* the numbers are the stream's */
	p->only = only;
	row_stream_open(&stream, file, ROWS_MERGED, diag);
	err = pack_rows(p, &stream);
	row_stream_close(&stream);
	return err;
}

/* Tables are by file offset, rows come by address: where the two do not ascend together, a segment at a time. */
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

static int pack_once(struct unwind_file *file, const struct pack_space *space, struct pack_result *ret, struct diag *diag, bool tracks_bx)
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
	err = p->page_rows ? pack_segments(p, file, diag) : -ENOMEM;
	if (!err)
		err = finish(p);
	free(p->page_rows);
	free(p->dir);
	free(p->brief[ROW_SFRAME].code);
	free(p->brief[ROW_EH_FRAME].code);
	free(p->rules);
	free(p);
	if (err) {
		free(ret->sframe);
		ret->sframe = NULL;
		ret->nsframe = 0;
	}
	return err;
}

int pack_file(struct unwind_file *file, const struct pack_space *space, struct pack_result *ret, struct diag *diag)
{
	int err = pack_once(file, space, ret, diag, false);

	/*
	 * A CFA based on rbx (ld.so's lazy resolver is the one that matters): this file's rows must say
	 * where rbx was saved. That costs rules, so only such files pay; what the first try took is small.
	 */
	return err == -EAGAIN ? pack_once(file, space, ret, diag, true) : err;
}
