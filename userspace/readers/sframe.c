/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Entry points of the SFrame reader: finds the section and lists the sound functions.
 *
 * SFrame (libsframe/doc/sframe-spec.texi in GNU binutils) is a compact table of what .eh_frame
 * would compute: for each function a descriptor (FDE), for each stretch of code in it a row (FRE).
 * For example, version 2:
 *
 * 	e2de 02 05 03 00 f8 00
 * 		magic, version, flags, ABI, fixed FP, fixed RA (-8), no auxiliary header
 * 	01000000 04000000 0f000000 00000000 14000000
 * 		1 FDE, 4 rows in 15 bytes, where FDEs and rows start
 * 	7cefffff 06000000 00000000 04000000 00 00 0000
 * 		the function: start, size, first row, 4 rows of ADDR1
 * 	00 03 08 | 01 05 10 f0 | 04 04 10 f0 | 05 05 08 f0
 * 		sp+8; sp+16 fp@-16; fp+16 fp@-16; sp+8 fp@-16
 *
 * sframe_open() checks all that can be checked without reading rows, so that reading a function in
 * `fns` is bounded in time and memory. Rows are checked when they are read. Known errors of real
 * producers are repaired and noted; see each part. Only the function index is kept.
 */
#include "readers/sframe.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/vec.h"
#include "readers/sframe_anchor.h"
#include "readers/sframe_fde.h"
#include "readers/sframe_table.h"

struct tally { /* counts of one table, for its notes */
	uint32_t empty, outside, tombstones, unsorted, bad;
	uint64_t rows; /* rows of all functions that were loaded */
	uint64_t last; /* start of the last function taken */
};

static void note_bad_fde(struct diag *diag, const struct sframe_fde *fde, uint32_t i,
			 const char *why)
{
	diag_add(diag, DIAG_MALFORMED, SFRAME_SECTION, fde->start_off,
		 "function %u: %s; it is lost", i, why);
}

/*
 * Functions do not share rows, so all rows of a table fit its FRE sub-section. If they do not,
 * descriptors overlap. Without this check they could cost time and memory of the product of both
 * counts.
 */
static const char *check_share(const struct sframe_table *t, const struct sframe_fde *fde,
			       struct tally *tally)
{
	if (fde->nrows > t->fre_len / sframe_row_min(0) - tally->rows)
		return "its rows are those of other functions";
	tally->rows += fde->nrows;
	return NULL;
}

/* 0 or -ENOMEM; a damaged function is noted or counted. */
static int add_function(struct sframe *s, uint32_t table, uint32_t i, const struct sframe_exec *x,
			struct tally *tally, struct diag *diag)
{
	const struct sframe_table *t = &s->tables[table];
	struct sframe_fde fde;
	uint64_t start, end, exec_end;
	const char *why = sframe_fde_load(s, t, i, &fde);

	if (!why)
		why = check_share(t, &fde, tally);
	start = sframe_fde_addr(s, t, &fde);
	end = start + fde.size;
	if (!fde.size) {
		tally->empty++;
		return 0;
	}
	if (sframe_fde_is_tombstone(x, &fde, start)) {
		tally->tombstones++;
		return 0;
	}
	if (!sframe_exec_holds(x, start, &exec_end)) {
		tally->outside++;
		return 0;
	}
	if (!why && end < start)
		why = "it wraps around the address space";
	if (why) {
		tally->bad++;
		note_bad_fde(diag, &fde, i, why);
		return 0;
	}
	if (end > exec_end) {
		diag_add(diag, DIAG_MALFORMED, SFRAME_SECTION, fde.start_off,
			 "function %u ends %" PRIu64
			 " bytes past the executable segment, cut there",
			 i, end - exec_end);
		end = exec_end;
	}
	tally->unsorted += start < tally->last;
	tally->last = start;
	/* add_table() has reserved room */
	s->fns.fns[s->fns.n++] =
		(struct fn){ .start = start, .end = end, .ref = (uint64_t)table << 32 | i };
	return 0;
}

static void note_tally(const struct sframe_table *t, const struct tally *tally, struct diag *diag)
{
	const struct {
		uint32_t n;
		const char *what;
	} notes[] = {
		{ tally->empty, "functions of size 0, left out" },
		{ tally->tombstones, "functions that the linker had dropped, left out" },
		{ tally->outside, "functions that start outside of executable segments, left out" },
		{ tally->unsorted,
		  t->flags & SFRAME_F_SORTED
			  ? "functions out of order in a table that is said to be sorted"
			  : "functions out of order" },
	};

	for (size_t k = 0; k < sizeof(notes) / sizeof(notes[0]); k++)
		if (notes[k].n)
			diag_add(diag, DIAG_REPAIRED, SFRAME_SECTION, t->offset, "%u %s",
				 notes[k].n, notes[k].what);
	if (!tally->bad && tally->rows != t->nfres)
		diag_add(diag, DIAG_REPAIRED, SFRAME_SECTION, t->offset,
			 "the header counts %u rows, the functions have %" PRIu64, t->nfres,
			 tally->rows);
}

