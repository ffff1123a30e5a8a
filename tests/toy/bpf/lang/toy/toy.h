/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Toy, the language of tests/toy/program.c, as lang/languages.h says. */
#ifndef SFBPF_LANG_TOY_H
#define SFBPF_LANG_TOY_H

#include "border/sfbpf_types.h"

struct sf_toy {
	sf_u64 top; /* address of the pointer to the innermost frame */
};

struct sf_toy_walk {
	sf_u64 module;	/* bits of the frame word of the runtime */
	sf_u64 frame;	/* the next one; 0: none is left */
	sf_u64 head[3]; /* of the frame in hand: caller, code, line and whether C called it */
};

struct sf_toy_begin {
};
struct sf_toy_spent {
};

#endif
