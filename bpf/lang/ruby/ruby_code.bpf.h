/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Code of Ruby: layout of its objects, texts, labels and line tables (struct sf_ruby). */
#ifndef SFBPF_LANG_RUBY_CODE_BPF_H
#define SFBPF_LANG_RUBY_CODE_BPF_H

#include "lang/code.bpf.h"

/* Offsets in an execution context, a control frame, an iseq and its body */
#define RB_EC_STACK  0 /* the stack, then its size in words, and the innermost control frame */
#define RB_CFP_PC    0
#define RB_CFP_ISEQ  16
#define RB_CFP_EP    32
#define RB_ISEQ_BODY 16
#define RB_BODY_TYPE 0 /* u32: */
#define RB_METHOD    1
#define RB_RESCUE    4
#define RB_ENSURE    5
#define RB_EVAL	     6
#define RB_BODY_SIZE 4 /* size in words */
#define RB_BODY_CODE 8
#define RB_BODY_PATH 64
#define RB_BODY_NAME 80
#define RB_BODY_LINE 88
#define RB_BODY_HEAD 96 /* bytes that each sample reads: the fields above */

/* The environment: ep[0] has the flags, ep[-1] the one around it, ep[-2] the method. */
#define RB_LOCAL   0x02 /* there is none around it */
#define RB_FINISH  0x20
#define RB_CFRAME  0x80
#define RB_TYPE	   0x7fff0001
#define RB_C	   0x55550001
#define RB_EP_BACK 16

/* A method entry and its definition */
#define RB_ME_DEF    16
#define RB_ME_CALLED 24 /* id that it is called by */
#define RB_ME_OWNER  32
#define RB_ME_SIZE   40
#define RB_DEF_ID    32

/* A class or module of 3.4 */
#define RB_CLASS_ATTACHED  128 /* the object that a singleton class is of */
#define RB_CLASS_PERMANENT 149 /* bit 0: the name is for good */
#define RB_CLASS_PATH	   152
#define RB_CLASS_TEXT	   126 /* bytes of its name that are kept */

/* The flags of an object: its type, and a bit that has another meaning for each type. */
#define RB_T(flags)	((flags)&0x1f)
#define RB_T_CLASS	0x02
#define RB_T_MODULE	0x03
#define RB_T_STRING	0x05
#define RB_T_ARRAY	0x07
#define RB_T_IMEMO	0x1a
#define RB_IMEMO(flags) ((flags) >> 12 & 15)
#define RB_IMEMO_SVAR	2 /* its second word is what it took the place of */
#define RB_IMEMO_METHOD 6
#define RB_IMEMO_ISEQ	7
#define RB_USER_1	(1u << 13) /* a string is not embedded; an array is; a singleton class */

#define RB_LEVELS	32   /* environments around a block that are looked at */
#define RB_CALLERS	16   /* frames of C between a method in C and code of Ruby */
#define RB_INSNS_MAX	2048 /* line entries of an iseq */
#define RB_INDEX_FIRST	54   /* instructions in the fixed part of the index, in 48 bytes */
#define RB_INDEX_SMALL	48
#define RB_INDEX_BLOCK	80 /* bytes for each 512 more */
#define RB_SYMBOLS_EACH 9  /* log2 of the symbols in an array of the array of symbols */

/* Frames in a round of the walk. The reads of the remote program need the stack of a loop. */
#ifdef SF_REMOTE
#define RB_ROUND 1
#else
#define RB_ROUND 4
#endif

/* ---- Texts ---- */

/*
 * Reads a string to the record: its first `max` bytes, or the last ones. Returns how many, or -1:
 * it cannot be read.
 */
static __always_inline int ruby_text(struct sf_ruby_walk *r, const struct sf_ruby *d, u64 str,
				     bool last, u8 *dst, u32 max)
{
	u64 *h = r->head, data, len;
	u32 n;

	if (copy_user(h, 32, str) || RB_T(h[0]) != RB_T_STRING)
		return -1;
	len = h[2];
	data = str + 24;
	if (h[0] & RB_USER_1) {
		data = h[3];
	} else if (d->before_3_2) {
		len = h[0] >> 14 & 31;
		data = str + 16;
	}
	if (len >> 24)
		return -1;
	n = len < max ? len : max;
	if (last)
		data += len - n;
	if (n > max || copy_user(dst, AT_MOST(n, max), data))
		return -1;
	return n;
}

