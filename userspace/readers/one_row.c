/* SPDX-License-Identifier: BSD-2-Clause */
#include "readers/one_row.h"

#include <errno.h>

#include "readers/eh_cfa.h"

/* 1, 0 or -ENOMEM. */
static int is_wanted(const struct eh_frame *eh, const struct fn *fn,
		     const struct one_row_kind *kind, struct row *ret)
{
	const struct eh_fde *fde = &eh->fdes[fn->ref];
	struct rowbuf rows = { 0 };
	int ok;

	if (fn->end - fn->start < kind->code_min || fde->insns_end - fde->insns > kind->insns_max ||
	    (kind->may_be && !kind->may_be(eh, fde)))
		return 0;
	ok = eh_frame_rows(eh, fn, &rows, NULL);
	if (!ok && rows.n == 1) {
		*ret = rows.rows[0];
		ok = !ret->flags && !ret->plt_rep && kind->is(ret);
	}
	rowbuf_free(&rows);
	return ok;
}

int one_row_each(const struct eh_frame *eh, const struct elf_image *img,
		 const struct one_row_kind *kind, void *ctx, struct rowbuf *out)
{
	uint64_t left = kind->code_max, off;
	int err = 0;

	for (size_t i = 0; i < eh->fns.n && err >= 0; i++) {
		const struct fn *fn = &eh->fns.fns[i];
		struct one_row_fn one = { .start = fn->start };
		struct elf_blob blob;

		err = is_wanted(eh, fn, kind, &one.row);
		if (err <= 0 || fn->end - fn->start > left ||
		    !elf_image_vaddr_to_offset(img, fn->start, &off))
			continue;
		err = elf_image_read(img, off, fn->end - fn->start, &blob);
		if (err) {
			err = err == -ENOMEM ? err : 0;
			continue;
		}
		left -= fn->end - fn->start;
		one.text = blob.view;
		err = kind->take(ctx, &one, out);
		elf_blob_free(&blob);
	}
	return err < 0 ? err : 0;
}
