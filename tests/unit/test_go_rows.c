/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of a Go program: heights, outermost frames, functions that change stacks, damage. */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "readers/row_stream.h"
#include "rows/row_text.h"
#include "go_file.h"
#include "test.h"

#define TEXT	  0x401000
#define TABLE	  0x402000
#define FILE_SIZE 0x3000

/* runtime.systemstack of Go 1.27: its code up to the end. */
static const uint8_t systemstack[] = {
	0x55, 0x48, 0x89, 0xe5, 0x48, 0x8b, 0x7c, 0x24, 0x10, 0x64, 0x48, 0x8b, 0x04, 0x25,
	0xf8, 0xff, 0xff, 0xff, 0x48, 0x8b, 0x58, 0x30, 0x48, 0x3b, 0x43, 0x48, 0x74, 0x65,
	0x48, 0x8b, 0x13, 0x48, 0x39, 0xd0, 0x74, 0x5d, 0x48, 0x3b, 0x83, 0xb8, 0x00, 0x00,
	0x00, 0x75, 0x5d, 0xe8, 0xae, 0xf8, 0xff, 0xff, 0x64, 0x48, 0x89, 0x14, 0x25, 0xf8,
	0xff, 0xff, 0xff, 0x49, 0x89, 0xd6, 0x48, 0x8b, 0x62, 0x38, 0x48, 0x89, 0xfa, 0x48,
	0x8b, 0x3f, 0xff, 0xd7, 0x64, 0x48, 0x8b, 0x04, 0x25, 0xf8, 0xff, 0xff, 0xff, 0x48,
	0x8b, 0x58, 0x30, 0x48, 0x8b, 0x83, 0xb8, 0x00, 0x00, 0x00, 0x64, 0x48, 0x89, 0x04,
	0x25, 0xf8, 0xff, 0xff, 0xff, 0x48, 0x8b, 0x60, 0x38, 0x5d, 0xc3,
};

static uint8_t *put(uint8_t *p, const void *from, size_t n)
{
	memcpy(p, from, n);
	return p + n;
}

static uint8_t *put32(uint8_t *p, uint32_t v)
{
	return put(p, &v, 4);
}

static uint8_t *put64(uint8_t *p, uint64_t v)
{
	return put(p, &v, 8);
}

#define NFUNCS 5
static const struct {
	uint32_t start, name, pcsp;
	uint8_t flags;
} funcs[NFUNCS] = {
	{ 0, 1, 1, 0 },				/* main.f */
	{ 0x40, 8, 10, GO_TOP_FRAME | GO_ASM }, /* runtime.goexit */
	{ 0x60, 23, 10, GO_SP_WRITE | GO_ASM }, /* asm.f: writes sp after 5 bytes */
	{ 0x80, 29, 13, GO_SP_WRITE | GO_ASM }, /* runtime.systemstack */
	{ 0x100, 49, 10, GO_ASM },		/* runtime.sigreturn */
};
#define END_OF_TEXT 0x120

/* Heights: +1 0 for 4 bytes, +24 for 16, back to 0 for 1 byte; all 0; 0 for 1, 8 for the rest. */
static const uint8_t heights[] = { 0, 2, 4, 48, 16, 47, 1, 0, 0, 0, 2, 64, 0, 2, 1, 16, 127, 0 };
static const char names[] =
	"\0main.f\0runtime.goexit\0asm.f\0runtime.systemstack\0runtime.sigreturn";

static size_t make_table(uint8_t *t)
{
	const size_t name_at = 72, pcs = name_at + 80, functions = pcs + 32;
	uint8_t *p = put32(t, 0xfffffff1), *record = t + functions + 8 * NFUNCS + 8;

	p = put32(p, 0x08010000);
	p = put64(put64(put64(p, NFUNCS), 0), TEXT);
	p = put64(put64(put64(p, name_at), 0), 0);
	put64(put64(p, pcs), functions);
	memcpy(t + name_at, names, sizeof(names));
	memcpy(t + pcs, heights, sizeof(heights));
	p = t + functions;
	for (int i = 0; i < NFUNCS; i++) {
		p = put32(put32(p, funcs[i].start), (uint32_t)(record - t - functions));
		put32(put32(record, funcs[i].start), funcs[i].name);
		put32(record + 16, funcs[i].pcsp);
		record[41] = funcs[i].flags;
		record += 44;
	}
	put32(p, END_OF_TEXT);
	return (size_t)(record - t);
}

static uint8_t *make_file(size_t *ret_table)
{
	static const char shstrtab[] = "\0.text\0.gopclntab\0.shstrtab";
	static const uint8_t sigreturn[] = { 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05 };
	static const uint8_t writes_sp[] = { 0x90, 0x90, 0x90, 0x90, 0x90, 0x48, 0x89, 0xc4 };
	uint8_t *file = calloc(1, FILE_SIZE);

	go_file_init(file, 4, TEXT, END_OF_TEXT, shstrtab, sizeof(shstrtab));
	memcpy(file + 0x1060, writes_sp, sizeof(writes_sp));
	memcpy(file + 0x1080, systemstack, sizeof(systemstack));
	memcpy(file + 0x1100, sigreturn, sizeof(sigreturn));
	*ret_table = make_table(file + 0x2000);
	go_file_section(file, 1, 1, TEXT, 0x1000, END_OF_TEXT);
	go_file_section(file, 2, 7, TABLE, 0x2000, *ret_table);
	return file;
}

