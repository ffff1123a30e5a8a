/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The version that the linker appends to a symbol's name in .symtab: f@V1, and f@@V1 for the
 * default one. Names may contain @ themselves. So only a version that the file defines or needs
 * (gABI, "Symbol Versioning") is one.
 */
#ifndef SFBPF_SYMTAB_ELF_VERSIONS_H
#define SFBPF_SYMTAB_ELF_VERSIONS_H

#include "elf/elf_image.h"

struct elf_versions {
	struct elf_blob strings[2]; /* strings of .gnu.version_d and .gnu.version_r */
	const char **names;	    /* sorted */
	size_t n, cap;
	bool read;
};

/* The length of a name of at most `most` bytes without its version. img: the file with the code. */
size_t elf_versions_cut(struct elf_versions *v, const struct elf_image *img, const char *name,
			size_t most);
void elf_versions_free(struct elf_versions *v); /* accepts a zeroed one, too */

#endif
