/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the function starts of a table are relative to.
 *
 * An assembler makes them relative to the field that holds them. GNU ld up to 2.44 made them
 * relative to the section when it linked, and set no flag for it. Since 2.45 it leaves them alone
 * and sets PCREL. A linker that only concatenates leaves them alone and sets no flag. Up to 2.44, a
 * table merged by GNU ld has SORTED set, which gives the first guess:
 *
 * 	relative to the field if PCREL or not SORTED, else to the table's header
 *
 * The guess is checked, because flags have been wrong. A function is possible if it starts where an
 * instruction can and lies in an executable segment. The reading with more possible functions wins,
 * unless it causes disorder. The readings differ by a few bytes for the first functions, and by one
 * more entry size for each that follows, so both may fit inside a large segment. Then disorder
 * decides. If starts relative to the field are read as relative to the header, neighbours move
 * towards each other by an entry's size, and most overlap or swap places. (Some disorder is normal:
 * GNU ld 2.40 to 2.43 makes an overlap for -z ibtplt.)
 */
#include "readers/sframe_anchor.h"

#include <errno.h>
#include <stdlib.h>

#include "base/u64s.h"
#include "readers/sframe_table.h"

int sframe_exec_init(struct sframe_exec *x, const struct sframe_bounds *bounds)
{
	uint32_t i, n = bounds ? bounds->nphdrs : 0;
	size_t kept = 0, k;

	*x = (struct sframe_exec){ .known = n != 0 };
	if (!n)
		return 0;
	x->ranges = calloc(n, sizeof(*x->ranges));
	if (!x->ranges)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		const struct elf_phdr *ph = &bounds->phdrs[i];

		if (ph->type != PT_LOAD || !(ph->flags & PF_X) || !ph->memsz)
			continue;
		x->ranges[x->n].start = ph->vaddr;
		x->ranges[x->n++].end = ph->memsz > UINT64_MAX - ph->vaddr ? UINT64_MAX
									   : ph->vaddr + ph->memsz;
	}
	/* sorts by start, the first member */
	qsort(x->ranges, x->n, sizeof(*x->ranges), u64_compare);
	for (k = 1; k < x->n; k++) {
		if (x->ranges[k].start > x->ranges[kept].end)
			x->ranges[++kept] = x->ranges[k];
		else if (x->ranges[k].end > x->ranges[kept].end)
			x->ranges[kept].end = x->ranges[k].end;
	}
	if (x->n)
		x->n = kept + 1;
	return 0;
}

void sframe_exec_free(struct sframe_exec *x)
{
	free(x->ranges);
	*x = (struct sframe_exec){ 0 };
}

bool sframe_exec_search(const struct sframe_exec *x, uint64_t addr, uint64_t *ret_end)
{
	size_t lo = 0, hi = x->n;

	*ret_end = UINT64_MAX;
	if (!x->known)
		return true;
	/* Ranges below lo start at or before addr, those from hi on start after it */
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (x->ranges[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || addr >= x->ranges[lo - 1].end)
		return false;
	*ret_end = x->ranges[lo - 1].end;
	return true;
}

struct fit {
	uint32_t judged; /* functions other than tombstones and empty ones */
	uint32_t inside; /* judged functions that start in executable segments */
	/* Functions inside that also end there and start at an instruction */
	uint32_t possible;
	/* Functions inside that start before the end of the one before */
	uint32_t disorder;
};

static unsigned int instruction_align(enum row_arch arch)
{
	return arch == ROW_ARCH_AARCH64 ? 4 : arch == ROW_ARCH_S390X ? 2 : 1;
}

static struct fit judge(const struct sframe *s, struct sframe_table t, bool section_relative,
			const struct sframe_exec *x)
{
	unsigned int align = instruction_align(s->arch);
	uint64_t addr, segment_end, prev_end = 0;
	struct fit fit = { 0 };
	struct sframe_fde fde;

	t.section_relative = section_relative;
	for (uint32_t i = 0; i < t.nfdes; i++) {
		sframe_fde_span(s, &t, i, &fde);
		addr = sframe_fde_addr(s, &t, &fde);
		if (!fde.size || sframe_fde_is_tombstone(x, &fde, addr))
			continue;
		fit.judged++;
		if (!sframe_exec_holds(x, addr, &segment_end))
			continue;
		fit.inside++;
		fit.possible += fde.size <= segment_end - addr && addr % align == 0;
		fit.disorder += addr < prev_end;
		prev_end = addr + fde.size;
	}
	return fit;
}

static bool fits_well(const struct fit *fit)
{
	return fit->possible == fit->judged && fit->disorder <= fit->judged / 4;
}

static bool fits_better(const struct fit *other, const struct fit *guess)
{
	if (other->possible > guess->possible)
		return other->disorder <= guess->disorder +
						  (other->possible - guess->possible) / 2 +
						  other->inside / 8;
	if (other->possible < guess->possible)
		return false;
	return guess->disorder > guess->inside / 4 && other->disorder < guess->disorder / 4;
}

bool sframe_anchor_choose(const struct sframe *s, struct sframe_table *t,
			  const struct sframe_exec *x, struct diag *diag)
{
	struct fit guess, other = { 0 };
	bool pcrel = t->flags & SFRAME_F_PCREL;

	t->section_relative = !pcrel && (t->flags & SFRAME_F_SORTED);
	if (x->known) {
		guess = judge(s, *t, t->section_relative, x);
		if (!fits_well(&guess))
			other = judge(s, *t, !t->section_relative, x);
		if (fits_better(&other, &guess)) {
			t->section_relative = !t->section_relative;
			guess = other;
		}
		if (guess.judged && !guess.inside) {
			diag_add(diag, DIAG_MALFORMED, SFRAME_SECTION, t->offset,
				 "none of %u functions starts in executable code, table lost",
				 guess.judged);
			return false;
		}
	}
	if (!t->nfdes || !x->known || t->section_relative != pcrel)
		return true;
	diag_add(diag, DIAG_REPAIRED, SFRAME_SECTION, t->offset,
		 t->section_relative
			 ? "function starts count from the section although PCREL is set"
			 : "function starts count from their own field although PCREL is not set");
	return true;
}