/* All rows of the file as text; fewer than 4 KiB. */
static void rows_of(const uint8_t *mem, char *ret)
{
	struct unwind_file file;
	struct row_stream stream;
	struct row row;
	char *p = ret;

	*p = 0;
	if (unwind_file_open_mem(&file, mem, FILE_SIZE, NULL))
		return;
	row_stream_open(&stream, &file, ROWS_MERGED, NULL);
	while (row_stream_next(&stream, &row) > 0 && p < ret + 3800) {
		p += sprintf(p, "%x-%x ", (unsigned int)(row.start - TEXT),
			     (unsigned int)(row.end - TEXT));
		p += row_text_rules(p, file.arch, &row);
		p += sprintf(p, " op=%d\n", row.go ? file.go.rules[row.go - 1].op : 0);
	}
	row_stream_close(&stream);
	unwind_file_close(&file);
}

TEST(go_rows)
{
	static char text[4096];
	size_t table;
	uint8_t *file = make_file(&table);

	rows_of(file, text);
	EXPECT_STR(text, "0-4 cfa=rsp+8 ra=*(cfa-8) fp=same op=0\n"
			 "4-14 cfa=rsp+32 ra=*(cfa-8) fp=*(cfa-16) op=0\n"
			 "14-15 cfa=rsp+8 ra=*(cfa-8) fp=same op=0\n"
			 "40-60 cfa=? ra=undef fp=? op=0\n"
			 "60-65 cfa=rsp+8 ra=*(cfa-8) fp=same op=0\n"
			 "80-81 cfa=rsp+8 ra=*(cfa-8) fp=same op=0\n"
			 "81-b2 cfa=rsp+16 ra=*(cfa-8) fp=*(cfa-16) op=0\n"
			 "b2-eb cfa=? ra=? fp=? op=1\n"
			 "eb-100 cfa=rsp+16 ra=*(cfa-8) fp=*(cfa-16) op=0\n"
			 "100-120 cfa=rsp+8 ra=*(cfa-8) fp=same op=0\n");
	free(file);
}

TEST(go_rows_switch_rule)
{
	struct unwind_file file;
	size_t table;
	uint8_t *mem = make_file(&table);

	EXPECT(!unwind_file_open_mem(&file, mem, FILE_SIZE, NULL));
	EXPECT(file.go.nrules == 1);
	EXPECT(!file.go.rules[0].tls_slot);
	EXPECT(file.go.rules[0].tls == -8 && file.go.rules[0].m_off == 0xb8);
	EXPECT(file.go.rules[0].g_m == 0x30 && file.go.rules[0].g_sched == 0x38);
	EXPECT(file.go.rules[0].cfa_off == 16 && file.go.rules[0].flags == SF_RULE_GO);
	unwind_file_close(&file);
	free(mem);
}

/* A shared library: nopl (%rax); mov slot(%rip), %rcx; mov %fs:(%rcx), %rax */
TEST(go_rows_switch_rule_of_library)
{
	static const uint8_t of_got[] = { 0x0f, 0x1f, 0x00, 0x48, 0x8b, 0x0d, 0x00,
					  0x20, 0x00, 0x00, 0x64, 0x48, 0x8b, 0x01 };
	struct unwind_file file;
	size_t table;
	uint8_t *mem = make_file(&table);

	memcpy(mem + 0x1084, of_got, sizeof(of_got));
	mem[0x10ca] = 0x65; /* no other read of the variable */
	EXPECT(!unwind_file_open_mem(&file, mem, FILE_SIZE, NULL));
	EXPECT(file.go.nrules == 1);
	EXPECT(file.go.rules[0].tls_slot && file.go.rules[0].tls == 0x108e + 0x2000);
	EXPECT(file.go.rules[0].m_off == 0xb8 && file.go.rules[0].g_m == 0x30);
	unwind_file_close(&file);
	free(mem);
}

/* A program with a dynamic linker is not searched for trampolines, but the table has this one. */
TEST(go_rows_restorer)
{
	struct unwind_file file;
	size_t table;
	uint8_t *mem = make_file(&table);

	for (int searched = 0; searched < 2; searched++) {
		((Elf64_Ehdr *)(void *)mem)->e_type = searched ? ET_EXEC : ET_DYN;
		EXPECT(!unwind_file_open_mem(&file, mem, FILE_SIZE, NULL));
		EXPECT_EQ(file.known.n, 1);
		EXPECT(file.known.n && file.known.rows[0].start == TEXT + 0xff);
		unwind_file_close(&file);
	}
	mem[0x1100] ^= 1;
	EXPECT(!unwind_file_open_mem(&file, mem, FILE_SIZE, NULL));
	EXPECT_EQ(file.known.n, 0);
	unwind_file_close(&file);
	free(mem);
}

/* Any byte of the table and of the code can have any value; what counts is that it ends. */
TEST(go_rows_damage)
{
	static const uint8_t values[] = { 0, 1, 0x7f, 0x80, 0xff };
	static char text[4096];
	size_t table;
	uint8_t *file = make_file(&table);

	for (size_t i = 0; i < table + END_OF_TEXT; i++) {
		uint8_t *at = i < table ? file + 0x2000 + i : file + 0x1000 + i - table, was = *at;

		for (size_t k = 0; k < sizeof(values); k++) {
			*at = values[k];
			rows_of(file, text);
		}
		*at = was;
	}
	for (size_t size = 0; size < table; size++) {
		go_file_section(file, 2, 7, TABLE, 0x2000, size);
		rows_of(file, text);
	}
	EXPECT(text[0] != 0);
	free(file);
}
