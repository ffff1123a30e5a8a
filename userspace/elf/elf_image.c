/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf/elf_image.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#ifdef HAVE_ZSTD
#include <zstd.h>
#endif

#include "base/full_io.h"
#include "base/huge.h"
#include "base/vec.h"

/* Bytes of a section name with its NUL; no known name is longer */
#define DYNAMIC_MAX    65536
#define NAME_MAX_BYTES 256
#define NOTES_MAX      (4u << 20) /* bytes of all notes that are searched for a build-id */

/*
 * Ten times the largest known tables. The limit is needed because a sparse file can claim any size
 * at no cost to its owner.
 */
#define ELF_MAX_READ	((uint64_t)256 << 20)
/* Limits of a decompressed section. Those of linked files grow 2 to 10 times. */
#define UNPACKED_MAX	((uint64_t)256 << 20)
#define UNPACKED_SPARE	((uint64_t)16 << 20)
#define UNPACKED_A_BYTE 16

int elf_image_read(const struct elf_image *img, uint64_t offset, uint64_t size,
		   struct elf_blob *ret)
{
	struct elf_blob blob = { 0 };
	int err;

	if (offset > img->size || size > img->size - offset || (!img->mem && size > ELF_MAX_READ))
		return -ERANGE;
	if (img->mem) {
		blob.view = bytes_of(img->mem + offset, size, img->be);
	} else {
		blob.owned = huge_alloc(size, false);
		if (!blob.owned)
			return -ENOMEM;
		err = pread_full(img->fd, blob.owned, size, offset);
		if (err) {
			free(blob.owned);
			return err;
		}
		blob.view = bytes_of(blob.owned, size, img->be);
	}
	*ret = blob;
	return 0;
}

void elf_blob_free(struct elf_blob *blob)
{
	free(blob->owned);
	*blob = (struct elf_blob){ 0 };
}

struct ehdr {
	uint64_t phoff, shoff;
	uint32_t phnum, shnum, shstrndx;
};

static int parse_ehdr(struct elf_image *img, struct ehdr *eh, struct diag *diag)
{
	struct elf_blob blob = { 0 };
	const uint8_t *ident;
	struct bytes b;
	int err;

	if (img->size < sizeof(Elf64_Ehdr)) {
		diag_add(diag, DIAG_MALFORMED, "ELF header", 0,
			 "the file is too short to be ELF (%llu bytes)",
			 (unsigned long long)img->size);
		return -ENOEXEC;
	}
	err = elf_image_read(img, 0, sizeof(Elf64_Ehdr), &blob);
	if (err)
		return err;
	b = blob.view;
	ident = bytes_take(&b, EI_NIDENT);
	if (memcmp(ident, ELFMAG, SELFMAG) != 0)
		diag_add(diag, DIAG_MALFORMED, "ELF header", 0, "not an ELF file: bad magic");
	else if (ident[EI_CLASS] != ELFCLASS64)
		diag_add(diag, DIAG_MALFORMED, "ELF header", EI_CLASS,
			 "not a 64-bit ELF file (class %u)", ident[EI_CLASS]);
	else if (ident[EI_DATA] != ELFDATA2LSB && ident[EI_DATA] != ELFDATA2MSB)
		diag_add(diag, DIAG_MALFORMED, "ELF header", EI_DATA, "unknown byte order %u",
			 ident[EI_DATA]);
	else
		goto sound;
	elf_blob_free(&blob);
	return -ENOEXEC;
sound:
	img->be = b.be = ident[EI_DATA] == ELFDATA2MSB;
	img->type = bytes_u16(&b);
	img->machine = bytes_u16(&b);
	bytes_skip(&b, 4);
	img->entry = bytes_u64(&b);
	eh->phoff = bytes_u64(&b);
	eh->shoff = bytes_u64(&b);
	bytes_skip(&b, 6);
	bytes_skip(&b, 2); /* e_phentsize: only one size exists */
	eh->phnum = bytes_u16(&b);
	bytes_skip(&b, 2);
	eh->shnum = bytes_u16(&b);
	eh->shstrndx = bytes_u16(&b);
	elf_blob_free(&blob);
	return 0;
}

/*
 * Section 0 carries the numbers that do not fit the ELF header (gABI, section header, "extended
 * numbering").
 */
static void read_extended_numbers(const struct elf_image *img, struct ehdr *eh)
{
	struct elf_blob blob = { 0 };
	struct bytes *b = &blob.view;

	if (elf_image_read(img, eh->shoff, sizeof(Elf64_Shdr), &blob))
		return;
	bytes_skip(b, 32);
	if (!eh->shnum)
		eh->shnum = (uint32_t)bytes_u64(b);
	else
		bytes_skip(b, 8);
	if (eh->shstrndx == SHN_XINDEX)
		eh->shstrndx = bytes_u32(b);
	else
		bytes_skip(b, 4);
	if (eh->phnum == PN_XNUM)
		eh->phnum = bytes_u32(b);
	elf_blob_free(&blob);
}

