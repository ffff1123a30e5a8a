/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by pack.c and pack_brief.c. */
#ifndef SFBPF_TABLES_PACK_INTERNAL_H
#define SFBPF_TABLES_PACK_INTERNAL_H

#include "base/slots.h"
#include "rows/fntab.h"
#include "tables/pack.h"

/*
 * Bytes. Shorter holes between functions are padding, where no code runs, and get no row. Longer
 * ones get a gap.
 */
#define PADDING 16

/* File offsets that a directory covers */
#define SF_OFFSET_MAX ((uint64_t)SF_DIR_MAX << SF_PAGE_SHIFT)
#define NO_CODE	      1u

struct packer {
	const struct pack_space *space;
	struct pack_result *out;
	enum row_arch arch;
	struct elf_phdr segs[EXEC_SEGMENTS_MAX]; /* ascending by address */
	size_t nsegs, seg;
	/* The segment whose rows are packed in this pass; NULL: all */
	const struct elf_phdr *only;
	uint64_t plain_from, plain_limit, plain_shift; /* see find_plain() */
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

	/* Packed codes of the brief rule numbers met in this pass, by enum row_source */
	struct {
		/* Code << 16, or NO_CODE: not computed yet, or to be computed for each row */
		uint32_t *code;
		size_t n, cap;
	} brief[2];

	struct sf_rule *rules;
	size_t nrules, rules_cap;
	struct slots rule_slots;
	size_t ranges_cap;
	const struct rowbuf *known; /* known rows of the file */
	const struct go_rows *go;   /* Go rows of the file */
	size_t next_known;
};

/* The segment that holds the address, or NULL. Nearly all addresses ascend within a pass. */
static inline const struct elf_phdr *pack_segment_of(struct packer *p, uint64_t addr)
{
	if (p->seg && (p->seg == p->nsegs || addr < p->segs[p->seg].vaddr))
		p->seg = 0; /* a trampoline behind the last function of a segment */
	while (p->seg < p->nsegs && addr >= p->segs[p->seg].vaddr + p->segs[p->seg].filesz)
		p->seg++;
	return p->seg < p->nsegs && addr >= p->segs[p->seg].vaddr ? &p->segs[p->seg] : NULL;
}

/* The row's rule as BPF reads it; SF_RULE_GAP, and counted, if the rules are full. */
int pack_code_of(struct packer *p, const struct row *r, uint16_t *ret);
/* Sets the rule of [start, end), file offsets. The part before p->end is ignored. */
int pack_put_range(struct packer *p, uint64_t start, uint64_t end, uint16_t code);
/* Notes the source of [start, end), file offsets, if it is not .eh_frame. */
int pack_note_source(struct packer *p, enum row_source source, uint64_t start, uint64_t end);
/*
 * Put the rows of one function, those of a repeating block together. -EAGAIN: a CFA is based on
 * rbx, see pack_file(). Else 0 or -errno as pack_file(), as all of these.
 */
int pack_put_function(struct packer *p, struct row *rows, size_t n);
int pack_put_brief(struct packer *p, const struct row_stream *stream, const struct fn_rows *f);

#endif
