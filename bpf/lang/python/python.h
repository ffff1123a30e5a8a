/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* CPython, as lang/languages.h says. */
#ifndef SFBPF_LANG_PYTHON_H
#define SFBPF_LANG_PYTHON_H

#include "border/sfbpf_types.h"

/* How frames of CPython are found, oldest versions first. */
enum sf_py_kind {
	SF_PY_BACK,   /* 3.8 to 3.10: one frame for each activation of the loop */
	SF_PY_CFRAME, /* 3.11: up to the frame with is_entry; an anchor in the C frame */
	SF_PY_ENTRY,  /* 3.12 on: up to the entry frame, which is in the C frame */
};

#define SF_PY_FRAME_MAX 112 /* bytes of a frame that are read */
#define SF_PY_CODE_MAX	168 /* bytes of a code object that are read */
struct sf_python {
	sf_u64 code_type;    /* address of PyCode_Type */
	sf_u64 current, key; /* addresses of the current thread state, of a pthread key; 0: none */
	sf_u64 tls;
	sf_u16 tstate_frame, tstate_thread; /* frame or cframe, and thread id, in the state */
	sf_u8 kind, tls_how, musl, lasti;   /* lasti: bytes of a unit of f_lasti; 0: an address */
	sf_u8 cframe_frame, cframe_back;    /* cframe_back 0: the frame's address is in the state */
	/* frame_owner: in 3.10 the high byte of f_stackdepth, -1 while it runs; before, 0 */
	sf_u8 frame_size, frame_code, frame_back, frame_lasti, frame_owner;
	sf_u8 code_first_line, code_file, code_name, code_qualname, code_lines;
	sf_u8 code_start, ob_type;
	sf_u8 str_len, str_state, str_ascii, str_compact;
	sf_u8 bytes_len, bytes_data;
	sf_u8 zero[12];
};

struct sf_python_walk {
	sf_u64 module;	      /* bits of the frame word of the runtime it is about */
	sf_u64 frame, cframe; /* the next ones; frame 0: none is left */
	sf_u64 begun;	      /* frame at the beginning of this activation */
	sf_u64 outer;	      /* 3.11: the frame that the outer loop goes on with */
	sf_u32 vma, zero;     /* the runtime's slot in vmas[] */
};

struct sf_python_begin {
};
struct sf_python_spent {
};

#endif
