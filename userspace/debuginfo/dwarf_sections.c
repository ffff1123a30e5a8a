/* SPDX-License-Identifier: BSD-2-Clause */
#ifdef HAVE_LIBDW
#include "debuginfo/dwarf_sections.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "elf/elf_image.h"

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif
#define COPY_MAX ((size_t)1 << 30)

static bool is_debug(const struct elf_shdr *s)
{
	return s->type != SHT_NOBITS && !strncmp(s->name, ".debug_", 7);
}

static bool needs_copy(const struct elf_image *img)
{
	for (uint32_t i = 0; i < img->nshdrs; i++) {
		struct elf_blob blob = { 0 };
		uint32_t type;

		if (!is_debug(&img->shdrs[i]) || !(img->shdrs[i].flags & SHF_COMPRESSED) ||
		    elf_image_read(img, img->shdrs[i].offset, sizeof(Elf64_Chdr), &blob))
			continue;
		type = bytes_u32(&blob.view);
		elf_blob_free(&blob);
		if (type == ELFCOMPRESS_ZSTD)
			return true;
	}
	return false;
}

struct copy {
	char *buf;
	size_t len, cap;
};

static int append(struct copy *c, const void *data, size_t n)
{
	if (n > COPY_MAX - c->len || vec_reserve(&c->buf, &c->cap, c->len + n, 1))
		return -ENOMEM;
	if (n)
		memcpy(c->buf + c->len, data, n);
	c->len += n;
	return 0;
}

/*
 * Copies the parts that libdw reads: header, debug sections, their names, section headers. In
 * native byte order.
 */
static int copy_sections(const struct elf_image *img, struct copy *c)
{
	Elf64_Shdr *headers = calloc((size_t)img->nshdrs + 2, sizeof(*headers));
	struct copy names = { 0 };
	Elf64_Ehdr eh = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64,
			     __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? ELFDATA2MSB : ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = img->type,
		.e_machine = img->machine,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(eh),
		.e_shentsize = sizeof(Elf64_Shdr),
	};
	uint16_t n = 1;
	int err = headers ? append(c, &eh, sizeof(eh)) : -ENOMEM;

	if (!err)
		err = append(&names, "", 1);
	for (uint32_t i = 0; i < img->nshdrs && !err && n < SHN_LORESERVE - 1; i++) {
		const struct elf_shdr *s = &img->shdrs[i];
		struct elf_blob blob = { 0 };

		if (!is_debug(s) || elf_image_section_bytes(img, s, &blob))
			continue;
		headers[n++] = (Elf64_Shdr){
			.sh_name = (uint32_t)names.len,
			.sh_type = SHT_PROGBITS,
			.sh_offset = c->len,
			.sh_size = blob.view.len,
			.sh_addralign = 1,
		};
		err = append(c, blob.view.base, blob.view.len);
		if (!err)
			err = append(&names, s->name, strlen(s->name) + 1);
		elf_blob_free(&blob);
	}
	if (!err) {
		headers[n] = (Elf64_Shdr){ .sh_name = 0,
					   .sh_type = SHT_STRTAB,
					   .sh_offset = c->len,
					   .sh_size = names.len,
					   .sh_addralign = 1 };
		eh.e_shstrndx = n++;
		eh.e_shnum = n;
		err = append(c, names.buf, names.len);
	}
	if (!err)
		err = append(c, "\0\0\0\0\0\0\0", -c->len & 7);
	eh.e_shoff = c->len;
	if (!err)
		err = append(c, headers, n * sizeof(*headers));
	if (!err)
		memcpy(c->buf, &eh, sizeof(eh));
	free(headers);
	free(names.buf);
	return err;
}

/* ---- Where code is ---- */

/*
 * Takes sections, because the first executable segment of some files begins at address 0 with the
 * headers. A file of debug information alone has the headers of these sections, too.
 */
static int find_code(struct dwarf_open *d, const struct elf_image *img)
{
	if (img->type == ET_REL)
		return 0;
	d->code = calloc((size_t)img->nshdrs + img->nphdrs + 1, sizeof(*d->code));
	if (!d->code)
		return -ENOMEM;
	for (uint32_t i = 0; i < img->nshdrs; i++) {
		const struct elf_shdr *s = &img->shdrs[i];

		if (s->flags & SHF_EXECINSTR && s->flags & SHF_ALLOC && s->size)
			d->code[d->ncode++] = (struct dwarf_code){ s->addr, s->size };
	}
	for (uint32_t i = 0, n = d->ncode; i < img->nphdrs && !n; i++) {
		const struct elf_phdr *ph = &img->phdrs[i];

		if (ph->type == PT_LOAD && ph->flags & PF_X && ph->memsz)
			d->code[d->ncode++] = (struct dwarf_code){ ph->vaddr, ph->memsz };
	}
	return 0;
}

bool dwarf_is_code(const struct dwarf_open *d, uint64_t addr)
{
	for (size_t i = 0; i < d->ncode; i++)
		if (addr - d->code[i].addr < d->code[i].size)
			return true;
	return !d->ncode;
}

/* ---- Opening ---- */

static int open_elf(struct dwarf_open *d)
{
	struct elf_image img;
	struct copy c = { 0 };
	bool plain = elf_image_open_fd(&img, d->fd, NULL) == 0;
	int err = plain ? find_code(d, &img) : 0;

	if (plain && needs_copy(&img) && !copy_sections(&img, &c)) {
		d->copy = c.buf;
		d->elf = elf_memory(c.buf, c.len);
	} else {
		free(c.buf);
		d->elf = elf_begin(d->fd, ELF_C_READ_MMAP, NULL);
	}
	if (plain)
		elf_image_close(&img);
	return err ? err : d->elf ? 0 : -ENOENT;
}

/* libdw has unpacked it. */
static struct bytes find_lines(Elf *elf)
{
	const char *ident = elf_getident(elf, NULL), *name;
	Elf_Scn *scn = NULL;
	Elf_Data *data;
	GElf_Shdr head;
	size_t names;

	if (!ident || elf_getshdrstrndx(elf, &names))
		return bytes_of(NULL, 0, false);
	while ((scn = elf_nextscn(elf, scn))) {
		name = gelf_getshdr(scn, &head) ? elf_strptr(elf, names, head.sh_name) : NULL;
		if (!name ||
		    (strcmp(name, ".debug_line") != 0 && strcmp(name, ".zdebug_line") != 0))
			continue;
		data = elf_rawdata(scn, NULL);
		if (data && data->d_buf)
			return bytes_of(data->d_buf, data->d_size, ident[EI_DATA] == ELFDATA2MSB);
	}
	return bytes_of(NULL, 0, false);
}

int dwarf_open(struct dwarf_open *d)
{
	int err;

	elf_version(EV_CURRENT);
	err = open_elf(d);
	if (!err)
		d->dw = dwarf_begin_elf(d->elf, DWARF_C_READ, NULL);
	if (d->dw) {
		d->lines = find_lines(d->elf);
		return 0;
	}
	dwarf_close(d);
	return err ? err : -ENOENT;
}

void dwarf_close(struct dwarf_open *d)
{
	if (d->dw)
		dwarf_end(d->dw);
	if (d->elf)
		elf_end(d->elf);
	free(d->copy);
	free(d->code);
	*d = (struct dwarf_open){ .fd = d->fd };
}
#else
typedef int without_libdw; /* a file must not be empty */
#endif
