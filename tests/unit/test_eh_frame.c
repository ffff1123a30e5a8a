/* SPDX-License-Identifier: BSD-2-Clause */
/* The .eh_frame reader: tables encoded by hand, tables from the assembler, and damage. */
#include <elf.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "readers/eh_frame.h"
#include "test.h"

#define FN  0x1000  /* the function that most tests describe: [FN, FN + 0x100) */
#define SEC 0x20000 /* address of the section under test */

struct enc { /* a section under construction */
	uint8_t b[8192];
	size_t n, rec; /* rec: where the open record's length field is */
	bool be, wide;
};

static void put(struct enc *e, uint64_t v, unsigned int size)
{
	for (unsigned int i = 0; i < size && e->n < sizeof(e->b); i++)
		e->b[e->n++] = (uint8_t)(v >> 8 * (e->be ? size - 1 - i : i));
}

static void put_at(struct enc *e, size_t at, uint64_t v, unsigned int size)
{
	size_t n = e->n;

	e->n = at;
	put(e, v, size);
	e->n = n;
}

static void put_uleb(struct enc *e, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		put(e, (v & 0x7f) | 0x80, 1);
	put(e, v, 1);
}

static void put_bytes(struct enc *e, const void *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		put(e, ((const uint8_t *)p)[i], 1);
}

static void open_rec(struct enc *e)
{
	e->rec = e->n;
	put(e, e->wide ? UINT32_MAX : 0, 4);
	if (e->wide)
		put(e, 0, 8);
}

static void close_rec(struct enc *e)
{
	put_at(e, e->rec + (e->wide ? 4 : 0), e->n - e->rec - (e->wide ? 12 : 4), e->wide ? 8 : 4);
}

/*
 * A CIE of version 1; aug_data with its length byte in front where the augmentation starts with
 * 'z'.
 */
static size_t put_cie(struct enc *e, const char *aug, const void *aug_data, size_t aug_len,
		      uint8_t ra, int8_t data_align, const void *insns, size_t ninsns)
{
	open_rec(e);
	put(e, 0, 4);
	put(e, 1, 1);
	put_bytes(e, aug, strlen(aug) + 1);
	if (strcmp(aug, "eh") == 0) /* its data comes first */
		put_bytes(e, aug_data, aug_len);
	put_uleb(e, 1);
	put(e, (uint8_t)data_align & 0x7f, 1);
	put(e, ra, 1);
	if (strcmp(aug, "eh") != 0)
		put_bytes(e, aug_data, aug_len);
	put_bytes(e, insns, ninsns);
	close_rec(e);
	return e->rec;
}

/* Absolute addresses, no augmentation data. */
static void put_fde(struct enc *e, size_t cie, uint64_t start, uint64_t len, const void *insns,
		    size_t ninsns)
{
	open_rec(e);
	put(e, e->n - cie, 4);
	put(e, start, 8);
	put(e, len, 8);
	put_bytes(e, insns, ninsns);
	close_rec(e);
}

/* def_cfa rsp+8; offset rip, cfa-8 */
static const uint8_t x86_init[] = { 0x0c, 7, 8, 0x80 | 16, 1 };

static size_t put_x86_cie(struct enc *e)
{
	return put_cie(e, "", "", 0, 16, -8, x86_init, sizeof(x86_init));
}

/* ---- rows as text ---- */

static char text[16384];
static struct diag diag;

static void say(const char *fmt, ...)
{
	size_t n = strlen(text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text + n, sizeof(text) - n, fmt, ap);
	va_end(ap);
}

static void say_rule(const struct row_regs *regs, const struct rule *r)
{
	const char *name = r->reg < regs->nnames ? regs->names[r->reg] : "bad";

	switch (r->kind) {
	case RULE_NONE:
		say(" ?");
		break;
	case RULE_SAME:
		say(" same");
		break;
	case RULE_UNDEF:
		say(" undef");
		break;
	case RULE_CFA:
		say(" cfa%+d", r->off);
		break;
	case RULE_CFA_MEM:
		say(" *(cfa%+d)", r->off);
		break;
	case RULE_REG:
		say(" %s%+d", name, r->off);
		break;
	case RULE_REG_MEM:
		say(" *(%s%+d)", name, r->off);
		break;
	case RULE_INDEX_MEM:
		say(" *(%s%+d+%s*8)", regs->names[regs->sp], r->off, name);
		break;
	}
}

/*
 * "start-end cfa ra fp bx": start and end relative to the function, bx only where it has a rule;
 * rows end with ';'
 */
static void say_row(enum row_arch arch, const struct fn *fn, const struct row *r)
{
	const struct row_regs *regs = row_arch_regs(arch);

	say("%x-%x", (unsigned int)(r->start - fn->start), (unsigned int)(r->end - fn->start));
	say_rule(regs, &r->cfa);
	if (r->cfa_off2)
		say("%+d", r->cfa_off2);
	say_rule(regs, &r->ra);
	say_rule(regs, &r->fp);
	if (r->bx.kind != RULE_SAME)
		say_rule(regs, &r->bx);
	if (r->flags & ROW_SIGNAL)
		say(" signal");
	if (r->flags & ROW_LOST)
		say(" lost");
	if (r->flags & ROW_PAC)
		say(" pac");
	if (r->plt_rep)
		say(" plt%u@%u", r->plt_rep, r->plt_at);
	say(";");
}

static void check_rows(const struct fn *fn, const struct rowbuf *rows)
{
	uint64_t at = fn->start;

	for (size_t i = 0; i < rows->n; i++) {
		const struct row *r = &rows->rows[i];
		bool group = r->plt_rep && r->plt_at && i > 0;

		EXPECT(r->source == ROW_EH_FRAME && r->start < r->end && r->end <= fn->end);
		EXPECT(group ? r->start == rows->rows[i - 1].start : r->start == at);
		at = r->end;
	}
}

