/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an ELF file says of itself that decides where its names are looked for. Of a fixed size, without pointers: it is what the child
 * (sym/elf_child.h) tells our own process, which opens files but does not read them.
 */
#ifndef SFBPF_SYM_ELF_FACTS_H
#define SFBPF_SYM_ELF_FACTS_H

#include <limits.h>

#include "elf/module.h"

#define FACTS_ID_MAX 64

struct elf_facts {
	uint16_t machine;
	uint8_t be, symtab, dwarf, debug_str;	/* bools: big-endian; has .symtab, .debug_info, .debug_str */
	uint32_t id_len, alt_id_len;
	uint8_t id[FACTS_ID_MAX];		/* build-id; length 0: none */
	uint8_t alt_id[FACTS_ID_MAX];		/* of what .gnu_debugaltlink names */
	uint32_t link_crc;
	uint32_t ncode;
	struct module_code code[MODULE_MAX_CODE];	/* executable segments as the headers have them */
	char link[256];				/* .gnu_debuglink, a name without '/'; "": none */
	char alt[PATH_MAX];			/* .gnu_debugaltlink, a path; "": none */
};

void elf_facts_read(const struct elf_image *img, struct elf_facts *ret);
/* As elf_facts_read would make them: strings end, counts fit, segments do not wrap. */
bool elf_facts_sound(const struct elf_facts *f);

#endif