static void read_shdr(struct bytes *b, struct elf_shdr *s)
{
	s->name = "";
	s->info = bytes_u32(b); /* sh_name until set_section_names() */
	s->type = bytes_u32(b);
	s->flags = bytes_u64(b);
	s->addr = bytes_u64(b);
	s->offset = bytes_u64(b);
	s->size = bytes_u64(b);
	s->link = bytes_u32(b);
	bytes_skip(b, 4 + 8);
	s->entsize = bytes_u64(b);
}

/* Sets name and info; b holds the section headers. */
static void set_section_names(struct elf_image *img, const struct elf_blob *names, struct bytes *b)
{
	for (uint32_t i = 0; i < img->nshdrs; i++) {
		struct elf_shdr *s = &img->shdrs[i];
		uint64_t left = s->info < names->view.len ? names->view.len - s->info : 0;
		struct bytes at = bytes_sub(&names->view, s->info,
					    left < NAME_MAX_BYTES ? left : NAME_MAX_BYTES);
		const char *name;

		name = bytes_str(&at);
		if (name)
			s->name = name;
		bytes_seek(b, (uint64_t)i * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_info));
		s->info = bytes_u32(b);
	}
}

static int parse_shdrs(struct elf_image *img, struct ehdr *eh, struct elf_blob *names,
		       struct diag *diag)
{
	struct elf_blob blob = { 0 };
	uint32_t num;
	int err;

	if (!eh->shoff)
		return 0;
	read_extended_numbers(img, eh);
	num = eh->shnum;
	if (num > ELF_MAX_SHDRS) {
		diag_add(diag, DIAG_MALFORMED, "ELF section headers", eh->shoff,
			 "%u of them, ignored", num);
		return 0;
	}
	err = elf_image_read(img, eh->shoff, (uint64_t)num * sizeof(Elf64_Shdr), &blob);
	if (err == -ERANGE) {
		diag_add(diag, DIAG_MALFORMED, "ELF section headers", eh->shoff,
			 "outside the file, ignored");
		return 0;
	}
	if (err)
		return err;
	img->shdrs = calloc(num ? num : 1, sizeof(*img->shdrs));
	if (!img->shdrs) {
		elf_blob_free(&blob);
		return -ENOMEM;
	}
	img->nshdrs = num;
	for (uint32_t i = 0; i < num; i++)
		read_shdr(&blob.view, &img->shdrs[i]);
	if (eh->shstrndx < num && img->shdrs[eh->shstrndx].type != SHT_NOBITS)
		elf_image_read(img, img->shdrs[eh->shstrndx].offset, img->shdrs[eh->shstrndx].size,
			       names);
	set_section_names(img, names, &blob.view);
	elf_blob_free(&blob);
	return 0;
}

static int parse_phdrs(struct elf_image *img, const struct ehdr *eh, struct diag *diag)
{
	struct elf_blob blob = { 0 };
	struct bytes *b = &blob.view;
	uint32_t i;
	int err;

	if (!eh->phoff || !eh->phnum)
		return 0;
	if (eh->phnum > ELF_MAX_PHDRS) {
		diag_add(diag, DIAG_MALFORMED, "ELF program headers", eh->phoff,
			 "%u of them, ignored", eh->phnum);
		return 0;
	}
	err = elf_image_read(img, eh->phoff, (uint64_t)eh->phnum * sizeof(Elf64_Phdr), &blob);
	if (err == -ERANGE) {
		diag_add(diag, DIAG_MALFORMED, "ELF program headers", eh->phoff,
			 "outside the file, ignored");
		return 0;
	}
	if (err)
		return err;
	img->phdrs = calloc(eh->phnum, sizeof(*img->phdrs));
	if (!img->phdrs) {
		elf_blob_free(&blob);
		return -ENOMEM;
	}
	for (i = 0; i < eh->phnum; i++) {
		struct elf_phdr ph;

		ph.type = bytes_u32(b);
		ph.flags = bytes_u32(b);
		ph.offset = bytes_u64(b);
		ph.vaddr = bytes_u64(b);
		bytes_skip(b, 8);
		ph.filesz = bytes_u64(b);
		ph.memsz = bytes_u64(b);
		ph.align = bytes_u64(b);
		if (ph.memsz > UINT64_MAX - ph.vaddr || ph.filesz > UINT64_MAX - ph.offset) {
			diag_add(diag, DIAG_MALFORMED, "ELF program headers",
				 eh->phoff + (uint64_t)i * sizeof(Elf64_Phdr),
				 "segment %u wraps around the address space, ignored", i);
			continue;
		}
		img->phdrs[img->nphdrs++] = ph;
	}
	elf_blob_free(&blob);
	return 0;
}

