/* SPDX-License-Identifier: BSD-2-Clause */
#include "rows/fntab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A stable sort that merges ascending runs pairwise; one pass if the linker sorted already. */
static int sort_by_start(struct fn *fns, size_t n)
{
	struct fn *from = fns, *to, *spare;
	size_t i, runs;

	for (i = 1; i < n && fns[i - 1].start <= fns[i].start; i++)
		;
	if (i >= n)
		return 0;
	spare = malloc(n * sizeof(*spare));
	if (!spare)
		return -ENOMEM;
	to = spare;
	do {
		size_t a = 0, out = 0;

		for (runs = 0; a < n; runs++) {
			size_t b, end, x, y;

			for (b = a + 1; b < n && from[b - 1].start <= from[b].start; b++)
				;
			for (end = b + 1; end < n && from[end - 1].start <= from[end].start; end++)
				;
			if (b >= n)
				end = b = n;
			for (x = a, y = b; x < b || y < end;)
				to[out++] = y >= end || (x < b && from[x].start <= from[y].start)
						    ? from[x++]
						    : from[y++];
			a = end;
		}
		struct fn *t = from;

		from = to;
		to = t;
	} while (runs > 1);
	if (from != fns)
		memcpy(fns, from, n * sizeof(*fns));
	free(spare);
	return 0;
}

static int by_vaddr(const void *a, const void *b)
{
	const struct elf_phdr *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

size_t exec_segments(const struct elf_image *img, struct elf_phdr *ret, size_t cap)
{
	uint64_t left = img->size > UINT64_MAX / 2 ? UINT64_MAX : 2 * img->size;
	size_t n = 0;

	for (uint32_t i = 0; i < img->nphdrs && n < cap; i++) {
		struct elf_phdr ph = img->phdrs[i];

		if (ph.type != PT_LOAD || !(ph.flags & PF_X) || ph.offset >= img->size)
			continue;
		/*
		 * No code lies beyond the file's end. A header that claims terabytes must not cause
		 * work in proportion.
		 */
		if (ph.filesz > img->size - ph.offset)
			ph.filesz = img->size - ph.offset;
		/*
		 * Nor are the same bytes code at many addresses. Only pages at the edges of
		 * segments are mapped twice, so twice the file's size is enough.
		 */
		if (ph.filesz > left)
			ph.filesz = left;
		left -= ph.filesz;
		if (ph.filesz && ph.filesz <= UINT64_MAX - ph.vaddr)
			ret[n++] = ph;
	}
	qsort(ret, n, sizeof(*ret), by_vaddr);
	return n;
}

/* Whether the functions ascend without overlaps, all in one segment, as nearly always. */
static bool arranged(const struct fntab *t, const struct elf_phdr *segs, size_t nsegs)
{
	uint64_t from = 0, to = 0;
	size_t i;

	for (i = 0; i < nsegs && t->n && t->fns[0].start >= to; i++) {
		from = segs[i].vaddr;
		to = from + segs[i].filesz;
	}
	for (i = 0; i < t->n && t->fns[i].start >= from && t->fns[i].start < t->fns[i].end &&
		    t->fns[i].end <= to;
	     i++)
		from = t->fns[i].end;
	return i == t->n;
}

int fntab_arrange(struct fntab *t, const struct elf_image *img)
{
	struct elf_phdr segs[EXEC_SEGMENTS_MAX];
	size_t nsegs = exec_segments(img, segs, EXEC_SEGMENTS_MAX);
	uint64_t seg_start = 0, seg_end = 0; /* range of segs[seg - 1] */
	size_t i, seg = 0, n = 0;
	int err;

	if (arranged(t, segs, nsegs))
		return 0;
	err = sort_by_start(t->fns, t->n);
	if (err)
		return err;
	for (i = 0; i < t->n; i++) {
		struct fn f = t->fns[i];

		while (f.start >= seg_end && seg < nsegs) {
			seg_start = segs[seg].vaddr;
			seg_end = seg_start + segs[seg].filesz;
			seg++;
		}
		if (f.start >= seg_end)
			break;
		if (f.start < seg_start || f.end <= f.start)
			continue;
		if (f.end > seg_end)
			f.end = seg_end;
		if (n && t->fns[n - 1].start == f.start)
			/*
			 * The later of two entries with the same start counts, as in the SFrame
			 * search
			 */
			n--;
		else if (n && t->fns[n - 1].end > f.start)
			t->fns[n - 1].end = f.start;
		t->fns[n++] = f;
	}
	t->n = n;
	return 0;
}

const struct fn *fntab_find(const struct fntab *t, uint64_t addr)
{
	size_t lo = 0, hi = t->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (addr >= t->fns[mid].end)
			lo = mid + 1;
		else if (addr < t->fns[mid].start)
			hi = mid;
		else
			return &t->fns[mid];
	}
	return NULL;
}
