/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Labels of computed gotos. A jump that its code does not explain may go to each label of its
 * function whose address is in the file's data: compilers assume the same.
 */
#ifndef SFBPF_UNWIND_CODE_LABELS_H
#define SFBPF_UNWIND_CODE_LABELS_H

#include "unwind/code_fn.h"

/*
 * Fills f->labels, at the first call: addresses of code in the file's relocations, or of one that
 * is mapped where it was linked, in its data; ascending. None if there are too many. 0 or -ENOMEM.
 */
int code_labels_load(struct code_fn *f);

/* The first label at addr or above, or f->nlabels. */
size_t code_label_from(const struct code_fn *f, uint64_t addr);

#endif
