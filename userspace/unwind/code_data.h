/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Labels of computed gotos. A jump that its code does not explain may go to each label of its
 * function whose address is in the file's data: compilers assume the same. And labels of data: a
 * jump table of unknown length ends where code refers to other data.
 */
#ifndef SFBPF_UNWIND_CODE_LABELS_H
#define SFBPF_UNWIND_CODE_LABELS_H

#include "unwind/code_fn.h"

/*
 * Fills bin->labels at the first call, ascending: the addresses of code that the file's relocations
 * hold, or, if the file cannot be relocated, its data. None if there are too many. 0 or -ENOMEM.
 */
int code_labels_load(struct code_binary *bin);

/*
 * Fills bin->data_labels at the first call, ascending: the addresses outside code that any bytes of
 * code would take with lea, relative to rip. x86-64 only. None if there are too many. 0 or -ENOMEM.
 */
int code_labels_load_data(struct code_binary *bin);
bool code_is_data_label(const struct code_binary *bin, uint64_t addr);

/*
 * Calls note() for each word of data: 8 bytes at a time from the start of each segment that is not
 * executable. 0, or what note() returned.
 */
int code_each_word(const struct elf_image *img, int (*note)(void *ctx, uint64_t word), void *ctx);

#endif
