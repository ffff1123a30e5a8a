/* SPDX-License-Identifier: BSD-2-Clause */
/* What a file tells the dynamic linker to load. */
#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "elf/elf_needed.h"

#include "test.h"

#define SIZE	0x400
#define BASE	0x10000
#define INTERP	0x200
#define STRTAB	0x240
#define DYNAMIC 0x300

static uint8_t image[SIZE];

static void put(const Elf64_Dyn *dyn, size_t n)
{
	Elf64_Ehdr eh = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT },
			  .e_type = ET_DYN,
			  .e_machine = EM_X86_64,
			  .e_version = EV_CURRENT,
			  .e_phoff = sizeof(eh),
			  .e_ehsize = sizeof(eh),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 3,
			  .e_shentsize = sizeof(Elf64_Shdr) };
	Elf64_Phdr ph[3] = {
		{ .p_type = PT_LOAD, .p_vaddr = BASE, .p_filesz = SIZE, .p_memsz = SIZE },
		{ .p_type = PT_INTERP, .p_offset = INTERP, .p_filesz = 16 },
		{ .p_type = PT_DYNAMIC, .p_offset = DYNAMIC, .p_filesz = SIZE - DYNAMIC },
	};

	memset(image, 0, sizeof(image));
	memcpy(image, &eh, sizeof(eh));
	memcpy(image + sizeof(eh), ph, sizeof(ph));
	strcpy((char *)image + INTERP, "/lib/ld.so");
	strcpy((char *)image + STRTAB + 1, "libone.so");
	strcpy((char *)image + STRTAB + 16, "$ORIGIN/../lib:/opt");
	strcpy((char *)image + STRTAB + 48, "libtwo.so");
	memcpy(image + DYNAMIC, dyn, n * sizeof(*dyn));
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
	EXPECT(!elf_image_open_mem(&img, image, SIZE, NULL));
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
	memset(image + SIZE - 4, 'x', 4);
	memset(image + INTERP, 'y', STRTAB - INTERP);
	memset(image + STRTAB, 'y', DYNAMIC - STRTAB);
	EXPECT_STR(found(), "");
}
