/* SPDX-License-Identifier: BSD-2-Clause */
#include "go_file.h"

#include <elf.h>
#include <string.h>

#define NAMES_AT    0x800
#define SHSTRTAB_AT 18 /* ".shstrtab" in the names */

static void put_section(uint8_t *file, int i, const Elf64_Shdr *s)
{
	memcpy(file + sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr) + (size_t)i * sizeof(*s), s,
	       sizeof(*s));
}

void go_file_section(uint8_t *file, int i, uint32_t name, uint64_t addr, uint64_t offset,
		     uint64_t size)
{
	put_section(file, i,
		    &(Elf64_Shdr){ .sh_name = name,
				   .sh_type = SHT_PROGBITS,
				   .sh_addr = addr,
				   .sh_offset = offset,
				   .sh_size = size });
}

void go_file_init(uint8_t *file, uint16_t n, uint64_t vaddr, uint64_t size, const char *names,
		  size_t names_len)
{
	Elf64_Ehdr eh = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			  .e_type = ET_EXEC,
			  .e_machine = EM_X86_64,
			  .e_phoff = sizeof(eh),
			  .e_shoff = sizeof(eh) + sizeof(Elf64_Phdr),
			  .e_ehsize = sizeof(eh),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 1,
			  .e_shentsize = sizeof(Elf64_Shdr),
			  .e_shnum = n,
			  .e_shstrndx = (uint16_t)(n - 1) };
	Elf64_Phdr ph = { .p_type = PT_LOAD,
			  .p_flags = PF_R | PF_X,
			  .p_offset = 0x1000,
			  .p_vaddr = vaddr,
			  .p_filesz = size,
			  .p_memsz = size };

	memcpy(file, &eh, sizeof(eh));
	memcpy(file + sizeof(eh), &ph, sizeof(ph));
	memcpy(file + NAMES_AT, names, names_len);
	put_section(file, n - 1,
		    &(Elf64_Shdr){ .sh_name = SHSTRTAB_AT,
				   .sh_type = SHT_STRTAB,
				   .sh_offset = NAMES_AT,
				   .sh_size = names_len });
}
