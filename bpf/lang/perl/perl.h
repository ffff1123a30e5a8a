/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Perl, as lang/languages.h says. */
#ifndef SFBPF_LANG_PERL_H
#define SFBPF_LANG_PERL_H

#include "border/sfbpf_types.h"

/* Perl. Offsets that all versions share are in perl.bpf.h. */
#define SF_PERL_TAIL 16

struct sf_perl {
	sf_u64 key;	   /* address of the pthread key that leads to the interpreter */
	sf_u16 cop, stack; /* offsets in the interpreter: current statement, stack of contexts */
	sf_u8 musl;
	sf_u8 aux_in_body; /* a package's name follows its body, not its array */
	sf_u8 zero[2];
};

/* sf_code.version of Perl */
enum sf_perl_code { SF_PERL_SUB, SF_PERL_LEXICAL, SF_PERL_MAIN, SF_PERL_REQUIRE, SF_PERL_EVAL };

#define SF_PERL_NEST 32 /* a power of two */

struct sf_perl_walk {
	sf_u64 module; /* bits of the frame word of the runtime it is about */
	sf_u64 interp;
	sf_u64 si, prev;    /* the stack of contexts in hand, and the next one; si 0: none left */
	sf_u64 contexts;    /* the array of `si` */
	sf_s32 index, type; /* the next context; what the stack is for */
	sf_u64 cop;	    /* the statement that runs in the next frame */
	sf_u64 ret;	    /* the op that runs (`here`), or that a call returns to; 0: none */
	sf_u64 cv;	    /* the sub in hand; 0: no sub */
	sf_u64 file;	    /* name of a file that is required, or that #line in an eval gives */
	sf_u32 kind;	    /* enum sf_perl_code of the code in hand */
	sf_u32 pass;	    /* the first context that an activation begins with is not running */
	sf_u32 empty;	    /* rounds without a frame */
	sf_u32 vma;	    /* the runtime's slot in vmas[] */
	sf_u32 last;	    /* the place after the frames of the outermost activation */
	sf_u32 ntail;
	sf_u32 len;	/* a number that was read */
	sf_u32 here;	/* the next frame is the innermost one */
	sf_u64 head[6]; /* buffer for reads, to save stack */
	sf_u64 tail[SF_PERL_TAIL];
	/* perl_search: an op, and its statement; nest: the statements of the ops around it */
	sf_u64 op, near;
	sf_u64 nest[SF_PERL_NEST];
	sf_u32 depth, up;
	sf_u32 statement;   /* type of an op that begins a statement */
	sf_u32 ops;	    /* ops that were looked at in this sample */
	sf_u32 what;	    /* enum perl_found */
	sf_u32 line, lined; /* line of the frame in hand; whether it was searched */
	sf_u32 zero;
};

struct sf_perl_begin {
};
struct sf_perl_spent {
};

#endif
