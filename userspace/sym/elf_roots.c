/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names for the frames that end or interrupt stacks, on a stripped system. Distributions strip _start from programs
 * and the rest from libc, and with them goes what tells a reader that a stack is whole. They can be known without a
 * symbol: _start is e_entry of an executable; the others are the only code in libc of their kind. x86-64:
 *
 *	clone3			mov $435, %eax; syscall; then the new thread's first frame
 *	__restore_rt		mov $15, %rax; syscall: below every signal handler
 *	__start_context		mov %rbx, %rsp; mov (%rsp), %rdi; test %rdi, %rdi: below a makecontext() function
 *
 * AArch64:
 *
 *	__kernel_rt_sigreturn	mov x8, #139; svc #0, in the vDSO; musl's __restore_rt in its libc
 *
 * Of clone3 only what follows the call is named: nothing else of it is ever found on a stack, and where the function
 * starts would have to be guessed. The others are returned to at their first byte, and what is looked up is the byte
 * before it.
 */
#include <string.h>

#include "sym/elf_symtab_internal.h"

#define START_SIZE 48		/* enough for _start of glibc and musl up to its call, on all architectures */
#define LIBC "libc.so.6"
#define SCAN_MAX (16u << 20)	/* bytes of code; glibc has 1.4 MB */

static const struct pattern {
	uint8_t bytes[12], len;
	uint8_t before, size;	/* the name holds from `before` bytes ahead of the pattern, for `size` bytes */
	uint16_t machine;
	const char *soname;	/* where it is; a program that has libc inside has all of libc's */
	uint32_t name;
} patterns[] = {
	/* 53 bytes from the call to the end in glibc 2.36, and functions are aligned to 16. */
	{ { 0xb8, 0xb3, 0x01, 0x00, 0x00, 0x0f, 0x05 }, 7, 0, 56, EM_X86_64, LIBC, NAME_CLONE3 },
	{ { 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05 }, 9, 1, 10, EM_X86_64, LIBC, NAME_RESTORE_RT },
	{ { 0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3c, 0x24, 0x48, 0x85, 0xff }, 10, 1, 27, EM_X86_64, LIBC, NAME_START_CONTEXT },
	{ { 0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4 }, 8, 4, 12, EM_AARCH64, "linux-vdso.so.1", NAME_KERNEL_SIGRETURN },
	{ { 0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4 }, 8, 4, 12, EM_AARCH64, LIBC, NAME_RESTORE_RT },
};

#define NPATTERNS (sizeof(patterns) / sizeof(patterns[0]))

_Static_assert(NPATTERNS + 1 <= MAX_ROOTS, "room for each pattern and _start");

static uint32_t find_patterns(const struct builder *b, struct root *ret)
{
	bool found[NPATTERNS], some = false;	/* found: already, or not looked for */
	uint32_t n = 0;
	/* In a program without an interpreter there is all of libc. */
	bool has_libc = !elf_image_segment(b->img, PT_INTERP) && builder_is_program(b);

	for (size_t k = 0; k < NPATTERNS; k++) {
		found[k] = b->img->be || b->img->machine != patterns[k].machine;
		if (!found[k] && !builder_is_named(b, patterns[k].soname))
			found[k] = !has_libc || strcmp(patterns[k].soname, LIBC) != 0;
		some |= !found[k];
	}
	for (uint32_t i = 0; some && i < b->nareas; i++) {
		struct elf_blob code = { 0 };

		if (b->areas[i].size > SCAN_MAX || elf_image_read(b->img, b->areas[i].off, b->areas[i].size, &code))
			continue;
		for (size_t k = 0; k < NPATTERNS; k++) {
			struct bytes at = code.view;

			if (found[k] || !bytes_find(&at, patterns[k].bytes, patterns[k].len) || at.pos < patterns[k].before)
				continue;
			found[k] = true;
			ret[n++] = (struct root){ b->areas[i].off + at.pos - patterns[k].before, patterns[k].size, patterns[k].name,
						  patterns[k].before };
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
		ret[n].before = 0;
		ret[n++].name = NAME_START;
	}
	return n + find_patterns(b, &ret[n]);
}
