/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Ruby, as lang/languages.h says. */
#ifndef SFBPF_LANG_RUBY_H
#define SFBPF_LANG_RUBY_H

#include "border/sfbpf_types.h"

/*
 * Ruby. An activation of the loop is a frame of rb_vm_exec, whose code is the first nexec spans of
 * sf_lang.loops. The other spans are functions in which rb_vm_exec runs instructions. Offsets that
 * all versions share are in ruby_code.bpf.h.
 */
#define SF_RUBY_BODY 160 /* bytes of an iseq's body that are read */

struct sf_ruby {
	sf_u64 tls; /* where the execution context is; SF_TLS_NONE: address of a global pointer */
	sf_u64 symbols; /* address of the array of all symbols; 0: C methods have no names */
	sf_u32 last_op; /* ids above this one: index in the array = id >> 4 */
	sf_u8 tls_how, musl, nexec;
	sf_u8 frame_size; /* size of a control frame */
	/* A global pointer: offsets from context to thread to its pthread_self() */
	sf_u8 ec_thread, thread_pthread;
	sf_u8 insns, insns_n, insns_index; /* an iseq's body: entries, their number, index */
	sf_u8 insn_size;		   /* size of an entry */
	/* Flag: embedded text has its length in the flags, and the first line is a Fixnum */
	sf_u8 before_3_2;
	sf_u8 local_iseq; /* offset in the body, behind the parent; 0: labels have no classes */
};

#define SF_RUBY_STACK 512 /* bytes of environments per read; a power of two */

struct sf_ruby_walk {
	sf_u64 module;	 /* bits of the frame word of the runtime it is about */
	sf_u64 stack;	 /* the value stack's start */
	sf_u64 cfp, end; /* the next control frame, and the end of them; cfp 0: none is left */
	sf_u64 body;	 /* body of the code in hand */
	sf_u64 begun;	 /* the pc of its first instruction */
	sf_u64 method;	 /* the code in hand is a C method with this definition; 0: an iseq */
	sf_u64 ep_base;
	sf_u32 ep_len;
	sf_u32 vma;	/* the runtime's slot in vmas[] */
	sf_u32 handler; /* the last frame was a rescue or an ensure */
	sf_u32 pending; /* the innermost activation is not in the native stack yet */
	sf_u32 called;	/* the C method has a caller, whose code is in object */
	/* The control frame in hand. entry: its method; outer: the environment around it */
	sf_u64 flags, entry, outer;
	sf_u64 owner;	       /* class of the method; 0: none, or labels have no classes */
	sf_u64 iseq, cookie;   /* the iseq whose body is in object */
	sf_u64 name, file;     /* ruby_describe: strings */
	sf_u64 jit_sp, jit_ra; /* where the return address of YJIT's code is; the address */
	sf_u32 jit_at;	       /* index that a frame of YJIT's code would have; see jit_hidden */
	sf_u32 alone;	       /* no activation of the loop is on the stack */
	sf_u64 head[5];	       /* start of an object; not on the BPF stack, which is small */
	sf_u8 eps[SF_RUBY_STACK + 8]; /* environments, from ep_base on */
};

struct sf_ruby_begin {
	sf_u64 not_jit;	   /* a pc that is not in code of YJIT */
	sf_u32 misses;	   /* pcs of this stack that were found not to be YJIT's */
	sf_u32 jit_hidden; /* a frame of YJIT's code is hidden at index jit_at */
};

struct sf_ruby_spent {
};

#endif
