/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf/elf_tls.h"

#include <errno.h>

#include "elf/elf_dynsym.h"
#include "sfbpf_shared.h"

#define ARM64_TCB 16 /* bytes from the thread pointer to the block of the program */

/* Of the program itself, the linker knows the distance from the thread pointer. */
static int in_program(const struct elf_image *img, uint64_t value, struct elf_tls *ret)
{
	const struct elf_phdr *ph = elf_image_segment(img, PT_TLS);
	uint64_t mask = ph && ph->align ? ph->align - 1 : 0;

	if (!ph || (mask & (mask + 1)) || value >= ph->memsz)
		return -ENOENT;
	ret->how = SF_TLS_EXEC;
	if (img->machine == EM_X86_64)
		ret->at = value - ph->memsz - (-(ph->vaddr + ph->memsz) & mask);
	else
		ret->at = value + ARM64_TCB + ((ph->vaddr - ARM64_TCB) & mask);
	return 0;
}

static uint32_t how_of(const struct elf_image *img, uint64_t type)
{
	bool x86 = img->machine == EM_X86_64;

	return type == (x86 ? R_X86_64_TLSDESC : R_AARCH64_TLSDESC)	  ? SF_TLS_DESC
	       : type == (x86 ? R_X86_64_DTPMOD64 : R_AARCH64_TLS_DTPMOD) ? SF_TLS_GOT
	       : type == (x86 ? R_X86_64_TPOFF64 : R_AARCH64_TLS_TPREL)	  ? SF_TLS_WORD
									  : SF_TLS_NONE;
}

/* A relocation of a section that is for the variable. */
static uint32_t search(const struct elf_image *img, struct bytes *b,
		       const struct elf_dynsym_value *sym, uint64_t *ret_vaddr)
{
	while (bytes_left(b) >= sizeof(Elf64_Rela)) {
		uint64_t vaddr = bytes_u64(b), info = bytes_u64(b), addend = bytes_u64(b);
		uint32_t how = how_of(img, ELF64_R_TYPE(info)), symbol = ELF64_R_SYM(info);

		/* A symbol that is bound to the file itself has none, and its value as addend. */
		if (how != SF_TLS_NONE &&
		    (symbol ? symbol == sym->index : how != SF_TLS_GOT && addend == sym->addr)) {
			*ret_vaddr = vaddr;
			return how;
		}
	}
	return SF_TLS_NONE;
}

static int in_library(const struct elf_image *img, const struct elf_dynsym_value *sym,
		      struct elf_tls *ret)
{
	const struct elf_phdr *code = NULL;
	uint64_t vaddr = 0;

	for (uint32_t i = 0; i < img->nphdrs && !code; i++)
		if (img->phdrs[i].type == PT_LOAD && img->phdrs[i].flags & PF_X)
			code = &img->phdrs[i];
	ret->how = SF_TLS_NONE;
	for (uint32_t i = 0; i < img->nshdrs && ret->how == SF_TLS_NONE && code; i++) {
		const struct elf_shdr *s = &img->shdrs[i];
		struct elf_blob all = { 0 };

		if (s->type != SHT_RELA || elf_image_section_bytes(img, s, &all))
			continue;
		ret->how = search(img, &all.view, sym, &vaddr);
		elf_blob_free(&all);
	}
	if (ret->how == SF_TLS_NONE)
		return -ENOENT;
	ret->at = vaddr - code->vaddr + code->offset;
	return 0;
}

int elf_tls_find(const struct elf_image *img, const char *name, struct elf_tls *ret)
{
	struct elf_dynsym_value sym;
	struct elf_dynsym d;

	if ((img->machine != EM_X86_64 && img->machine != EM_AARCH64) ||
	    !elf_dynsym_open(&d, img) || !elf_dynsym_find(&d, name, &sym) || sym.type != STT_TLS)
		return -ENOENT;
	ret->musl = d.musl;
	return d.program ? in_program(img, sym.addr, ret) : in_library(img, &sym, ret);
}
