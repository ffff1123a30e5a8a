/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Code of Perl: layout of its objects, names, files and descriptions (struct sf_perl). */
#ifndef SFBPF_LANG_PERL_CODE_BPF_H
#define SFBPF_LANG_PERL_CODE_BPF_H

#include "lang/code.bpf.h"

/* struct interpreter. The offsets of the other fields are in struct sf_perl. */
#define PERL_OP 8

/* PERL_SI */
#define PERL_SI_CONTEXTS  8
#define PERL_SI_PREV	  16
#define PERL_SI_TOP	  32 /* index, int */
#define PERL_SI_TYPE	  44 /* int */
#define PERL_SI_SIZE	  48
#define PERL_SI_MAIN	  1
#define PERL_SI_SORT	  3
#define PERL_SI_MULTICALL 10

/* PERL_CONTEXT */
#define PERL_CX_COP  16
#define PERL_CX_RET  48
#define PERL_CX_NAME 64 /* require: the name of the file; else 0 */
#define PERL_CX_CV   72
#define PERL_CX_SIZE 104
#define PERL_CX_KIND 15 /* mask of the kind in the first byte of a context */
#define PERL_NULL    0
#define PERL_BLOCK   2
#define PERL_SUB     9
#define PERL_FORMAT  10
#define PERL_EVAL    11
#define PERL_FAKE    0x80 /* a sub: code in a regular expression, in the scope around it */
#define PERL_TRY     0xc0 /* an eval: of a block */

/* An op. A statement's op, a COP, has a line in place of what the last of its flags are for. */
#define PERL_OP_NEXT	0
#define PERL_OP_SIBLING 8  /* the sibling, or the op around it */
#define PERL_OP_WAS	24 /* the type of an op that was optimized away */
#define PERL_OP_BITS	32
#define PERL_OP_FIRST	40
#define PERL_OP_SIZE	48
#define PERL_OP_TYPE	0x1ff
#define PERL_OP_MORE	(1 << 14) /* it has a sibling */
#define PERL_OP_KIDS	(4 << 16)
#define PERL_OP_SCOPE	5 /* the type less that of a statement */
#define PERL_COP_LINE	36
#define PERL_COP_FILE	48
#define PERL_OPS	512  /* ops that are looked at for one line */
#define PERL_OPS_EACH	2048 /* ops that are looked at in one sample; they take some 200 us */

/* An SV: its body, flags with the type, and a pointer; a CV's body; those of a GV and a stash */
#define PERL_SV_FLAGS	12
#define PERL_SV_U	16
#define PERL_PVCV	13
#define PERL_PVFM	14
#define PERL_CV_STASH	32
#define PERL_CV_ROOT	48
#define PERL_CV_GV	56
#define PERL_CV_FILE	64
#define PERL_CV_SEQ	88 /* counts what was compiled; closures have that of their declaration */
#define PERL_CV_FLAGS	92
#define PERL_CV_SIZE	104
#define PERL_CV_NAMED	0x8000	/* its name is there in place of its GV */
#define PERL_CV_LEXICAL 0x10000 /* it has no package */
#define PERL_CV_KIND	((u64)(PERL_CV_NAMED | PERL_CV_LEXICAL) << 32 | ~0u) /* keeps PERL_CV_SEQ */
#define PERL_GV_NAME	32
#define PERL_GV_STASH	40
#define PERL_GP_EGV	56
#define PERL_STASH_MAX	24 /* the size of the hash, less 1 */
#define PERL_STASH_BODY 32
#define PERL_AUX_COUNT	28 /* int; not 0: the name is an array of names */
#define PERL_HEK_LEN	4
#define PERL_HEK_TEXT	8
#define PERL_FILE_KEY	128	   /* bytes of a file's name by which it is known */
#define PERL_EVAL_NAME	0x61766528 /* "(eva": the text of an eval, unless it says #line */

/* ---- Texts ---- */

static __always_inline int perl_hek(struct sf_perl_walk *p, u64 hek, u8 *dst, u16 *ret_len)
{
	u32 n;

	if (copy_user(&p->len, sizeof(p->len), hek + PERL_HEK_LEN) || p->len >> 24)
		return -1;
	n = p->len < SF_CODE_TEXT ? p->len : SF_CODE_TEXT;
	if (copy_user_part(dst, n, SF_CODE_TEXT, hek + PERL_HEK_TEXT))
		return -1;
	*ret_len = n;
	return 0;
}

