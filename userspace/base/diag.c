/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/diag.h"

#include <stdarg.h>
#include <stdio.h>

void diag_add(struct diag *d, enum diag_kind kind, const char *section, uint64_t offset,
	      const char *fmt, ...)
{
	struct diag_note *note;
	va_list args;

	if (!d)
		return;
	if (kind == DIAG_MALFORMED)
		d->malformed++;
	else
		d->repaired++;
	if (d->kept == DIAG_MAX)
		return;
	note = &d->notes[d->kept++];
	note->kind = kind;
	note->offset = offset;
	snprintf(note->section, sizeof(note->section), "%s", section);
	va_start(args, fmt);
	vsnprintf(note->text, sizeof(note->text), fmt, args);
	va_end(args);
}
