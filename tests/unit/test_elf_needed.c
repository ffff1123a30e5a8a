/* SPDX-License-Identifier: BSD-2-Clause */
/* What a file tells the dynamic linker to load. */
#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "elf/elf_needed.h"

#include "image_build.h"
#include "test.h"

#define SIZE	0x2400 /* of the file */
#define BASE	0x10000
#define INTERP	0x2200
#define STRTAB	0x2240
#define DYNAMIC 0x2300

static struct image im;

static void segment(uint32_t type, uint64_t vaddr, uint64_t offset, uint64_t size)
{
	im.segs[im.nsegs++] = (struct elf_phdr){
		.type = type, .vaddr = vaddr, .offset = offset, .filesz = size, .memsz = size
	};
}

static void put(const Elf64_Dyn *dyn, size_t n)
{
	image_free(&im);
	image_init(&im);
	segment(PT_LOAD, BASE, 0, SIZE);
	segment(PT_INTERP, 0, INTERP, 16);
	segment(PT_DYNAMIC, 0, DYNAMIC, SIZE - DYNAMIC);
	image_finish(&im);
	strcpy((char *)im.file.buf + INTERP, "/lib/ld.so");
	strcpy((char *)im.file.buf + STRTAB + 1, "libone.so");
	strcpy((char *)im.file.buf + STRTAB + 16, "$ORIGIN/../lib:/opt");
	strcpy((char *)im.file.buf + STRTAB + 48, "libtwo.so");
	memcpy(im.file.buf + DYNAMIC, dyn, n * sizeof(*dyn));
}

static void add(void *ctx, enum elf_needed kind, const char *text)
{
	char *to = ctx;

	snprintf(to + strlen(to), 512 - strlen(to), "%d %s|", kind, text);
}

static const char *found(void)
{
	static char text[512];
	struct elf_image img;

	text[0] = 0;
	EXPECT(!elf_image_open_mem(&img, im.file.buf, im.file.len, NULL));
	elf_needed(&img, add, text);
	elf_image_close(&img);
	return text;
}

TEST(directories_then_interpreter_then_libraries)
{
	const Elf64_Dyn dyn[] = {
		{ DT_NEEDED, { 1 } },  { DT_STRTAB, { BASE + STRTAB } },
		{ DT_NEEDED, { 48 } }, { DT_RUNPATH, { 16 } },
		{ DT_NULL, { 0 } },    { DT_NEEDED, { 1 } },
	};

	put(dyn, sizeof(dyn) / sizeof(dyn[0]));
	EXPECT_STR(found(), "1 $ORIGIN/../lib:/opt|0 /lib/ld.so|2 libone.so|2 libtwo.so|");
}

TEST(damaged_names_are_left_out)
{
	const Elf64_Dyn outside[] = {
		{ DT_STRTAB, { BASE + STRTAB } },
		{ DT_NEEDED, { SIZE } },
		{ DT_NEEDED, { UINT64_MAX } },
		{ DT_NEEDED, { SIZE - STRTAB } },
		{ DT_NEEDED, { 0 } },
		{ DT_NEEDED, { 48 } },
		{ DT_NULL, { 0 } },
	};
	const Elf64_Dyn no_strings[] = { { DT_NEEDED, { 1 } }, { DT_NULL, { 0 } } };
	const Elf64_Dyn endless[] = { { DT_STRTAB, { BASE + STRTAB } },
				      { DT_NEEDED, { SIZE - 4 - STRTAB } },
				      { DT_NULL, { 0 } } };

	put(outside, sizeof(outside) / sizeof(outside[0]));
	EXPECT_STR(found(), "0 /lib/ld.so|2 libtwo.so|");
	put(no_strings, sizeof(no_strings) / sizeof(no_strings[0]));
	EXPECT_STR(found(), "0 /lib/ld.so|");
	/* It goes on to the end of the file. */
	put(endless, sizeof(endless) / sizeof(endless[0]));
	memset(im.file.buf + SIZE - 4, 'x', 4);
	memset(im.file.buf + INTERP, 'y', STRTAB - INTERP);
	memset(im.file.buf + STRTAB, 'y', DYNAMIC - STRTAB);
	EXPECT_STR(found(), "");
	image_free(&im);
}
