/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names for the frames that end or interrupt stacks, on a stripped system. Distributions strip _start from programs
 * and the rest from libc, and with them goes what tells a reader that a stack is whole. They can be known without a
 * symbol: _start is e_entry of an executable; the others are the only code in libc of their kind (x86-64):
 *
 *	clone3			mov $435, %eax; syscall; then the new thread's first frame
 *	__restore_rt		mov $15, %rax; syscall: below every signal handler
 *	__start_context		mov %rbx, %rsp; mov (%rsp), %rdi; test %rdi, %rdi: below a makecontext() function
 *
 * Of clone3 only what follows the call is named: nothing else of it is ever found on a stack, and where the function
 * starts would have to be guessed. The other two are returned to at their first byte, and what is looked up is the byte
 * before it.
 */
#include <string.h>

#include "sym/elf_symtab_internal.h"

#define START_SIZE 48		/* enough for _start of glibc and musl up to its call, on all architectures */
#define SCAN_MAX (16u << 20)	/* bytes of code; glibc has 1.4 MB */

static const struct pattern {
	uint8_t bytes[10], len;
	uint8_t before, size;	/* the name holds from `before` bytes ahead of the pattern, for `size` bytes */
	uint32_t name;
} patterns[] = {
	/* 53 bytes from the call to the end in glibc 2.36, and functions are aligned to 16. */
	{ { 0xb8, 0xb3, 0x01, 0x00, 0x00, 0x0f, 0x05 }, 7, 0, 56, NAME_CLONE3 },
	{ { 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05 }, 9, 1, 10, NAME_RESTORE_RT },
	{ { 0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3c, 0x24, 0x48, 0x85, 0xff }, 10, 1, 27, NAME_START_CONTEXT },
};

#define NPATTERNS (sizeof(patterns) / sizeof(patterns[0]))

_Static_assert(NPATTERNS + 1 <= MAX_ROOTS, "room for each pattern and _start");

static uint32_t find_patterns(const struct builder *b, struct root *ret)
{
	bool found[NPATTERNS] = { false };
	uint32_t n = 0;

	if (b->img->machine != EM_X86_64 || b->img->be)
		return 0;
	/* In libc, or in what has libc inside: a program without an interpreter. */
	if (!builder_is_named(b, "libc.so.6") && (elf_image_segment(b->img, PT_INTERP) || !builder_is_program(b)))
		return 0;
	for (uint32_t i = 0; i < b->nareas; i++) {
		struct elf_blob code = { 0 };

		if (b->areas[i].size > SCAN_MAX || elf_image_read(b->img, b->areas[i].off, b->areas[i].size, &code))
			continue;
		for (size_t k = 0; k < NPATTERNS; k++) {
			struct bytes at = code.view;

			if (found[k] || !bytes_find(&at, patterns[k].bytes, patterns[k].len) || at.pos < patterns[k].before)
				continue;
			found[k] = true;
			ret[n++] = (struct root){ b->areas[i].off + at.pos - patterns[k].before, patterns[k].size, patterns[k].name };
		}
		elf_blob_free(&code);
	}
	return n;
}

uint32_t builder_find_roots(const struct builder *b, struct root ret[MAX_ROOTS])
{
	uint32_t n = 0;

	if (b->img->entry && builder_code_offset(b, b->img->entry, &ret[n].off) && builder_is_program(b)) {
		ret[n].size = START_SIZE;
		ret[n++].name = NAME_START;
	}
	return n + find_patterns(b, &ret[n]);
}