static const char *rows_in(struct bytes sec, uint64_t addr, bool debug_frame, enum row_arch arch)
{
	struct rowbuf rows = { 0 };
	struct eh_frame e;

	text[0] = 0;
	memset(&diag, 0, sizeof(diag));
	EXPECT_EQ(eh_frame_open(&e, sec, addr, debug_frame, arch, NULL, &diag), 0);
	for (size_t i = 0; i < e.fns.n; i++) {
		const struct fn *fn = &e.fns.fns[i];

		EXPECT(fn->start < fn->end && (i == 0 || fn[-1].start <= fn->start));
		if (fn->start != FN || fn->end != FN + 0x100)
			say("[%" PRIx64 ",%" PRIx64 ")", fn->start, fn->end);
		rows.n = 0;
		EXPECT_EQ(eh_frame_rows(&e, fn, &rows, &diag), 0);
		check_rows(fn, &rows);
		for (size_t k = 0; k < rows.n; k++)
			say_row(arch, fn, &rows.rows[k]);
	}
	rowbuf_free(&rows);
	eh_frame_close(&e);
	return text;
}

static const char *rows_of(const struct enc *e, bool debug_frame, enum row_arch arch)
{
	/* A copy of exact size, so that a sanitizer sees a read past the end. */
	uint8_t *copy = malloc(e->n ? e->n : 1);
	const char *s;

	memcpy(copy, e->b, e->n);
	s = rows_in(bytes_of(copy, e->n, e->be), SEC, debug_frame, arch);
	free(copy);
	return s;
}

/* ---- instructions ---- */

struct insn_case {
	const char *insns;
	size_t len;
	const char *want;
	bool bad; /* a note is expected */
};

#define I(s) s, sizeof(s) - 1

static void run_cases(const struct insn_case *cases, size_t n, enum row_arch arch, uint8_t ra,
		      int8_t data_align, const void *init, size_t ninit)
{
	for (size_t i = 0; i < n; i++) {
		struct enc e = { .n = 0 };
		size_t cie = put_cie(&e, "", "", 0, ra, data_align, init, ninit);

		put_fde(&e, cie, FN, 0x100, cases[i].insns, cases[i].len);
		EXPECT_STR(rows_of(&e, false, arch), cases[i].want);
		EXPECT_EQ(diag.malformed, cases[i].bad);
	}
}

#define RUN_X86(cases)                                                                          \
	run_cases(cases, sizeof(cases) / sizeof((cases)[0]), ROW_ARCH_X86_64, 16, -8, x86_init, \
		  sizeof(x86_init))

TEST(eh_instructions_locations)
{
	static const struct insn_case cases[] = {
		{ I(""), "0-100 rsp+8 *(cfa-8) same;", false },
		{ I("\x41\x0e\x10\x86\x02\x43\x0d\x06"),
		  "0-1 rsp+8 *(cfa-8) same;1-4 rsp+16 *(cfa-8) *(cfa-16);"
		  "4-100 rbp+16 *(cfa-8) *(cfa-16);",
		  false },
		{ I("\x02\x80\x0e\x10"), "0-80 rsp+8 *(cfa-8) same;80-100 rsp+16 *(cfa-8) same;",
		  false },
		{ I("\x03\x81\x00\x0e\x10"),
		  "0-81 rsp+8 *(cfa-8) same;81-100 rsp+16 *(cfa-8) same;", false },
		{ I("\x04\x82\x00\x00\x00\x0e\x10"),
		  "0-82 rsp+8 *(cfa-8) same;82-100 rsp+16 *(cfa-8) same;", false },
		{ I("\x1d\x83\0\0\0\0\0\0\0\x0e\x10"),
		  "0-83 rsp+8 *(cfa-8) same;83-100 rsp+16 *(cfa-8) same;", false },
		{ I("\x01\x10\x10\0\0\0\0\0\0\x0e\x10"),
		  "0-10 rsp+8 *(cfa-8) same;10-100 rsp+16 *(cfa-8) same;", false },
		/* backwards: the rest is lost */
		{ I("\x41\x0e\x10\x01\x00\x10\0\0\0\0\0\0\x0e\x18"), "0-1 rsp+8 *(cfa-8) same;",
		  true },
		/* to the end and beyond it: the rest has no place */
		{ I("\x04\x00\x01\x00\x00\x0e\x10"), "0-100 rsp+8 *(cfa-8) same;", false },
		{ I("\x04\xff\xff\xff\xff\x3f"), "0-100 rsp+8 *(cfa-8) same;", false },
		{ I("\x1d\xff\xff\xff\xff\xff\xff\xff\xff\x0e\x10"), "0-100 rsp+8 *(cfa-8) same;",
		  false },
		/* an advance by nothing: the later rule holds */
		{ I("\x0e\x10\x40\x0e\x18\x02\x00"), "0-100 rsp+24 *(cfa-8) same;", false },
		/* equal neighbours are one row */
		{ I("\x41\x0e\x10\x41\x8c\x03\x41\x0e\x10\x41\x0e\x18"),
		  "0-1 rsp+8 *(cfa-8) same;1-4 rsp+16 *(cfa-8) same;"
		  "4-100 rsp+24 *(cfa-8) same;",
		  false },
		{ I("\x00\x00\x2e\x10\x00"), "0-100 rsp+8 *(cfa-8) same;", false },
	};

	RUN_X86(cases);
}

