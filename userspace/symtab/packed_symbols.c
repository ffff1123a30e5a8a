/* SPDX-License-Identifier: BSD-2-Clause */
#include "symtab/packed_symbols.h"

#include <errno.h>
#include <stdlib.h>
#ifdef HAVE_LZMA
#include <lzma.h>
#endif

#include "base/vec.h"

#define UNPACKED_MAX (64u << 20) /* real ones have a few MB */
#define XZ_MEMORY    (96u << 20) /* memory of the decoder; xz -9 needs 65 MB */

#ifdef HAVE_LZMA
static int unpack(struct bytes packed, void **ret, size_t *ret_len)
{
	lzma_stream z = LZMA_STREAM_INIT;
	lzma_ret rc = LZMA_OK;
	uint8_t *out = NULL;
	size_t cap = 0;

	if (lzma_stream_decoder(&z, XZ_MEMORY, 0) != LZMA_OK)
		return -ENOMEM;
	z.avail_in = bytes_left(&packed);
	z.next_in = bytes_take(&packed, z.avail_in);
	while (rc == LZMA_OK && z.total_out < UNPACKED_MAX) {
		if (vec_reserve(&out, &cap, (size_t)z.total_out + 65536, 1))
			break;
		z.next_out = out + z.total_out;
		z.avail_out = cap - (size_t)z.total_out;
		rc = lzma_code(&z, LZMA_FINISH);
	}
	*ret_len = (size_t)z.total_out;
	lzma_end(&z);
	if (rc != LZMA_STREAM_END) {
		free(out);
		return -ENOENT;
	}
	*ret = out;
	return 0;
}
#else
static int unpack(struct bytes packed, void **ret, size_t *ret_len)
{
	(void)packed;
	(void)ret;
	(void)ret_len;
	return -ENOENT;
}
#endif

int packed_symbols_open(const struct elf_image *img, struct packed_symbols *ret)
{
	const struct elf_shdr *s = elf_image_section(img, ".gnu_debugdata");
	struct elf_blob blob = { 0 };
	size_t size;
	int err;

	*ret = (struct packed_symbols){ .img = { .fd = -1 } };
	if (!s || s->size > UNPACKED_MAX || elf_image_section_bytes(img, s, &blob))
		return -ENOENT;
	err = unpack(blob.view, &ret->mem, &size);
	elf_blob_free(&blob);
	if (!err && elf_image_open_mem(&ret->img, ret->mem, size, NULL))
		err = -ENOENT;
	if (!err && (ret->img.machine != img->machine || ret->img.be != img->be ||
		     !elf_image_section_of_type(&ret->img, SHT_SYMTAB)))
		err = -ENOENT;
	if (err)
		packed_symbols_close(ret);
	return err;
}

void packed_symbols_close(struct packed_symbols *p)
{
	elf_image_close(&p->img);
	free(p->mem);
	p->mem = NULL;
}
