/* SPDX-License-Identifier: BSD-2-Clause */
/* What the dynamic section says of the file itself (gABI, "Dynamic Section"; DF_1_PIE: glibc). */
#ifndef SFBPF_ELF_ELF_DYNAMIC_H
#define SFBPF_ELF_ELF_DYNAMIC_H

#include "elf/elf_image.h"

struct elf_dynamic {
	bool found;    /* there is a dynamic section; else all is zero */
	bool named;    /* it has a DT_SONAME: the file is a library */
	bool pie;      /* the file is a program that may be loaded anywhere */
	char name[32]; /* DT_SONAME; "" also if it is longer, or cannot be read */
};

void elf_dynamic_read(const struct elf_image *img, struct elf_dynamic *ret);

#endif
