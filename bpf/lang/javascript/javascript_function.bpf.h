/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Functions of JavaScript: which one a frame has, and its name and file (struct sf_javascript). */
#ifndef SFBPF_LANG_JAVASCRIPT_FUNCTION_BPF_H
#define SFBPF_LANG_JAVASCRIPT_FUNCTION_BPF_H

#include "lang/code.bpf.h"

#ifdef __TARGET_ARCH_x86

/* A sample's work: the part of a string counts 1, a function 8 more. Strings may be cyclic. */
#define JS_WORK		 1536
#define JS_FUNCTION_WORK 8

/* Objects: tagged pointers have bit 0 set, small integers are in the upper half of the word. */
#define JS_TAG		 1ull
#define JS_SMI(word)	 ((word) >> 32)
/* A map: the size of its objects and where their properties begin, words, u8; their type, u16 */
#define JS_MAP_SIZE	 8
#define JS_MAP_TYPE	 12
/* A string: map, hash and length, text or a pointer, for some types another word */
#define JS_SCRIPT_ID	 48 /* distance from the script's name */
#define JS_STRING_LEN	 12
#define JS_STRING_TEXT	 16
#define JS_STRING_MORE	 24
#define JS_STRING_TYPES	 128 /* types of strings are below */
#define JS_ONE_BYTE	 8   /* bit of such a type; else units of two bytes */
#define JS_PARTS	 16  /* steps through a string: chains, and parts of them */
#define JS_FUNCTION_KIND 31  /* mask for the flags of a function */
#define JS_NAMES_MAX	 75  /* variables; the names of more are in a table of one word */

enum { JS_SEQ, JS_CONS, JS_EXTERNAL, JS_SLICED, JS_THIN = 5 }; /* type & 7 */

static __always_inline const struct sf_javascript *js_lang(u32 id)
{
	struct sf_module *m = module_at(id);
	const struct sf_lang *d;

	if (!m || m->id != id || m->state != SF_MOD_READY || !(m->flags & SF_MODULE_LANG))
		return NULL;
	d = lang_at(m->dir);
	return d && d->language == SF_LANG_JAVASCRIPT ? &d->javascript : NULL;
}

/* ---- Objects ---- */

/* Reads the type of the object at an address (without tag) as j->type. 0 or -1. */
static __always_inline int js_type(struct sf_javascript_walk *j, u64 addr)
{
	if (user_u64(addr, &j->word[0]))
		return -1;
	return copy_user(&j->type, sizeof(j->type), j->word[0] - JS_TAG + JS_MAP_TYPE) ? -1 : 0;
}

/* Whether it is the map of a SharedFunctionInfo. A process has one or a few of these maps. */
static __always_inline bool js_shared_map(struct sf_scratch *s, const struct sf_javascript *d,
					  u64 map)
{
	struct sf_javascript_walk *j = &s->lang.javascript;
	u64 id = MM_ID(s->mm);

	if (map == j->map && id == j->space)
		return true;
	if (copy_user(&j->type, sizeof(j->type), map - JS_TAG + JS_MAP_TYPE) ||
	    j->type != d->type_shared)
		return false;
	j->map = map;
	j->space = id;
	return true;
}

/* V8's own functions without a name: promise reactions, for example. */
static __always_inline bool js_glue(struct sf_lang_walk *w, const struct sf_javascript *d)
{
	struct sf_javascript_walk *j = &w->javascript;
	u64 name = OBJECT64(w, d->shared_name);

	if (OBJECT64(w, d->shared_data) & JS_TAG) /* not the number of a builtin */
		return false;
	return !(name & JS_TAG) ||
	       (!copy_user(&j->len, sizeof(j->len), name - JS_TAG + JS_STRING_LEN) && !j->len);
}

/*
 * Makes a SharedFunctionInfo the current function. A function is known by it: its closures have it
 * in common. The collector may move it, and its memory is reused. 0 or -1.
 */
static __always_inline int js_shared(struct sf_scratch *s, const struct sf_javascript *d,
				     u64 shared)
{
	struct sf_lang_walk *w = &s->lang;
	u64 h = 0;
	u32 len = d->shared_bytes;

	if (shared == w->code)
		return 0;
	w->code = 0;
	if (!(shared & JS_TAG) ||
	    copy_user_part(w->object, len, SF_JS_SHARED_MAX, shared - JS_TAG) ||
	    !js_shared_map(s, d, OBJECT64(w, 0)))
		return -1;
	FOLD(h, OBJECT64(w, 0), FOLD_MUL1);
	FOLD(h, OBJECT64(w, d->shared_name), FOLD_MUL2);
	FOLD(h, OBJECT64(w, d->shared_script), FOLD_MUL1);
	FOLD(h, (u16)OBJECT32(w, d->shared_token), FOLD_MUL2);
	/* The number of the script: all the rest may be equal in another one at the same place. */
	if (!user_u64(OBJECT64(w, d->shared_script) - JS_TAG + d->script_name + JS_SCRIPT_ID,
		      &s->lang.javascript.word[0]))
		FOLD(h, s->lang.javascript.word[0], FOLD_MUL1);
	w->code = shared;
	w->cookie = h;
	w->id = 0;
	w->javascript.glue = js_glue(w, d);
	return 0;
}