TEST(eh_instructions_columns)
{
	static const struct insn_case cases[] = {
		/* offset_extended */
		{ I("\x05\x06\x02"), "0-100 rsp+8 *(cfa-8) *(cfa-16);", false },
		{ I("\x83\x03"), "0-100 rsp+8 *(cfa-8) same *(cfa-24);", false }, /* rbx */
		/* Columns that no row has */
		{ I("\x8c\x03\x05\x80\x01\x04"), "0-100 rsp+8 *(cfa-8) same;", false },
		/* offset_extended_sf */
		{ I("\x11\x06\x7e"), "0-100 rsp+8 *(cfa-8) *(cfa+16);", false },
		/* GNU_negative_offset_extended */
		{ I("\x2f\x06\x02"), "0-100 rsp+8 *(cfa-8) *(cfa+16);", false },
		/* val_offset */
		{ I("\x14\x06\x02"), "0-100 rsp+8 *(cfa-8) cfa-16;", false },
		/* val_offset_sf */
		{ I("\x15\x06\x7e"), "0-100 rsp+8 *(cfa-8) cfa+16;", false },
		{ I("\x07\x06\x07\x03"), "0-100 rsp+8 *(cfa-8) undef undef;", false },
		/* outermost */
		{ I("\x07\x10"), "0-100 rsp+8 undef same;", false },
		/* register */
		{ I("\x09\x06\x0a\x09\x10\x02"), "0-100 rsp+8 rcx+0 r10+0;", false },
		/* The caller's sp is not the CFA: longjmp(), setcontext() */
		{ I("\x0c\x05\x00\x09\x07\x08\x09\x06\x09\x09\x10\x01"),
		  "0-100 r8+0 rdx+0 r9+0 signal;", false },
		{ I("\x0c\x01\x00\x11\x06\x71\x11\x07\x6c\x11\x10\x6b"),
		  "0-100 *(rdx+160) *(rdx+168) *(rdx+120) signal;", false },
		/* It is not told: the caller is lost, in all rows of that buffer */
		{ I("\x0c\x05\x00\x09\x10\x01\x41\x11\x10\x6b"),
		  "0-1 rdi+0 rdx+0 same lost;1-100 rdi+0 *(cfa+168) same lost;", false },
		/* In xmm0 */
		{ I("\x09\x06\x11"), "0-100 rsp+8 *(cfa-8) undef;", false },
		/* same_value of rip */
		{ I("\x08\x10\x08\x06"), "0-100 rsp+8 ? same;", false },
		{ I("\x86\x02\x41\xc6\x41\x86\x03\x41\x06\x06"),
		  "0-1 rsp+8 *(cfa-8) *(cfa-16);1-2 rsp+8 *(cfa-8) same;"
		  /* restore, restore_extended */
		  "2-3 rsp+8 *(cfa-8) *(cfa-24);3-100 rsp+8 *(cfa-8) same;",
		  false },
		{ I("\x90\x02\x41\xd0"), "0-1 rsp+8 *(cfa-16) same;1-100 rsp+8 *(cfa-8) same;",
		  false },
		/* what fits no s32 */
		{ I("\x05\x06\x80\x80\x80\x80\x01"), "0-100 rsp+8 *(cfa-8) *(cfa-2147483648);",
		  false },
		{ I("\x05\x06\x81\x80\x80\x80\x01"), "0-100 rsp+8 *(cfa-8) undef;", false },
		{ I("\x05\x06\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
		  "0-100 rsp+8 *(cfa-8) undef;", false },
	};

	RUN_X86(cases);
}

TEST(eh_instructions_cfa)
{
	static const struct insn_case cases[] = {
		{ I("\x0c\x0a\x00"), "0-100 r10+0 *(cfa-8) same;", false },
		{ I("\x0d\x06\x0e\x20"), "0-100 rbp+32 *(cfa-8) same;", false },
		/* def_cfa_sf */
		{ I("\x12\x06\x7e"), "0-100 rbp+16 *(cfa-8) same;", false },
		/* def_cfa_offset_sf */
		{ I("\x13\x7d"), "0-100 rsp+24 *(cfa-8) same;", false },
		{ I("\x13\x01"), "0-100 rsp-8 *(cfa-8) same;", false },
		{ I("\x0e\xff\xff\xff\xff\x07"), "0-100 rsp+2147483647 *(cfa-8) same;", false },
		{ I("\x0e\x80\x80\x80\x80\x08"), "0-100 ? *(cfa-8) same;", false },
		/* No such register */
		{ I("\x0d\x80\x80\x04"), "0-100 ? *(cfa-8) same;", false },
		/* on top of an expression: offset waits, register goes with the last offset */
		{ I("\x0e\x38\x0f\x04\x77\x98\x04\x06\x41\x0e\x40\x41\x0d\x07"),
		  "0-2 *(rsp+536) *(cfa-8) same;"
		  "2-100 rsp+64 *(cfa-8) same;",
		  false },
	};

	RUN_X86(cases);
}

TEST(eh_instructions_state)
{
	static const struct insn_case cases[] = {
		{ I("\x0e\x10\x86\x02\x41\x0a\x0e\x08\xc6\x41\x0b"),
		  "0-1 rsp+16 *(cfa-8) *(cfa-16);1-2 rsp+8 *(cfa-8) same;"
		  "2-100 rsp+16 *(cfa-8) *(cfa-16);",
		  false },
		/* nested */
		{ I("\x0e\x10\x0a\x41\x0e\x18\x0a\x41\x0e\x20\x41\x0b\x41\x0b"),
		  "0-1 rsp+16 *(cfa-8) same;"
		  "1-2 rsp+24 *(cfa-8) same;2-3 rsp+32 *(cfa-8) same;3-4 rsp+24 *(cfa-8) same;"
		  "4-100 rsp+16 *(cfa-8) same;",
		  false },
		/* damage: the rows so far stay */
		{ I("\x41\x0e\x10\x41\x0b\x41"),
		  "0-1 rsp+8 *(cfa-8) same;1-2 rsp+16 *(cfa-8) same;", true },
		/* unknown */
		{ I("\x41\x0e\x10\x3f\x41\x0e\x18"), "0-1 rsp+8 *(cfa-8) same;", true },
		/* Not on x86-64 */
		{ I("\x41\x2d"), "0-1 rsp+8 *(cfa-8) same;", true },
		/* Cut short */
		{ I("\x41\x0e\x10\x02"), "0-1 rsp+8 *(cfa-8) same;", true },
		{ I("\x41\x0e\x80"), "0-1 rsp+8 *(cfa-8) same;", true },
		{ I("\x41\x0f\x20\x77"), "0-1 rsp+8 *(cfa-8) same;", true },
		{ I("\x41\x0f\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x77"),
		  "0-1 rsp+8 *(cfa-8) same;", true },
		/* More than 64 bits */
		{ I("\x0e\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), "", true },
	};
	struct enc e = { .n = 0 };
	size_t cie = put_x86_cie(&e);
	char deep[65];

	RUN_X86(cases);
	memset(deep, 0x0a, sizeof(deep));
	put_fde(&e, cie, FN, 0x100, deep, 64);
	put_fde(&e, cie, FN + 0x100, 0x100, deep, 65);
	EXPECT_STR(rows_of(&e, false, ROW_ARCH_X86_64), "0-100 rsp+8 *(cfa-8) same;[1100,1200)");
	EXPECT_EQ(diag.malformed, 1);
}

TEST(eh_expressions)
{
	static const struct insn_case cases[] = {
		/* breg10 16 */
		{ I("\x0f\x02\x7a\x10"), "0-100 r10+16 *(cfa-8) same;", false },
		{ I("\x0f\x03\x92\x0a\x10"), "0-100 r10+16 *(cfa-8) same;", false },	/* bregx */
		{ I("\x0f\x03\x76\x58\x06"), "0-100 *(rbp-40) *(cfa-8) same;", false }, /* DRAP */
		/* OpenSSL */
		{ I("\x0f\x06\x77\x98\x01\x06\x23\x08"), "0-100 *(rsp+152)+8 *(cfa-8) same;",
		  false },
		/* lit8 plus */
		{ I("\x0f\x06\x77\x98\x01\x06\x38\x22"), "0-100 *(rsp+152)+8 *(cfa-8) same;",
		  false },
		{ I("\x0f\x06\x38\x77\x98\x01\x06\x22"), "0-100 *(rsp+152)+8 *(cfa-8) same;",
		  false },
		/* minus */
		{ I("\x0f\x07\x77\x98\x01\x06\x11\x78\x1c"), "0-100 *(rsp+152)+8 *(cfa-8) same;",
		  false },
		{ I("\x0f\x08\x77\x98\x01\x06\x08\xc8\x1c\x96"),
		  "0-100 *(rsp+152)-200 *(cfa-8) same;", false },
		{ I("\x0f\x06\x77\x00\x23\x10\x06\x96"), "0-100 *(rsp+16) *(cfa-8) same;", false },
		/* *(*(rsp+8)) */
		{ I("\x0f\x05\x77\x08\x06\x06\x96"), "0-100 ? *(cfa-8) same;", false },
		/* A word of an array; OpenSSL: lit8 mul. lit3 shl, operands in the other order */
		{ I("\x0f\x0a\x77\x08\x79\x00\x38\x1e\x22\x06\x23\x08"),
		  "0-100 *(rsp+8+r9*8)+8 *(cfa-8) same;", false },
		{ I("\x0f\x0a\x79\x00\x33\x24\x77\x08\x22\x06\x23\x10"),
		  "0-100 *(rsp+8+r9*8)+16 *(cfa-8) same;", false },
		/* No load; a factor of 4; an index with an offset; an array not on the stack */
		{ I("\x0f\x07\x77\x08\x79\x00\x38\x1e\x22"), "0-100 ? *(cfa-8) same;", false },
		{ I("\x0f\x08\x77\x08\x79\x00\x34\x1e\x22\x06"), "0-100 ? *(cfa-8) same;", false },
		{ I("\x0f\x08\x77\x08\x79\x01\x38\x1e\x22\x06"), "0-100 ? *(cfa-8) same;", false },
		{ I("\x0f\x08\x76\x08\x79\x00\x38\x1e\x22\x06"), "0-100 ? *(cfa-8) same;", false },
		/* underflow */
		{ I("\x0f\x01\x22"), "0-100 ? *(cfa-8) same;", false },
		{ I("\x0f\x00"), "0-100 ? *(cfa-8) same;", false },
		/* Operand cut short: costs the rule */
		{ I("\x0f\x02\x38\x77"), "0-100 ? *(cfa-8) same;", false },
		/* deep */
		{ I("\x0f\x09\x30\x30\x30\x30\x30\x30\x30\x30\x30"), "0-100 ? *(cfa-8) same;",
		  false },
		/* swap, drop */
		{ I("\x0f\x06\x77\x08\x78\x00\x16\x13"), "0-100 r8+0 *(cfa-8) same;", false },
		/* dup, over */
		{ I("\x0f\x07\x77\x08\x12\x14\x13\x13\x96"), "0-100 rsp+8 *(cfa-8) same;", false },
		/* const2u */
		{ I("\x0f\x06\x77\x08\x0a\x00\x01\x22"), "0-100 rsp+264 *(cfa-8) same;", false },
		/* const2s */
		{ I("\x0f\x06\x77\x08\x0b\x00\xff\x22"), "0-100 rsp-248 *(cfa-8) same;", false },
		/* const4s */
		{ I("\x0f\x08\x77\x08\x0d\xf0\xff\xff\xff\x22"), "0-100 rsp-8 *(cfa-8) same;",
		  false },
		/* const4u: 4 GB */
		{ I("\x0f\x08\x77\x08\x0c\xf0\xff\xff\xff\x22"), "0-100 ? *(cfa-8) same;", false },
		{ I("\x0f\x0c\x77\x08\x0e\xf0\xff\xff\xff\xff\xff\xff\xff\x22"),
		  "0-100 rsp-8 *(cfa-8) same;", false },
		/* constu */
		{ I("\x0f\x05\x77\x08\x10\x10\x22"), "0-100 rsp+24 *(cfa-8) same;", false },
		/* Twice rsp */
		{ I("\x0f\x06\x77\x08\x12\x22\x96\x96"), "0-100 ? *(cfa-8) same;", false },
		/* columns: the expression tells the address ... */
		{ I("\x10\x06\x02\x76\x00"), "0-100 rsp+8 *(cfa-8) *(rbp+0);", false },
		{ I("\x10\x03\x03\x77\x80\x01"), "0-100 rsp+8 *(cfa-8) same *(rsp+128);", false },
		{ I("\x10\x06\x02\x23\x10"), "0-100 rsp+8 *(cfa-8) *(cfa+16);", false },
		{ I("\x10\x06\x02\x40\x1c"), "0-100 rsp+8 *(cfa-8) *(cfa-16);", false },
		{ I("\x10\x10\x03\x77\x28\x06"), "0-100 rsp+8 ? same;", false },
		/* ... or the value */
		{ I("\x16\x06\x02\x76\x08"), "0-100 rsp+8 *(cfa-8) rbp+8;", false },
		{ I("\x16\x06\x03\x76\x08\x06"), "0-100 rsp+8 *(cfa-8) *(rbp+8);", false },
		{ I("\x16\x06\x02\x23\x10"), "0-100 rsp+8 *(cfa-8) cfa+16;", false },
		{ I("\x16\x06\x05\x76\x08\x06\x23\x08"), "0-100 rsp+8 *(cfa-8) undef;", false },
		/* A constant */
		{ I("\x16\x06\x01\x38"), "0-100 rsp+8 *(cfa-8) undef;", false },
		{ I("\x10\x0c\x02\x76\x00"), "0-100 rsp+8 *(cfa-8) same;", false },
	};

	RUN_X86(cases);
}

TEST(eh_plt)
{
#define PLT(k) "\x0f\x0b\x77\x08\x80\x00\x3f\x1a" k "\x2a\x33\x24\x22"
	static const struct insn_case cases[] = {
		{ I("\x0e\x10\x46\x0e\x18\x4a" PLT("\x3b")),
		  "0-6 rsp+16 *(cfa-8) same;6-10 rsp+24 *(cfa-8) same;"
		  "10-100 rsp+8 *(cfa-8) same plt16@0;10-100 rsp+16 *(cfa-8) same plt16@11;",
		  false },
		{ I(PLT("\x35")),
		  "0-100 rsp+8 *(cfa-8) same plt16@0;0-100 rsp+16 *(cfa-8) same plt16@5;", false },
		/* always, never */
		{ I(PLT("\x30")), "0-100 rsp+16 *(cfa-8) same;", false },
		{ I(PLT("\x40")), "0-100 rsp+8 *(cfa-8) same;", false },
		/* a start in the middle of a block: the rows count from there */
		{ I("\x44\x0e\x10" PLT("\x3b")),
		  "0-4 rsp+8 *(cfa-8) same;4-100 rsp+8 *(cfa-8) same plt16@0;"
		  "4-100 rsp+16 *(cfa-8) same plt16@7;4-100 rsp+8 *(cfa-8) same plt16@12;",
		  false },
		{ I("\x4d" PLT("\x3b")),
		  "0-d rsp+8 *(cfa-8) same;d-100 rsp+16 *(cfa-8) same plt16@0;"
		  "d-100 rsp+8 *(cfa-8) same plt16@3;d-100 rsp+16 *(cfa-8) same plt16@14;",
		  false },
		/* left again, and remembered */
		{ I(PLT("\x3b") "\x0a\x50\x0c\x07\x08\x50\x0b\x50"),
		  "0-10 rsp+8 *(cfa-8) same plt16@0;"
		  "0-10 rsp+16 *(cfa-8) same plt16@11;10-20 rsp+8 *(cfa-8) same;"
		  "20-30 rsp+8 *(cfa-8) same plt16@0;"
		  "20-30 rsp+16 *(cfa-8) same plt16@11;30-100 rsp+8 *(cfa-8) same plt16@0;"
		  "30-100 rsp+16 *(cfa-8) same plt16@11;",
		  false },
		/* operands the other way round, a product, another block size */
		{ I("\x0f\x0b\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x77\x08\x22"),
		  "0-100 rsp+8 *(cfa-8) same plt16@0;"
		  "0-100 rsp+16 *(cfa-8) same plt16@11;",
		  false },
		{ I("\x0f\x0b\x77\x08\x80\x00\x4f\x1a\x34\x2b\x38\x1e\x22"),
		  "0-100 rsp+8 *(cfa-8) same plt32@0;"
		  "0-100 rsp+16 *(cfa-8) same plt32@5;",
		  false },
		/* no PLT: not the pc, no mask */
		{ I("\x0f\x0b\x77\x08\x7f\x00\x3f\x1a\x3b\x2a\x33\x24\x22"),
		  "0-100 ? *(cfa-8) same;", false },
		{ I("\x0f\x0b\x77\x08\x80\x00\x3d\x1a\x3b\x2a\x33\x24\x22"),
		  "0-100 ? *(cfa-8) same;", false },
	};

	RUN_X86(cases);
}

TEST(eh_signal_frame)
{
	/*
	 * glibc's __restore_rt (sysdeps/unix/sysv/linux/x86_64/libc_sigaction.c): everything is in
	 * the ucontext
	 */
	static const char insns[] = "\x0f\x04\x77\xa0\x01\x06"
				    "\x10\x10\x03\x77\xa8\x01"
				    "\x10\x06\x03\x77\xf8\x00"
				    "\x10\x03\x03\x77\x80\x01"
				    "\x10\x00\x03\x77\x90\x01";
	struct enc e = { .n = 0 };
	size_t cie = put_cie(&e, "zRS", "\x01\x00", 2, 16, -8, "", 0);

	open_rec(&e);
	put(&e, e.n - cie, 4);
	put(&e, FN, 8);
	put(&e, 0x100, 8);
	put(&e, 0, 1);
	put_bytes(&e, insns, sizeof(insns) - 1);
	close_rec(&e);
	EXPECT_STR(rows_of(&e, false, ROW_ARCH_X86_64),
		   "0-100 *(rsp+160) *(rsp+168) *(rsp+120) *(rsp+128) signal;");
	EXPECT_EQ(diag.malformed, 0);
}

TEST(eh_aarch64)
{
	static const struct insn_case cases[] = {
		{ I(""), "0-100 sp+0 x30+0 same;", false },
		{ I("\x44\x0e\x20\x9d\x04\x9e\x03\x44\x0d\x1d\x44\xde\xdd\x0c\x1f\x00"),
		  "0-4 sp+0 x30+0 same;"
		  "4-8 sp+32 *(cfa-24) *(cfa-32);8-c x29+32 *(cfa-24) *(cfa-32);"
		  "c-100 sp+0 x30+0 same;",
		  false },
		{ I("\x44\x2d\x44\x2d"),
		  "0-4 sp+0 x30+0 same;4-8 sp+0 x30+0 same pac;8-100 sp+0 x30+0 same;", false },
		{ I("\x44\x2c\x0a\x44\x2c\x44\x0b"),
		  "0-4 sp+0 x30+0 same;4-8 sp+0 x30+0 same pac;8-c sp+0 x30+0 same;"
		  "c-100 sp+0 x30+0 same pac;",
		  false },
		{ I("\x2b\x01\x00\x44\x2b\x00\x00"),
		  "0-4 sp+0 x30+0 same pac;4-100 sp+0 x30+0 same;", false },
		{ I("\x9e\x03\x08\x1e"), "0-100 sp+0 x30+0 same;", false },
		/* rbx's number is x3 here */
		{ I("\x09\x1e\x09\x83\x01"), "0-100 sp+0 x9+0 same;", false },
		{ I("\x07\x1e"), "0-100 sp+0 undef same;", false },
		{ I("\x0f\x02\x8d\x10"), "0-100 x29+16 x30+0 same;", false },
		{ I("\x0c\x48\x00"), "0-100 ? x30+0 same;", false }, /* v8 */
	};

	run_cases(cases, sizeof(cases) / sizeof(cases[0]), ROW_ARCH_AARCH64, 30, -8, "\x0c\x1f\x00",
		  3);
}

TEST(eh_s390x)
{
	struct enc e = { .be = true };
	size_t cie = put_cie(&e, "", "", 0, 14, -8, "\x0c\x0f\xa0\x01", 4);

	put_fde(&e, cie, FN, 0x100, "\x46\x8e\x06\x8b\x09\x4a\x0e\xc0\x02\x44\x09\x0b\x10", 13);
	EXPECT_STR(rows_of(&e, false, ROW_ARCH_S390X),
		   "0-6 r15+160 r14+0 same;6-10 r15+160 *(cfa-48) *(cfa-72);"
		   "10-14 r15+320 *(cfa-48) *(cfa-72);14-100 r15+320 *(cfa-48) f0+0;");
	EXPECT_EQ(diag.malformed, 0);
	/* Advances of 2 and 4 bytes, in the file's byte order. */
	put_fde(&e, cie, FN + 0x100, 0x1000,
		"\x03\x02\x10\x0e\xc0\x02\x04\x00\x00\x03\x20\x0e\xa0\x01", 14);
	EXPECT(strstr(
		rows_of(&e, false, ROW_ARCH_S390X),
		"[1100,2100)0-210 r15+160 r14+0 same;210-530 r15+320 r14+0 same;530-1000 r15+160"));
}

/* ---- records ---- */

#define WANT "0-100 rsp+8 *(cfa-8) same;"

TEST(eh_pointer_encodings)
{
	static const struct {
		uint8_t enc, size;
		bool be;
	} encs[] = {
		{ 0x00, 8, 0 }, { 0x02, 2, 0 }, { 0x03, 4, 0 }, { 0x04, 8, 0 }, { 0x08, 8, 0 },
		{ 0x0a, 2, 0 }, { 0x0b, 4, 0 }, { 0x0c, 8, 0 }, { 0x10, 8, 0 }, { 0x1b, 4, 0 },
		{ 0x1c, 8, 0 }, { 0x1b, 4, 1 }, { 0x03, 4, 1 }, { 0x02, 2, 1 }, { 0x01, 3, 0 },
		{ 0x09, 3, 0 }, { 0x19, 3, 0 }, { 0x50, 8, 0 },
	};

	for (size_t i = 0; i < sizeof(encs) / sizeof(encs[0]); i++) {
		struct enc e = { .be = encs[i].be };
		uint8_t aug[2] = { 1, encs[i].enc };
		size_t cie = put_cie(&e, "zR", aug, 2, 16, -8, x86_init, sizeof(x86_init));
		uint64_t start = FN, len = 0x100;

		open_rec(&e);
		put(&e, e.n - cie, 4);
		if ((aug[1] & 0x70) == 0x50)
			while (e.n % 8)
				put(&e, 0xee, 1);
		if ((aug[1] & 0x70) == 0x10)
			start -= SEC + e.n;
		if ((aug[1] & 7) == 1) { /* both LEBs, padded to 3 bytes */
			put(&e, (start & 0x7f) | 0x80, 1);
			put(&e, (start >> 7 & 0x7f) | 0x80, 1);
			put(&e, start >> 14 & 0x7f, 1);
			put_uleb(&e, len);
		} else {
			put(&e, start, encs[i].size);
			put(&e, len, encs[i].size);
		}
		put(&e, 0, 1);
		close_rec(&e);
		EXPECT_STR(rows_of(&e, false, ROW_ARCH_X86_64), WANT);
		EXPECT_EQ(diag.malformed, 0);
	}
}

TEST(eh_pointer_encodings_without_meaning)
{
	/*
	 * no section is known to be relative to; relative to the function itself; through memory;
	 * none; reserved
	 */
	static const uint8_t encs[] = { 0x20, 0x30, 0x40, 0x80, 0x9b, 0xff, 0x60, 0x05, 0x0f };

	for (size_t i = 0; i < sizeof(encs); i++) {
		struct enc e = { .n = 0 };
		uint8_t aug[2] = { 1, encs[i] };
		size_t cie = put_cie(&e, "zR", aug, 2, 16, -8, x86_init, sizeof(x86_init));
		size_t sound = put_x86_cie(&e);

		put_fde(&e, cie, FN + 0x100, 0x100, "\0", 1);
		put_fde(&e, sound, FN, 0x100, "", 0);
		EXPECT_STR(rows_of(&e, false, ROW_ARCH_X86_64), WANT);
		EXPECT_EQ(diag.malformed, 1);
	}
}

TEST(eh_augmentations)
{
	static const struct {
		const char *aug, *cie_data;
		size_t ncie;
		const char *fde_data;
		size_t nfde;
		bool bad;
	} cases[] = {
		{ "z", "\0", 1, "\0", 1, false },
		{ "zPLR", "\x0b\x00\1\2\3\4\5\6\7\x08\x00\x00", 12, "\x02\1\1", 3, false },
		/* Personality through memory */
		{ "zPR", "\x06\x9b\x01\x02\x03\x04\x00", 7, "\0", 1, false },
		{ "zPR", "\x02\xff\x00", 3, "\0", 1, false }, /* none */
		{ "zRB", "\x01\x00", 2, "\0", 1, false },
		{ "zRG", "\x01\x00", 2, "\0", 1, false },
		/* unknown, but its size is known */
		{ "zR?L", "\x03\x00\x01\x02", 4, "\x01\x07", 2, false },
		{ "eh", "\1\2\3\4\5\6\7\x08", 8, "", 0, false },
		{ "R", "\x00", 1, "", 0, false },
		/* The LSDA follows without a length */
		{ "RL", "\x00\x03", 2, "\1\2\3\4", 4, false },
		/* unknown, nothing is known after it */
		{ "q", "", 0, "", 0, true },
		{ "R?", "\x00", 1, "", 0, true },
		/* Longer than the record */
		{ "zR", "\x7f\x00", 2, "\0", 1, true },
		/* Shorter than its contents */
		{ "zR", "\x00\x00", 2, "\0", 1, true },
		/* The personality's size is unknown */
		{ "zP", "\x02\x07\x00", 3, "\0", 1, true },
		/* The FDE's data is too long */
		{ "z", "\0", 1, "\x7f", 1, true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct enc e = { .n = 0 };
		size_t cie = put_cie(&e, cases[i].aug, cases[i].cie_data, cases[i].ncie, 16, -8,
				     x86_init, sizeof(x86_init));

		put_fde(&e, cie, FN, 0x100, cases[i].fde_data, cases[i].nfde);
		EXPECT_STR(rows_of(&e, false, ROW_ARCH_X86_64), cases[i].bad ? "" : WANT);
		EXPECT_EQ(diag.malformed > 0, cases[i].bad);
	}
}

struct cie_form {
	uint8_t version;
	bool wide, debug_frame, be;
	uint8_t id_size, addr_size, segment;
	bool bad;
};

static const char *rows_of_form(const struct cie_form *f)
{
	struct enc e = { .wide = f->wide, .be = f->be };
	size_t cie = 0;

	for (int pass = 0; pass < 2; pass++) {
		/* In .debug_frame the CIE comes last: its offset is known in the second pass. */
		if (pass == 1 && !f->debug_frame)
			break;
		if (pass == 1)
			e = (struct enc){ .wide = f->wide, .be = f->be };
		for (int k = 0; k < 2; k++) {
			bool is_cie = f->debug_frame ? k == 1 : k == 0;

			open_rec(&e);
			if (!is_cie) {
				put(&e, f->debug_frame ? cie : e.n - cie, f->id_size);
				put(&e, FN, f->addr_size);
				put(&e, 0x100, f->addr_size);
			} else {
				cie = e.rec;
				put(&e, f->debug_frame ? UINT64_MAX : 0, f->id_size);
				put(&e, f->version, 1);
				put(&e, 0, 1);
				if (f->version == 4) {
					put(&e, f->addr_size, 1);
					put(&e, f->segment, 1);
				}
				put_bytes(&e, "\x01\x78", 2);
				put_bytes(&e, f->version == 1 ? "\x10" : "\x90\x00",
					  f->version == 1 ? 1 : 2);
				put_bytes(&e, x86_init, sizeof(x86_init));
			}
			close_rec(&e);
		}
	}
	return rows_of(&e, f->debug_frame, ROW_ARCH_X86_64);
}

TEST(eh_cie_forms)
{
	static const struct cie_form forms[] = {
		/*
		 * version, 64-bit DWARF, .debug_frame, big-endian, id bytes, address bytes, segment
		 * bytes, bad
		 */
		{ 1, 0, 0, 0, 4, 8, 0, 0 }, { 3, 0, 0, 0, 4, 8, 0, 0 },
		{ 4, 0, 0, 0, 4, 8, 0, 0 }, { 1, 0, 0, 1, 4, 8, 0, 0 },
		{ 1, 1, 0, 0, 4, 8, 0, 0 }, { 1, 1, 0, 1, 4, 8, 0, 0 }, /* as the LSB has it */
		{ 1, 1, 0, 0, 8, 8, 0, 0 }, { 1, 1, 0, 1, 8, 8, 0, 0 }, /* as some have it */
		{ 1, 0, 1, 0, 4, 8, 0, 0 }, { 3, 0, 1, 0, 4, 8, 0, 0 },
		{ 4, 0, 1, 1, 4, 8, 0, 0 }, { 3, 1, 1, 0, 8, 8, 0, 0 },
		{ 4, 1, 1, 1, 8, 8, 0, 0 }, { 4, 0, 1, 0, 4, 4, 0, 0 },
		{ 2, 0, 0, 0, 4, 8, 0, 1 }, { 5, 0, 1, 0, 4, 8, 0, 1 },
		{ 4, 0, 1, 0, 4, 2, 0, 1 }, { 4, 0, 1, 0, 4, 8, 4, 1 },
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		EXPECT_STR(rows_of_form(&forms[i]), forms[i].bad ? "" : WANT);
		EXPECT_EQ(diag.malformed > 0, forms[i].bad);
	}
}

TEST(eh_cie_without_row)
{
	/* Rules that were not given, and initial instructions that cannot be */
	static const struct {
		const char *init;
		size_t len;
		uint8_t ra;
		const char *want;
	} cases[] = {
		{ I(""), 16, "0-100 ? ? same;" },
		{ I("\x0c\x07\x08"), 16, "0-100 rsp+8 ? same;" },
		{ I("\x0c\x07\x08"), 2, "0-100 rsp+8 rcx+0 same;" }, /* another return column */
		{ I("\x0c\x07\x08\x86\x01"), 6, "0-100 rsp+8 *(cfa-8) undef;" },
		{ I("\x0c\x07\x08\x41"), 16, "" }, /* advance */
		{ I("\x0c\x07\x08\xc6"), 16, "" }, /* restore */
		{ I("\x0c\x07\x08\x3e"), 16, "" }, /* unknown */
		{ I("\x0c\x07"), 16, "" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct enc e = { .n = 0 };
		size_t cie = put_cie(&e, "", "", 0, cases[i].ra, -8, cases[i].init, cases[i].len);

		put_fde(&e, cie, FN, 0x100, "", 0);
		EXPECT_STR(rows_of(&e, false, ROW_ARCH_X86_64), cases[i].want);
		EXPECT_EQ(diag.malformed > 0, !*cases[i].want);
	}
}

TEST(eh_chain)
{
	struct enc e = { .n = 0 };
	size_t cie = put_x86_cie(&e), at;

	put_fde(&e, cie, FN + 0x300, 0x10, "", 0);
	put_fde(&e, cie, FN + 0x200, 0, "", 0);	       /* no code */
	put_fde(&e, cie, UINT64_MAX - 4, 0x10, "", 0); /* around the address space */
	at = e.n;
	put_fde(&e, cie, FN, 0x100, "", 0);
	EXPECT_STR(rows_of(&e, false, ROW_ARCH_X86_64),
		   WANT "[1300,1310)0-10 rsp+8 *(cfa-8) same;");
	EXPECT_EQ(diag.malformed, 1);
	/* A terminator in the middle, and at the end with zeros after it. */
	put(&e, 0, 8);
	put_fde(&e, cie, FN + 0x400, 0x10, "", 0);
	put(&e, 0, 8);
	put(&e, 0, 4);
	EXPECT_STR(rows_of(&e, false, ROW_ARCH_X86_64),
		   WANT "[1300,1310)0-10 rsp+8 *(cfa-8) same;"
			"[1400,1410)0-10 rsp+8 *(cfa-8) same;");
	EXPECT_EQ(diag.malformed, 1);
	/* What follows it is no record: silence. */
	put_fde(&e, cie + 4, FN, 0x100, "", 0);
	put(&e, 0x12345678, 4);
	rows_of(&e, false, ROW_ARCH_X86_64);
	EXPECT_EQ(diag.malformed, 1);
	/* A length out of the section: what came before stays. */
	e.n = at;
	put_fde(&e, cie, FN, 0x100, "", 0);
	put_at(&e, at, 0x1000, 4);
	EXPECT_STR(rows_of(&e, false, ROW_ARCH_X86_64), "[1300,1310)0-10 rsp+8 *(cfa-8) same;");
	EXPECT_EQ(diag.malformed, 2);
	put_at(&e, at, 0xfffffff0, 4); /* reserved */
	rows_of(&e, false, ROW_ARCH_X86_64);
	EXPECT_EQ(diag.malformed, 2);
}

TEST(eh_dropped_function)
{
	/*
	 * A null pointer is no address relative to itself; the linker writes it where it dropped
	 * the code.
	 */
	struct enc e = { .n = 0 };
	size_t cie = put_cie(&e, "zR", "\x01\x1b", 2, 16, -8, x86_init, sizeof(x86_init));

	open_rec(&e);
	put(&e, e.n - cie, 4);
	put(&e, 0, 4);
	put(&e, 0x100, 4);
	put(&e, 0, 1);
	close_rec(&e);
	EXPECT_STR(rows_of(&e, false, ROW_ARCH_X86_64), "");
	EXPECT_EQ(diag.malformed, 0);
}

TEST(eh_functions_come_sorted)
{
	struct enc e = { .n = 0 };
	size_t cie = put_x86_cie(&e);

	/* 7 and 20 have no common divisor; the starts differ in three digits */
	for (unsigned int i = 0; i < 20; i++)
		put_fde(&e, cie, 0x400000 + (i * 7 % 20) * 0x10123, 0x10, "", 0);
	put_fde(&e, cie, 0x400000, 0x20, "", 0); /* of one start as the section has them */
	rows_of(&e, false, ROW_ARCH_X86_64);	 /* checks the order */
	EXPECT(strncmp(text, "[400000,400010)0-10 rsp+8 *(cfa-8) same;[400000,400020)", 55) == 0);
	EXPECT(strstr(text, "[410123,410133)") && strstr(text, "[531599,5315a9)"));
	put_fde(&e, cie, UINT64_MAX - 0x10, 0x10, "", 0); /* more than 4 GB apart */
	rows_of(&e, false, ROW_ARCH_X86_64);
	EXPECT(strncmp(text, "[400000,400010)0-10 rsp+8 *(cfa-8) same;[400000,400020)", 55) == 0);
	EXPECT(strstr(text, "[ffffffffffffffef,ffffffffffffffff)0-10 rsp+8"));
}

TEST(eh_bad_cie_pointers)
{
	struct enc e = { .n = 0 };
	size_t cie = put_x86_cie(&e), at = e.n;

	put_fde(&e, cie, FN, 0x100, "", 0);
	put_fde(&e, at, FN, 0x100, "", 0);	     /* an FDE */
	put_fde(&e, cie + 4, FN, 0x100, "", 0);	     /* into a CIE */
	put_fde(&e, e.n, FN, 0x100, "", 0);	     /* itself */
	put_fde(&e, (size_t)-100, FN, 0x100, "", 0); /* out of the section */
	put(&e, 2, 4);				     /* too short for a pointer */
	put(&e, 0, 2);
	put_fde(&e, cie, FN + 0x100, 0x10, "", 0);
	EXPECT_STR(rows_of(&e, false, ROW_ARCH_X86_64),
		   WANT "[1100,1110)0-10 rsp+8 *(cfa-8) same;");
	EXPECT_EQ(diag.malformed, 5);
}

TEST(eh_clipped_function)
{
	struct enc e = { .n = 0 };
	size_t cie = put_x86_cie(&e);
	struct rowbuf rows = { 0 };
	struct eh_frame f;
	struct fn fn;

	put_fde(&e, cie, FN, 0x100, "\x44\x0e\x10\x44\x0e\x18", 6);
	EXPECT_EQ(eh_frame_open(&f, bytes_of(e.b, e.n, false), SEC, false, ROW_ARCH_X86_64, NULL,
				NULL),
		  0);
	fn = f.fns.fns[0];
	fn.end = FN + 6;
	EXPECT_EQ(eh_frame_rows(&f, &fn, &rows, NULL), 0);
	fn.end = FN + 4;
	EXPECT_EQ(eh_frame_rows(&f, &fn, &rows, NULL), 0);
	EXPECT_EQ(rows.n, 3); /* two, then one: they were appended */
	EXPECT_EQ(rows.rows[1].end, FN + 6);
	EXPECT_EQ(rows.rows[2].end, FN + 4);
	rowbuf_free(&rows);
	eh_frame_close(&f);
	eh_frame_close(&f);
}