/* Element i of an array. 0 or -1. */
static __always_inline int ruby_element(struct sf_ruby_walk *r, u64 array, u64 i, u64 *ret)
{
	u64 *h = r->head;

	if (copy_user(h, sizeof(r->head), array) || RB_T(h[0]) != RB_T_ARRAY)
		return -1;
	if (h[0] & RB_USER_1)
		return user_u64(array + 16 + 8 * i, ret);
	return i < h[2] ? user_u64(h[4] + 8 * i, ret) : -1;
}

/* The name of the current method: an index of two levels leads from its id to it. 0 or -1. */
static __always_inline int ruby_symbol(struct sf_ruby_walk *r, const struct sf_ruby *d, u64 delta)
{
	u64 id = 0, i;

	if (!d->symbols || user_u64(r->method + RB_DEF_ID, &id) || !id)
		return -1;
	i = id > d->last_op ? id >> 4 : id;
	if (user_u64(d->symbols - delta, &r->name) ||
	    ruby_element(r, r->name, (u32)i >> RB_SYMBOLS_EACH, &r->name))
		return -1;
	return ruby_element(r, r->name, 2 * (i & ((1 << RB_SYMBOLS_EACH) - 1)), &r->name);
}

/*
 * The line table: the number of entries (u32), the entries, and the index by position. 0, or -1: to
 * be tried again.
 */
static __always_inline int ruby_lines(struct sf_lang_walk *w, const struct sf_ruby *d)
{
	struct sf_code *rec = &w->rec;
	u32 count, size, n, index, at;

	rec->lines_len = 0;
	if (!cfg_lines)
		return 0;
	if (copy_user(w->object, SF_RUBY_BODY, w->ruby.body))
		return -1;
	count = OBJECT32(w, d->insns_n);
	size = OBJECT32(w, RB_BODY_SIZE);
	if (count > RB_INSNS_MAX || size > SF_CODE_LINES * 8)
		return 0;
	n = count * d->insn_size;
	index = RB_INDEX_SMALL;
	if (size > RB_INDEX_FIRST)
		index += (size - RB_INDEX_FIRST + 511) / 512 * RB_INDEX_BLOCK;
	if (4 + n + index > SF_CODE_LINES)
		return 0;
	*(u32 *)rec->lines = count;
	if (copy_user_part(rec->lines + 4, n, SF_CODE_LINES - 4, OBJECT64(w, d->insns)))
		return -1;
	at = 4 + n;
	if (at > SF_CODE_LINES / 4 * 3 || index > SF_CODE_LINES / 4)
		return 0;
	if (copy_user_part(rec->lines + AT_MOST(at, SF_CODE_LINES / 4 * 3), index,
			   SF_CODE_LINES / 4, OBJECT64(w, d->insns_index)))
		return -1;
	rec->lines_len = at + index;
	return 0;
}

/* ---- Classes ---- */

/* Finds the class of a method entry. 0, or -1: it is none. */
static __always_inline int ruby_method(struct sf_ruby_walk *r)
{
	u64 *h = r->head;

	if (!r->entry || copy_user(h, RB_ME_SIZE, r->entry))
		return -1;
	if (RB_T(h[0]) == RB_T_IMEMO && RB_IMEMO(h[0]) == RB_IMEMO_SVAR &&
	    copy_user(h, RB_ME_SIZE, h[1]))
		return -1;
	if (RB_T(h[0]) != RB_T_IMEMO || RB_IMEMO(h[0]) != RB_IMEMO_METHOD)
		return -1;
	r->owner = h[RB_ME_OWNER / 8];
	return 0;
}

/*
 * Whether labels have the class in front of the current code, which is known by its body: in a
 * method, and in blocks in it.
 */
static __always_inline bool ruby_in_method(struct sf_ruby_walk *r, const struct sf_ruby *d)
{
	u64 *h = r->head;

	return r->method || (!user_u64(r->body + d->local_iseq, &h[0]) &&
			     !user_u64(h[0] + RB_ISEQ_BODY, &h[1]) && !user_u64(h[1], &h[2]) &&
			     (u32)h[2] == RB_METHOD);
}

