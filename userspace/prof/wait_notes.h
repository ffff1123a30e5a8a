/* SPDX-License-Identifier: BSD-2-Clause */
/* What a thread waited for, by the names of its frames. Used where running time is shown, too. */
#ifndef SFBPF_PROF_WAIT_NOTES_H
#define SFBPF_PROF_WAIT_NOTES_H

#include "prof/profile.h"
#include "sym/symbolizer.h"

enum wait_note {
#define WAIT(id, text) WAIT_##id,
#include "prof/wait_notes.def"
#undef WAIT
	WAIT_NOTES
};

/* profile_stack.state of an on-CPU sample, beside enum sf_off_state */
#define PROFILE_RUNNING SF_OFF_STATES

/* ids: of all frames of s, as from profile_symbols */
enum wait_note wait_note_of(const struct profile_stack *s, const uint32_t *ids,
			    const struct symbolizer *sz);
/* Whether code of the module is the C library's, or the kernel's in user space. */
bool wait_is_c_library(const char *module);
/* "[blocked: futex]" */
const char *wait_note_text(enum wait_note note);
static inline bool wait_note_is_idle(enum wait_note note)
{
	return note >= WAIT_EPOLL; /* idle notes come last in wait_notes.def */
}

#endif
