/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What identifies the contents of a file, besides its build-id. It has a fixed size and no
 * pointers, because the child (symtab/elf_worker.h) sends it to the main process.
 */
#ifndef SFBPF_SYMTAB_ELF_IDS_H
#define SFBPF_SYMTAB_ELF_IDS_H

#include "files/module.h"

struct elf_image;

/* img NULL: the file is not an ELF file. 0 or -errno: -ENOSYS in a build without the agent. */
int elf_ids_read(int fd, const struct elf_image *img, struct module_ids *ret);
/* Does what elf_ids_read does for an image in memory. */
int elf_ids_read_mem(const void *mem, uint64_t size, const struct elf_image *img,
		     struct module_ids *ret);
/* Whether elf_ids_read could have made it. */
bool elf_ids_sound(const struct module_ids *ids);

#endif
