/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The properties of an ELF file that decide where to search for its names. It has a fixed size and
 * no pointers, because the child (symtab/elf_worker.h) sends it to the main process, which opens
 * files but does not parse them.
 */
#ifndef SFBPF_SYMTAB_ELF_FACTS_H
#define SFBPF_SYMTAB_ELF_FACTS_H

#include <limits.h>

#include "files/module.h"

#define FACTS_ID_MAX 64

struct elf_facts {
	uint16_t machine;
	/* bools: big-endian; has .symtab, .debug_info, .debug_str */
	uint8_t be, symtab, dwarf, debug_str;
	uint32_t id_len, alt_id_len;
	uint8_t id[FACTS_ID_MAX];     /* build-id; length 0: none */
	uint8_t alt_id[FACTS_ID_MAX]; /* build-id of the file that .gnu_debugaltlink names */
	uint32_t link_crc;
	uint32_t ncode;
	/* Executable segments from the program headers */
	struct module_code code[MODULE_MAX_CODE];
	char link[256];	    /* .gnu_debuglink, a name without '/'; "": none */
	char alt[PATH_MAX]; /* .gnu_debugaltlink, a path; "": none */
};

void elf_facts_read(const struct elf_image *img, struct elf_facts *ret);
/* Whether elf_facts_read could have made it: strings end, counts fit, segments do not wrap. */
bool elf_facts_sound(const struct elf_facts *f);

#endif
