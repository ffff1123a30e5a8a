/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer target: machine code of one function. The first byte chooses the machine. Rows must lie
 * inside the code, ascend, and not overlap.
 */
#include <stdlib.h>

#include "codewalk/codewalk.h"

#define ADDR 0x1000

static bool no_part(void *ctx, uint64_t addr, struct code_range *ret, bool *sized)
{
	(void)ctx;
	(void)addr;
	(void)ret;
	(void)sized;
	return false;
}

/* What a callee writes, and what it removes from the stack, by its address */
static struct code_callee callee_at(void *ctx, uint64_t addr)
{
	(void)ctx;
	return (struct code_callee){ (uint32_t)(addr * 0x9e3779b1u), addr % 5 ? 0
								     : addr % 2
									     ? 8
									     : CODE_POPS_UNKNOWN };
}

/* ctx: the only label, or NULL */
static int labels(void *ctx, const uint64_t **ret, size_t *ret_n)
{
	*ret = ctx;
	*ret_n = ctx ? 1 : 0;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct code_text text = { .start = ADDR, .end = ADDR + size - 1 };
	struct code_binary bin = { .texts = &text,
				   .ntexts = 1,
				   .part_of = no_part,
				   .callee_at = callee_at,
				   .labels = labels };
	struct code_subject fn = { .range = { text.start, text.end } };
	struct code_result found = { 0 };
	struct code_fn *f;
	uint64_t label;

	if (size < 2)
		return 0;
	bin.arch = data[0] & 1 ? &code_arch_arm64 : code_arch_x86();
	if (!bin.arch)
		return 0;
	bin.budget = 8 * size;
	fn.sized = data[0] & 2;
	label = ADDR + data[size - 1];
	bin.ctx = data[0] & 4 ? &label : NULL;
	text.bytes = bytes_of(data + 1, size - 1, false);
	text.marks = calloc(1, size - 1);
	f = code_fn_new(&bin);
	if (text.marks && f)
		code_fn_analyse(f, &fn, &found);
	for (size_t i = 0; i < found.nrows; i++)
		if (found.rows[i].start >= found.rows[i].end || found.rows[i].end > text.end ||
		    found.rows[i].start < text.start ||
		    (i && found.rows[i].start < found.rows[i - 1].end))
			abort();
	code_fn_free(f);
	free(text.marks);
	return 0;
}