static int add_table(struct sframe *s, uint32_t table, const struct sframe_exec *x,
		     struct diag *diag)
{
	struct sframe_table *t = &s->tables[table];
	struct tally tally = { 0 };
	int err;

	if (!sframe_anchor_choose(s, t, x, diag))
		return 0;
	err = vec_reserve(&s->fns.fns, &s->fns.cap, s->fns.n + t->nfdes, sizeof(*s->fns.fns));
	if (err)
		return err;
	for (uint32_t i = 0; i < t->nfdes; i++) {
		err = add_function(s, table, i, x, &tally, diag);

		if (err)
			return err;
	}
	note_tally(t, &tally, diag);
	return 0;
}

int sframe_open(struct sframe *s, struct bytes sec, uint64_t addr, enum row_arch arch,
		const struct sframe_bounds *bounds, struct diag *diag)
{
	struct sframe_exec exec;
	int err;

	sec.pos = 0;
	*s = (struct sframe){ .sec = sec, .addr = addr, .arch = arch };
	err = sframe_exec_init(&exec, bounds);
	if (!err)
		err = sframe_tables_load(s, diag);
	for (uint32_t i = 0; i < s->ntables && !err; i++)
		err = add_table(s, i, &exec, diag);
	sframe_exec_free(&exec);
	if (err)
		sframe_close(s);
	return err;
}

void sframe_close(struct sframe *s)
{
	free(s->tables);
	fntab_free(&s->fns);
	*s = (struct sframe){ 0 };
}

/*
 * GNU ld up to 2.46 gives PT_GNU_SFRAME the size of the input tables, not that of the merged one
 * (strip repairs it). The section header has the right size; without one, the tables themselves
 * give it.
 */
static int find_by_segment(const struct elf_image *img, const struct elf_phdr *ph,
			   struct elf_blob *ret, struct diag *diag)
{
	uint64_t size = ph->filesz, extent;
	int err;

	if (ph->offset > img->size) {
		diag_add(diag, DIAG_MALFORMED, SFRAME_SECTION, 0,
			 "PT_GNU_SFRAME lies outside the file");
		return -ENOENT;
	}
	if (size > img->size - ph->offset)
		size = img->size - ph->offset;
	err = elf_image_read(img, ph->offset, size, ret);
	if (err)
		return err;
	ret->addr = ph->vaddr;
	diag_add(diag, DIAG_REPAIRED, SFRAME_SECTION, 0, "no section, found by PT_GNU_SFRAME");
	extent = sframe_tables_extent(ret->view);
	if (extent && extent < ph->filesz) {
		ret->view = bytes_sub(&ret->view, 0, extent);
		diag_add(diag, DIAG_REPAIRED, SFRAME_SECTION, extent,
			 "PT_GNU_SFRAME is %" PRIu64 " bytes longer than the tables",
			 ph->filesz - extent);
	}
	return 0;
}

/* Looks by name first, because old producers use SHT_PROGBITS. */
static const struct elf_shdr *find_section(const struct elf_image *img)
{
	const struct elf_shdr *sh = elf_image_section(img, SFRAME_SECTION);

	return sh ? sh : elf_image_section_of_type(img, SHT_GNU_SFRAME);
}

int sframe_find(const struct elf_image *img, struct elf_blob *ret, struct diag *diag)
{
	const struct elf_phdr *ph = elf_image_segment(img, PT_GNU_SFRAME);
	const struct elf_shdr *sh = find_section(img);
	int err;

	/* A separate debug file, or an empty crt file */
	if (sh && (sh->type == SHT_NOBITS || !sh->size))
		return -ENOENT;
	if (sh) {
		err = elf_image_section_bytes(img, sh, ret);
		if (err == -ENOMEM || err == -EIO)
			return err;
		if (!err && ph && ph->filesz > sh->size)
			diag_add(diag, DIAG_REPAIRED, SFRAME_SECTION, sh->size,
				 "PT_GNU_SFRAME is %" PRIu64 " bytes longer than the section",
				 ph->filesz - sh->size);
		if (!err)
			return 0;
		diag_add(diag, DIAG_MALFORMED, SFRAME_SECTION, 0,
			 "the section lies outside the file or cannot be expanded");
	}
	return ph ? find_by_segment(img, ph, ret, diag) : -ENOENT;
}
