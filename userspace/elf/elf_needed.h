/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a file needs to be loaded (gABI, "Dynamic Section"): its interpreter, which is the dynamic
 * linker, the names of libraries, and the directories to look for them in.
 */
#ifndef SFBPF_ELF_ELF_NEEDED_H
#define SFBPF_ELF_ELF_NEEDED_H

#include "elf/elf_image.h"

#define ELF_NEEDED_TEXT 1024 /* bytes of a name; longer ones are left out */

enum elf_needed {
	ELF_INTERP,  /* the path in PT_INTERP */
	ELF_RUNPATH, /* DT_RUNPATH or DT_RPATH: directories, separated by colons */
	ELF_LIBRARY, /* DT_NEEDED */
};

/*
 * Calls take() for each list of directories, then for the interpreter, then for each library, in
 * the order of the file. Damaged and empty texts are left out.
 */
void elf_needed(const struct elf_image *img,
		void (*take)(void *ctx, enum elf_needed kind, const char *text), void *ctx);

#endif