/* Makes the function of a closure the current one. 0 or -1. */
static __always_inline int js_function(struct sf_scratch *s, const struct sf_javascript *d,
				       u64 function)
{
	u64 *shared = &s->lang.javascript.word[0];

	s->lang.javascript.closure = function;
	if (!(function & JS_TAG) || user_u64(function - JS_TAG + d->function_shared, shared))
		return -1;
	return js_shared(s, d, *shared);
}

/* ---- Texts ---- */

/* Adds the current flat part to the name, or makes its end the file. 0 or -1. */
static __always_inline int js_part(struct sf_code *rec, const struct sf_javascript_walk *j,
				   u64 text, bool is_file)
{
	u32 unit = j->type & JS_ONE_BYTE ? 1 : 2, n = j->len * unit;
	u32 at = is_file ? 0 : rec->name_len;

	if (!n || j->len >> 24 || at >= SF_CODE_TEXT || (at && unit != rec->name_unit))
		return 0;
	text += (u64)j->start * unit;
	if (n > SF_CODE_TEXT - at) {
		if (is_file)
			text += n - SF_CODE_TEXT;
		n = SF_CODE_TEXT - at;
	}
	if (copy_user_part((is_file ? rec->file : rec->name) + AT_MOST(at, SF_CODE_TEXT - 1), n,
			   SF_CODE_TEXT, text))
		return -1;
	if (is_file) {
		rec->file_len = n;
		rec->file_unit = unit;
	} else {
		rec->name_len = at + n;
		rec->name_unit = unit;
	}
	return 0;
}

/*
 * Reads a string to the record, as the name or the file. What is no string is empty. The names that
 * V8 infers or computes are pairs of strings, of which either can be such a pair; one that was made
 * flat has an empty second string. 0, or -1: it cannot be read, or too many pairs are in one
 * another. Global, so it is verified once.
 */
__noinline int js_text(u32 slot, u64 str, u32 is_file)
{
	struct sf_scratch *s = scratch_of(slot);
	struct sf_javascript_walk *j;
	u32 hop, len;

	if (!s)
		return -1;
	j = &s->lang.javascript;
	j->nrests = 0;
	j->start = 0;
	j->len = ~0u;
	for (hop = 0; hop < JS_PARTS && (str & JS_TAG); hop++) {
		str -= JS_TAG;
		if (s->lang.spent.javascript.work++ >= JS_WORK || js_type(j, str) ||
		    copy_user(j->word, sizeof(j->word), str))
			return -1;
		if (j->type >= JS_STRING_TYPES)
			return 0;
		len = j->word[1] >> 32;
		if (len < j->len)
			j->len = len;
		if ((j->type & 7) == JS_SEQ) {
			if (js_part(&s->lang.rec, j, str + JS_STRING_TEXT, is_file))
				return -1;
			if (!j->nrests)
				return 0;
			str = j->rests[INDEX(--j->nrests, SF_JS_RESTS)];
			j->start = 0;
			j->len = ~0u;
			continue;
		}
		if ((j->type & 7) == JS_EXTERNAL ||
		    ((j->type & 7) != JS_THIN && user_u64(str + JS_STRING_MORE, &j->word[0])))
			return -1;
		if ((j->type & 7) == JS_SLICED) {
			j->start += JS_SMI(j->word[0]);
		} else if ((j->type & 7) == JS_CONS) {
			if (j->nrests >= SF_JS_RESTS)
				return -1;
			j->rests[INDEX(j->nrests++, SF_JS_RESTS)] = j->word[0];
			j->len = ~0u;
		}
		str = j->word[2];
	}
	return 0;
}

/*
 * Describes the name that the program has computed for the current function: the first property of
 * its closure, as no other functions have properties in the object itself. 0 or -1.
 */
static __always_inline int js_computed_name(struct sf_javascript_walk *j, u32 slot)
{
	u64 closure = j->closure - JS_TAG;
	u8 map[2]; /* size, properties */

	if (!j->closure)
		return 0;
	if (user_u64(closure, &j->word[0]) ||
	    copy_user(map, sizeof(map), j->word[0] - JS_TAG + JS_MAP_SIZE))
		return -1;
	if (map[1] >= map[0])
		return 0;
	return user_u64(closure + 8 * map[1], &j->word[0]) ? -1 : js_text(slot, j->word[0], 0);
}

