/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows as text, so that a test can say what it expects in one line a row. */
#ifndef SFBPF_TESTS_UNIT_SFRAME_TEXT_H
#define SFBPF_TESTS_UNIT_SFRAME_TEXT_H

#include <stddef.h>

#include "readers/sframe.h"

struct sframe_text {
	char *buf; /* NUL-terminated, never NULL after the first text_row */
	size_t len;
};

/*
 * "START-END cfa=RULE ra=RULE fp=RULE[ signal][ pac][ plt rep=N at=K]\n", START and END in hex from
 * `base`.
 */
void sframe_text_row(struct sframe_text *t, enum row_arch arch, const struct row *row,
		     uint64_t base);
/* All rows of all functions, addresses from `base`. Aborts if memory runs out. */
void sframe_text_all(struct sframe_text *t, const struct sframe *s, uint64_t base,
		     struct diag *diag);
void sframe_text_free(struct sframe_text *t);

/* Whether a kept note of that kind contains the text. */
int sframe_text_noted(const struct diag *d, enum diag_kind kind, const char *text);
void sframe_text_notes(const struct diag *d); /* to stdout */

#endif
