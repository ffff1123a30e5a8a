/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Small ELF64 images with call frame tables, made in memory for tests: segments as the test wants
 * them, an .eh_frame written FDE by FDE, an .sframe from sframe_encode. Aborts if memory runs out.
 */
#ifndef SFBPF_TESTS_UNIT_IMAGE_BUILD_H
#define SFBPF_TESTS_UNIT_IMAGE_BUILD_H

#include <stddef.h>
#include <stdint.h>

#include "elf/elf_image.h"

#define IMAGE_MAX_SEGMENTS 8

struct image_bytes {
	uint8_t *buf;
	size_t len, cap;
};

struct image {
	struct elf_phdr segs[IMAGE_MAX_SEGMENTS];
	unsigned int nsegs;
	uint16_t machine;	       /* EM_X86_64 unless set */
	struct image_bytes eh, sframe; /* empty: no such section */
	uint64_t eh_addr, sframe_addr;
	uint64_t cie;		 /* of the FDEs that follow, offset in eh */
	struct image_bytes file; /* after image_finish */
};

void image_init(struct image *im);
/* A PT_LOAD of PF_R | PF_X. The file will reach to its end. */
void image_code(struct image *im, uint64_t vaddr, uint64_t offset, uint64_t size);

/*
 * .eh_frame: CFA rsp+8, RA *(cfa-8), absolute addresses; `aug` "zR" or "zRS". Then instructions,
 * one byte after another.
 */
void image_cie(struct image *im, const char *aug);
void image_fde(struct image *im, uint64_t start, uint64_t size, const void *insns, size_t len);
#define IMAGE_FDE(im, start, size, ...)                              \
	image_fde(im, start, size, (const uint8_t[]){ __VA_ARGS__ }, \
		  sizeof((const uint8_t[]){ __VA_ARGS__ }))

void image_sframe(struct image *im, const void *bytes, size_t len, uint64_t addr);
/* Writes the file: headers, sections, and zeros up to the end of the last segment. */
void image_finish(struct image *im);
void image_free(struct image *im);

/* Call frame instructions, x86-64. */
#define CFA_ADVANCE(n)	     (0x40 | (n)) /* n < 64 */
#define CFA_ADVANCE2(n)	     0x03, (n)&255, (n) >> 8
#define CFA_OFFSET(n)	     0x0e, (n)		   /* def_cfa_offset, n < 128 */
#define CFA_REG_OFFSET(r, n) 0x0c, (r), (n)	   /* def_cfa, n < 128 */
#define CFA_SAVED(r, n)	     (0x80 | (r)), (n) / 8 /* at CFA - n */
#define CFA_RA_UNDEFINED     0x07, 16

#endif
