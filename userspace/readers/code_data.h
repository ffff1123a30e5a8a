/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the analysis of code asks of a file's data: the segments that hold jump tables, and the
 * labels of computed gotos. A jump that its code does not explain may go to each label of its
 * function whose address is in the file's data: compilers assume the same.
 */
#ifndef SFBPF_READERS_CODE_DATA_H
#define SFBPF_READERS_CODE_DATA_H

#include "codewalk/codewalk.h"
#include "elf/elf_image.h"

/* A PT_LOAD segment that was read because a jump table lies in it. */
struct code_segment {
	uint64_t start;
	struct elf_blob blob;
};

struct code_data { /* zeroed, but for the first two */
	const struct elf_image *img;
	const struct code_binary *bin;
	struct code_segment segments[4];
	size_t nsegments;
	uint64_t *labels;
	size_t nlabels, labels_cap;
	bool has_labels;
};

void code_data_free(struct code_data *d);
/* The segment that holds the address, for struct code_binary. 1, 0: none, -ENOMEM. */
int code_data_at(struct code_data *d, uint64_t addr, struct bytes *ret, uint64_t *ret_start);
/*
 * The addresses of code that the file's relocations hold, or, if the file cannot be relocated, its
 * data; ascending. None if there are too many. 0 or -ENOMEM.
 */
int code_data_labels(struct code_data *d, const uint64_t **ret, size_t *ret_n);
/* The address of the word where ld.so puts its resolver of symbols; 0: none. */
uint64_t code_data_resolver(const struct elf_image *img);

/*
 * Calls note() for each word of data: 8 bytes at a time from the start of each segment that is not
 * executable. 0, or what note() returned.
 */
int code_each_word(const struct elf_image *img, int (*note)(void *ctx, uint64_t word), void *ctx);

#endif
