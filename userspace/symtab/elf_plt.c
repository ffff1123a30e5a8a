/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names for PLT stubs on x86-64. A stub jumps through a GOT slot, and a relocation names the symbol
 * of that slot. Each stub's jump is decoded, because stub n need not belong to relocation n: it
 * does not in .plt.got, in .plt.sec and with lld. Lazy stubs (.plt with IBT) push the relocation's
 * index instead.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "symtab/symtab_builder.h"

#define PLT_MAX_BYTES  (16u << 20)
#define PLT_MAX_RELOCS (1u << 20)
#define RELA_CHUNK     4096

struct slot {
	uint64_t got;	/* vaddr of the GOT slot */
	uint32_t sym;	/* index in .dynsym */
	uint32_t index; /* index in .rela.plt; UINT32_MAX for .rela.dyn */
};

struct plt {
	struct builder *b;
	struct elf_blob dynsym;
	struct slot *slots; /* sorted by got */
	uint32_t *lazy;	    /* symbol by index in .rela.plt */
	size_t n, cap, nlazy;
};

static int read_relocs(struct plt *p, const struct elf_shdr *s, bool is_plt)
{
	uint64_t count = s->size / sizeof(Elf64_Rela);
	int err = 0;

	for (uint64_t i = 0; i < count && !err; i += RELA_CHUNK) {
		uint64_t n = count - i < RELA_CHUNK ? count - i : RELA_CHUNK;
		struct elf_blob blob = { 0 };

		if (elf_image_read(p->b->img, s->offset + i * sizeof(Elf64_Rela),
				   n * sizeof(Elf64_Rela), &blob))
			return 0;
		for (uint64_t k = 0; k < n && !err && p->n < PLT_MAX_RELOCS; k++) {
			uint64_t got = bytes_u64(&blob.view), info = bytes_u64(&blob.view);

			bytes_skip(&blob.view, 8);
			if (!is_plt && ELF64_R_TYPE(info) != R_X86_64_GLOB_DAT &&
			    ELF64_R_TYPE(info) != R_X86_64_JUMP_SLOT)
				continue;
			err = vec_reserve(&p->slots, &p->cap, p->n + 1, sizeof(*p->slots));
			if (!err)
				p->slots[p->n++] = (struct slot){ got, ELF64_R_SYM(info),
								  is_plt ? (uint32_t)(i + k)
									 : UINT32_MAX };
		}
		elf_blob_free(&blob);
	}
	return err;
}

static int compare_got(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	if (x->got != y->got)
		return x->got < y->got ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static int index_relocs(struct plt *p)
{
	p->lazy = calloc(p->n ? p->n : 1, sizeof(*p->lazy));
	if (!p->lazy)
		return -ENOMEM;
	p->nlazy = p->n;
	for (size_t i = 0; i < p->n; i++)
		if (p->slots[i].index < p->nlazy)
			p->lazy[p->slots[i].index] = p->slots[i].sym;
	if (p->n)
		qsort(p->slots, p->n, sizeof(*p->slots), compare_got);
	return 0;
}

static uint32_t symbol_of_got(const struct plt *p, uint64_t got)
{
	size_t lo = 0, hi = p->n; /* slots before lo lie below got, those from hi on do not */

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (p->slots[mid].got < got)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < p->n && p->slots[lo].got == got ? p->slots[lo].sym : 0;
}

/*
 * The symbol that the stub at vaddr jumps to; 0: none. Forms: [endbr64] [bnd] jmp *got(%rip), or
 * [endbr64] push $index.
 */
static uint32_t decode_stub(const struct plt *p, struct bytes stub, uint64_t vaddr)
{
	static const uint8_t endbr64[4] = { 0xf3, 0x0f, 0x1e, 0xfa };
	const uint8_t *op = bytes_take(&stub, 4);
	uint8_t first;
	uint32_t arg;

	if (!op || memcmp(op, endbr64, 4) != 0)
		bytes_seek(&stub, 0);
	first = bytes_u8(&stub);
	if (first == 0x68) {
		arg = bytes_u32(&stub);
		return !stub.err && arg < p->nlazy ? p->lazy[arg] : 0;
	}
	if (first == 0xf2)
		first = bytes_u8(&stub);
	if (first != 0xff || bytes_u8(&stub) != 0x25)
		return 0;
	arg = bytes_u32(&stub);
	return stub.err ? 0 : symbol_of_got(p, vaddr + stub.pos + (uint64_t)(int64_t)(int32_t)arg);
}

static int add_stubs(struct plt *p, const struct elf_shdr *s)
{
	uint32_t step = s->entsize == 8 ? 8 : 16;
	struct elf_blob code = { 0 };
	int err = 0;

	if (!s->size || s->size > PLT_MAX_BYTES || s->flags & SHF_COMPRESSED ||
	    elf_image_section_bytes(p->b->img, s, &code))
		return 0;
	for (uint64_t at = 0; at + step <= code.view.len && !err; at += step) {
		uint32_t sym = decode_stub(p, bytes_sub(&code.view, at, step), s->addr + at);
		struct bytes entry = bytes_sub(&p->dynsym.view, (uint64_t)sym * sizeof(Elf64_Sym),
					       sizeof(Elf64_Sym));
		struct cand c = { .size = step, .plt = true, .name = bytes_u32(&entry) };

		if (!sym || !c.name || c.name & NAME_DYNSTR ||
		    !builder_code_offset(p->b, s->addr + at, &c.off))
			continue;
		c.name |= NAME_DYNSTR;
		err = builder_add(p->b, &c);
	}
	elf_blob_free(&code);
	return err;
}

int builder_read_plt(struct builder *b)
{
	static const char *const sections[] = { ".plt", ".plt.sec", ".plt.got" };
	const struct elf_image *img = b->img;
	const struct elf_shdr *rela_plt = elf_image_section(img, ".rela.plt");
	const struct elf_shdr *rela_dyn = elf_image_section(img, ".rela.dyn");
	const struct elf_shdr *dynsym = elf_image_section_of_type(img, SHT_DYNSYM);
	struct plt p = { .b = b };
	int err = 0;

	/*
	 * Loaded sections are never compressed. A compressed one in a hostile file would only use
	 * our memory.
	 */
	if (img->machine != EM_X86_64 || !dynsym || dynsym->flags & SHF_COMPRESSED ||
	    dynsym->size / sizeof(Elf64_Sym) > SYMTAB_MAX ||
	    elf_image_section_bytes(img, dynsym, &p.dynsym))
		return 0;
	if (rela_plt)
		err = read_relocs(&p, rela_plt, true);
	if (!err && rela_dyn && elf_image_section(img, ".plt.got"))
		err = read_relocs(&p, rela_dyn, false);
	if (!err)
		err = index_relocs(&p);
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]) && !err; i++) {
		const struct elf_shdr *s = elf_image_section(img, sections[i]);

		if (s)
			err = add_stubs(&p, s);
	}
	elf_blob_free(&p.dynsym);
	free(p.slots);
	free(p.lazy);
	return err;
}
