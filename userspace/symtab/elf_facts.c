/* SPDX-License-Identifier: BSD-2-Clause */
#include "symtab/elf_facts.h"

#include <string.h>

static bool has_bytes(const struct elf_image *img, const char *name)
{
	const struct elf_shdr *s = elf_image_section(img, name);

	return s && s->type != SHT_NOBITS && s->size;
}

/* Section .gnu_debuglink: a file name, padding to 4 bytes, the CRC of that file. */
static void read_link(const struct elf_image *img, struct elf_facts *ret)
{
	const struct elf_shdr *s = elf_image_section(img, ".gnu_debuglink");
	struct elf_blob blob = { 0 };
	const char *name;

	if (!s || s->size > 4096 || elf_image_section_bytes(img, s, &blob))
		return;
	name = bytes_str(&blob.view);
	bytes_seek(&blob.view, (blob.view.pos + 3) & ~(size_t)3);
	ret->link_crc = bytes_u32(&blob.view);
	if (!blob.view.err && strlen(name) < sizeof(ret->link) && !strchr(name, '/'))
		strcpy(ret->link, name);
	elf_blob_free(&blob);
}

/*
 * Section .gnu_debugaltlink: a path, from / or from the file's own directory, and the build-id of
 * that file.
 */
static void read_alt(const struct elf_image *img, struct elf_facts *ret)
{
	const struct elf_shdr *s = elf_image_section(img, ".gnu_debugaltlink");
	struct elf_blob blob = { 0 };
	const char *name;
	size_t len;

	if (!s || s->size > 2 * PATH_MAX || elf_image_section_bytes(img, s, &blob))
		return;
	name = bytes_str(&blob.view);
	len = bytes_left(&blob.view);
	if (name && *name && strlen(name) < sizeof(ret->alt) && len >= 2 &&
	    len <= sizeof(ret->alt_id)) {
		strcpy(ret->alt, name);
		memcpy(ret->alt_id, bytes_take(&blob.view, len), len);
		ret->alt_id_len = (uint32_t)len;
	}
	elf_blob_free(&blob);
}

static bool segment_fits(uint64_t off, uint64_t size)
{
	return size && size <= SF_FRAME_OFFSET_MASK && off <= SF_FRAME_OFFSET_MASK - size;
}

void elf_facts_read(const struct elf_image *img, struct elf_facts *ret)
{
	memset(ret, 0, sizeof(*ret)); /* including padding, as it is sent to another process */
	ret->machine = img->machine;
	ret->be = img->be;
	ret->symtab = elf_image_section_of_type(img, SHT_SYMTAB) != NULL;
	ret->dwarf = has_bytes(img, ".debug_info") || has_bytes(img, ".zdebug_info");
	ret->debug_str = elf_image_section(img, ".debug_str") != NULL;
	ret->id_len = (uint32_t)elf_image_build_id(img, ret->id, sizeof(ret->id));
	for (uint32_t i = 0; i < img->nphdrs && ret->ncode < MODULE_MAX_CODE; i++) {
		const struct elf_phdr *ph = &img->phdrs[i];

		if (ph->type == PT_LOAD && ph->flags & PF_X && segment_fits(ph->offset, ph->filesz))
			ret->code[ret->ncode++] = (struct module_code){ ph->offset, ph->vaddr,
									ph->filesz };
	}
	read_link(img, ret);
	read_alt(img, ret);
}

bool elf_facts_sound(const struct elf_facts *f)
{
	if (f->id_len > sizeof(f->id) || f->alt_id_len > sizeof(f->alt_id) ||
	    f->ncode > MODULE_MAX_CODE || !memchr(f->link, 0, sizeof(f->link)) ||
	    !memchr(f->alt, 0, sizeof(f->alt)) || strchr(f->link, '/') ||
	    !*f->alt != !f->alt_id_len)
		return false;
	for (uint32_t i = 0; i < f->ncode; i++)
		if (!segment_fits(f->code[i].off, f->code[i].size))
			return false;
	return f->be <= 1 && f->symtab <= 1 && f->dwarf <= 1 && f->debug_str <= 1;
}
