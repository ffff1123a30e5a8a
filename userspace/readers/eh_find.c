/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds a file's call frame information. */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "readers/eh_frame.h"
#include "readers/eh_record.h"

static bool has_fde(struct bytes sec, bool debug_frame)
{
	struct eh_walk w = { .b = sec, .debug_frame = debug_frame };
	struct eh_rec rec;

	while (eh_walk_next(&w, &rec, NULL))
		if (rec.kind == EH_REC_FDE)
			return true;
	return false;
}

/* A CIE of a known version, or an FDE whose pointer leads to a CIE. */
static bool plausible(struct bytes sec, const struct eh_rec *rec)
{
	struct bytes at = sec;

	if (rec->kind == EH_REC_CIE) {
		uint8_t version;

		bytes_seek(&at, rec->id_pos + rec->id_size);
		version = bytes_u8(&at);
		return !at.err && (version == 1 || version == 3 || version == 4);
	}
	bytes_seek(&at, eh_rec_cie_offset(rec, false));
	if (bytes_u32(&at) == UINT32_MAX)
		bytes_skip(&at, 8);
	return rec->kind == EH_REC_FDE && bytes_u32(&at) == 0 && !at.err;
}

/*
 * The size of .eh_frame is not known without section headers, and the bytes after it in the segment
 * are not records. It ends at its terminator. A link without crtend.o has none; then it ends where
 * the chain stops making sense.
 */
static void trim(struct bytes *sec)
{
	struct eh_walk w = { .b = *sec };
	struct eh_rec rec;
	uint64_t end = 0;

	while (eh_walk_next(&w, &rec, NULL) && !w.terminated && plausible(*sec, &rec))
		end = rec.end;
	*sec = bytes_sub(sec, 0, end);
}

static int through_hdr(const struct elf_image *img, struct elf_blob *ret, struct diag *diag)
{
	struct eh_hdr hdr;
	int err = eh_hdr_read(img, &hdr);

	if (err)
		return err;
	for (uint32_t i = 0; i < img->nphdrs; i++) {
		const struct elf_phdr *ph = &img->phdrs[i];
		uint64_t skip = hdr.eh_frame - ph->vaddr;

		if (ph->type != PT_LOAD || hdr.eh_frame < ph->vaddr || skip >= ph->filesz)
			continue;
		err = elf_image_read(img, ph->offset + skip, ph->filesz - skip, ret);
		if (err == -ERANGE)
			break;
		if (err)
			return err;
		ret->addr = hdr.eh_frame;
		trim(&ret->view);
		return 0;
	}
	diag_add(diag, DIAG_MALFORMED, ".eh_frame_hdr", 4,
		 "the address of .eh_frame is outside the file");
	return -ENOENT;
}

/* 0, -ENOENT (also if it is damaged, which is noted), -ENOMEM, -EIO. */
static int by_section(const struct elf_image *img, const char *name, struct elf_blob *ret,
		      struct diag *diag)
{
	int err = elf_image_section_bytes(img, elf_image_section(img, name), ret);

	if (!err || err == -ENOENT || err == -ENOMEM || err == -EIO)
		return err;
	diag_add(diag, DIAG_MALFORMED, name, 0,
		 err == -ERANGE ? "outside the file" : "cannot be decompressed");
	return -ENOENT;
}

/* GNU's older compression: "ZLIB", the size as a big-endian u64, one zlib stream. */
static int by_zdebug(const struct elf_image *img, struct elf_blob *ret, struct diag *diag)
{
	struct elf_blob blob = { 0 };
	struct bytes *b = &blob.view;
	const uint8_t *magic;
	uint64_t size;
	uLongf got;
	void *out;
	int err = by_section(img, ".zdebug_frame", &blob, diag);

	if (err)
		return err;
	magic = bytes_take(b, 4);
	b->be = true;
	size = bytes_u64(b);
	err = -ENOENT;
	if (b->err || memcmp(magic, "ZLIB", 4) != 0 || !elf_may_unpack(bytes_left(b), size))
		goto bad;
	out = malloc(size ? size : 1);
	if (!out) {
		elf_blob_free(&blob);
		return -ENOMEM;
	}
	got = size;
	if (uncompress(out, &got, bytes_here(b), bytes_left(b)) == Z_OK && got == size) {
		elf_blob_free(&blob);
		*ret = (struct elf_blob){ .view = bytes_of(out, size, img->be), .owned = out };
		return 0;
	}
	free(out);
bad:
	diag_add(diag, DIAG_MALFORMED, ".zdebug_frame", 0, "cannot be decompressed");
	elf_blob_free(&blob);
	return err;
}

int eh_frame_find(const struct elf_image *img, struct elf_blob *ret, bool *ret_debug_frame,
		  struct diag *diag)
{
	const struct elf_shdr *s = elf_image_section(img, ".eh_frame");
	struct elf_blob eh = { 0 }, debug = { 0 };
	int err = by_section(img, ".eh_frame", &eh, diag);

	/* A separate debug file has .eh_frame as SHT_NOBITS, and not its segment's bytes. */
	if (err == -ENOENT && !(s && s->type == SHT_NOBITS))
		err = through_hdr(img, &eh, diag);
	if (err && err != -ENOENT)
		return err;
	if (!err && has_fde(eh.view, false)) {
		*ret = eh;
		*ret_debug_frame = false;
		return 0;
	}
	err = by_section(img, ".debug_frame", &debug, diag);
	if (err == -ENOENT)
		err = by_zdebug(img, &debug, diag);
	if (!err) {
		elf_blob_free(&eh);
		*ret = debug;
		*ret_debug_frame = true;
		return 0;
	}
	if (err == -ENOENT && eh.view.base) { /* present but empty */
		*ret = eh;
		*ret_debug_frame = false;
		return 0;
	}
	elf_blob_free(&eh);
	return err;
}
