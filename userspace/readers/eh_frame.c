/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Input: the bytes of .eh_frame or .debug_frame. Output: the CIEs, and the functions with the
 * position of their instructions.
 *
 * The chain of records is walked once. Then the CIEs, which are sorted by offset, are parsed. Then
 * the FDEs are parsed; they find their CIE by binary search, because in .debug_frame it may follow
 * them. No pointer leads from record to record, so hostile pointers do not add work.
 *
 * A wrong length breaks the chain. If the chain is broken, or .eh_frame_hdr counts a different
 * number of FDEs, the table in .eh_frame_hdr gives the offset of the next record, so that damage
 * costs one FDE.
 */
#include "readers/eh_frame.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/vec.h"
#include "readers/eh_cfa.h"
#include "readers/eh_record.h"

/* The largest known is under 100 MB; offsets of instructions are kept in 32 bits */
#define MAX_SECTION UINT32_MAX

#define NO_CIE UINT32_MAX

struct open_ctx {
	struct eh_frame *e;
	struct diag *diag;
	struct eh_ptr_bases bases;
	uint64_t *known; /* see struct eh_walk */
	size_t nknown;
	bool zero_is_header;	   /* address 0 is the ELF header: no code can be there */
	const struct eh_cie *last; /* most FDEs have the same CIE as the one before */
};

static struct eh_walk walk_of(const struct open_ctx *c)
{
	return (struct eh_walk){ .b = c->e->sec,
				 .debug_frame = c->e->debug_frame,
				 .section = c->e->name,
				 .known = c->known,
				 .nknown = c->nknown };
}

/*
 * Reads the augmentation data, one item per character (LSB 5.0 Core, 10.6.1.1.1). With 'z' the
 * length of the data is known, so data of unknown characters can be skipped. Without it the start
 * of the instructions would be unknown.
 */
static bool read_augmentation(struct bytes *b, const char *aug, struct eh_cie *cie)
{
	uint64_t data_end = 0;

	if (*aug == 'z') {
		uint64_t len = bytes_uleb(b);

		cie->sized = true;
		if (len > bytes_left(b))
			return false;
		data_end = b->pos + len;
		aug++;
	}
	for (; *aug; aug++) {
		if (*aug == 'R') {
			cie->fde_enc = bytes_u8(b);
		} else if (*aug == 'L') {
			cie->lsda_enc = bytes_u8(b);
		} else if (*aug == 'P') {
			eh_skip_ptr(b, bytes_u8(b), &cie->bases);
		} else if (*aug == 'S') {
			cie->signal = true;
		} else if (*aug != 'B' &&
			   *aug != 'G') { /* AArch64: key of the PAC, tagged frames */
			if (!cie->sized)
				return false;
			break;
		}
	}
	if (cie->sized)
		bytes_seek(b, b->err || b->pos <= data_end ? data_end : (uint64_t)-1);
	return !b->err;
}

/* Returns what is wrong with the CIE, or NULL. */
static const char *read_cie(const struct open_ctx *c, struct eh_cie *cie, struct eh_insns *ret)
{
	struct bytes b = bytes_sub(&c->e->sec, 0, cie->end);
	uint8_t version, segment = 0;
	uint64_t ra;
	const char *aug;

	bytes_seek(&b, cie->id_pos + cie->id_size);
	version = bytes_u8(&b);
	if (b.err || (version != 1 && version != 3 && version != 4))
		return "unknown version";
	aug = bytes_str(&b);
	if (!aug)
		return "the augmentation string has no end";
	if (version == 4) {
		cie->addr_size = bytes_u8(&b);
		segment = bytes_u8(&b);
	}
	if ((cie->addr_size != 4 && cie->addr_size != 8) || segment)
		return "addresses are not of 4 or 8 bytes, or segmented";
	cie->bases.addr_size = cie->addr_size;
	if (aug[0] == 'e' && aug[1] == 'h') { /* g++ 2.x: the address of an exception table */
		bytes_skip(&b, cie->addr_size);
		aug += 2;
	}
	cie->code_align = bytes_uleb(&b);
	cie->data_align = bytes_sleb(&b);
	ra = version == 1 ? bytes_u8(&b) : bytes_uleb(&b);
	if (ra > UINT16_MAX)
		return "the return address column is out of range";
	cie->ra_reg = (uint32_t)ra;
	if (!read_augmentation(&b, aug, cie))
		return b.err ? "cut short" : "unknown augmentation";
	if (b.err)
		return "cut short";
	*ret = eh_insns_of(c->e, b.pos, cie->end);
	return NULL;
}

