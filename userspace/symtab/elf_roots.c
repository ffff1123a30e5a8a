/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names for the frames that end or interrupt stacks, on stripped systems. Distributions strip
 * _start from programs and the others from libc. A reader of the profile needs them to see that a
 * stack is complete. They can be found without symbols: _start is e_entry of an executable, the
 * others are in elf/known_code.h. In clone3 only the code after the call is named, as nothing else
 * of it appears on a stack.
 */
#include <string.h>

#include "elf/go_table.h"
#include "elf/known_code.h"
#include "symtab/symtab_builder.h"

/* Enough for _start of glibc and musl up to its call, on all architectures */
#define START_SIZE 48
#define LIBC	   "libc.so.6"
#define SCAN_MAX   (16u << 20) /* bytes of code; glibc has 1.4 MB */
/* Bytes of code in hand: fresh memory costs more than reading. What they end with is seen again. */
#define WINDOW	   (64u << 10)
#define SEEN_AGAIN 256

static const struct named_code {
	uint16_t machine;
	const char *soname; /* the file that has it; a statically linked program has all of libc */
	enum known_code code;
	uint32_t name;
} named[] = {
	{ EM_X86_64, LIBC, KNOWN_CLONE3, NAME_CLONE3 },
	{ EM_X86_64, LIBC, KNOWN_RESTORE_RT, NAME_RESTORE_RT },
	{ EM_X86_64, LIBC, KNOWN_START_CONTEXT, NAME_START_CONTEXT },
	{ EM_AARCH64, "linux-vdso.so.1", KNOWN_A64_RESTORE_RT, NAME_KERNEL_SIGRETURN },
	{ EM_AARCH64, LIBC, KNOWN_A64_RESTORE_RT, NAME_RESTORE_RT },
};

#define NNAMED (sizeof(named) / sizeof(named[0]))

_Static_assert(NNAMED + 1 <= MAX_ROOTS, "room for each of them and _start");

/* Finds code that was not found yet. Returns how many. */
static uint32_t find_in_window(const struct builder *b, uint64_t off, uint64_t size,
			       bool found[NNAMED], struct root *ret)
{
	struct elf_blob code = { 0 };
	uint64_t start;
	uint32_t n = 0;

	if (elf_image_read(b->img, off, size, &code))
		return 0;
	for (size_t k = 0; k < NNAMED; k++) {
		struct bytes at = code.view;

		if (found[k] || !known_code_next(&at, named[k].code, &start))
			continue;
		found[k] = true;
		ret[n++] = (struct root){ off + start, known_code_size(named[k].code),
					  named[k].name, known_code_before(named[k].code) };
	}
	elf_blob_free(&code);
	return n;
}

static uint32_t find_named_code(const struct builder *b, struct root *ret)
{
	bool found[NNAMED], some = false; /* found[k]: already found, or not searched for */
	uint32_t n = 0;
	/* A Go program has its own restorer, whatever it is linked with. */
	bool is_go = go_table_section(b->img) != NULL;
	/* A program without an interpreter contains all of libc. */
	bool has_libc = !elf_image_segment(b->img, PT_INTERP) && builder_is_program(b);

	for (size_t k = 0; k < NNAMED; k++) {
		found[k] = b->img->be || b->img->machine != named[k].machine;
		if (!found[k] && !builder_is_named(b, named[k].soname))
			found[k] = strcmp(named[k].soname, LIBC) != 0 ||
				   !(has_libc || (is_go && named[k].code == KNOWN_RESTORE_RT));
		some |= !found[k];
	}
	for (uint32_t i = 0; some && i < b->nareas; i++) {
		const struct code_range *a = &b->areas[i];

		for (uint64_t at = 0; a->size <= SCAN_MAX && at < a->size; at += WINDOW) {
			uint64_t left = a->size - at, most = WINDOW + SEEN_AGAIN;

			n += find_in_window(b, a->off + at, left < most ? left : most, found,
					    &ret[n]);
		}
	}
	return n;
}

uint32_t builder_find_roots(const struct builder *b, struct root ret[MAX_ROOTS])
{
	uint32_t n = 0;

	if (b->img->entry && builder_code_offset(b, b->img->entry, &ret[n].off) &&
	    builder_is_program(b)) {
		ret[n].size = START_SIZE;
		ret[n].before = 0;
		ret[n++].name = NAME_START;
	}
	return n + find_named_code(b, &ret[n]);
}
