/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes .sframe sections of versions 1 to 3 for tests, sound ones and such as no producer would
 * make.
 *
 * A section is built table by table: senc_begin, then senc_fn and its rows, then senc_end.
 * Functions are given by address; the encoder knows where their fields end up. Fields that a test
 * wants wrong are overridden in struct senc_fn, or afterwards with senc_poke.
 */
#ifndef SFBPF_TESTS_UNIT_SFRAME_ENCODE_H
#define SFBPF_TESTS_UNIT_SFRAME_ENCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SENC_MAX_FNS 64	   /* a table */
#define SENC_MAX_FRE 65536 /* bytes of rows, a table */

enum { SENC_SORTED = 1, SENC_FRAME_POINTER = 2, SENC_PCREL = 4 };
enum { SENC_AARCH64_BE = 1, SENC_AARCH64_LE, SENC_AMD64, SENC_S390X };
enum { SENC_SP = 1, SENC_FP = 0, SENC_MANGLED = 0x80 }; /* info bits of a row */

/* Where function starts count from, which the flags may or may not say. */
enum senc_anchor { SENC_FROM_FIELD, SENC_FROM_SECTION };

struct senc_fn {
	uint64_t addr;
	uint32_t size;
	uint8_t row_type; /* 0, 1, 2 */
	bool pcmask, key_b, signal, flex;
	uint8_t rep_size;	       /* versions 2, 3 */
	uint8_t info_bits, info2_bits; /* or'ed in */
	bool raw_start;		       /* addr is stored as it is */
	int32_t extra_rows;	       /* added to the row count */
	uint32_t rows_at_add;	       /* added to the offset of the first row */
};

struct senc {
	uint8_t *buf;
	size_t len, cap;
	uint64_t addr; /* of the section */
	bool be;
	/* the table being written */
	uint8_t version, flags, abi;
	int8_t fixed_fp, fixed_ra;
	enum senc_anchor anchor;
	struct senc_fn fns[SENC_MAX_FNS];
	uint32_t rows_at[SENC_MAX_FNS], nrows[SENC_MAX_FNS], nfns, total_rows;
	uint8_t fre[SENC_MAX_FRE];
	uint32_t fre_len;
};

void senc_init(struct senc *e, uint64_t addr);
void senc_free(struct senc *e);

/*
 * Starts a table at the next multiple of 8. The ABI gives the byte order and the fixed RA offset.
 */
void senc_begin(struct senc *e, uint8_t version, uint8_t abi, uint8_t flags,
		enum senc_anchor anchor);
void senc_fn(struct senc *e, struct senc_fn fn);
/*
 * A row of the last function. words is a string of decimal numbers, word_size 1, 2 or 4 their size.
 * bits: SENC_SP and the like; the row's count and size are added.
 */
void senc_row(struct senc *e, uint32_t start, uint8_t bits, unsigned int word_size,
	      const char *words);
/* Bytes as they are among the rows; counted as a row of the last function. */
void senc_raw_row(struct senc *e, const void *bytes, size_t len);
/* Writes the table. Its header's offset from the section's start. */
size_t senc_end(struct senc *e);

/* An integer of 1, 2, 4 or 8 bytes, in the order of the last table. */
void senc_poke(struct senc *e, size_t off, unsigned int size, uint64_t value);
void senc_append(struct senc *e, const void *bytes, size_t len); /* after the tables */

#endif
