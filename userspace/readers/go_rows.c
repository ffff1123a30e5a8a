/* SPDX-License-Identifier: BSD-2-Clause */
#include "readers/go_rows.h"

#include <errno.h>
#include <string.h>

#include "readers/go_switch.h"
#include "rows/fntab.h"

#define SP_WRITER_MAX (64u << 10) /* bytes of a function in assembly; SHA-512's has 10,000 */

/* A function in evaluation. */
struct evaluation {
	const struct go_rows *g;
	struct rowbuf *out;
	uint64_t start, end;
	uint64_t known; /* heights are right up to here */
	size_t special; /* the next one */
	struct row row; /* all but start, end, CFA, RA and FP */
	bool saves_fp;
};

static const struct row *special_at(const struct evaluation *e)
{
	const struct rowbuf *special = &e->g->special;

	return e->special < special->n && special->rows[e->special].start < e->end
		       ? &special->rows[e->special]
		       : NULL;
}

static int put_special(struct evaluation *e, const struct row *special)
{
	struct row row = *special;

	e->special++;
	row.start = row.start > e->start ? row.start : e->start;
	row.end = row.end < e->end ? row.end : e->end;
	return row.start < row.end ? rowbuf_push(e->out, &row) : 0;
}

/* Puts a row but for the parts that special rows describe, which come first. */
static int put(struct evaluation *e, struct row row)
{
	const struct row *special;
	int err = 0;

	row.end = row.end < e->known ? row.end : e->known;
	while (!err && (special = special_at(e)) && special->start < row.end) {
		struct row head = row;

		head.end = special->start;
		if (head.start < head.end)
			err = rowbuf_push(e->out, &head);
		if (special->end > row.start)
			row.start = special->end;
		if (!err)
			err = put_special(e, special);
	}
	return err || row.start >= row.end ? err : rowbuf_push(e->out, &row);
}

/* x86-64: RA is above the frame, and FP below it if there is a frame. */
static void rules_x86(struct row *row, int32_t height, bool saves_fp)
{
	row->cfa.off = height + 8;
	row->ra = (struct rule){ .kind = RULE_CFA_MEM, .off = -8 };
	if (height < 8)
		row->fp = (struct rule){ .kind = RULE_SAME };
	else if (saves_fp)
		row->fp = (struct rule){ .kind = RULE_CFA_MEM, .off = -16 };
	else
		row->fp = (struct rule){ .kind = RULE_NONE };
}

/*
 * AArch64: RA is at sp, and FP below it. FP is left out, as no rule of Go's code needs it, and the
 * two together do not fit a packed rule.
 */
static void rules_arm64(struct row *row, int32_t height)
{
	row->cfa.off = height;
	row->fp = (struct rule){ .kind = height ? RULE_NONE : RULE_SAME };
	row->ra = height ? (struct rule){ .kind = RULE_CFA_MEM, .off = -height }
			 : (struct rule){ .kind = RULE_REG,
					  .reg = row_arch_regs(ROW_ARCH_AARCH64)->ra };
}

/*
 * x86-64: vfork()'s child and parent share the stack, so this function pops its RA into r12 before
 * the system call.
 */
static bool rules_vfork(const struct go_rows *g, const struct go_func *f, int64_t height,
			struct row *row)
{
	const char *name = height == -8 && g->arch == ROW_ARCH_X86_64 ? go_table_name(&g->table, f)
								      : NULL;

	if (!name || strcmp(name, "syscall.rawVforkSyscall") != 0)
		return false;
	row->cfa.off = 0;
	row->ra = (struct rule){ .kind = RULE_REG, .reg = X86_R12 };
	row->fp = (struct rule){ .kind = RULE_SAME };
	return true;
}

static int put_heights(struct evaluation *e, const struct go_func *f)
{
	const struct row_regs *regs = row_arch_regs(e->g->arch);
	struct go_values h = go_heights_of(&e->g->table, f);
	struct row row = e->row;
	int err = 0;

	row.cfa = (struct rule){ .kind = RULE_REG, .reg = regs->sp };
	while (!err && go_values_next(&e->g->table, &h, &row.start) && row.start < e->known) {
		row.end = h.pc;
		if (rules_vfork(e->g, f, h.value, &row)) {
			err = put(e, row);
			continue;
		}
		if (h.value < 0 || h.value > INT32_MAX - 16)
			continue;
		if (e->g->arch == ROW_ARCH_X86_64)
			rules_x86(&row, h.value, e->saves_fp);
		else
			rules_arm64(&row, h.value);
		err = put(e, row);
	}
	return err;
}

/* Whether a function in assembly saves FP where compiled functions do. */
static bool asm_saves_fp(const struct bytes *code, uint32_t first)
{
	static const uint8_t push[] = { 0x55, 0x48, 0x89, 0xe5 }; /* push %rbp; mov %rsp, %rbp */
	/* mov %rbp, n(%rsp) after sub $n, %rsp, with n of 8 or 32 bits */
	static const uint8_t mov8[] = { 0x48, 0x89, 0x6c, 0x24 },
			     mov32[] = { 0x48, 0x89, 0xac, 0x24 };

	return bytes_are(code, 0, push, sizeof(push)) || bytes_are(code, first, mov8, 4) ||
	       bytes_are(code, first, mov32, 4);
}

/*
 * Moves to the next bytes that may belong to a write of sp other than push, pop, call, add and sub.
 * Looks at every byte, so it may stop too early. At the end if there are none.
 */
