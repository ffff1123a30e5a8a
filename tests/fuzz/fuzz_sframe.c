/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer target: a .sframe section. The first byte says what file it is from, the rest is the
 * section.
 *
 * 	bits 0-1  architecture: x86-64, AArch64, s390x, none that is known
 * 	bit 2     the file is big-endian
 * 	bit 3     no program headers, as in a relocatable object
 */
#include <stdlib.h>

#include "readers/sframe.h"

#define SECTION	 0x800000
#define CODE	 0x1000
#define CODE_END 0x7ff000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool what)
{
	if (!what)
		abort();
}

static void check_reg(const struct row_regs *regs, const struct rule *r)
{
	require(r->kind <= RULE_REG_MEM);
	if (r->kind == RULE_REG || r->kind == RULE_REG_MEM)
		require(r->reg < regs->nnames);
}

/* Rows lie inside their function, ascend and leave no gap. */
static void check_rows(const struct sframe *s, const struct fn *fn, const struct rowbuf *rows)
{
	for (size_t k = 0; k < rows->n; k++) {
		const struct row *r = &rows->rows[k];

		require(r->start >= fn->start && r->start < r->end && r->end <= fn->end);
		if (r->plt_rep) {
			require(r->start == fn->start && r->end == fn->end &&
				r->plt_at < r->plt_rep);
			require(!k || r->plt_at > r[-1].plt_at);
		} else {
			require(!k || r->start == r[-1].end);
		}
		check_reg(row_arch_regs(s->arch), &r->cfa);
		check_reg(row_arch_regs(s->arch), &r->ra);
		check_reg(row_arch_regs(s->arch), &r->fp);
	}
	if (rows->n && !rows->rows[0].plt_rep)
		require(rows->rows[rows->n - 1].end == fn->end);
}

static void check_function(const struct sframe *s, const struct fn *fn, struct rowbuf *rows,
			   struct diag *diag, bool bounded)
{
	struct fn clipped = *fn;
	size_t n;

	require(fn->start < fn->end);
	if (bounded)
		require(fn->start >= CODE && fn->end <= CODE_END);
	rows->n = 0;
	require(!sframe_rows(s, fn, rows, diag));
	check_rows(s, fn, rows);
	n = rows->n;
	clipped.end = fn->start + (fn->end - fn->start + 1) / 2;
	rows->n = 0;
	require(!sframe_rows(s, &clipped, rows, diag));
	check_rows(s, &clipped, rows);
	require(rows->n <= n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum row_arch archs[] = { ROW_ARCH_X86_64, ROW_ARCH_AARCH64, ROW_ARCH_S390X,
					       ROW_ARCH_NONE };
	static const struct elf_phdr code = {
		.type = PT_LOAD,
		.flags = PF_X,
		.vaddr = CODE,
		.filesz = CODE_END - CODE,
		.memsz = CODE_END - CODE,
	};
	struct sframe_bounds bounds = { &code, 1 };
	struct rowbuf rows = { 0 };
	struct diag diag = { 0 };
	struct sframe s;
	size_t total = 0;

	if (!size)
		return 0;
	if (data[0] & 8)
		bounds.nphdrs = 0;
	require(!sframe_open(&s, bytes_of(data + 1, size - 1, data[0] & 4), SECTION,
			     archs[data[0] & 3], &bounds, &diag));
	for (size_t i = 0; i < s.fns.n; i++) {
		check_function(&s, &s.fns.fns[i], &rows, &diag, bounds.nphdrs);
		total += rows.n;
	}
	require(total <= size / 2);
	rowbuf_free(&rows);
	sframe_close(&s);
	return 0;
}
