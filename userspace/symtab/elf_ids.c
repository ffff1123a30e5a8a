/* SPDX-License-Identifier: BSD-2-Clause */
#include "symtab/elf_ids.h"

#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/full_io.h"

#ifdef HAVE_AGENT
#include <nettle/sha2.h>

enum { ENDS = 4096 };

struct ends {
	uint8_t head[ENDS], tail[ENDS];
};

/*
 * OpenTelemetry's process.executable.build_id.htlhash: the first half of the SHA-256 of the first
 * 4096 bytes, the last 4096 bytes (which overlap in a small file) and the length.
 */
static void hash_ends(const uint8_t *head, const uint8_t *tail, uint64_t size, uint8_t *ret)
{
	size_t n = size < ENDS ? (size_t)size : ENDS;
	uint64_t length = htobe64(size);
	struct sha256_ctx sha;

	sha256_init(&sha);
	sha256_update(&sha, n, head);
	sha256_update(&sha, n, tail);
	sha256_update(&sha, sizeof(length), (const uint8_t *)&length);
	sha256_digest(&sha, MODULE_HTLHASH, ret);
}

/* Section .note.go.buildid: a note of type 4 and name "Go" with a text. */
static void read_go(const struct elf_image *img, char *ret, size_t cap)
{
	const struct elf_shdr *s = elf_image_section(img, ".note.go.buildid");
	struct elf_blob blob = { 0 };
	uint32_t namesz, descsz, type;
	const uint8_t *name, *desc;

	if (!s || s->size > ENDS || elf_image_section_bytes(img, s, &blob))
		return;
	namesz = bytes_u32(&blob.view);
	descsz = bytes_u32(&blob.view);
	type = bytes_u32(&blob.view);
	name = bytes_take(&blob.view, namesz);
	bytes_skip(&blob.view, -(size_t)namesz & 3);
	desc = bytes_take(&blob.view, descsz);
	if (!blob.view.err && type == 4 && namesz == 4 && !memcmp(name, "Go", 3) && descsz < cap)
		memcpy(ret, desc, descsz);
	elf_blob_free(&blob);
	for (const char *c = ret; *c; c++)
		if (!isgraph((unsigned char)*c))
			*ret = 0;
}

/* Section .comment has a text of each compiler that made a part of the file. */
static bool by_rustc(const struct elf_image *img)
{
	const struct elf_shdr *s = elf_image_section(img, ".comment");
	struct elf_blob blob = { 0 };
	bool found = false;

	if (!s || s->size > 16 * ENDS || elf_image_section_bytes(img, s, &blob))
		return false;
	while (bytes_left(&blob.view) && !blob.view.err && !found) {
		const char *text = bytes_str(&blob.view);

		found = text && !strncmp(text, "rustc ", 6);
	}
	elf_blob_free(&blob);
	return found;
}

static void read_image(const struct elf_image *img, struct module_ids *ret)
{
	if (!img)
		return;
	read_go(img, ret->go, sizeof(ret->go));
	ret->rust = by_rustc(img);
}

int elf_ids_read(int fd, const struct elf_image *img, struct module_ids *ret)
{
	static struct ends ends;
	off_t size = lseek(fd, 0, SEEK_END);
	size_t n;

	memset(ret, 0, sizeof(*ret)); /* including padding, as it is sent to another process */
	if (size < 0)
		return -errno;
	n = size < ENDS ? (size_t)size : ENDS;
	if (pread_full(fd, ends.head, n, 0) || pread_full(fd, ends.tail, n, (uint64_t)size - n))
		return -EIO;
	hash_ends(ends.head, ends.tail, (uint64_t)size, ret->htlhash);
	ret->hashed = true;
	read_image(img, ret);
	return 0;
}

int elf_ids_read_mem(const void *mem, uint64_t size, const struct elf_image *img,
		     struct module_ids *ret)
{
	memset(ret, 0, sizeof(*ret));
	hash_ends(mem, (const uint8_t *)mem + (size < ENDS ? 0 : size - ENDS), size, ret->htlhash);
	ret->hashed = true;
	read_image(img, ret);
	return 0;
}

#else

int elf_ids_read(int fd, const struct elf_image *img, struct module_ids *ret)
{
	(void)fd, (void)img;
	memset(ret, 0, sizeof(*ret));
	return -ENOSYS;
}

int elf_ids_read_mem(const void *mem, uint64_t size, const struct elf_image *img,
		     struct module_ids *ret)
{
	(void)mem, (void)size;
	return elf_ids_read(-1, img, ret);
}

#endif

bool elf_ids_sound(const struct module_ids *ids)
{
	if (!memchr(ids->go, 0, sizeof(ids->go)) || ids->hashed > 1 || ids->rust > 1)
		return false;
	for (const char *c = ids->go; *c; c++)
		if (!isgraph((unsigned char)*c))
			return false;
	return true;
}
