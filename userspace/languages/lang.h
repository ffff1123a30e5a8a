/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Language runtimes: what BPF needs to know to find the frames of a language, and what the code
 * that BPF has found there is called.
 *
 * The description of a runtime is made from its ELF file alone, in the process that makes tables. A
 * file is never recognized by its name.
 */
#ifndef SFBPF_LANGUAGES_LANG_H
#define SFBPF_LANGUAGES_LANG_H

#include "border/sfbpf_shared.h"
#include "elf/elf_dynsym.h"
#include "elf/elf_image.h"

/* The functions of the file, as its unwind tables describe them. */
struct lang_functions {
	/* The one that holds addr; false: none */
	bool (*at)(void *ctx, uint64_t addr, uint64_t *ret_start, uint64_t *ret_end);
	/* The longest piece of code between two of them, which no table describes; false: none */
	bool (*gap)(void *ctx, uint64_t *ret_start, uint64_t *ret_end);
	void *ctx;
};

struct lang_file {
	const struct elf_image *img;
	const struct lang_functions *functions;
	struct elf_dynsym syms;
};

/* Whether the file is the runtime of a language that is supported. */
bool lang_describe(const struct elf_image *img, const struct lang_functions *functions,
		   struct sf_lang *ret);
/* Whether the file is a library that gives Python's frames stacks of their own: greenlet. */
bool lang_starts_stacks(const struct elf_image *img);
/* Whether BPF can rely on a description that an untrusted process made. */
bool lang_sound(const struct sf_lang *l);
/* "python"; "?": none, or out of range */
const char *lang_name(uint32_t language);
/* profile.frame.type of OpenTelemetry: "cpython" */
const char *lang_frame_type(uint32_t language);

/* ---- Code ---- */

/* A text as a process has it. unit: SF_CODE_UTF8, or bytes of a character: 1, 2 or 4 */
struct lang_text {
	const uint8_t *data;
	size_t len;
	uint8_t unit;
};

#define LANG_NAME_MAX (2 * SF_CODE_TEXT + 4)

/* A record of code in parts. They lie in the record, or in room. */
struct lang_parts {
	struct lang_text name, file;
	const uint8_t *lines; /* the line table, in the language's form */
	size_t lines_len;
	uint8_t room[LANG_NAME_MAX];
};

struct lang_code {
	uint8_t language, version;
	uint32_t first_line;
	const char *name, *file; /* clean UTF-8; file: its end, if it is long */
	const uint8_t *lines;	 /* the line table, in the language's form; NULL: none */
	uint32_t lines_len;
};

/* The parts of a record whose lengths, units and language were checked. */
void lang_parts(const struct sf_code *rec, struct lang_parts *ret);
/* The line at a position, which BPF has put into the frame's word. 0: not known. */
uint32_t lang_line(const struct lang_code *c, uint32_t position);

#define LANG_PLACE_MAX (SF_CODE_TEXT + 16)

/* What follows the name, in parentheses: the name of the file. "": nothing. May lie in room. */
const char *lang_place(const struct lang_code *c, char room[LANG_PLACE_MAX]);
/* Whether the name has the class in it, so that the place follows only with a line. */
bool lang_names_class(const struct lang_code *c);

/* ---- For the languages ---- */

#define LANG_FUNCTION_BYTES 64 /* bytes of a small function that is looked at */

/* The address as BPF needs it: as if the file were mapped as the segment with the loop is. */
uint64_t lang_address(const struct lang_file *f, uint64_t loop, uint64_t addr);
/*
 * The code of a loop that begins at addr: the function there, and those that it jumps into and that
 * jump back. Compilers move cold parts of a function to another place. 0 spans: none.
 */
uint32_t lang_loops(const struct lang_file *f, uint64_t addr, struct sf_span ret[SF_LANG_LOOPS]);
/* The bytes at an address, at most `size`; free with elf_blob_free. */
bool lang_bytes(const struct lang_file *f, uint64_t addr, uint64_t size, struct elf_blob *ret);
/*
 * Where a small exported function takes a thread-local pointer from: SF_TLS_EXEC and its offset
 * from the thread pointer, SF_TLS_GOT and the address of the pair, or SF_TLS_NONE.
 */
uint8_t lang_tls(const struct lang_file *f, const char *name, uint64_t *ret);

/* What code has in a register. */
enum lang_value_kind {
	LANG_UNKNOWN,
	LANG_ADDRESS,	  /* `at` */
	LANG_WORD,	  /* what is at the address `at` */
	LANG_THREAD,	  /* the thread pointer plus `at` */
	LANG_THREAD_WORD, /* what is there */
	/* A thread-local variable, or its distance from the thread pointer; `at`: TLS descriptor */
	LANG_TLS_PAIR,
};

struct lang_value {
	enum lang_value_kind kind;
	uint64_t at;
};

/*
 * What a small exported function of AArch64 code returns, or passes on to another one. Pointers
 * that it takes from the GOT point to the variable `global`, of `size` bytes.
 */
struct lang_value lang_value_arm64(const struct lang_file *f, const char *name, uint64_t global,
				   uint64_t size);

/* The parts as the record has them. */
void lang_plain_parts(const struct sf_code *rec, struct lang_parts *ret);

/* The last part of the file's name. */
const char *lang_file_base(const struct lang_code *c);

/* What each language defines in its own file. NULL: what is said at the member. */
struct language {
	bool (*describe)(const struct lang_file *f, struct sf_lang *ret);
	bool (*sound)(const struct sf_lang *l);
	void (*parts)(const struct sf_code *rec, struct lang_parts *ret); /* lang_plain_parts */
	uint32_t (*line)(const struct lang_code *c, uint32_t position);	  /* the position */
	const char *(*place)(const struct lang_code *c, char room[LANG_PLACE_MAX]); /* the file */
	bool names_class;
};

#define LANGUAGE(number, id, name, frame_type) extern const struct language name##_language;
#include "border/languages.def"
#undef LANGUAGE

/*
 * Calls fn for each instruction of the file that stores a constant of 64 bits to an address of the
 * file. What other instructions have left in registers is not known after a jump or a call.
 */
void lang_each_store(const struct lang_file *f,
		     void (*fn)(void *ctx, uint64_t addr, uint64_t value), void *ctx);

#endif
