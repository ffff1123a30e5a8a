/* SPDX-License-Identifier: BSD-2-Clause */
#include "symtab/elf_steps.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/full_io.h"
#include "codewalk/code_op.h"

enum { STARTS = 1, BEGINS = 2 }; /* marks of a byte: an instruction starts, a block begins */

static const struct code_arch *arch_of(const struct elf_image *img)
{
	return img->machine == EM_X86_64    ? code_arch_x86()
	       : img->machine == EM_AARCH64 ? &code_arch_arm64
					    : NULL;
}

/* Whether control may go elsewhere after the instruction, . */
static bool ends_block(const struct code_op *op)
{
	return op->kind == OP_BAD || op->kind >= OP_RET;
}

static void mark(const struct code_arch *arch, const struct elf_code *what, const uint8_t *code,
		 uint8_t *marks)
{
	struct code_op op;

	marks[0] = BEGINS;
	for (uint32_t at = 0; at < what->size; at += op.len) {
		arch->decode(code + at, what->size - at, what->addr + at, &op);
		if (!op.len || op.len > what->size - at)
			op.len = 1;
		marks[at] |= STARTS;
		if (!ends_block(&op))
			continue;
		if (at + op.len < what->size)
			marks[at + op.len] |= BEGINS;
		if (op.target && op.target - what->addr < what->size)
			marks[op.target - what->addr] |= BEGINS;
	}
}

static int list_steps(const uint8_t *marks, uint32_t size, uint32_t **ret, uint32_t *ret_n)
{
	uint32_t n = 0;

	for (uint32_t at = 0; at < size; at++)
		n += marks[at] & STARTS;
	*ret = malloc(n * sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	*ret_n = 0;
	for (uint32_t at = 0; at < size; at++)
		if (marks[at] & STARTS)
			(*ret)[(*ret_n)++] = ELF_STEP(at, (marks[at] & BEGINS) != 0);
	return 0;
}

int elf_steps_read(const struct elf_image *img, const struct elf_code *what, uint32_t **ret,
		   uint32_t *ret_n)
{
	const struct code_arch *arch = arch_of(img);
	uint8_t *code, *marks;
	int err;

	if (!arch)
		return -ENOTSUP;
	if (!what->size || what->size > ELF_STEPS_MOST || what->off > img->size ||
	    what->size > img->size - what->off)
		return -ENOENT;
	code = malloc(what->size);
	marks = calloc(what->size, 1);
	err = code && marks ? pread_full(img->fd, code, what->size, what->off) : -ENOMEM;
	if (!err) {
		mark(arch, what, code, marks);
		err = list_steps(marks, what->size, ret, ret_n);
	}
	free(code);
	free(marks);
	return err;
}

bool elf_steps_sound(const uint32_t *v, uint32_t n, uint32_t size)
{
	if (!n || v[0] != ELF_STEP(0, 1))
		return false;
	for (uint32_t i = 1; i < n; i++)
		if (ELF_STEP_AT(v[i]) <= ELF_STEP_AT(v[i - 1]) || ELF_STEP_AT(v[i]) >= size)
			return false;
	return true;
}