static int add_cie(const struct open_ctx *c, const struct eh_rec *rec)
{
	struct eh_frame *e = c->e;
	int err = vec_reserve(&e->cies, &e->cies_cap, e->ncies + 1, sizeof(*e->cies));

	if (!err)
		e->cies[e->ncies++] = (struct eh_cie){ .offset = rec->offset,
						       .end = rec->end,
						       .id_pos = rec->id_pos,
						       .id_size = rec->id_size,
						       .addr_size = 8,
						       .bases = c->bases,
						       .loose = rec->loose,
						       .fde_enc = DW_EH_PE_absptr,
						       .lsda_enc = DW_EH_PE_omit };
	return err;
}

static void parse_cie(const struct open_ctx *c, struct eh_cie *cie)
{
	struct diag *diag = cie->loose ? NULL : c->diag;
	struct eh_insns insns;
	const char *why = read_cie(c, cie, &insns);

	if (why)
		diag_add(diag, DIAG_MALFORMED, c->e->name, cie->offset, "CIE: %s", why);
	else
		cie->sound = eh_cfa_init(cie, &insns, diag);
	cie->plain = cie->sound && cie->sized &&
		     cie->fde_enc == (DW_EH_PE_pcrel | DW_EH_PE_sdata4) && cie->addr_size == 8;
}

