/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Methods of Java: the one in hand, and those that compiled code has at a pc.
 *
 * A PcDesc of an nmethod leads from a pc to its scope: sender, method, bci. The sender is the scope
 * that the method was inlined into; the last one is the nmethod's own method. HotSpot describes
 * calls and safepoints only. A pc between two of them has the scope of the next one, as in HotSpot.
 */
#ifndef SFBPF_LANG_JAVA_SCOPES_BPF_H
#define SFBPF_LANG_JAVA_SCOPES_BPF_H

#include "lang/code.bpf.h"

#define JAVA_PCS_BITS	 17 /* PcDescs in an nmethod */
#define JAVA_JUMP_BYTES	 13 /* bytes of a poll, a comparison and a jump, on either architecture */
#define JAVA_HAS_LINES	 1  /* ConstMethod: flags */
#define JAVA_SCOPE_BYTES 16 /* three numbers of 1 to 5 bytes */
/* The first 8 bytes of a Symbol without its reference count; from JDK 11 on, and before */
#define JAVA_SYMBOL(d)	 ((d)->symbol_len ? ~0xffffull : ~0xffff0000ull)

static __always_inline const struct sf_java *java_lang(u32 id)
{
	struct sf_module *m = module_at(id);
	const struct sf_lang *d;

	if (!m || m->id != id || m->state != SF_MOD_READY || !(m->flags & SF_MODULE_LANG))
		return NULL;
	d = lang_at(m->dir);
	return d && d->language == SF_LANG_JAVA ? &d->java : NULL;
}

/*
 * Reads the method at the address into scratch. 0, or -1: no method is there. When classes are
 * unloaded, others get the same memory, with all in the same places: so a method is known by its
 * address and by its name and that of its class. A name that was freed has another hash, too.
 */
static __always_inline int java_method(struct sf_lang_walk *w, const struct sf_java *d, u64 method)
{
	struct sf_java_walk *j = &w->java;

	w->code = 0;
	w->id = 0;
	if (!method || (method & 7) || user_u64(method + d->method_const, &w->cookie) ||
	    !w->cookie || (w->cookie & 7) || user_u64(w->cookie + d->const_pool, &j->pool) ||
	    !j->pool || (j->pool & 7))
		return -1;
	if (!user_u64(j->pool + d->pool_holder, &j->holder) &&
	    !user_u64(j->holder + d->klass_name, &j->text))
		FOLD(method, j->text, FOLD_MUL1);
	if (!copy_user(&j->len, sizeof(j->len), w->cookie + d->const_name) &&
	    !user_u64(j->pool + d->pool_bytes + 8ull * j->len, &j->text))
		FOLD(method, j->text, FOLD_MUL2);
	if (!user_u64(j->text & ~1ull, &j->text))
		FOLD(method, j->text & JAVA_SYMBOL(d), FOLD_MUL1);
	w->code = method;
	return 0;
}

/* What describing a method reads lies in the walk: the stack of the callers is short. */

/* Reads a text of HotSpot, or its first bytes. 0 or -1. */
static __always_inline int java_symbol(struct sf_java_walk *j, const struct sf_java *d, u64 sym,
				       u8 *dst, u32 most, u16 *ret_len)
{
	u32 n;

	if (copy_user(&j->len, sizeof(j->len), sym + d->symbol_len))
		return -1;
	n = j->len < most ? j->len : most;
	*ret_len = n;
	return copy_user(dst, AT_MOST(n, most), sym + d->symbol_body) ? -1 : 0;
}

/* The text at an index of the constant pool in hand. 0 or -1. */
static __always_inline int java_text(struct sf_java_walk *j, const struct sf_java *d, u64 index_at,
				     u8 *dst, u32 most, u16 *ret_len)
{
	if (copy_user(&j->len, sizeof(j->len), index_at) ||
	    user_u64(j->pool + d->pool_bytes + 8ull * j->len, &j->text))
		return -1;
	return java_symbol(j, d, j->text & ~1ull, dst, most, ret_len);
}

/*
 * Adds the source file and the line table, which follows the bytecode. The record has too much of
 * it if other tables follow.
 */
static __always_inline void java_lines(struct sf_lang_walk *w, const struct sf_java *d)
{
	u64 source = d->pool_source ? w->java.pool + d->pool_source
				    : w->java.holder + d->klass_source;
	struct sf_java_walk *j = &w->java;
	struct sf_code *rec = &w->rec;
	u32 n;

	if (copy_user(&j->byte, 4, w->cookie + d->const_flags) || !(j->byte & JAVA_HAS_LINES))
		return;
	if (java_text(j, d, source, rec->lines + 1, SF_JAVA_SOURCE - 1, &rec->lines_len))
		rec->lines_len = 0;
	rec->lines[0] = rec->lines_len;
	rec->lines_len = 0;
	if (copy_user(&j->byte, 4, w->cookie + d->const_words) ||
	    copy_user(&j->len, sizeof(j->len), w->cookie + d->const_code_size))
		return;
	n = j->byte * 8 - d->const_bytes - j->len;
	if (n > SF_CODE_LINES - SF_JAVA_SOURCE)
		n = SF_CODE_LINES - SF_JAVA_SOURCE;
	if (copy_user_part(rec->lines + SF_JAVA_SOURCE, n, SF_CODE_LINES - SF_JAVA_SOURCE,
			   w->cookie + d->const_bytes + j->len))
		return;
	rec->lines_len = SF_JAVA_SOURCE + n;
}

