/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An ELF file as a set of byte ranges (System V gABI, chapters 4 and 5).
 *
 * Reads ELF64 of either byte order, from memory or from an open regular file. File mode uses pread
 * only, never mmap: another user may truncate the file at any time, which makes a short read an
 * error but would make a mapping raise SIGBUS. Only the headers are read at open; sections are read
 * on request and freed with elf_blob_free. A file without section headers is legal. In such a file
 * only program headers locate tables.
 */
#ifndef SFBPF_ELF_ELF_IMAGE_H
#define SFBPF_ELF_ELF_IMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/diag.h"

#define ELF_MAX_PHDRS 256 /* real files have 15; every address lookup scans them */
#define ELF_MAX_SHDRS 65536

#ifndef PT_GNU_SFRAME
#define PT_GNU_SFRAME 0x6474e554
#endif
#ifndef SHT_GNU_SFRAME
#define SHT_GNU_SFRAME 0x6ffffff4
#endif

struct elf_phdr {
	uint32_t type, flags;
	uint64_t offset, vaddr, filesz, memsz, align;
};

struct elf_shdr {
	const char *name; /* inside the image's copy of .shstrtab; "" if out of range */
	uint32_t type, link, info;
	uint64_t flags, addr, offset, size, entsize;
};

struct elf_image {
	int fd;			/* -1 in memory mode; not owned */
	const uint8_t *mem;	/* memory mode; not owned */
	uint64_t size;		/* bytes of the file */
	uint16_t type, machine; /* ET_*, EM_* */
	bool be;		/* ELFDATA2MSB */
	uint64_t entry;		/* virtual address */
	struct elf_phdr *phdrs;
	uint32_t nphdrs;
	struct elf_shdr *shdrs; /* NULL if there are none */
	uint32_t nshdrs;
	struct elf_blob *shstrtab;
};

/* A byte range of the file: a view in memory mode, a copy in file mode. */
struct elf_blob {
	struct bytes view; /* byte order of the file */
	uint64_t addr;	   /* sh_addr or p_vaddr; 0 if it has none */
	void *owned;	   /* NULL in memory mode */
};

/*
 * 0, or -errno with nothing to close: -ENOEXEC: not ELF64 (one DIAG_MALFORMED says why), -ENOMEM,
 * -EIO. Damaged section or program headers are noted and dropped.
 */
int elf_image_open_mem(struct elf_image *img, const void *mem, size_t size, struct diag *diag);
/*
 * fd must be a regular file (the caller has checked S_ISREG); it must stay open while the image is
 * used.
 */
int elf_image_open_fd(struct elf_image *img, int fd, struct diag *diag);
void elf_image_close(struct elf_image *img); /* also on a zeroed image */

/* [offset, offset+size) of the file. 0, -ERANGE outside the file or above 256 MB, -ENOMEM, -EIO. */
int elf_image_read(const struct elf_image *img, uint64_t offset, uint64_t size,
		   struct elf_blob *ret);
void elf_blob_free(struct elf_blob *blob); /* also on a zeroed blob */

/*
 * Whether a compressed section may expand to `size` bytes. The limit grows with the compressed
 * size, so that the time to read a file is proportional to its size.
 */
bool elf_may_unpack(uint64_t packed, uint64_t size);

const struct elf_shdr *elf_image_section(const struct elf_image *img, const char *name);
const struct elf_shdr *elf_image_section_of_type(const struct elf_image *img, uint32_t type);
const struct elf_phdr *elf_image_segment(const struct elf_image *img, uint32_t type);
/* The bytes of PT_DYNAMIC, 64 KB at most. 0, -ENOENT: there is none, or as elf_image_read. */
int elf_image_dynamic(const struct elf_image *img, struct elf_blob *ret);
/* Reads its next entry. False: DT_NULL or its end was reached. */
static inline bool elf_dynamic_next(struct bytes *dyn, uint64_t *ret_tag, uint64_t *ret_value)
{
	if (bytes_left(dyn) < sizeof(Elf64_Dyn))
		return false;
	*ret_tag = bytes_u64(dyn);
	*ret_value = bytes_u64(dyn);
	return *ret_tag != DT_NULL;
}
/*
 * A section's bytes, decompressed when SHF_COMPRESSED (zlib; zstd if built with it). -ENOENT when s
 * is NULL or SHT_NOBITS.
 */
int elf_image_section_bytes(const struct elf_image *img, const struct elf_shdr *s,
			    struct elf_blob *ret);

/*
 * Calls fn() for each entry of the sections of relocations with addends, except compressed ones.
 * Ends when it returns another value than 0, and returns that.
 */
int elf_image_each_rela(const struct elf_image *img, int (*fn)(void *ctx, const Elf64_Rela *r),
			void *ctx);

/* Both convert through PT_LOAD. False if no segment holds the address or offset. */
bool elf_image_vaddr_to_offset(const struct elf_image *img, uint64_t vaddr, uint64_t *ret_offset);
bool elf_image_offset_to_vaddr(const struct elf_image *img, uint64_t offset, uint64_t *ret_vaddr);

/* The GNU build-id (note NT_GNU_BUILD_ID), at most cap bytes. Bytes written, 0 if there is none. */
size_t elf_image_build_id(const struct elf_image *img, uint8_t *ret, size_t cap);
/* Finds the build-id in bare notes, as in /sys/kernel/notes. */
size_t elf_notes_build_id(struct bytes notes, uint8_t *ret, size_t cap);
/* Finds the build-id in a file of notes that the kernel provides. */
size_t elf_notes_file_build_id(const char *path, uint8_t *ret, size_t cap);

#endif
