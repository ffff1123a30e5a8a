/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names for the outermost frames of a stripped system. Distributions strip _start from programs and clone3 from
 * libc, and with them goes what tells a reader that a stack is whole. Both can be known without a symbol:
 * _start is e_entry of an executable; clone3 is the only code in libc that issues that system call,
 *
 *	b8 b3 01 00 00	mov $435, %eax
 *	0f 05		syscall
 *
 * and goes on with the new thread's first frame. Only what follows the call is named: nothing else of it is ever
 * found on a stack, and where the function starts would have to be guessed.
 */
#include <string.h>

#include "sym/elf_symtab_internal.h"

#define START_SIZE 48		/* enough for _start of glibc and musl up to its call, on all architectures */
#define CLONE3_SIZE 56		/* from the call to the end: 53 bytes in glibc 2.36, and functions are aligned to 16 */
#define SCAN_MAX (16u << 20)	/* bytes of code; glibc has 1.4 MB */

/* File offset of the call in one code area; false if it is not there. */
static bool find_call(const struct elf_image *img, const struct code_range *area, uint64_t *ret)
{
	static const uint8_t call[] = { 0xb8, 0xb3, 0x01, 0x00, 0x00, 0x0f, 0x05 };
	struct elf_blob code = { 0 };
	const uint8_t *at = NULL;

	if (area->size > SCAN_MAX || elf_image_read(img, area->off, area->size, &code))
		return false;
	if (code.view.len)
		at = memmem(code.view.base, code.view.len, call, sizeof(call));
	if (at)
		*ret = area->off + (uint64_t)(at - code.view.base);
	elf_blob_free(&code);
	return at != NULL;
}

static bool find_clone3(const struct builder *b, struct root *ret)
{
	if (b->img->machine != EM_X86_64 || b->img->be)
		return false;
	/* In libc, or in what has libc inside: a program without an interpreter. */
	if (!builder_is_named(b, "libc.so.6") && (elf_image_segment(b->img, PT_INTERP) || !builder_is_program(b)))
		return false;
	for (uint32_t i = 0; i < b->nareas; i++) {
		if (find_call(b->img, &b->areas[i], &ret->off)) {
			ret->size = CLONE3_SIZE;
			ret->name = NAME_CLONE3;
			return true;
		}
	}
	return false;
}

uint32_t builder_find_roots(const struct builder *b, struct root ret[MAX_ROOTS])
{
	uint32_t n = 0;

	if (b->img->entry && builder_code_offset(b, b->img->entry, &ret[n].off) && builder_is_program(b)) {
		ret[n].size = START_SIZE;
		ret[n++].name = NAME_START;
	}
	if (find_clone3(b, &ret[n]))
		n++;
	return n;
}
