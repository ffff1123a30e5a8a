/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf/elf_dynamic.h"

#include <elf.h>
#include <string.h>

static void read_name(const struct elf_image *img, uint64_t strtab, uint64_t name,
		      struct elf_dynamic *ret)
{
	struct elf_blob str;
	const char *s;
	uint64_t off;

	if (!elf_image_vaddr_to_offset(img, strtab, &off) || name >= img->size ||
	    elf_image_read(img, off + name, sizeof(ret->name) - 1, &str))
		return;
	s = bytes_str(&str.view);
	if (s)
		memcpy(ret->name, s, strlen(s) + 1);
	elf_blob_free(&str);
}

void elf_dynamic_read(const struct elf_image *img, struct elf_dynamic *ret)
{
	uint64_t tag, val, name = 0, strtab = 0;
	struct elf_blob dyn;

	*ret = (struct elf_dynamic){ 0 };
	if (elf_image_dynamic(img, &dyn))
		return;
	ret->found = true;
	while (elf_dynamic_next(&dyn.view, &tag, &val)) {
		if (tag == DT_SONAME) {
			name = val;
			ret->named = true;
		} else if (tag == DT_STRTAB) {
			strtab = val;
		} else if (tag == DT_FLAGS_1) {
			ret->pie = val & DF_1_PIE;
		}
	}
	elf_blob_free(&dyn);
	if (ret->named)
		read_name(img, strtab, name, ret);
}