/* Describes the method in hand in the record. 0 or -1. */
static __always_inline int java_fill(struct sf_lang_walk *w)
{
	const struct sf_java *d = java_lang(w->java.rt.module);
	struct sf_java_walk *j = &w->java;
	struct sf_code *rec = &w->rec;

	rec->language = SF_LANG_JAVA;
	rec->version = d ? d->number_excluded : 0;
	rec->first_line = 0;
	rec->lines_len = 0;
	rec->name_unit = rec->file_unit = SF_CODE_UTF8;
	if (!d || user_u64(w->cookie + d->const_pool, &j->pool) ||
	    java_text(j, d, w->cookie + d->const_name, rec->name, SF_CODE_TEXT, &rec->name_len) ||
	    user_u64(j->pool + d->pool_holder, &j->holder) ||
	    user_u64(j->holder + d->klass_name, &j->text) ||
	    java_symbol(j, d, j->text, rec->file, SF_CODE_TEXT, &rec->file_len))
		return -1;
	if (cfg_lines)
		java_lines(w, d);
	return 0;
}

/* A code_describe. */
__noinline int java_describe(u32 slot, u32 id)
{
	struct sf_scratch *s = scratch_of(slot);

	return s && !java_fill(&s->lang) ? code_send(s, id) : -1;
}

/* ---- The methods at a pc ---- */

/* The frames that the code has at an address. NULL: java_scopes has to find them first. */
static __always_inline const struct sf_code_pc *java_known(struct sf_scratch *s, u64 at)
{
	struct sf_java_walk *j = &s->lang.java;
	u64 space = j->rt.space;
	u32 key = code_pc_key(space, at);
	const struct sf_code_pc *e = &s->lang.pc;

	if (e->at == at && e->cookie == j->cookie)
		return e;
	e = bpf_map_lookup_elem(&code_pcs, &key);
	if (e && e->at == at && e->space == space && e->cookie == j->cookie &&
	    e->epoch == *(volatile u32 *)&code_epoch)
		return e;
	return NULL;
}

/* A number of the window, in the form UNSIGNED5; from 20 on, each byte is 1 higher. */
static __always_inline u32 java_number(struct sf_lang_walk *w, u32 excluded)
{
	u32 at = w->java.byte, sum = 0, i;

	for (i = 0; i < 5; i++) {
		u32 b = w->window[INDEX(at + i, SF_LANG_WINDOW)];

		sum += (b - excluded) << 6 * i;
		if (b < 192)
			break;
	}
	w->java.byte = at + i + 1;
	return sum;
}

/* A method and a bci, until they become a frame word */
#define JAVA_PAIR(method, bci) ((method) << 16 | ((bci)&0xffff))

/* Adds the method of the scope at j->scope, and goes on to its sender. 1: it has no sender. */
static int java_scope(u32 round, void *ctx)
{
	struct sf_scratch *s = scratch_of(*(u32 *)ctx);
	const struct sf_java *d;
	struct sf_java_walk *j;
	u32 index, sender, n;
	u64 method;

	if (!s)
		return 1;
	j = &s->lang.java;
	d = java_lang(j->rt.module);
	if (!d || copy_user(s->lang.window, JAVA_SCOPE_BYTES, j->scopes + j->scope))
		return 1;
	j->byte = 0;
	sender = java_number(&s->lang, d->number_excluded);
	index = java_number(&s->lang, d->number_excluded);
	if (!index || user_u64(j->metadata + 8ull * (index - 1), &method))
		return 1;
	n = s->lang.pc.n;
	s->lang.pc.words[INDEX(n, SF_PC_FRAMES)] =
		JAVA_PAIR(method, java_number(&s->lang, d->number_excluded) - 1);
	s->lang.pc.n = n + 1;
	j->scope = sender;
	return !sender;
}

/* Makes the frame word of a pair. */
static int java_word(u32 round, void *ctx)
{
	u32 slot = *(u32 *)ctx;
	struct sf_scratch *s = scratch_of(slot);
	const struct sf_java *d;
	u64 *word, bci;

	if (!s || round >= s->lang.pc.n)
		return 1;
	d = java_lang(s->lang.java.rt.module);
	word = &s->lang.pc.words[INDEX(round, SF_PC_FRAMES)];
	bci = *word & 0xffff;
	if (d && !java_method(&s->lang, d, *word >> 16)) {
		*word = lang_word(s, slot, SF_LANG_JAVA, java_describe, bci == 0xffff ? 0 : bci);
		s->lang.java.owed |= s->lang.owed;
	} else {
		*word = SF_FRAME_LANG_WORD(SF_LANG_JAVA, 0, 0);
		s->lang.java.owed = 1;
	}
	return 0;
}

