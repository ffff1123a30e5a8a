/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the SFrame tests share: one encoder, one reader, what it said. Include it once, after
 * test.h.
 */
#ifndef SFBPF_TESTS_UNIT_SFRAME_CASE_H
#define SFBPF_TESTS_UNIT_SFRAME_CASE_H

#include "readers/sframe.h"
#include "sframe_encode.h"
#include "sframe_text.h"
#include "test.h"

#define SECTION 0x20000
#define CODE	0x1000

/* Code at [0x1000, 0x9000); the section lies in another segment. */
static const struct elf_phdr segments[] = {
	{ .type = PT_LOAD, .flags = PF_R, .vaddr = 0, .filesz = 0x1000, .memsz = 0x1000 },
	{ .type = PT_LOAD, .flags = PF_R | PF_X, .vaddr = CODE, .filesz = 0x8000, .memsz = 0x8000 },
	{ .type = PT_LOAD, .flags = PF_R, .vaddr = SECTION, .filesz = 0x10000, .memsz = 0x10000 },
};
static const struct sframe_bounds bounds = { segments, 3 };

static struct senc enc; /* big */
static struct diag diag;
static struct sframe sframe;
static struct sframe_text text;

static inline enum row_arch arch_of(uint8_t abi)
{
	return abi == SENC_AMD64   ? ROW_ARCH_X86_64
	       : abi == SENC_S390X ? ROW_ARCH_S390X
				   : ROW_ARCH_AARCH64;
}

static inline void start(uint8_t version, uint8_t abi, uint8_t flags)
{
	senc_free(&enc);
	senc_init(&enc, SECTION);
	senc_begin(&enc, version, abi, flags,
		   flags & SENC_PCREL ? SENC_FROM_FIELD : SENC_FROM_SECTION);
}

static inline uint8_t good_flags(uint8_t version)
{
	return version == 1 ? SENC_SORTED : SENC_SORTED | SENC_PCREL;
}

static inline void reset(void)
{
	sframe_text_free(&text);
	sframe_close(&sframe);
	memset(&diag, 0, sizeof(diag));
}

/* Reads what `enc` holds; all rows are then in `text`, with addresses from CODE. */
static inline const char *read_back(const struct sframe_bounds *b)
{
	reset();
	EXPECT_EQ(sframe_open(&sframe, bytes_of(enc.buf, enc.len, enc.be), enc.addr,
			      arch_of(enc.abi), b, &diag),
		  0);
	sframe_text_all(&text, &sframe, CODE, &diag);
	return text.buf;
}

static inline void done(void)
{
	reset();
	senc_free(&enc);
}

static inline void expect_clean(void)
{
	EXPECT_EQ(diag.malformed, 0);
	EXPECT_EQ(diag.repaired, 0);
	sframe_text_notes(&diag);
}

static inline void expect_note(enum diag_kind kind, const char *what)
{
	if (sframe_text_noted(&diag, kind, what))
		return;
	printf("  no such note: %s\n", what);
	sframe_text_notes(&diag);
	test_errors++;
}

static inline void plain_fn(uint64_t addr, uint32_t size)
{
	senc_fn(&enc, (struct senc_fn){ .addr = addr, .size = size });
	senc_row(&enc, 0, SENC_SP, 1, "8");
}

#endif