static void to_sp_write(struct bytes *code)
{
	for (; bytes_left(code) >= 3; bytes_skip(code, 1)) {
		const uint8_t *at = bytes_here(code);
		uint8_t op = at[1], arg = at[2], middle = arg >> 3 & 7;
		bool load = (op == 0x8b || op == 0x8d) && middle == 4;
		bool move = op == 0x89 && (arg & 0xc7) == 0xc4;
		/* Operations with a constant; add and sub are 0 and 5 */
		bool change = (op == 0x83 || op == 0x81) && (arg & 0xc7) == 0xc4 && middle != 0 &&
			      middle != 5;

		if (((at[0] & 0xf8) == 0x48 && (load || move || change)) || at[0] == 0xc9)
			return;
	}
	bytes_seek(code, code->len);
}

/* to_sp_write for AArch64, where only one form is not followed: mov sp, reg. */
static void a64_to_sp_write(struct bytes *code)
{
	while (bytes_left(code) >= 4) {
		if ((bytes_u32(code) & 0xfffffc1f) == 0x9100001f) {
			bytes_seek(code, code->pos - 4);
			return;
		}
	}
	bytes_seek(code, code->len);
}

#define WRITE_MAX 8 /* bytes of an instruction that writes sp */

/*
 * Where heights stop being right, in a function that writes sp: at the first write that special
 * rows do not describe. They begin after a write, and end after the one that restores sp.
 */
static uint64_t heights_end(const struct evaluation *e, struct bytes code)
{
	const struct rowbuf *special = &e->g->special;
	size_t i = e->special;

	for (;;) {
		uint64_t at;

		if (e->g->arch == ROW_ARCH_X86_64)
			to_sp_write(&code);
		else
			a64_to_sp_write(&code);
		at = e->start + code.pos;
		while (i < special->n && special->rows[i].end <= at)
			i++;
		if (at >= e->end || i == special->n || special->rows[i].start > at + WRITE_MAX)
			return at;
		bytes_seek(&code, special->rows[i].end < e->end ? special->rows[i].end - e->start
								: code.len);
	}
}

/* Reads what heights do not say from the code of a function in assembly. */
static void look_at_code(struct evaluation *e, const struct elf_image *img, const struct go_func *f)
{
	struct go_values h = go_heights_of(&e->g->table, f);
	uint64_t size = e->end - e->start, offset, start;
	struct elf_blob blob = { 0 };

	e->saves_fp = false;
	if (size > SP_WRITER_MAX || !elf_image_vaddr_to_offset(img, e->start, &offset) ||
	    elf_image_read(img, offset, size, &blob)) {
		if (f->flags & GO_SP_WRITE)
			e->known = e->start;
		return;
	}
	if (go_values_next(&e->g->table, &h, &start))
		e->saves_fp = asm_saves_fp(&blob.view, (uint32_t)(h.pc - e->start));
	if (f->flags & GO_SP_WRITE)
		e->known = heights_end(e, blob.view);
	elf_blob_free(&blob);
}

static bool is_outermost(const struct go_rows *g, const struct go_func *f)
{
	const char *name = f->flags & GO_TOP_FRAME ? go_table_name(&g->table, f) : NULL;

	/* It is called by the kernel, on top of the stack that a signal interrupted. */
	return name && strcmp(name, "runtime.sigtramp") != 0;
}

/* The RA of these was put there by a signal handler, and is the pc that the signal interrupted. */
static bool is_injected(const struct go_rows *g, const struct go_func *f)
{
	const char *name = go_table_name(&g->table, f);

	return g->arch == ROW_ARCH_X86_64 && name &&
	       (!strcmp(name, "runtime.asyncPreempt") || !strcmp(name, "runtime.sigpanic"));
}

static size_t first_special(const struct go_rows *g, uint64_t start)
{
	size_t lo = 0, hi = g->special.n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (g->special.rows[mid].end <= start)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

int go_rows_of(const struct go_rows *g, const struct elf_image *img, const struct fn *fn,
	       struct rowbuf *out)
{
	struct evaluation e = { .g = g,
				.out = out,
				.start = fn->start,
				.end = fn->end,
				.known = fn->end,
				.special = first_special(g, fn->start),
				.row = { .start = fn->start, .end = fn->end, .source = ROW_CODE },
				.saves_fp = true };
	const struct row *special;
	struct go_func f;
	int err = 0;

	if (!go_table_func(&g->table, fn->ref, &f))
		return 0;
	if (is_outermost(g, &f)) {
		e.row.ra.kind = RULE_UNDEF;
		err = put(&e, e.row);
	} else {
		if (is_injected(g, &f))
			e.row.flags = ROW_SIGNAL;
		if (f.flags & (GO_ASM | GO_SP_WRITE))
			look_at_code(&e, img, &f);
		err = put_heights(&e, &f);
	}
	while (!err && (special = special_at(&e)))
		err = put_special(&e, special);
	return err;
}

int go_rows_open(struct go_rows *g, const struct elf_image *img, enum row_arch arch)
{
	int err;

	*g = (struct go_rows){ .arch = arch };
	if ((arch != ROW_ARCH_X86_64 && arch != ROW_ARCH_AARCH64) || img->be)
		return -ENOENT;
	err = go_table_open(img, &g->table);
	for (uint64_t i = 0; !err && i < g->table.count; i++) {
		struct go_func f;

		if (go_table_func(&g->table, i, &f) && f.start < f.end)
			err = fntab_push(&g->fns, f.start, f.end, i);
	}
	if (!err)
		err = fntab_arrange(&g->fns, img);
	if (!err)
		err = go_switch_find(g, img);
	if (err)
		go_rows_close(g);
	return err;
}

void go_rows_close(struct go_rows *g)
{
	go_table_close(&g->table);
	fntab_free(&g->fns);
	rowbuf_free(&g->special);
	*g = (struct go_rows){ 0 };
}
