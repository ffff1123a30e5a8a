/* SPDX-License-Identifier: BSD-2-Clause */
/* Data that code refers to: a jump table of unknown length ends where other data starts. */
#include <string.h>

#include "base/u64s.h"
#include "codewalk/code_fn.h"

#define REFS_MAX  (8u << 20)
#define LEA_BYTES 7 /* a lea with a REX prefix, relative to rip */

static int add_refs(struct code_fn *f, const struct code_text *t)
{
	struct bytes code = bytes_sub(&t->bytes, 0, t->end - t->start);
	const uint8_t *at = bytes_here(&code);
	int err = 0;

	for (size_t i = 0; i + LEA_BYTES <= code.len && !err; i++) {
		uint64_t to;
		int32_t by;

		if ((at[i] & 0xfb) != 0x48 || at[i + 1] != 0x8d || (at[i + 2] & 0xc7) != 0x05)
			continue;
		memcpy(&by, at + i + 3, 4);
		to = t->start + i + LEA_BYTES + (uint64_t)(int64_t)by;
		if (!code_text_of(f->bin, to) && f->learnt.nrefs <= REFS_MAX)
			err = u64_push(&f->learnt.refs, &f->learnt.nrefs, &f->learnt.refs_cap, to);
	}
	return err;
}

int code_refs_load(struct code_fn *f)
{
	int err = 0;

	if (f->learnt.has_refs || f->arch->ra != CODE_NO_REG)
		return 0;
	f->learnt.has_refs = true;
	for (size_t i = 0; i < f->bin->ntexts && !err; i++)
		err = add_refs(f, &f->bin->texts[i]);
	if (f->learnt.nrefs > REFS_MAX)
		f->learnt.nrefs = 0;
	f->learnt.nrefs = u64_sort_unique(f->learnt.refs, f->learnt.nrefs);
	return err;
}

bool code_is_ref(const struct code_fn *f, uint64_t addr)
{
	size_t i = u64_first_from(f->learnt.refs, f->learnt.nrefs, addr);

	return i < f->learnt.nrefs && f->learnt.refs[i] == addr;
}
