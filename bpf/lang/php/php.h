/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* PHP, as lang/languages.h says. */
#ifndef SFBPF_LANG_PHP_H
#define SFBPF_LANG_PHP_H

#include "border/sfbpf_types.h"

/* PHP. The layout of execute_data is the same in all versions that are supported. */
#define SF_PHP_FUNC_MAX 192 /* bytes of a function that are read */

struct sf_php {
	sf_u64 current; /* address of executor_globals.current_execute_data, see current_off */
	struct sf_span call, resume; /* zend_call_function, zend_generator_resume: file offsets */
	sf_u16 rule;		     /* packed, of the loop after its prologue; 0: not known */
	sf_u8 func_opcodes, func_file, generator_frame, generator_child;
	sf_u16 generator_flags; /* 0: not known */
	/* Not 0: `current` is the address of a pointer to executor_globals, which has it there */
	sf_u16 current_off, zero[3];
};

/* sf_code.version of PHP: what code without a name is */
enum sf_php_code { SF_PHP_FUNCTION, SF_PHP_MAIN, SF_PHP_INCLUDE, SF_PHP_EVAL };

struct sf_php_walk {
	sf_u64 module;	  /* bits of the frame word of the runtime it is about */
	sf_u64 frame;	  /* the next one; 0: none is left */
	sf_u64 func;	  /* the function in hand */
	sf_u64 caller;	  /* caller of the next one, in place of its own; 0: its own */
	sf_u64 opline;	  /* opline of the innermost frame, from its register; 0: not known */
	sf_u64 generator; /* generator of the frame before, if it has one */
	sf_u32 vma;	  /* the runtime's slot in vmas[] */
	sf_u32 code;	  /* enum sf_php_code of the function in hand */
	sf_u32 skipped;
	sf_u32 resumes; /* the innermost code starts or ends the activation of a generator */
	sf_u64 text[3]; /* buffer for reads, to save stack */
};

struct sf_php_begin {
	sf_u32 none; /* the address space has no PHP */
};

struct sf_php_spent {
};

#endif
