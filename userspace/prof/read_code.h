/* SPDX-License-Identifier: BSD-2-Clause */
/* Where in its code the samples of one function are, from the JSON of `record`. */
#ifndef SFBPF_PROF_READ_CODE_H
#define SFBPF_PROF_READ_CODE_H

#include "prof/read_stacks.h"

struct code_place {
	uint64_t module, offset; /* id of the file; the byte in it */
	uint64_t count;
};

struct code_places { /* zeroed: empty */
	struct code_place *list;
	size_t n, cap;
	uint64_t all; /* the sum of all stacks, in meta->unit */
	struct code_file {
		uint64_t id;
		char *path, build_id[80]; /* hex; "": none */
	} * files;
	size_t nfiles, files_cap;
};

/*
 * Reads a file of JSON from its start and keeps the places where stacks end in user code of this
 * function, with what is inlined there. 0; -EINVAL: no such profile, see *why; -EIO, -EFBIG,
 * -ENOMEM. code_places_free in either case.
 */
int read_code(FILE *f, const char *function, struct code_places *ret, struct stacks_meta *meta,
	      struct read_error *why);
void code_places_free(struct code_places *p);

#endif
