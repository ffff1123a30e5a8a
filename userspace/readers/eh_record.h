/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The chain of records in .eh_frame and .debug_frame (LSB 5.0 Core, 10.6.1; DWARF 5, 6.4.1), their
 * encoded pointers, and .eh_frame_hdr. Internal to the .eh_frame reader.
 */
#ifndef SFBPF_READERS_EH_RECORD_H
#define SFBPF_READERS_EH_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "elf/elf_image.h"

/* Pointer encodings, LSB 5.0 Core, 10.5.1. */
#define DW_EH_PE_absptr	  0x00
#define DW_EH_PE_uleb128  0x01
#define DW_EH_PE_udata2	  0x02
#define DW_EH_PE_udata4	  0x03
#define DW_EH_PE_udata8	  0x04
#define DW_EH_PE_signed	  0x08 /* address size, signed */
#define DW_EH_PE_sleb128  0x09
#define DW_EH_PE_sdata2	  0x0a
#define DW_EH_PE_sdata4	  0x0b
#define DW_EH_PE_sdata8	  0x0c
#define DW_EH_PE_format	  0x0f /* mask of the above */
#define DW_EH_PE_pcrel	  0x10
#define DW_EH_PE_textrel  0x20
#define DW_EH_PE_datarel  0x30
#define DW_EH_PE_funcrel  0x40
#define DW_EH_PE_aligned  0x50
#define DW_EH_PE_base	  0x70 /* mask of the above */
#define DW_EH_PE_indirect 0x80
#define DW_EH_PE_omit	  0xff

struct eh_ptr_bases {
	uint64_t addr;	     /* address of the view's first byte */
	uint64_t text, data; /* 0: unknown */
	uint64_t func;	     /* start of the function; 0: not known yet */
	uint8_t addr_size;   /* 4 or 8 */
};

/*
 * Reads an encoded pointer. *ret_raw (may be NULL) is the value before the base was added: 0 means
 * "none" with any base. False: damaged, or the encoding needs data of a running process.
 */
bool eh_read_ptr(struct bytes *b, uint8_t enc, const struct eh_ptr_bases *bases, uint64_t *ret,
		 uint64_t *ret_raw);
/* Skips an encoded pointer whose value is not needed, so its base may be unknown. */
void eh_skip_ptr(struct bytes *b, uint8_t enc, const struct eh_ptr_bases *bases);

enum eh_rec_kind { EH_REC_CIE, EH_REC_FDE, EH_REC_BAD };

struct eh_rec {
	enum eh_rec_kind kind;
	bool dwarf64; /* 64-bit length */
	/* It is after the terminator, where there need not be records: damage is not noted */
	bool loose;
	uint8_t id_size;      /* bytes of the CIE id or pointer */
	uint64_t offset, end; /* the record, bytes from the section's start */
	uint64_t id_pos;      /* position of the CIE id or pointer */
	uint64_t id;	      /* the CIE id, or the FDE's CIE pointer as stored */
};

struct eh_walk {
	struct bytes b;
	bool debug_frame;
	const char *section; /* its name, for notes */
	/*
	 * Ascending offsets of records known from .eh_frame_hdr, where the walk resumes after
	 * damage; or NULL
	 */
	const uint64_t *known;
	size_t nknown, next_known;
	bool terminated; /* a terminator was passed */
	bool trouble;	 /* damage was met */
};

/* eh_walk_next() for records of any form */
bool eh_walk_any(struct eh_walk *w, struct eh_rec *rec, struct diag *diag);

/*
 * eh_walk_next() for nearly all records: 32-bit, without damage, no known offsets. False: nothing
 * was changed.
 */
static inline bool eh_walk_plain(struct eh_walk *w, struct eh_rec *rec)
{
	struct bytes b = w->b;
	uint32_t len = bytes_u32(&b), id = bytes_u32(&b);
	uint64_t end = w->b.pos + 4 + (uint64_t)len;

	if (b.err || w->nknown || w->terminated || len < 4 || len >= 0xfffffff0 || end > b.len)
		return false;
	*rec = (struct eh_rec){ .kind = id == (w->debug_frame ? UINT32_MAX : 0) ? EH_REC_CIE
										: EH_REC_FDE,
				.id_size = 4,
				.offset = w->b.pos,
				.end = end,
				.id_pos = w->b.pos + 4,
				.id = id };
	w->b.pos = end;
	return true;
}

/* The next record; a damaged one is EH_REC_BAD and noted. False at the end of the chain. */
static inline bool eh_walk_next(struct eh_walk *w, struct eh_rec *rec, struct diag *diag)
{
	return eh_walk_plain(w, rec) || eh_walk_any(w, rec, diag);
}

/*
 * Offset of the CIE that an FDE's pointer names. In .eh_frame the pointer is relative and may lead
 * forward.
 */
static inline uint64_t eh_rec_cie_offset(const struct eh_rec *rec, bool debug_frame)
{
	if (debug_frame)
		return rec->id;
	return rec->id_pos - (rec->id_size == 8 ? rec->id : (uint64_t)(int64_t)(int32_t)rec->id);
}

struct eh_hdr {
	uint64_t eh_frame; /* virtual address */
	uint64_t count;	   /* FDEs; 0: no table */
	uint8_t table_enc;
	struct eh_ptr_bases bases;
	uint64_t offset, size; /* the header with its table, in the file */
	uint64_t table;	       /* bytes from the header's start */
};

/*
 * .eh_frame_hdr (LSB 5.0 Core, 10.6.2), by section or PT_GNU_EH_FRAME. 0, -ENOENT, -ENOMEM, -EIO.
 */
int eh_hdr_read(const struct elf_image *img, struct eh_hdr *ret);
/*
 * Ascending offsets, in sec at hdr->eh_frame, of the table's FDEs and of their CIEs. 0, -ENOMEM, or
 * another error if the table cannot be read.
 */
int eh_hdr_offsets(const struct elf_image *img, const struct eh_hdr *hdr, const struct bytes *sec,
		   uint64_t **ret, size_t *ret_n);

#endif