/* The label of the current code: from 3.4 on that of the code around a rescue or an eval. */
static __always_inline u64 ruby_label(struct sf_ruby_walk *r, const struct sf_ruby *d)
{
	u64 *h = r->head, body = r->body;
	u32 i;

#pragma clang loop unroll(disable)
	for (i = 0; i < RB_LEVELS; i++) {
		if (user_u64(body, &h[0]) || (u32)h[0] < RB_RESCUE || (u32)h[0] > RB_EVAL)
			break;
		if (user_u64(body + d->local_iseq - 8, &h[1]) ||
		    user_u64(h[1] + RB_ISEQ_BODY, &body))
			break;
	}
	return user_u64(body + RB_BODY_NAME, &h[0]) ? 0 : h[0];
}

static __always_inline bool ruby_is_class(u64 flags)
{
	return RB_T(flags) == RB_T_CLASS || RB_T(flags) == RB_T_MODULE;
}

/* Begins the name with that of the owner, and "#" or ".". An anonymous one has none. 0 or -1. */
static __always_inline int ruby_class(struct sf_ruby_walk *r, const struct sf_ruby *d,
				      struct sf_code *rec)
{
	u64 *h = r->head, class = r->owner;
	u8 mark = '#';
	int n;

	if (!class || !ruby_in_method(r, d))
		return 0;
	if (user_u64(class, &h[0]))
		return -1;
	if (RB_T(h[0]) == RB_T_CLASS && (h[0] & RB_USER_1)) {
		mark = '.';
		if (user_u64(class + RB_CLASS_ATTACHED, &h[1]))
			return -1;
		class = h[1];
		if (class & 7 || !class) /* no object in memory */
			return 0;
		if (user_u64(class, &h[0]))
			return -1;
	}
	if (!ruby_is_class(h[0]))
		return 0;
	if (copy_user(h, 16, class + RB_CLASS_PATH - 8))
		return -1;
	if (!(h[0] >> (RB_CLASS_PERMANENT - RB_CLASS_PATH + 8) * 8 & 1) || h[1] & 7 || !h[1])
		return 0;
	n = ruby_text(r, d, h[1], false, rec->name, RB_CLASS_TEXT);
	if (n < 0)
		return -1;
	rec->name[INDEX(n, RB_CLASS_TEXT + 2)] = mark;
	rec->class_len = n + 1;
	return 0;
}

/* ---- Descriptions ---- */

/* Describes the current code in the record. 0 or -1. */
static __always_inline int ruby_fill(struct sf_lang_walk *w, const struct sf_ruby *d, u64 delta)
{
	struct sf_ruby_walk *r = &w->ruby;
	struct sf_code *rec = &w->rec;
	int n;

	rec->first_line = rec->file_len = rec->lines_len = 0;
	rec->name_unit = rec->file_unit = SF_CODE_UTF8;
	rec->class_len = 0;
	if (d->local_iseq && ruby_class(r, d, rec))
		return -1;
	r->name = d->local_iseq ? ruby_label(r, d) : OBJECT64(w, RB_BODY_NAME);
	r->file = OBJECT64(w, RB_BODY_PATH);
	if (r->method && ruby_symbol(r, d, delta))
		return -1;
	n = ruby_text(r, d, r->name, false, rec->name + INDEX(rec->class_len, RB_CLASS_TEXT + 2),
		      SF_CODE_TEXT - RB_CLASS_TEXT - 1);
	if (n < 0)
		return -1;
	rec->name_len = rec->class_len + n;
	if (r->method && !r->called)
		return 0;
	if (!r->method || cfg_lines) /* else: the same frame in all functions of the file */
		rec->first_line = d->before_3_2 ? OBJECT64(w, RB_BODY_LINE) >> 1
						: OBJECT32(w, RB_BODY_LINE);
	ruby_element(r, r->file, 0, &r->file); /* unless it is the path itself */
	n = ruby_text(r, d, r->file, true, rec->file, SF_CODE_TEXT);
	if (n < 0)
		return -1;
	rec->file_len = n;
	return ruby_lines(w, d);
}

/* A code_describe. */
__noinline int ruby_describe(u32 slot, u32 id)
{
	struct sf_scratch *s = scratch_of(slot);
	const struct sf_lang *d = s ? code_runtime(s, SF_LANG_RUBY) : NULL;

	if (!d || ruby_fill(&s->lang, &d->ruby, vma_at(s, s->vma_last)->delta))
		return -1;
	return code_send(s, id);
}

#endif
