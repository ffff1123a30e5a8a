/* SPDX-License-Identifier: BSD-2-Clause */
#include "readers/eh_record.h"

#include <errno.h>
#include <stdlib.h>

#include "base/u64s.h"

static uint64_t read_format(struct bytes *b, uint8_t format, uint8_t addr_size)
{
	switch (format) {
	case DW_EH_PE_absptr:
		return addr_size == 4 ? bytes_u32(b) : bytes_u64(b);
	case DW_EH_PE_signed:
		return addr_size == 4 ? (uint64_t)(int64_t)bytes_s32(b) : bytes_u64(b);
	case DW_EH_PE_uleb128:
		return bytes_uleb(b);
	case DW_EH_PE_sleb128:
		return (uint64_t)bytes_sleb(b);
	case DW_EH_PE_udata2:
		return bytes_u16(b);
	case DW_EH_PE_sdata2:
		return (uint64_t)(int64_t)bytes_s16(b);
	case DW_EH_PE_udata4:
		return bytes_u32(b);
	case DW_EH_PE_sdata4:
		return (uint64_t)(int64_t)bytes_s32(b);
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return bytes_u64(b);
	default:
		b->err = true;
		return 0;
	}
}

static void align(struct bytes *b, const struct eh_ptr_bases *bases)
{
	bytes_skip(b, (0 - (bases->addr + b->pos)) & (bases->addr_size - 1));
}

bool eh_read_ptr(struct bytes *b, uint8_t enc, const struct eh_ptr_bases *bases, uint64_t *ret,
		 uint64_t *ret_raw)
{
	uint64_t at, value, base = 0;

	if (enc == DW_EH_PE_omit || (enc & DW_EH_PE_indirect))
		return false;
	if ((enc & DW_EH_PE_base) == DW_EH_PE_aligned)
		align(b, bases);
	at = bases->addr + b->pos;
	value = read_format(b, enc & DW_EH_PE_format, bases->addr_size);
	switch (enc & DW_EH_PE_base) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_aligned:
		break;
	case DW_EH_PE_pcrel:
		base = at;
		break;
	case DW_EH_PE_textrel:
		base = bases->text;
		break;
	case DW_EH_PE_datarel:
		base = bases->data;
		break;
	case DW_EH_PE_funcrel:
		base = bases->func;
		break;
	default:
		return false;
	}
	if (b->err || ((enc & DW_EH_PE_base) && (enc & DW_EH_PE_base) != DW_EH_PE_aligned && !base))
		return false;
	if (ret_raw)
		*ret_raw = value;
	value += base;
	*ret = bases->addr_size == 4 ? (uint32_t)value : value;
	return true;
}

void eh_skip_ptr(struct bytes *b, uint8_t enc, const struct eh_ptr_bases *bases)
{
	if (enc == DW_EH_PE_omit)
		return;
	if ((enc & DW_EH_PE_base) == DW_EH_PE_aligned)
		align(b, bases);
	read_format(b, enc & DW_EH_PE_format, bases->addr_size);
}

/*
 * The id of a CIE and the pointer of an FDE are as wide as the length in .debug_frame (DWARF 5,
 * 7.4). In .eh_frame they always have 4 bytes (LSB 5.0 Core, 10.6.1.1), but some producers and
 * readers use 8 there too. A CIE with 8 bytes has a zero where its version would be. An FDE has the
 * width of its CIE, which is known once the CIE is found.
 */
static void read_wide_id(const struct eh_walk *w, struct bytes b, struct eh_rec *rec)
{
	struct bytes at;

	bytes_seek(&b, rec->id_pos);
	at = b;
	rec->id_size = 4;
	rec->id = bytes_u32(&b);
	if (!b.err && (w->debug_frame || (rec->id == 0 && bytes_u8(&b) == 0))) {
		rec->id_size = 8;
		rec->id = bytes_u64(&at);
		b.err = at.err;
	}
	if (b.err)
		rec->kind = EH_REC_BAD;
	else
		rec->kind = rec->id == (w->debug_frame ? UINT64_MAX : 0) ? EH_REC_CIE : EH_REC_FDE;
}

/*
 * The start of the first known record after off, or the section's end. Successive calls must pass
 * ascending offsets.
 */
static uint64_t known_after(struct eh_walk *w, uint64_t off)
{
	while (w->next_known < w->nknown && w->known[w->next_known] <= off)
		w->next_known++;
	return w->next_known < w->nknown ? w->known[w->next_known] : w->b.len;
}

static void damaged(struct eh_walk *w, struct eh_rec *rec, const char *why, struct diag *diag)
{
	w->trouble = true;
	rec->kind = EH_REC_BAD;
	if (!rec->loose)
		diag_add(diag, DIAG_MALFORMED, w->section, rec->offset, "%s", why);
}

/*
 * Reads the length of the next record. A length of 0 ends the chain (LSB 5.0 Core, 10.6.1), but a
 * linker may leave the terminators of its inputs in the middle, so the walk continues after it.
 * Returns 0 if no record is left, or if a record that is known to start here has length 0.
 */
static uint64_t read_length(struct eh_walk *w, struct bytes *b, struct eh_rec *rec)
{
	uint64_t len = 0;

	for (;;) {
		rec->offset = b->pos;
		rec->loose = w->terminated && w->next_known >= w->nknown;
		if (b->pos >= b->len)
			return 0;
		len = bytes_u32(b);
		if (len || b->err || (w->nknown && known_after(w, rec->offset - 1) == rec->offset))
			break;
		w->terminated = true;
	}
	rec->dwarf64 = len == UINT32_MAX;
	return rec->dwarf64 ? bytes_u64(b) : len;
}

