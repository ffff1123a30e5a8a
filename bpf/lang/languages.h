/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The languages whose frames are unwound, as BPF and user space both know them.
 *
 * languages.def has a row for each. lang/<name>/<name>.h has what both sides know of one:
 *
 *   struct sf_<name>         what BPF needs to know of a runtime, made from its ELF file
 *   struct sf_<name>_walk    state of the walk of the language's frames, of BPF alone
 *   struct sf_<name>_begin   what is zero when the walk of a stack begins, of BPF alone
 *   struct sf_<name>_spent   what the language spent of a sample's limits, of BPF alone
 */
#ifndef SFBPF_LANGUAGES_H
#define SFBPF_LANGUAGES_H

#include "border/sfbpf_types.h"

#define LANGUAGE_HEADER(name) <lang/name/name.h>
#include "border/languages.def"
#undef LANGUAGE_HEADER

enum sf_language {
	SF_LANG_NONE,
#define LANGUAGE(number, id, name, frame_type) SF_LANG_##id = number,
#include "border/languages.def"
#undef LANGUAGE
	SF_LANG_MAX = 1
#define LANGUAGE(number, id, name, frame_type) +1
#include "border/languages.def"
#undef LANGUAGE
};

#define LANGUAGE(number, id, name, frame_type) \
	_Static_assert(number > 0 && number < SF_LANG_MAX, "numbers of languages have no gap");
#include "border/languages.def"
#undef LANGUAGE

#define SF_TLS_NONE   0
#define SF_TLS_EXEC   1 /* tls: offset from the thread pointer */
#define SF_TLS_GOT    2 /* tls: address of the pair {module, offset} */
#define SF_TLS_DESC   3 /* tls: address of the TLS descriptor */
#define SF_TLS_WORD   4 /* tls: address of the offset from the thread pointer */
/*
 * What BPF needs to know of a language runtime. It follows from the runtime's ELF file alone
 * (userspace/languages/), and lies in the module's tables directly before the directory, if the
 * module has SF_MODULE_LANG. Addresses are relative: address = value - sf_vma.delta of the mapping
 * with the loop, as for code at that file offset.
 */
#define SF_LANG_LOOPS 4

struct sf_lang {
	sf_u8 language; /* enum sf_language */
	sf_u8 zero;
	sf_u16 version; /* major << 8 | minor */
	sf_u32 nloops;
	struct sf_span loops[SF_LANG_LOOPS]; /* the evaluation loop, file offsets */
	union {
#define LANGUAGE(number, id, name, frame_type) struct sf_##name name;
#include "border/languages.def"
#undef LANGUAGE
		sf_u8 room[440];
	};
};

/*
 * A piece of code of a language, sent when BPF meets it for the first time. Texts are as in the
 * process's memory: units of 1 (Latin-1), 2 or 4 bytes, or UTF-8. Java: file is the class. PHP:
 * lines is the class; Perl: the package.
 */
#define SF_MAX_CODES  32768 /* code objects that BPF knows at a time */
#define SF_CODE_TEXT  256
#define SF_CODE_UTF8  0 /* the unit of such text */
#define SF_CODE_LINES 16384

struct sf_code {
	sf_u32 type; /* SF_REC_CODE */
	sf_u32 id;
	sf_u32 first_line, owner;		       /* owner: the user whose process has it */
	sf_u16 name_len, file_len, lines_len;	       /* bytes; file: its end, if it is longer */
	sf_u8 language, name_unit, file_unit, version; /* version: the minor number */
	sf_u8 class_len; /* Ruby: bytes of name that are the class, and "#" or "." */
	sf_u8 zero;
	sf_u8 name[SF_CODE_TEXT], file[SF_CODE_TEXT];
	sf_u8 lines[SF_CODE_LINES]; /* the line table; only lines_len bytes are sent */
};

#endif