/* Reads where the nmethod in hand has its PcDescs, scopes and metadata. 0 or -1. */
static __always_inline int java_tables(struct sf_lang_walk *w, const struct sf_java *d,
				       u64 *ret_pcs)
{
	struct sf_java_walk *j = &w->java;
	u64 data = j->blob;
	u32 pcs = 0, end = 0, at = 0;

	if (d->immutable)
		data = OBJECT64(w, d->immutable);
	if (copy_user(&pcs, 4, j->blob + d->pcs) || copy_user(&end, 4, j->blob + d->pcs_end) ||
	    copy_user(&at, 4, j->blob + d->metadata))
		return -1;
	j->metadata = at + (d->immutable ? OBJECT64(w, d->mutable_data) : j->blob);
	j->scopes = d->immutable	  ? data + end
		    : d->scopes_is_offset ? data + OBJECT32(w, d->scopes)
					  : OBJECT64(w, d->scopes);
	j->low = 0;
	j->high = (end - pcs) / 16;
	*ret_pcs = data + pcs;
	return end < pcs || j->high >> JAVA_PCS_BITS ? -1 : 0;
}

/* Finds the first of n PcDescs at or after an offset in the code: j->low. 0 or -1. */
static __always_inline int java_search(struct sf_java_walk *j, u64 pcs, s32 offset)
{
	s32 here;

#pragma clang loop unroll(disable)
	for (u32 i = 0; i <= JAVA_PCS_BITS; i++) {
		u32 low = j->low, high = j->high, mid = (low + high) / 2;

		if (low >= high)
			break;
		if (copy_user(&here, sizeof(here), pcs + 16ull * mid))
			return -1;
		if (here < offset)
			j->low = mid + 1;
		else
			j->high = mid;
	}
	return 0;
}

/* Whether there is a safepoint poll: test [register], eax, or ldr wzr, [register] */
static __always_inline bool java_poll(u64 at)
{
	u8 b[4];

	if (copy_user(b, sizeof(b), at))
		return false;
#if defined(__TARGET_ARCH_x86)
	return b[0] == 0x41 ? b[1] == 0x85 && b[2] < 8 : b[0] == 0x85 && b[1] < 8;
#else
	return (b[0] & 0x1f) == 0x1f && !(b[1] & 0xfc) && b[2] == 0x40 && b[3] == 0xb9;
#endif
}

/*
 * Finds the PcDesc of a pc: j->scope is its scope. Loops poll at their end, and what follows the
 * poll is the jump back. 0 or -1.
 */
static __always_inline int java_desc(struct sf_java_walk *j, u64 pcs, u64 pc)
{
	s32 desc[2], last[2], offset = pc - j->code;
	u32 n = j->high, i;

	if (java_search(j, pcs, offset))
		return -1;
	i = j->low;
	if (i >= n || copy_user(desc, sizeof(desc), pcs + 16ull * i))
		return -1;
	j->scope = desc[1];
	if (i && desc[0] != offset && !copy_user(last, sizeof(last), pcs + 16ull * (i - 1)) &&
	    offset - last[0] <= JAVA_JUMP_BYTES && java_poll(j->code + last[0]))
		j->scope = last[1];
	return 0;
}

/*
 * Finds the frames of the compiled code at s->regs for java_known. If its scopes cannot be read, or
 * do not end with the nmethod's own method, there is only the frame of that one. Always 0.
 */
__noinline int java_scopes(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	const struct sf_java *d;
	struct sf_java_walk *j;
	struct sf_code_pc *e;
	u64 pcs, last;
	u32 key;

	if (!s)
		return 0;
	j = &s->lang.java;
	d = java_lang(j->rt.module);
	if (!d)
		return 0;
	e = &s->lang.pc;
	e->epoch = *(volatile u32 *)&code_epoch;
	e->space = j->rt.space;
	e->at = s->regs.pc - (s->regs.flags & SF_REGS_RA);
	e->cookie = j->cookie;
	e->n = j->scope = 0;
	j->owed = java_tables(&s->lang, d, &pcs) || java_desc(j, pcs, s->regs.pc);
	if (!j->owed && j->scope)
		bpf_loop(SF_PC_FRAMES, java_scope, &slot, 0);
	last = e->words[INDEX(e->n - 1, SF_PC_FRAMES)] >> 16;
	if (j->scope && e->n == SF_PC_FRAMES) { /* the outermost ones are missing */
		e->words[SF_PC_FRAMES - 1] = 0;
	} else if (!e->n || j->scope || last != j->method) {
		j->owed |= j->scope != 0 || e->n != 0;
		e->n = 1;
		e->words[0] = JAVA_PAIR(j->method, 0);
	}
	s->lang.spent.java.failed += j->owed;
	bpf_loop(SF_PC_FRAMES, java_word, &slot, 0);
	key = code_pc_key(e->space, e->at);
	if (!j->owed)
		bpf_map_update_elem(&code_pcs, &key, e, BPF_ANY);
	return 0;
}

#endif
