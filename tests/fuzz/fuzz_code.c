/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer target: machine code of one function. The first byte chooses the machine. Rows must lie
 * inside the code, ascend, and not overlap.
 */
#include <stdlib.h>

#include "unwind/code_fn.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_image img = { .fd = -1 };
	struct code_text text = { .start = ADDR, .end = ADDR + size - 1 };
	struct code_fn f = {
		.img = &img, .texts = &text, .ntexts = 1, .part_of = no_part, .callee_at = callee_at
	};

	if (size < 2)
		return 0;
	f.arch = data[0] & 1 ? &code_arch_arm64 : code_arch_x86();
	if (!f.arch)
		return 0;
	f.budget = 8 * size;
	f.sized = data[0] & 2;
	f.has_labels = true;
	f.labels = data[0] & 4 ? malloc(sizeof(*f.labels)) : NULL;
	if (f.labels)
		f.labels[f.nlabels++] = ADDR + data[size - 1];
	text.blob.view = bytes_of(data + 1, size - 1, false);
	text.marks = calloc(1, size - 1);
	if (text.marks && code_fn_analyse(&f, (struct code_range){ text.start, text.end }) > 0)
		for (size_t i = 0; i < f.rows.n; i++)
			if (f.rows.rows[i].start >= f.rows.rows[i].end ||
			    f.rows.rows[i].end > text.end || f.rows.rows[i].start < text.start ||
			    (i && f.rows.rows[i].start < f.rows.rows[i - 1].end))
				abort();
	code_fn_free(&f);
	free(text.marks);
	return 0;
}
