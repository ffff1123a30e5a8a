/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells functions that have another name or place from functions that changed. */
#ifndef SFBPF_OUT_MOVES_H
#define SFBPF_OUT_MOVES_H

#include "out/moments.h"

/* Where the time of a function is now, or was (moves.c). */
enum change_note {
	CHANGE_ONLY,	 /* nothing is known */
	CHANGE_RENAMED,	 /* it had another name; before has the time of that one */
	CHANGE_INLINED,	 /* it is inlined */
	CHANGE_OUTLINED, /* it is no longer inlined */
	CHANGE_HOST,	 /* self has the time of a function that is or was inlined into this one */
	CHANGE_MOVED,	 /* it is below another caller */
};

/* What is known of one function */
struct function_moments {
	struct moments self, total;
	enum change_note note;
	uint32_t other; /* the function that the note names */
	bool replaced;	/* it is a part of another function now: it has no row */
	/* Its change of self time, or of its total, is that of a function that moved */
	bool moved_self, moved_total;
};

/* Finds renamed, inlined and moved functions. f: by frame. 0 or -ENOMEM. */
int moves_find(const struct stackset *ss, const struct statistics *st, struct function_moments *f);

#endif