bool eh_walk_any(struct eh_walk *w, struct eh_rec *rec, struct diag *diag)
{
	struct bytes b = w->b;
	uint64_t len = read_length(w, &b, rec), limit;

	if (rec->offset >= b.len)
		return false;
	limit = known_after(w, rec->offset);
	if (b.err || len == 0 || b.pos > limit || len > limit - b.pos ||
	    (len >= 0xfffffff0 && !rec->dwarf64)) {
		damaged(w, rec,
			limit < b.len ? "the length of a record does not lead to the next one"
				      : "the length of a record leads out of the section",
			diag);
		rec->end = w->b.pos = limit;
		return true;
	}
	rec->id_pos = b.pos;
	rec->end = w->b.pos = b.pos + len;
	if (rec->dwarf64) {
		read_wide_id(w, bytes_sub(&w->b, 0, rec->end), rec);
	} else {
		rec->id_size = 4;
		rec->id = bytes_u32(&b);
		rec->kind = len < 4					   ? EH_REC_BAD
			    : rec->id == (w->debug_frame ? UINT32_MAX : 0) ? EH_REC_CIE
									   : EH_REC_FDE;
	}
	if (rec->kind == EH_REC_BAD)
		damaged(w, rec, "a record is too short for its CIE id", diag);
	return true;
}

int eh_hdr_read(const struct elf_image *img, struct eh_hdr *ret)
{
	const struct elf_shdr *s = elf_image_section(img, ".eh_frame_hdr");
	const struct elf_phdr *ph = elf_image_segment(img, PT_GNU_EH_FRAME);
	struct eh_hdr h = { .bases.addr_size = 8 };
	struct elf_blob blob = { 0 };
	struct bytes *b = &blob.view;
	uint8_t ptr_enc, count_enc;
	bool sound;
	int err;

	if (s && s->type != SHT_NOBITS && s->size) {
		h.offset = s->offset;
		h.size = s->size;
		h.bases.addr = s->addr;
	} else if (ph && ph->filesz) {
		h.offset = ph->offset;
		h.size = ph->filesz;
		h.bases.addr = ph->vaddr;
	} else {
		return -ENOENT;
	}
	h.bases.data = h.bases.addr;
	/* 4 bytes and two pointers, the longest of which is a LEB128. */
	err = elf_image_read(img, h.offset, h.size < 32 ? h.size : 32, &blob);
	if (err)
		return err == -ERANGE ? -ENOENT : err;
	sound = bytes_u8(b) == 1; /* version */
	ptr_enc = bytes_u8(b);
	count_enc = bytes_u8(b);
	h.table_enc = bytes_u8(b);
	sound = sound && !b->err && eh_read_ptr(b, ptr_enc, &h.bases, &h.eh_frame, NULL);
	if (h.table_enc == DW_EH_PE_omit || !eh_read_ptr(b, count_enc, &h.bases, &h.count, NULL))
		h.count = 0;
	h.table = b->pos;
	elf_blob_free(&blob);
	if (sound)
		*ret = h;
	return sound ? 0 : -ENOENT;
}

/* The offset of the CIE that the FDE at `fde` names, if there is one; else UINT64_MAX. */
static uint64_t cie_of(const struct bytes *sec, uint64_t fde)
{
	struct bytes b = *sec;
	struct eh_rec rec = { .id_size = 4 };
	uint64_t cie, len;

	bytes_seek(&b, fde);
	bytes_skip(&b, bytes_u32(&b) == UINT32_MAX ? 8 : 0);
	rec.id_pos = b.pos;
	rec.id = bytes_u32(&b);
	cie = eh_rec_cie_offset(&rec, false);
	if (b.err || !rec.id)
		return UINT64_MAX;
	bytes_seek(&b, cie);
	len = bytes_u32(&b);
	if (len == UINT32_MAX)
		len = bytes_u64(&b);
	return len <= bytes_left(&b) && bytes_u32(&b) == 0 && !b.err ? cie : UINT64_MAX;
}

int eh_hdr_offsets(const struct elf_image *img, const struct eh_hdr *hdr, const struct bytes *sec,
		   uint64_t **ret, size_t *ret_n)
{
	uint64_t start, fde, cie, last_cie = UINT64_MAX, count = hdr->count, *offs;
	struct elf_blob blob = { 0 };
	struct bytes *b = &blob.view;
	size_t n = 0;
	int err = elf_image_read(img, hdr->offset, hdr->size, &blob);

	if (err)
		return err;
	bytes_seek(b, hdr->table);
	if (count > bytes_left(b) / 2) /* an entry is two pointers of at least a byte */
		count = bytes_left(b) / 2;
	offs = malloc((count ? count : 1) * 2 * sizeof(*offs));
	for (; offs && count && eh_read_ptr(b, hdr->table_enc, &hdr->bases, &start, NULL) &&
	       eh_read_ptr(b, hdr->table_enc, &hdr->bases, &fde, NULL);
	     count--) {
		if (fde - hdr->eh_frame >= sec->len)
			continue;
		offs[n++] = fde - hdr->eh_frame;
		cie = cie_of(sec, offs[n - 1]);
		if (cie != UINT64_MAX && cie != last_cie)
			offs[n++] = last_cie = cie;
	}
	elf_blob_free(&blob);
	if (!offs)
		return -ENOMEM;
	qsort(offs, n, sizeof(*offs), u64_compare);
	*ret = offs;
	*ret_n = n;
	return 0;
}
