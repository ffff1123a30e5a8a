/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the parts of `sfbpf inspect`: inspect.c opens files, the others show a file. */
#ifndef SFBPF_INSPECT_INSPECT_H
#define SFBPF_INSPECT_INSPECT_H

#include "readers/row_stream.h"

struct inspected {
	const char *path; /* the path as given by the user */
	char name[512];	  /* the path, sanitised */
	struct unwind_file file;
	struct diag diag;
};

/* All return 0 or -errno. Problems of the file go to in->diag. */
int inspect_rows(struct inspected *in, unsigned int which);
int inspect_summary(struct inspected *in);
int inspect_json(struct inspected *in);
int inspect_compare(struct inspected *in, bool *ret_clash);

void inspect_json_refused(const char *path, const char *why);

#endif