static int image_open(struct elf_image *img, struct diag *diag)
{
	struct ehdr eh = { 0 };
	int err = parse_ehdr(img, &eh, diag);

	if (!err) {
		img->shstrtab = calloc(1, sizeof(*img->shstrtab));
		err = img->shstrtab ? parse_shdrs(img, &eh, img->shstrtab, diag) : -ENOMEM;
	}
	if (!err)
		err = parse_phdrs(img, &eh, diag);
	if (err)
		elf_image_close(img);
	return err;
}

int elf_image_open_mem(struct elf_image *img, const void *mem, size_t size, struct diag *diag)
{
	*img = (struct elf_image){ .fd = -1, .mem = mem, .size = mem ? size : 0 };
	return image_open(img, diag);
}

int elf_image_open_fd(struct elf_image *img, int fd, struct diag *diag)
{
	/*
	 * Not fstat(): some C libraries implement it with newfstatat(), which takes a path and is
	 * forbidden in the jailed children.
	 */
	off_t size = lseek(fd, 0, SEEK_END);

	*img = (struct elf_image){ .fd = fd };
	if (size < 0)
		return -EIO;
	img->size = (uint64_t)size;
	return image_open(img, diag);
}

void elf_image_close(struct elf_image *img)
{
	if (img->shstrtab)
		elf_blob_free(img->shstrtab);
	free(img->shstrtab);
	free(img->phdrs);
	free(img->shdrs);
	*img = (struct elf_image){ .fd = -1 };
}

const struct elf_shdr *elf_image_section(const struct elf_image *img, const char *name)
{
	for (uint32_t i = 0; i < img->nshdrs; i++)
		if (strcmp(img->shdrs[i].name, name) == 0)
			return &img->shdrs[i];
	return NULL;
}

const struct elf_shdr *elf_image_section_of_type(const struct elf_image *img, uint32_t type)
{
	for (uint32_t i = 0; i < img->nshdrs; i++)
		if (img->shdrs[i].type == type)
			return &img->shdrs[i];
	return NULL;
}

const struct elf_phdr *elf_image_segment(const struct elf_image *img, uint32_t type)
{
	for (uint32_t i = 0; i < img->nphdrs; i++)
		if (img->phdrs[i].type == type)
			return &img->phdrs[i];
	return NULL;
}

int elf_image_dynamic(const struct elf_image *img, struct elf_blob *ret)
{
	const struct elf_phdr *ph = elf_image_segment(img, PT_DYNAMIC);

	return ph ? elf_image_read(img, ph->offset,
				   ph->filesz < DYNAMIC_MAX ? ph->filesz : DYNAMIC_MAX, ret)
		  : -ENOENT;
}

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

bool elf_may_unpack(uint64_t packed, uint64_t size)
{
	return size <= UNPACKED_MAX &&
	       size / UNPACKED_A_BYTE <= packed + UNPACKED_SPARE / UNPACKED_A_BYTE;
}

/* One whole stream into out, which must take all of its `size` bytes. */
static bool unpack(uint32_t type, const uint8_t *packed, size_t len, void *out, size_t size)
{
	uLongf got = size;

#ifdef HAVE_ZSTD
	if (type == ELFCOMPRESS_ZSTD)
		return ZSTD_decompress(out, size, packed, len) == size;
#endif
	return type == ELFCOMPRESS_ZLIB && uncompress(out, &got, packed, len) == Z_OK &&
	       got == size;
}

/* gABI "Section compression": Elf64_Chdr, then one zlib or zstd stream. */
static int decompress(struct elf_blob *blob)
{
	struct bytes b = blob->view;
	uint32_t type = bytes_u32(&b);
	uint64_t size;
	void *out;

	bytes_skip(&b, 4);
	size = bytes_u64(&b);
	bytes_skip(&b, 8);
	if (b.err || !elf_may_unpack(bytes_left(&b), size))
		return -ENOEXEC;
	out = malloc(size ? size : 1);
	if (!out)
		return -ENOMEM;
	if (!unpack(type, bytes_here(&b), bytes_left(&b), out, size)) {
		free(out);
		return -ENOEXEC;
	}
	free(blob->owned);
	blob->owned = out;
	blob->view = bytes_of(out, size, blob->view.be);
	return 0;
}

int elf_image_section_bytes(const struct elf_image *img, const struct elf_shdr *s,
			    struct elf_blob *ret)
{
	int err;

	if (!s || s->type == SHT_NOBITS)
		return -ENOENT;
	err = elf_image_read(img, s->offset, s->size, ret);
	if (err)
		return err;
	ret->addr = s->addr;
	if (s->flags & SHF_COMPRESSED)
		err = decompress(ret);
	if (err)
		elf_blob_free(ret);
	return err;
}