/*
 * Describes the name of the current function: a string, or in its ScopeInfo, where the name is
 * after two words for each variable. Two words further is the name that V8 inferred for a function
 * without one. 0 or -1.
 */
static __always_inline int js_name(struct sf_scratch *s, u32 slot, const struct sf_javascript *d)
{
	struct sf_javascript_walk *j = &s->lang.javascript;
	u64 info = OBJECT64(&s->lang, d->shared_name) - JS_TAG, inferred;
	u32 n;

	if (info & JS_TAG) /* a small integer: none */
		return 0;
	if (js_type(j, info))
		return -1;
	if (j->type < JS_STRING_TYPES)
		return js_text(slot, info + JS_TAG, 0);
	if (j->type != d->type_scope || user_u64(info + d->scope_count, &j->word[0]))
		return -1;
	n = JS_SMI(j->word[0]);
	info += d->scope_names + 8ull * (n > JS_NAMES_MAX ? n + 1 : 2 * n);
	if (copy_user(j->word, sizeof(j->word), info))
		return -1;
	inferred = j->word[2];
	if (js_text(slot, j->word[0], 0) || (!s->lang.rec.name_len && js_computed_name(j, slot)))
		return -1;
	return s->lang.rec.name_len ? 0 : js_text(slot, inferred, 0);
}

/*
 * Describes the name of the current function. Some versions of V8 keep none for the functions that
 * initialise the fields of objects, and classes. 0 or -1.
 */
static __always_inline int js_name_by_kind(struct sf_scratch *s, u32 slot,
					   const struct sf_javascript *d)
{
	u32 kind = OBJECT32(&s->lang, d->shared_flags) & JS_FUNCTION_KIND, fields = d->kind_fields;
	struct sf_code *rec = &s->lang.rec;

	if (!fields || kind < fields || kind > fields + 1)
		return js_name(s, slot, d);
	if (kind == fields) {
		__builtin_memcpy(rec->name, "<instance_members_initializer>", 30);
		rec->name_len = 30;
	} else {
		__builtin_memcpy(rec->name, "<static_initializer>", 20);
		rec->name_len = 20;
	}
	return 0;
}

/* Describes the current function in the record. 0 or -1. Global, so it is verified once. */
__noinline int js_describe(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	const struct sf_javascript *d;
	struct sf_javascript_walk *j;
	struct sf_code *rec;
	u64 script;

	if (!s)
		return -1;
	j = &s->lang.javascript;
	d = js_lang(s->lang.begin.javascript.module);
	rec = &s->lang.rec;
	rec->language = SF_LANG_JAVASCRIPT;
	rec->version = 0;
	rec->first_line = 0;
	rec->name_len = rec->file_len = rec->lines_len = 0;
	rec->name_unit = rec->file_unit = SF_CODE_UTF8;
	if (!d || js_name_by_kind(s, slot, d))
		return -1;
	if (!(OBJECT64(&s->lang, d->shared_data) & JS_TAG)) /* a builtin */
		return 0;
	script = OBJECT64(&s->lang, d->shared_script) - JS_TAG;
	if (js_type(j, script))
		return -1;
	if (j->type == d->type_script &&
	    (user_u64(script + d->script_name, &j->word[0]) || js_text(slot, j->word[0], 1)))
		return -1;
	if (!rec->file_len) {
		__builtin_memcpy(rec->file, "<anonymous>", 11); /* V8 prints it for code of eval */
		rec->file_len = 11;
	}
	return 0;
}

/*
 * Looks up the current function, and describes it if it is new: here, because js_send can
 * be called with too little stack.
 */
static __always_inline void js_known(struct sf_scratch *s, u32 slot)
{
	struct sf_lang_walk *w = &s->lang;
	struct sf_code_key *key = (struct sf_code_key *)w->javascript.word; /* saves stack */
	struct sf_code_entry *have;

	if (w->id)
		return;
	key->space = MM_ID(s->mm);
	key->addr = w->code;
	have = bpf_map_lookup_elem(&codes, key);
	if (have && have->cookie == w->cookie && have->owed <= 1) {
		w->id = have->id;
		return;
	}
	w->javascript.described = 0;
	w->spent.javascript.work += JS_FUNCTION_WORK;
	if (w->spent.javascript.work <= JS_WORK)
		w->javascript.described = !js_describe(slot);
}

/* A code_describe, after js_known. */
__noinline int js_send(u32 slot, u32 id)
{
	struct sf_scratch *s = scratch_of(slot);

	return s && s->lang.javascript.described ? code_send(s, id) : -1;
}

#endif
#endif