static const struct eh_cie *find_cie(struct open_ctx *c, uint64_t offset)
{
	const struct eh_frame *e = c->e;
	size_t lo = 0, hi = e->ncies;

	if (c->last && c->last->offset == offset)
		return c->last;
	while (lo < hi) { /* the CIE, if there is one, is in [lo, hi) */
		size_t mid = lo + (hi - lo) / 2;

		if (e->cies[mid].offset == offset)
			return c->last = &e->cies[mid];
		if (e->cies[mid].offset < offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

/* Reads an FDE's start and range. */
static bool read_range(struct bytes *b, const struct eh_cie *cie, uint64_t *ret_start,
		       uint64_t *ret_range, uint64_t *ret_raw)
{
	return eh_read_ptr(b, cie->fde_enc, &cie->bases, ret_start, ret_raw) &&
	       eh_read_ptr(b, cie->fde_enc & DW_EH_PE_format, &cie->bases, ret_range, NULL);
}

/* Whether the linker dropped the code: the pointer is null, with any base. */
static inline bool is_dropped(const struct open_ctx *c, const struct eh_cie *cie, uint64_t start,
			      uint64_t raw)
{
	return (raw == 0 && (cie->fde_enc & DW_EH_PE_base) == DW_EH_PE_pcrel) ||
	       (start == 0 && c->zero_is_header);
}

/*
 * read_fde() for FDEs of the common form (cie->plain). False: the FDE has another form or is
 * damaged; nothing was changed.
 */
static inline bool read_plain_fde(struct open_ctx *c, struct eh_fde *fde, uint64_t *ret_start,
				  uint64_t *ret_end)
{
	const struct eh_cie *cie = c->last;
	uint64_t at = (uint64_t)fde->insns + 4, aug, start, range;
	struct bytes b = c->e->sec;
	uint32_t raw;

	if (!cie || cie->offset != fde->cie || !cie->plain || c->e->sec.be || fde->dwarf64 ||
	    at + 9 > fde->insns_end)
		return false;
	bytes_seek(&b, at);
	raw = bytes_u32(&b);
	start = cie->bases.addr + at + (uint64_t)(int64_t)(int32_t)raw;
	range = bytes_u32(&b);
	aug = bytes_u8(&b);
	if (b.err || aug >= 0x80 || at + 9 + aug > fde->insns_end || range > INT32_MAX ||
	    range > UINT64_MAX - start)
		return false;
	*ret_start = start;
	*ret_end = is_dropped(c, cie, start, raw) ? start : start + range;
	fde->insns = (uint32_t)(at + 9 + aug);
	fde->cie = (uint32_t)(cie - c->e->cies);
	return true;
}

/*
 * Returns what is wrong with the FDE, or NULL. *ret_end <= *ret_start: it describes no code, which
 * is valid.
 */
static const char *read_fde(struct open_ctx *c, struct eh_fde *fde, uint64_t *ret_start,
			    uint64_t *ret_end)
{
	const struct eh_cie *cie = fde->cie == NO_CIE ? NULL : find_cie(c, fde->cie);
	struct bytes b = bytes_sub(&c->e->sec, 0, fde->insns_end);
	uint64_t start, range, raw;

	if (!cie)
		return "its CIE pointer names no CIE";
	if (!cie->sound)
		return "its CIE is damaged";
	bytes_seek(&b, (uint64_t)fde->insns + (!fde->dwarf64	   ? 4
					       : c->e->debug_frame ? 8
								   : cie->id_size));
	if (!read_range(&b, cie, &start, &range, &raw))
		return b.err ? "cut short" : "the encoding of its address cannot be resolved";
	if (cie->sized)
		bytes_skip(&b, bytes_uleb(&b));
	else
		eh_skip_ptr(&b, cie->lsda_enc, &cie->bases);
	if (b.err)
		return "cut short";
	if (range > UINT64_MAX - start)
		return "its range wraps around the address space";
	*ret_start = start;
	*ret_end = is_dropped(c, cie, start, raw) ? start : start + range;
	fde->insns = (uint32_t)b.pos;
	fde->cie = (uint32_t)(cie - c->e->cies);
	return NULL;
}

/* The caller has reserved room for the function. */
static void parse_fde(struct open_ctx *c, size_t i)
{
	struct eh_frame *e = c->e;
	struct eh_fde *fde = &e->fdes[i];
	uint64_t start, end, offset = fde->insns - (fde->dwarf64 ? 12 : 4);
	const char *why = read_plain_fde(c, fde, &start, &end) ? NULL
							       : read_fde(c, fde, &start, &end);

	if (why)
		diag_add(fde->loose ? NULL : c->diag, DIAG_MALFORMED, e->name, offset, "FDE: %s",
			 why);
	else if (start < end)
		e->fns.fns[e->fns.n++] = (struct fn){ .start = start, .end = end, .ref = i };
}

static inline int add_fde(const struct open_ctx *c, const struct eh_rec *rec)
{
	struct eh_frame *e = c->e;
	uint64_t cie = eh_rec_cie_offset(rec, e->debug_frame);
	int err = e->nfdes < e->fdes_cap
			  ? 0
			  : vec_reserve(&e->fdes, &e->fdes_cap, e->nfdes + 1, sizeof(*e->fdes));

	if (!err)
		e->fdes[e->nfdes++] = (struct eh_fde){ .insns = (uint32_t)rec->id_pos,
						       .insns_end = (uint32_t)rec->end,
						       .cie = cie < e->sec.len ? (uint32_t)cie
									       : NO_CIE,
						       .dwarf64 = rec->dwarf64,
						       .loose = rec->loose };
	return err;
}

static inline int add_record(const struct open_ctx *c, const struct eh_rec *rec)
{
	return rec->kind == EH_REC_FDE	 ? add_fde(c, rec)
	       : rec->kind == EH_REC_CIE ? add_cie(c, rec)
					 : 0;
}

/* Collects all records without parsing them. */
static int walk_all(struct open_ctx *c, struct diag *diag, bool *ret_trouble)
{
	struct eh_walk w = walk_of(c);
	struct eh_rec plain, rec; /* `plain` can stay in registers */
	int err = 0;

	c->e->ncies = c->e->nfdes = 0;
	while (!err) {
		if (eh_walk_plain(&w, &plain))
			err = add_record(c, &plain);
		else if (eh_walk_any(&w, &rec, diag))
			err = add_record(c, &rec);
		else
			break;
	}
	*ret_trouble = w.trouble;
	return err;
}

/* See the top of the file. Only a second walk notes damage. */
static int find_records(struct open_ctx *c, const struct elf_image *img)
{
	struct eh_hdr hdr = { 0 };
	bool trouble;
	int err = walk_all(c, NULL, &trouble);

	if (!err && img && !c->e->debug_frame)
		err = eh_hdr_read(img, &hdr);
	if (!err && hdr.count && hdr.eh_frame == c->e->addr &&
	    (trouble || c->e->nfdes != hdr.count)) {
		trouble = true;
		err = eh_hdr_offsets(img, &hdr, &c->e->sec, &c->known, &c->nknown);
	}
	if (err && err != -ENOMEM)
		err = 0; /* the table is unreadable: only the chain is used */
	return err || !trouble ? err : walk_all(c, c->diag, &trouble);
}

static void find_bases(struct open_ctx *c, const struct elf_image *img)
{
	const struct elf_shdr *text = elf_image_section(img, ".text"),
			      *got = elf_image_section(img, ".got.plt");
	uint64_t off;

	if (!got)
		got = elf_image_section(img, ".got");
	c->bases.text = text ? text->addr : 0;
	c->bases.data = got ? got->addr : 0;
	c->zero_is_header = elf_image_vaddr_to_offset(img, 0, &off) && off == 0;
}

static int compare_fns(const void *a, const void *b)
{
	const struct fn *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->ref < y->ref ? -1 : x->ref > y->ref;
}

struct sort_key {
	uint32_t start; /* start minus the lowest one */
	uint32_t index;
};

/* One pass of a radix sort by 9 bits, stable. */
static void sort_pass(const struct sort_key *from, struct sort_key *to, size_t n,
		      unsigned int shift)
{
	uint32_t at[512] = { 0 }, sum = 0;

	for (size_t i = 0; i < n; i++)
		at[from[i].start >> shift & 511]++;
	for (unsigned int d = 0; d < 512; d++) {
		uint32_t count = at[d];

		at[d] = sum;
		sum += count;
	}
	for (size_t i = 0; i < n; i++)
		to[at[from[i].start >> shift & 511]++] = from[i];
}

/*
 * The functions in the order of the keys, in new memory, so that the reads do not depend on each
 * other. NULL: out of memory.
 */
static struct fn *in_order(const struct fn *fns, const struct sort_key *keys, size_t n)
{
	struct fn *to = malloc(n * sizeof(*to));

	for (size_t i = 0; to && i < n; i++)
		to[i] = fns[keys[i].index];
	return to;
}

/*
 * Sorts functions by start; those with equal starts keep the section's order. qsort would take as
 * long as the rest of the reader together. Linkers emit FDEs by input section, so their order is
 * either right already (one input, one section) or far from it.
 */
static int sort_fns(struct fntab *t)
{
	uint64_t lo = UINT64_MAX, hi = 0;
	struct sort_key *keys, *from, *to;
	struct fn *sorted;
	size_t n = t->n, up = 1;

	while (up < n && t->fns[up - 1].start <= t->fns[up].start)
		up++;
	if (up >= n)
		return 0;
	for (size_t i = 0; i < n; i++) {
		lo = t->fns[i].start < lo ? t->fns[i].start : lo;
		hi = t->fns[i].start > hi ? t->fns[i].start : hi;
	}
	if (hi - lo > UINT32_MAX || n > UINT32_MAX) {
		qsort(t->fns, n, sizeof(*t->fns), compare_fns);
		return 0;
	}
	keys = malloc(2 * n * sizeof(*keys));
	if (!keys)
		return -ENOMEM;
	from = keys;
	to = keys + n;
	for (size_t i = 0; i < n; i++)
		from[i] = (struct sort_key){ (uint32_t)(t->fns[i].start - lo), (uint32_t)i };
	for (unsigned int shift = 0; shift < 32 && (hi - lo) >> shift; shift += 9) {
		struct sort_key *done = to;

		sort_pass(from, to, n, shift);
		to = from;
		from = done;
	}
	sorted = in_order(t->fns, from, n);
	free(keys);
	if (!sorted)
		return -ENOMEM;
	free(t->fns);
	t->fns = sorted;
	t->cap = n;
	return 0;
}

static int read_all(struct open_ctx *c, const struct elf_image *img)
{
	struct eh_frame *e = c->e;
	int err = find_records(c, img);

	if (!err)
		err = vec_reserve(&e->fns.fns, &e->fns.cap, e->nfdes, sizeof(*e->fns.fns));
	if (err)
		return err;
	for (size_t i = 0; i < e->ncies; i++)
		parse_cie(c, &e->cies[i]);
	for (size_t i = 0; i < e->nfdes; i++)
		parse_fde(c, i);
	return sort_fns(&e->fns);
}

int eh_frame_open(struct eh_frame *e, struct bytes sec, uint64_t addr, bool debug_frame,
		  enum row_arch arch, const struct elf_image *img, struct diag *diag)
{
	struct open_ctx c = { .e = e, .diag = diag, .bases.addr = addr };
	int err;

	bytes_seek(&sec, 0);
	*e = (struct eh_frame){ .sec = sec,
				.addr = addr,
				.arch = arch,
				.debug_frame = debug_frame,
				.name = debug_frame ? ".debug_frame" : ".eh_frame" };
	if (sec.len > MAX_SECTION) {
		diag_add(diag, DIAG_MALFORMED, e->name, 0, "larger than 4 GB, ignored");
		return 0;
	}
	if (img)
		find_bases(&c, img);
	err = read_all(&c, img);
	free(c.known);
	if (err)
		eh_frame_close(e);
	return err;
}

int eh_frame_rows(const struct eh_frame *e, const struct fn *fn, struct rowbuf *out,
		  struct diag *diag)
{
	const struct eh_fde *fde = &e->fdes[fn->ref];
	struct eh_insns insns = eh_insns_of(e, fde->insns, fde->insns_end);

	return eh_cfa_rows(&e->cies[fde->cie], &insns, fn->start, fn->end, out, diag);
}

void eh_frame_close(struct eh_frame *e)
{
	free(e->cies);
	free(e->fdes);
	fntab_free(&e->fns);
	*e = (struct eh_frame){ 0 };
}
