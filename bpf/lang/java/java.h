/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* What user space and BPF know of Java (HotSpot), and the state of a walk (lang/languages.h). */
#ifndef SFBPF_LANG_JAVA_H
#define SFBPF_LANG_JAVA_H

#include "border/sfbpf_types.h"

#define SF_JAVA_BLOB	  208 /* bytes of a CodeBlob that are read from JDK 8; later: JAVA_BLOB */
#define SF_JAVA_FIELD_MAX 4096
#define SF_JAVA_SOURCE	  128

/*
 * What BPF knows of a libjvm. Addresses are those of the file: address in memory = bias + address.
 * The mapping of file offset `off` begins at bias + skew + off; skew is code_skew or data_skew. The
 * other members are offsets in HotSpot's objects, sizes and flags.
 */
struct sf_java {
	sf_u64 heaps; /* address of CodeCache::_heaps; list_data 0: of the only heap (8) */
	sf_u64 code_skew, data_skew;
	/* Addresses of the variables with base and shift of compressed pointers */
	sf_u64 oop_base, oop_shift, class_base, class_shift;
	sf_u16 blob_name, blob_frame_size, blob_complete, blob_code, nmethod_method, nmethod_id;
	sf_u16 method_const, const_pool, const_name, pool_holder, pool_bytes;
	sf_u16 klass_name, klass_super, klass_layout, klass_fields, klass_pool;
	sf_u16 heap_memory, heap_segmap, heap_shift, list_len, list_data, symbol_len, symbol_body;
	sf_u8 code_is_offset;  /* blob_code: u32, distance from the blob; else a pointer */
	sf_u8 complete_bytes;  /* size of blob_complete: 2 or 4 */
	sf_u8 block_bytes;     /* sizeof(HeapBlock), which is before each blob */
	sf_u8 number_excluded; /* numbers are UNSIGNED5 without bytes below this: 0 or 1 */
	sf_u8 bcp_below;       /* frame pointer minus the address of the bytecode pointer */
	sf_u8 scopes_is_offset;
	/*
	 * Scopes of an nmethod; pcs 0: not known. To 22, `scopes` is a pointer (8: an offset), and
	 * the PcDescs and the metadata are at an offset from the blob. From 25 on, the PcDescs and
	 * then the scopes are at an offset from the pointer `immutable`, and the metadata from
	 * mutable_data.
	 */
	sf_u16 pcs, pcs_end, scopes, metadata, immutable, mutable_data;
	/*
	 * const_bytes: sizeof(ConstMethod). Offsets in it: size in words, bytecode's size, flags.
	 * Offset of the source file's index, in the constant pool or in the class.
	 */
	sf_u16 const_bytes, const_words, const_code_size, const_flags, pool_source, klass_source;
	sf_u8 zero[4];
};

#define SF_JAVA_HEAPS 3
#define SF_RUNTIMES   1024 /* a power of two */

/* What is known of HotSpot in an address space. V8 uses `space` and `module` alone. */
struct sf_runtime {
	sf_u64 space; /* MM_ID */
	sf_u64 bias;
	sf_u32 module; /* module id of the runtime; 0: not found */
	sf_u32 tries;  /* searches without result */
	sf_u32 nheaps, shift;
	struct {
		sf_u64 low, high, segmap;
	} heaps[SF_JAVA_HEAPS]; /* the heaps of code */
	/* Set by java_learn: the form of references, offsets of fields; chunk_sp 0: not known */
	sf_u64 oop_base, class_base;
	sf_u16 oop_shift, oop_form, class_shift, class_form, learns;
	sf_u16 entry_object, tail, child, chunk_parent, chunk_sp, chunk_size, chunk_bottom;
	sf_u16 chunk_args;
	sf_u16 zero[3];
	sf_u32 chunk_stack;
};

struct sf_java_walk {
	sf_u32 kind_here, words; /* kind of the blob in hand; words: size of its frames */
	sf_u32 kind, zero2;	 /* kind: of blobs whose name is at sf_java_begin.name */
	sf_u64 complete;	 /* the code before this address has no whole frame */
	sf_u64 method;
	sf_u64 blob, code, cookie; /* code: its first address; cookie: a hash of the nmethod */
	struct sf_runtime rt;
	/* java_scopes: where scopes and metadata are; low, high: the search; scope: in hand */
	sf_u64 scopes, metadata;
	sf_u32 low, high, scope, byte, owed;
	sf_u16 len, zero;
	sf_u64 chunk_end;
	sf_u64 entry;		       /* the ContinuationEntry */
	sf_u64 carrier[2], carrier_sp; /* the frame that follows those in chunks: fp, pc and sp */
	sf_u32 chunk_lost, zero3;      /* chunk_lost: a step within the chunk failed */
	/* java_describe */
	sf_u64 pool, holder, text;
};

/* What is zero when the walk of a stack begins */
struct sf_java_begin {
	sf_u64 name;  /* the name of the blobs whose kind is known */
	sf_u64 file;  /* the address whose file was asked for; 0: none yet */
	sf_u64 chunk; /* the StackChunk with the frames of sf_scratch.regs; 0: the stack */
	sf_u32 state; /* JAVA_UNKNOWN, JAVA_NONE, JAVA_KNOWN */
};

struct sf_java_spent {
	sf_u32 failed; /* scopes that could not be read */
	sf_u32 chunks; /* chunks that were looked at */
};

#endif
