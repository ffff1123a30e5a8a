/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf/elf_tls.h"

#include <errno.h>

#include "border/sfbpf_shared.h"
#include "elf/elf_dynsym.h"

#define ARM64_TCB 16 /* bytes from the thread pointer to the block of the program */

/* Finds a variable of the program itself: the linker knows its distance from the thread pointer. */
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

struct place {
	const struct elf_image *img;
	const struct elf_dynsym_value *sym;
	uint64_t vaddr;
};

/* How ld.so fills in the place of a relocation, if it is for the variable; else 0. */
static int take(void *ctx, const Elf64_Rela *r)
{
	struct place *p = ctx;
	uint32_t how = how_of(p->img, ELF64_R_TYPE(r->r_info)), symbol = ELF64_R_SYM(r->r_info);

	/* A symbol that is bound to the file itself has none, and its value as addend. */
	if (symbol ? symbol != p->sym->index
		   : how == SF_TLS_GOT || (uint64_t)r->r_addend != p->sym->addr)
		return SF_TLS_NONE;
	p->vaddr = r->r_offset;
	return (int)how;
}

static int in_library(const struct elf_image *img, const struct elf_dynsym_value *sym,
		      struct elf_tls *ret)
{
	struct place p = { .img = img, .sym = sym };
	const struct elf_phdr *code = NULL;

	for (uint32_t i = 0; i < img->nphdrs && !code; i++)
		if (img->phdrs[i].type == PT_LOAD && img->phdrs[i].flags & PF_X)
			code = &img->phdrs[i];
	ret->how = code ? (uint32_t)elf_image_each_rela(img, take, &p) : SF_TLS_NONE;
	if (ret->how == SF_TLS_NONE)
		return -ENOENT;
	ret->at = p.vaddr - code->vaddr + code->offset;
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
