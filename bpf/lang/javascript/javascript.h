/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* JavaScript (V8), as lang/languages.h says. */
#ifndef SFBPF_LANG_JAVASCRIPT_H
#define SFBPF_LANG_JAVASCRIPT_H

#include "border/sfbpf_types.h"

/* V8. Offsets are from an object's address without its tag. shared: SharedFunctionInfo. */
#define SF_JS_SHARED_MAX 128 /* bytes of a SharedFunctionInfo that are read */
#define SF_JS_FIELD_MAX	 256

struct sf_javascript {
	struct sf_span builtins; /* file offsets */
	sf_u16 function_shared;	 /* its offset in a JSFunction */
	sf_u16 shared_data, shared_name, shared_script, shared_token, shared_flags;
	sf_u16 shared_bytes;		 /* bytes up to the end of the last of them */
	sf_u16 scope_count, scope_names; /* ScopeInfo: number of variables, their names */
	sf_u16 script_name, type_shared, type_scope, type_script;
	/*
	 * Code made at run time: an object ("stream") of stream_code bytes, then the instructions.
	 * It has a pointer to the Code, or it is the Code itself (stream_has 0). stream_code 0: the
	 * layout is not known, and inlined functions are not shown.
	 */
	sf_u16 type_stream, stream_code, stream_has;
	sf_u16 code_size, code_flags, code_deopt, code_positions;
	sf_u16 deopt_literals, deopt_inlining;
	sf_u16 kind_baseline; /* CodeKind: optimised code has a higher one */
	sf_u16 kind_fields;   /* FunctionKind of initialisers; +1: of classes; 0: V8 has names */
	/* BytecodeArray: its type (0: not known), its first bytecode, its table of positions */
	sf_u16 type_bytecode, bytecode_start, bytecode_positions;
	sf_u8 bytecodes[256]; /* each opcode's bytes of operands (bits 0-3), wide ones (4-7) */
};

#define SF_JS_SCRIPTS 1024 /* a power of two */
#define SF_JS_PIECE   4096 /* characters */
#define SF_JS_PIECES  256  /* a power of two */
#define SF_JS_PLACES  32   /* SF_PC_FRAMES */
#define SF_JS_RESTS   4	   /* strings that are still to be read; a power of two */

/* How many lines end in the first pieces of a script's text. */
struct sf_js_script {
	sf_u64 cookie; /* hash of the address space and the text, as memory is reused */
	sf_u32 known;  /* pieces that were counted */
	sf_u32 zero;
	sf_u32 lines[SF_JS_PIECES]; /* lines that end before each of them */
};

#define SF_JS_SPACES 1024 /* a power of two */

/* The module with V8 of an address space. */
struct sf_js_space {
	sf_u64 space; /* MM_ID */
	sf_u32 module, zero;
};

struct sf_javascript_walk {
	struct sf_js_space note; /* the entry to write to js_spaces */
	sf_u64 space, map;	 /* the last map of a SharedFunctionInfo, and its address space */
	sf_u32 glue;		 /* the function in hand is not to be shown */
	sf_u64 closure;		 /* closure of the function in hand; 0: unknown, as it is inlined */
	/* The frame in hand: whether it is the function's; what the step to its caller returned */
	sf_u32 kind, stop;
	sf_u32 described; /* the record describes the function in hand */
	/* The state of the walk at sf_javascript_begin.pc */
	sf_u32 n, cause, flags;
	sf_u64 sp, fp;
	sf_u64 native; /* the word of its machine code; 0: not to be shown */
	/* A string in hand: what follows it, the last first; which of its characters are meant */
	sf_u64 rests[SF_JS_RESTS];
	sf_u32 nrests;
	sf_u32 start, len, zero3;
	sf_u64 word[4]; /* buffer for reads, to save stack */
	sf_u16 type, zero[3];
	sf_u32 position_here; /* position of the frame in hand */
	/* js_scopes: the last map of an object with code; where to look for it; its Code */
	sf_u32 owed;
	sf_u64 stream, stream_space, seek, code;
	sf_u64 own; /* the function that has the frame */
	/* BytecodeArray of `own`, 0: not interpreted; the address of the bytecode, or the pc */
	sf_u64 array, at;
	/* Tables of the Code, and how many elements they have; left: bytes */
	sf_u64 table, literals, inlined;
	sf_u32 left, nliterals, ninlined;
	/* A table in hand: its kind; bits of `number` so far; whether `number` ends a pair */
	sf_u32 reading;
	sf_u32 shift;
	sf_u32 second;
	/* Bytecode: the wanted one; bytes left of operands; how much wider the next are */
	sf_u32 nth, operands, wider;
	/* How many functions of sf_lang_walk.pc need js_word(), and how many have had it */
	sf_u32 words, made;
	sf_u64 number, offset, target, position;
	sf_u64 placed; /* the offset that the position was written for */
	/* js_jump: the target; whether `at` is in a call; whether only registers were restored */
	sf_u64 on;
	sf_u32 called, restores;
	sf_u32 places[SF_JS_PLACES]; /* source positions of the functions in sf_lang_walk.pc */
	/* js_line: the script in hand; how many lines end between two places in its text */
	sf_u64 text, script_cookie;
	sf_u32 script_key;
	sf_u32 count_wide, count_at, count_end, count, zero2;
	struct sf_js_script script; /* an empty one */
};

struct sf_javascript_begin {
	sf_u64 pc;     /* the first frame without a file, while V8 was not known; 0: none */
	sf_u32 module; /* module with V8; 0: none known */
	sf_u32 asked;  /* the runtime of this address space was looked up */
};

struct sf_javascript_spent {
	sf_u32 work;   /* work on descriptions */
	sf_u32 effort; /* reads by js_seek and js_table */
	sf_u32 texts;  /* reads by js_count */
};

#endif