/* Reads the end of a text that a zero byte ends. 0 or -1. */
static __always_inline int perl_file(struct sf_code *rec, u64 text)
{
	long n = 0;
	u32 i;

#pragma clang loop unroll(disable)
	for (i = 0; i < 4; i++) {
		n = copy_user_text(rec->file, SF_CODE_TEXT, text);
		if (n <= 0)
			return -1;
		if (n < SF_CODE_TEXT)
			break;
		text += SF_CODE_TEXT / 2;
	}
	rec->file_len = n - 1;
	return 0;
}

/* The name of the package. 0 or -1; lines_len stays 0 if it has none. */
static __always_inline int perl_package(struct sf_perl_walk *p, const struct sf_perl *d, u64 stash,
					struct sf_code *rec)
{
	u64 *h = p->head;

	if (!stash)
		return 0;
	if (copy_user(h, 24, stash))
		return -1;
	h[3] = h[0] + PERL_STASH_BODY;
	if (!d->aux_in_body) {
		if (user_u64(h[0] + PERL_STASH_MAX, &h[3]))
			return -1;
		h[3] = h[2] + 8 * (h[3] + 1);
	}
	if (user_u64(h[3], &h[0]) || copy_user(&p->len, sizeof(p->len), h[3] + PERL_AUX_COUNT) ||
	    (p->len && user_u64(h[0], &h[0])))
		return -1;
	return h[0] ? perl_hek(p, h[0], rec->lines, &rec->lines_len) : 0;
}

/* The name of the sub in hand and its package. 0 or -1. */
static __always_inline int perl_name(struct sf_lang_walk *w, const struct sf_perl *d)
{
	struct sf_perl_walk *p = &w->perl;
	u64 *h = p->head;

	h[0] = OBJECT64(w, PERL_CV_GV);
	h[1] = OBJECT64(w, PERL_CV_STASH);
	if (!(OBJECT32(w, PERL_CV_FLAGS) & PERL_CV_NAMED)) {
		if (!h[0]) /* deleted */
			return 0;
		h[3] = 0;
		if (copy_user(h, 24, h[0]))
			return -1;
		/* An imported or localized GV leads to the one that the sub was defined in */
		if (h[2] && !user_u64(h[2] + PERL_GP_EGV, &h[3]) && h[3] && copy_user(h, 24, h[3]))
			return -1;
		if (copy_user(h, 16, h[0] + PERL_GV_NAME))
			return -1;
	}
	if (perl_hek(p, h[0], w->rec.name, &w->rec.name_len))
		return -1;
	return p->kind == SF_PERL_LEXICAL ? 0 : perl_package(p, d, h[1], &w->rec);
}

/* Describes the code in hand in the record. 0 or -1. */
static __always_inline int perl_fill(struct sf_lang_walk *w, const struct sf_perl *d)
{
	struct sf_perl_walk *p = &w->perl;
	struct sf_code *rec = &w->rec;

	rec->version = p->kind;
	rec->first_line = 0;
	rec->name_unit = rec->file_unit = SF_CODE_UTF8;
	rec->name_len = rec->file_len = rec->lines_len = 0;
	if (p->kind == SF_PERL_MAIN && user_u64(p->cop + PERL_COP_FILE, &p->file))
		return -1;
	if (p->kind <= SF_PERL_LEXICAL)
		p->file = OBJECT64(w, PERL_CV_FILE);
	if ((p->file || p->kind == SF_PERL_MAIN) && perl_file(rec, p->file))
		return -1;
	return p->kind <= SF_PERL_LEXICAL ? perl_name(w, d) : 0;
}

/* A code_describe. */
__noinline int perl_describe(u32 slot, u32 id)
{
	struct sf_scratch *s = scratch_of(slot);
	const struct sf_lang *d = s ? code_runtime(s, SF_LANG_PERL) : NULL;

	return d && !perl_fill(&s->lang, &d->perl) ? code_send(s, id) : -1;
}

#endif
