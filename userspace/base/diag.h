/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Problems that a reader found in a file.
 *
 * Readers never print and never stop at the first damage. They note it here and go on with the
 * rest. DIAG_REPAIRED is a known mistake of a producer that was corrected; the file is still
 * accepted. DIAG_MALFORMED means that something was lost.
 */
#ifndef SFBPF_BASE_DIAG_H
#define SFBPF_BASE_DIAG_H

#include <stdbool.h>
#include <stdint.h>

#define DIAG_MAX     64	 /* notes kept; further ones are only counted */
#define DIAG_TEXT    160 /* bytes of text per note, with its NUL */
#define DIAG_SECTION 20

enum diag_kind { DIAG_REPAIRED, DIAG_MALFORMED };

struct diag_note {
	enum diag_kind kind;
	char section[DIAG_SECTION]; /* ".sframe", "ELF header", ... */
	uint64_t offset;	    /* bytes from the section's start (file offset for "ELF ...") */
	char text[DIAG_TEXT];
};

struct diag {
	struct diag_note notes[DIAG_MAX];
	unsigned int kept;
	uint64_t repaired, malformed; /* all notes, kept or not */
};

/* d may be NULL: the note is dropped. */
void diag_add(struct diag *d, enum diag_kind kind, const char *section, uint64_t offset,
	      const char *fmt, ...) __attribute__((format(printf, 5, 6)));

#endif
