/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf/elf_needed.h"

#include <string.h>

struct sink {
	void (*take)(void *ctx, enum elf_needed kind, const char *text);
	void *ctx;
};

/* A string in the file, which ends with a NUL within `most` bytes. */
static void take_text(const struct elf_image *img, uint64_t at, uint64_t most, enum elf_needed kind,
		      const struct sink *to)
{
	const uint64_t left = at < img->size ? img->size - at : 0;
	struct elf_blob b = { 0 };
	const char *text;

	if (most > left)
		most = left;
	if (!most || elf_image_read(img, at, most, &b))
		return;
	text = (const char *)bytes_here(&b.view);
	if (*text && memchr(text, 0, most))
		to->take(to->ctx, kind, text);
	elf_blob_free(&b);
}

/* Takes the strings of all entries with one of the tags. */
static void take_tags(const struct elf_image *img, struct bytes dyn, uint64_t strtab, uint64_t tag,
		      uint64_t other, enum elf_needed kind, const struct sink *to)
{
	uint64_t t, val;

	while (elf_dynamic_next(&dyn, &t, &val))
		if ((t == tag || t == other) && val < img->size)
			take_text(img, strtab + val, ELF_NEEDED_TEXT, kind, to);
}

/* The file offset of DT_STRTAB. False: there is none. */
static bool find_strtab(const struct elf_image *img, struct bytes dyn, uint64_t *ret)
{
	uint64_t t, val;

	while (elf_dynamic_next(&dyn, &t, &val))
		if (t == DT_STRTAB)
			return elf_image_vaddr_to_offset(img, val, ret);
	return false;
}

void elf_needed(const struct elf_image *img,
		void (*take)(void *ctx, enum elf_needed kind, const char *text), void *ctx)
{
	const struct elf_phdr *interp = elf_image_segment(img, PT_INTERP);
	const struct sink to = { take, ctx };
	struct elf_blob dyn = { 0 };
	uint64_t strtab = 0;
	bool dynamic;

	dynamic = !elf_image_dynamic(img, &dyn) && find_strtab(img, dyn.view, &strtab);
	if (dynamic)
		take_tags(img, dyn.view, strtab, DT_RUNPATH, DT_RPATH, ELF_RUNPATH, &to);
	if (interp)
		take_text(img, interp->offset,
			  interp->filesz < ELF_NEEDED_TEXT ? interp->filesz : ELF_NEEDED_TEXT,
			  ELF_INTERP, &to);
	if (dynamic)
		take_tags(img, dyn.view, strtab, DT_NEEDED, DT_NEEDED, ELF_LIBRARY, &to);
	elf_blob_free(&dyn);
}
