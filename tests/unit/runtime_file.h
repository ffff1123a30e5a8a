/* SPDX-License-Identifier: BSD-2-Clause */
/* The description of a language's runtime, of a file of this machine. */
#ifndef SFBPF_TESTS_RUNTIME_FILE_H
#define SFBPF_TESTS_RUNTIME_FILE_H

#include <fcntl.h>
#include <glob.h>
#include <unistd.h>

#include "elf/elf_dynsym.h"
#include "elf/elf_image.h"
#include "languages/lang.h"

struct runtime_loop {
	uint64_t start, end;
};

/* lang_functions.at with a struct runtime_loop */
static inline bool runtime_loop_at(void *ctx, uint64_t addr, uint64_t *ret_start, uint64_t *ret_end)
{
	const struct runtime_loop *loop = ctx;

	*ret_start = loop->start;
	*ret_end = loop->end;
	return addr >= loop->start && addr < loop->end;
}

/*
 * Describes the first file that matches; false: there is none. loop: the function that interprets,
 * or NULL: no function has a known extent.
 */
static inline bool runtime_describe(const char *pattern, const char *loop, bool *ret_ok,
				    struct sf_lang *ret)
{
	struct runtime_loop found = { 0 };
	const struct lang_functions functions = { .at = runtime_loop_at, .ctx = &found };
	struct elf_dynsym_value sym = { 0 };
	struct elf_image img = { 0 };
	struct elf_dynsym syms;
	struct diag diag = { 0 };
	glob_t files;
	int fd;

	if (glob(pattern, 0, NULL, &files))
		return false;
	fd = open(files.gl_pathv[0], O_RDONLY | O_CLOEXEC);
	globfree(&files);
	*ret_ok = !elf_image_open_fd(&img, fd, &diag) &&
		  (!loop || (elf_dynsym_open(&syms, &img) && elf_dynsym_find(&syms, loop, &sym)));
	found = (struct runtime_loop){ sym.addr, sym.addr + sym.size };
	*ret_ok = *ret_ok && lang_describe(&img, &functions, ret);
	elf_image_close(&img);
	close(fd);
	return true;
}

#endif
