/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of a program's entry and of PLTs (readers/trampoline.c). */
#include <elf.h>
#include <stddef.h>
#include <string.h>

#include "image_build.h"
#include "readers/row_stream.h"
#include "readers/trampoline.h"
#include "test.h"

#define CODE 0x1000

static struct row found; /* the first row */

/* How many rows a file of that type, with that code at its entry, gets. */
static size_t rows_of(uint16_t machine, uint16_t type, uint64_t entry, const void *code, size_t len)
{
	struct rowbuf rows = { 0 };
	struct unwind_file file;
	struct image im;
	Elf64_Ehdr *eh;
	size_t n;

	image_init(&im);
	im.machine = machine;
	image_code(&im, CODE, CODE, 0x1000);
	image_finish(&im);
	memcpy(im.file.buf + CODE + 0x10, code, len);
	eh = (Elf64_Ehdr *)im.file.buf;
	eh->e_type = type;
	eh->e_entry = entry;
	EXPECT_EQ(unwind_file_open_mem(&file, im.file.buf, im.file.len, NULL), 0);
	EXPECT_EQ(trampolines_find(&file.img, file.arch, &rows), 0);
	n = rows.n;
	if (n)
		found = rows.rows[0];
	rowbuf_free(&rows);
	unwind_file_close(&file);
	image_free(&im);
	return n;
}

static void expect_entry(uint16_t machine, const void *code, size_t len, uint64_t row_len)
{
	EXPECT_EQ(rows_of(machine, ET_EXEC, CODE + 0x10, code, len), row_len ? 1 : 0);
	if (!row_len)
		return;
	EXPECT_EQ(found.start, CODE + 0x10);
	EXPECT_EQ(found.end, CODE + 0x10 + row_len);
	EXPECT_EQ(found.ra.kind, RULE_UNDEF);
}

TEST(entry_x86)
{
	/* xor ebp, ebp; mov rdi, rsp; and rsp, -16; call; the next function */
	static const uint8_t direct[] = { 0x31, 0xed, 0x48, 0x89, 0xe7, 0x48, 0x83, 0xe4,
					  0xf0, 0xe8, 1,    0,	  0,	0,    0x55, 0xe8 };
	/* xor ebp, ebp; call through the GOT; hlt */
	static const uint8_t got[] = { 0x31, 0xed, 0xff, 0x15, 1, 0, 0, 0, 0xf4 };
	/* mov rdi, rsp; jmp rel8 */
	static const uint8_t jump[] = { 0x48, 0x89, 0xe7, 0xeb, 0x10, 0xe8 };
	static const uint8_t none[] = { 0x90, 0x90 };

	expect_entry(EM_X86_64, direct, sizeof(direct), 14);
	expect_entry(EM_X86_64, got, sizeof(got), 8);
	expect_entry(EM_X86_64, jump, sizeof(jump), 5);
	expect_entry(EM_X86_64, none, sizeof(none), 0);
	/* The entry of a library without an interpreter means nothing. */
	EXPECT_EQ(rows_of(EM_X86_64, ET_DYN, CODE + 0x10, direct, sizeof(direct)), 0);
	EXPECT_EQ(rows_of(EM_X86_64, ET_EXEC, 0, direct, sizeof(direct)), 0);
	EXPECT_EQ(rows_of(EM_X86_64, ET_EXEC, CODE + 0xffa, direct, sizeof(direct)), 0);
}

TEST(entry_arm64)
{
	/* mov x29, #0; mov x0, sp; b */
	static const uint32_t jump[] = { 0xd280001d, 0x910003e0, 0x14000010 };
	/* mov x29, #0; blr x1 */
	static const uint32_t call[] = { 0xd280001d, 0xd63f0020 };

	expect_entry(EM_AARCH64, jump, sizeof(jump), 12);
	expect_entry(EM_AARCH64, call, sizeof(call), 8);
}

/* CFA - rsp at each byte of a PLT; 0: there is no row */
static void expect_plt(const uint8_t *code, size_t len, const char *want)
{
	const struct elf_shdr plt = { .addr = CODE, .offset = CODE, .size = len };
	struct rowbuf rows = { 0 };
	struct unwind_file file;
	struct image im;
	char got[65] = "";

	image_init(&im);
	image_code(&im, CODE, CODE, 0x1000);
	image_finish(&im);
	memcpy(im.file.buf + CODE, code, len);
	EXPECT_EQ(unwind_file_open_mem(&file, im.file.buf, im.file.len, NULL), 0);
	EXPECT_EQ(trampolines_add_plt(&file.img, &plt, &rows), 0);
	memset(got, '0', len);
	for (size_t i = 0; i < rows.n; i++)
		for (uint64_t at = rows.rows[i].start; at < rows.rows[i].end; at++)
			got[at - CODE] = (char)('0' + rows.rows[i].cfa.off / 8);
	EXPECT_STR(got, want);
	rowbuf_free(&rows);
	unwind_file_close(&file);
	image_free(&im);
}

TEST(plts)
{
	uint8_t lazy[] = { 0xff, 0x35, 1, 2, 3, 0, 0xff, 0x25, 1, 2, 3, 0,    0x0f, 0x1f, 0x40, 0,
			   0xff, 0x25, 1, 2, 3, 0, 0x68, 0,    0, 0, 0, 0xe9, 1,    0,	  0,	0,
			   0xff, 0x25, 1, 2, 3, 0, 0x68, 1,    0, 0, 0, 0xe9, 1,    0,	  0,	0 };
	const uint8_t second[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 1, 2,
				   3,	 0,    0x66, 0x0f, 0x1f, 0x44, 0, 0 };
	const uint8_t ibt[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x68, 7, 0,    0,
				0,    0xe9, 1,	  0,	0,    0, 0x66, 0x90 };

	expect_plt(lazy, sizeof(lazy), "222222333333333311111111111222221111111111122222");
	expect_plt(second, sizeof(second), "1111111111111111");
	expect_plt(ibt, sizeof(ibt), "1111111112222222");
	lazy[38] = 0x90;
	expect_plt(lazy, sizeof(lazy), "000000000000000000000000000000000000000000000000");
	expect_plt(lazy, 16, "0000000000000000");
	expect_plt(second, 15, "000000000000000");
}
