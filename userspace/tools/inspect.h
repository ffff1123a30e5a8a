/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of `sfbpf inspect` share: inspect.c opens files, the others show one. */
#ifndef SFBPF_TOOLS_INSPECT_H
#define SFBPF_TOOLS_INSPECT_H

#include "unwind/row_stream.h"

struct inspected {
	const char *path;	/* as the user gave it */
	char name[512];		/* the same, fit for a terminal */
	struct unwind_file file;
	struct diag diag;
};

/* All return 0 or -errno of what stopped them; what is wrong with the file goes to in->diag. */
int inspect_rows(struct inspected *in, unsigned int which);
int inspect_summary(struct inspected *in);
int inspect_json(struct inspected *in);
int inspect_compare(struct inspected *in, bool *ret_clash);

void inspect_json_refused(const char *path, const char *why);

#endif
