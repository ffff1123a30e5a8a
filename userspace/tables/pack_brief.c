/* SPDX-License-Identifier: BSD-2-Clause */
/* Packs brief rows (rows/brief.h), which are nearly all rows of a file. */
#include <errno.h>

#include "base/vec.h"
#include "tables/pack_internal.h"

/*
 * Sets the range [plain_from, plain_limit), from addr on, where all rows are in one segment and
 * clear of trampolines. File offsets are addresses + plain_shift there.
 */
static __attribute__((noinline)) bool find_plain(struct packer *p, uint64_t addr)
{
	const struct elf_phdr *seg = pack_segment_of(p, addr);

	p->plain_from = addr;
	p->plain_limit = 0;
	if (!seg || (p->only && seg != p->only) || seg->filesz > SF_OFFSET_MAX ||
	    seg->offset > SF_OFFSET_MAX - seg->filesz)
		return false;
	p->plain_limit = seg->vaddr + seg->filesz;
	p->plain_shift = seg->offset - seg->vaddr;
	if (p->next_known < p->known->n && p->known->rows[p->next_known].start < p->plain_limit)
		p->plain_limit = p->known->rows[p->next_known].start;
	return true;
}

/* The code of a brief rule number. */
static int brief_code(struct packer *p, const struct row_stream *stream, enum row_source source,
		      uint32_t rule, uint16_t *ret)
{
	struct row row;
	int err;

	*ret = (uint16_t)(p->brief[source].code[rule] >> 16);
	if (p->brief[source].code[rule] != NO_CODE)
		return 0;
	row_stream_rule(stream, source, rule, &row);
	err = pack_code_of(p, &row, ret);
	/* A rule that was lost is not remembered, so that each lost row is counted. */
	if (!err && (*ret != SF_RULE_GAP || !row_usable(&row)))
		p->brief[source].code[rule] = (uint32_t)*ret << 16;
	return err;
}

/* Makes room for the codes of n rule numbers. */
static int brief_room(struct packer *p, enum row_source source, size_t n)
{
	int err;

	if (n <= p->brief[source].n)
		return 0;
	err = vec_reserve(&p->brief[source].code, &p->brief[source].cap, n,
			  sizeof(*p->brief[source].code));
	while (!err && p->brief[source].n < n)
		p->brief[source].code[p->brief[source].n++] = NO_CODE;
	return err;
}

/* The loop of put_known_codes(). Stops at page_end, unless `ends` says that the rows end before. */
static inline __attribute__((always_inline)) const struct brief_row *put_codes(
	const struct brief_row *row, const struct brief_row *stop, const uint32_t *codes,
	uint64_t shift, uint64_t page_end, bool ends, uint64_t *addr, uint32_t **out,
	uint32_t *last)
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
 * Puts rows of [row, stop) as long as they stay in the page in progress and their codes are known.
 * This loop is nearly all the work of packing. Returns the first row that is left; file offsets are
 * addresses + plain_shift.
 */
static inline const struct brief_row *put_known_codes(struct packer *p, const struct brief_row *row,
						      const struct brief_row *stop,
						      const uint32_t *codes)
{
	const uint64_t shift = p->plain_shift, page_end = ((p->page + 1) << SF_PAGE_SHIFT) - shift;
	uint64_t addr = row[-1].end, gap = addr + shift - p->end;
	uint32_t *out = p->page_rows + p->npage_rows, last = (uint32_t)p->code << 16;

	/*
	 * `gap` also wraps around, and is refused, if segments share bytes of the file and the last
	 * row ends after addr.
	 */
	if (!p->npage_rows || (size_t)(stop - row) > SF_PAGE_MAX_ROWS - p->npage_rows ||
	    gap >= PADDING || addr >= page_end || codes[row->rule] == NO_CODE ||
	    (gap && codes[row->rule] == (uint32_t)SF_RULE_END << 16))
		return row;
	/* Nearly all functions end in the page. */
	if (stop[-1].end <= page_end)
		row = put_codes(row, stop, codes, shift, page_end, true, &addr, &out, &last);
	else
		row = put_codes(row, stop, codes, shift, page_end, false, &addr, &out, &last);
	p->npage_rows = (uint32_t)(out - p->page_rows);
	p->code = (uint16_t)(last >> 16);
	p->end = addr + shift;
	return row;
}

/* Puts brief rows one by one, where segment edges or trampolines interfere. */
static int put_in_full(struct packer *p, const struct row_stream *stream, const struct fn_rows *f)
{
	struct row row;
	int err = 0;

	for (size_t i = 1; i <= f->brief->n && !err; i++) {
		row_stream_rule(stream, f->source, f->brief->rows[i].rule, &row);
		row.start = f->brief->rows[i - 1].end;
		row.end = f->brief->rows[i].end;
		err = pack_put_function(p, &row, 1);
	}
	return err;
}

int pack_put_brief(struct packer *p, const struct row_stream *stream, const struct fn_rows *f)
{
	const struct brief_row *row = f->brief->rows + 1, *stop = row + f->brief->n;
	uint64_t start = row[-1].end, end = stop[-1].end;
	int err = brief_room(p, f->source, f->brief->rules);
	uint16_t code;

	if (err)
		return err;
	if (((start < p->plain_from || start >= p->plain_limit) && !find_plain(p, start)) ||
	    end > p->plain_limit)
		return put_in_full(p, stream, f);
	while (!err && row < stop) {
		row = put_known_codes(p, row, stop, p->brief[f->source].code);
		if (row == stop)
			break;
		err = brief_code(p, stream, f->source, row->rule, &code);
		if (!err)
			err = pack_put_range(p, row[-1].end + p->plain_shift,
					     row->end + p->plain_shift, code);
		row++;
	}
	if (!err)
		err = pack_note_source(p, f->source, start + p->plain_shift, end + p->plain_shift);
	return err ? err : p->restart_with_bx ? -EAGAIN : 0;
}