int elf_image_each_rela(const struct elf_image *img, int (*fn)(void *ctx, const Elf64_Rela *r),
			void *ctx)
{
	int err = 0;

	for (uint32_t i = 0; i < img->nshdrs && !err; i++) {
		const struct elf_shdr *s = &img->shdrs[i];
		struct elf_blob all = { 0 };
		Elf64_Rela r;

		if (s->type != SHT_RELA || s->flags & SHF_COMPRESSED ||
		    elf_image_section_bytes(img, s, &all))
			continue;
		while (!err && bytes_left(&all.view) >= sizeof(r)) {
			r.r_offset = bytes_u64(&all.view);
			r.r_info = bytes_u64(&all.view);
			r.r_addend = (int64_t)bytes_u64(&all.view);
			err = fn(ctx, &r);
		}
		elf_blob_free(&all);
	}
	return err;
}

bool elf_image_vaddr_to_offset(const struct elf_image *img, uint64_t vaddr, uint64_t *ret_offset)
{
	for (uint32_t i = 0; i < img->nphdrs; i++) {
		const struct elf_phdr *ph = &img->phdrs[i];

		if (ph->type == PT_LOAD && vaddr >= ph->vaddr && vaddr - ph->vaddr < ph->filesz) {
			*ret_offset = vaddr - ph->vaddr + ph->offset;
			return true;
		}
	}
	return false;
}

bool elf_image_offset_to_vaddr(const struct elf_image *img, uint64_t offset, uint64_t *ret_vaddr)
{
	/*
	 * Executable segments first: a page at a segment's edge is mapped twice, and callers ask
	 * about code.
	 */
	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < img->nphdrs; i++) {
			const struct elf_phdr *ph = &img->phdrs[i];

			if (ph->type != PT_LOAD || ((ph->flags & PF_X) ? 0 : 1) != pass)
				continue;
			if (offset >= ph->offset && offset - ph->offset < ph->filesz) {
				*ret_vaddr = offset - ph->offset + ph->vaddr;
				return true;
			}
		}
	}
	return false;
}

size_t elf_notes_build_id(struct bytes notes, uint8_t *ret, size_t cap)
{
	while (bytes_left(&notes) >= sizeof(Elf64_Nhdr)) {
		uint32_t namesz = bytes_u32(&notes), descsz = bytes_u32(&notes),
			 type = bytes_u32(&notes);
		const uint8_t *name = bytes_take(&notes, namesz);
		const uint8_t *desc;

		bytes_skip(&notes, -(size_t)namesz & 3);
		desc = bytes_take(&notes, descsz);
		if (notes.err)
			break;
		if (type == NT_GNU_BUILD_ID && namesz == 4 && memcmp(name, "GNU", 4) == 0 &&
		    descsz && descsz <= cap) {
			memcpy(ret, desc, descsz);
			return descsz;
		}
		bytes_skip(&notes, -(size_t)descsz & 3);
	}
	return 0;
}

size_t elf_notes_file_build_id(const char *path, uint8_t *ret, size_t cap)
{
	uint8_t notes[4096];
	FILE *f = fopen(path, "re");
	size_t len = f ? fread(notes, 1, sizeof(notes), f) : 0;

	if (f)
		fclose(f);
	return elf_notes_build_id(bytes_of(notes, len, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__), ret,
				  cap);
}

/* Many headers may name the same notes, so *left limits the bytes searched in total. */
static bool may_search(uint64_t size, uint64_t *left)
{
	bool may = size <= *left;

	if (may)
		*left -= size;
	return may;
}

size_t elf_image_build_id(const struct elf_image *img, uint8_t *ret, size_t cap)
{
	uint64_t left = NOTES_MAX;
	struct elf_blob blob = { 0 };
	size_t n = 0;
	uint32_t i;

	for (i = 0; i < img->nphdrs && !n; i++) {
		if (img->phdrs[i].type != PT_NOTE || !may_search(img->phdrs[i].filesz, &left) ||
		    elf_image_read(img, img->phdrs[i].offset, img->phdrs[i].filesz, &blob))
			continue;
		n = elf_notes_build_id(blob.view, ret, cap);
		elf_blob_free(&blob);
	}
	for (i = 0; i < img->nshdrs && !n; i++) {
		if (img->shdrs[i].type != SHT_NOTE || img->shdrs[i].flags & SHF_COMPRESSED ||
		    !may_search(img->shdrs[i].size, &left) ||
		    elf_image_section_bytes(img, &img->shdrs[i], &blob))
			continue;
		n = elf_notes_build_id(blob.view, ret, cap);
		elf_blob_free(&blob);
	}
	return n;
}
