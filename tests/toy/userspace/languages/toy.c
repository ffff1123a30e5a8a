/* SPDX-License-Identifier: BSD-2-Clause */
/* Toy, the language of tests/toy/program.c: from two symbols that it exports. */
#include "languages/lang.h"

static bool toy_describe(const struct lang_file *f, struct sf_lang *ret)
{
	struct elf_dynsym_value loop, top;

	if (!elf_dynsym_find(&f->syms, "toy_run", &loop) ||
	    !elf_dynsym_find(&f->syms, "toy_top", &top))
		return false;
	ret->nloops = lang_loops(f, loop.addr, ret->loops);
	ret->toy.top = lang_address(f, loop.addr, top.addr);
	return true;
}

static bool toy_sound(const struct sf_lang *l)
{
	return l->nloops != 0;
}

const struct language toy_language = {
	.describe = toy_describe,
	.sound = toy_sound,
};
