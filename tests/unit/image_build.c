/* SPDX-License-Identifier: BSD-2-Clause */
#include "image_build.h"

#include <stdlib.h>
#include <string.h>

/* The file's first page is headers, what follows it starts with the sections */
#define SECTIONS_AT 4096

static void *append(struct image_bytes *b, const void *bytes, size_t len)
{
	if (b->len + len > b->cap) {
		b->cap = (b->len + len + 64) * 2;
		b->buf = realloc(b->buf, b->cap);
		if (!b->buf)
			abort();
	}
	if (bytes && len)
		memcpy(b->buf + b->len, bytes, len);
	else
		memset(b->buf + b->len, 0, len);
	b->len += len;
	return b->buf + b->len - len;
}

static void append_int(struct image_bytes *b, unsigned int size, uint64_t value)
{
	for (unsigned int i = 0; i < size; i++) {
		uint8_t byte = (uint8_t)(value >> (8 * i));

		append(b, &byte, 1);
	}
}

void image_init(struct image *im)
{
	memset(im, 0, sizeof(*im));
	im->machine = EM_X86_64;
	im->eh_addr = 0x70000000;
	im->cie = UINT64_MAX;
}

void image_code(struct image *im, uint64_t vaddr, uint64_t offset, uint64_t size)
{
	if (im->nsegs == IMAGE_MAX_SEGMENTS)
		abort();
	im->segs[im->nsegs++] = (struct elf_phdr){ .type = PT_LOAD,
						   .flags = PF_R | PF_X,
						   .offset = offset,
						   .vaddr = vaddr,
						   .filesz = size,
						   .memsz = size };
}

static void end_record(struct image_bytes *b, size_t at)
{
	uint32_t len;

	while ((b->len - at) % 8 != 0)
		append_int(b, 1, 0);
	len = (uint32_t)(b->len - at - 4);
	memcpy(b->buf + at, &len, 4);
}

void image_cie(struct image *im, const char *aug)
{
	static const uint8_t init[] = { 0x0c, 7, 8, 0x90, 1 };
	struct image_bytes *b = &im->eh;
	size_t at = b->len;

	im->cie = at;
	append_int(b, 4, 0);
	append_int(b, 4, 0);
	append_int(b, 1, 1);
	append(b, aug, strlen(aug) + 1);
	append_int(b, 1, 1);	/* code alignment 1 */
	append_int(b, 1, 0x78); /* data alignment -8 */
	append_int(b, 1, 16);
	append_int(b, 1, 1); /* augmentation data: */
	append_int(b, 1, 0); /* DW_EH_PE_absptr */
	append(b, init, sizeof(init));
	end_record(b, at);
}

void image_fde(struct image *im, uint64_t start, uint64_t size, const void *insns, size_t len)
{
	struct image_bytes *b = &im->eh;
	size_t at;

	if (im->cie == UINT64_MAX)
		image_cie(im, "zR");
	at = b->len;
	append_int(b, 4, 0);
	append_int(b, 4, at + 4 - im->cie);
	append_int(b, 8, start);
	append_int(b, 8, size);
	append_int(b, 1, 0);
	append(b, insns, len);
	end_record(b, at);
}

void image_sframe(struct image *im, const void *bytes, size_t len, uint64_t addr)
{
	im->sframe.len = 0;
	append(&im->sframe, bytes, len);
	im->sframe_addr = addr;
}

static const char names[] = "\0.eh_frame\0.sframe\0.shstrtab";

static void add_section(struct image *im, Elf64_Shdr *sh, const char *name, uint64_t addr,
			const void *bytes, size_t len)
{
	const char *at = memmem(names, sizeof(names), name, strlen(name));

	append(&im->file, NULL, -im->file.len & 15);
	*sh = (Elf64_Shdr){ .sh_name = (uint32_t)(at - names),
			    .sh_type = SHT_PROGBITS,
			    .sh_flags = addr ? SHF_ALLOC : 0,
			    .sh_addr = addr,
			    .sh_offset = im->file.len,
			    .sh_size = len,
			    .sh_addralign = 8 };
	append(&im->file, bytes, len);
}

void image_finish(struct image *im)
{
	Elf64_Ehdr eh = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			  .e_type = ET_DYN,
			  .e_machine = im->machine,
			  .e_version = EV_CURRENT,
			  .e_phoff = sizeof(eh),
			  .e_ehsize = sizeof(eh),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = (Elf64_Half)im->nsegs,
			  .e_shentsize = sizeof(Elf64_Shdr) };
	Elf64_Shdr sh[4] = { 0 };
	unsigned int n = 1;
	uint64_t end = 0;

	im->file.len = 0;
	append(&im->file, NULL, SECTIONS_AT);
	if (im->eh.len)
		add_section(im, &sh[n++], ".eh_frame", im->eh_addr, im->eh.buf, im->eh.len);
	if (im->sframe.len)
		add_section(im, &sh[n++], ".sframe", im->sframe_addr, im->sframe.buf,
			    im->sframe.len);
	eh.e_shstrndx = (Elf64_Half)n;
	add_section(im, &sh[n++], ".shstrtab", 0, names, sizeof(names));
	append(&im->file, NULL, -im->file.len & 15);
	eh.e_shoff = im->file.len;
	eh.e_shnum = (Elf64_Half)n;
	append(&im->file, sh, n * sizeof(sh[0]));
	for (unsigned int i = 0; i < im->nsegs; i++) {
		const struct elf_phdr *s = &im->segs[i];
		Elf64_Phdr ph = { .p_type = s->type,
				  .p_flags = s->flags,
				  .p_offset = s->offset,
				  .p_vaddr = s->vaddr,
				  .p_paddr = s->vaddr,
				  .p_filesz = s->filesz,
				  .p_memsz = s->memsz,
				  .p_align = 4096 };

		memcpy(im->file.buf + sizeof(eh) + i * sizeof(ph), &ph, sizeof(ph));
		if (s->offset + s->filesz > end)
			end = s->offset + s->filesz;
	}
	memcpy(im->file.buf, &eh, sizeof(eh));
	if (end > im->file.len)
		append(&im->file, NULL, end - im->file.len);
}

void image_free(struct image *im)
{
	free(im->eh.buf);
	free(im->sframe.buf);
	free(im->file.buf);
	memset(im, 0, sizeof(*im));
}
