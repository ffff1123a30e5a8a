/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Lines of JavaScript. V8 has places in the source, and computes where lines end only for who asks.
 * So the ends are counted here, in the text of the script, which V8 keeps. The counts up to each
 * chunk of the text are kept; a sample counts a part of a long text, and later ones go on.
 */
#ifndef SFBPF_LANG_JAVASCRIPT_LINES_BPF_H
#define SFBPF_LANG_JAVASCRIPT_LINES_BPF_H

#include "lang/javascript/javascript_function.bpf.h"

#ifdef __TARGET_ARCH_x86

#define JS_SCRIPT_SOURCE 8
#define JS_TEXT		 512 /* bytes of a text per read */
#define JS_TEXTS	 192 /* reads in a sample */
#define JS_SOURCE_HOPS	 4   /* strings from the script to the one with its text */

/* How many of the characters in a word, which have 1 or 2 bytes, end a line */
static __always_inline u32 js_ends(u64 word, bool wide)
{
	u64 low = wide ? 0x7fff7fff7fff7fffull : 0x7f7f7f7f7f7f7f7full;

	word ^= wide ? 0x000a000a000a000aull : 0x0a0a0a0a0a0a0a0aull;
	word = ~(((word & low) + low) | word | low); /* the highest bit of those that are 0 now */
	return wide ? (word >> 15) * 0x0001000100010001ull >> 48
		    : (word >> 7) * 0x0101010101010101ull >> 56;
}

/*
 * Keys are from js_script_key; entries are replaced as in code_pcs. It takes memory only once there
 * is JavaScript, and lines.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SF_JS_SCRIPTS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, struct sf_js_script);
} js_scripts SEC(".maps");

static __always_inline u32 js_script_key(u64 space, u64 script)
{
	u64 h = space;

	FOLD(h, script, FOLD_MUL2);
	return (h >> 32 ^ h) & (SF_JS_SCRIPTS - 1);
}

/* Counts in the next piece of the text in hand. */
static int js_count(u32 round, void *ctx)
{
	struct sf_scratch *s = scratch_of(*(u32 *)ctx);
	struct sf_js_script *script;
	struct sf_javascript_walk *j;
	u32 n, bytes, i, sum = 0;

	if (!s)
		return 1;
	j = &s->lang.javascript;
	n = j->count_end - j->count_at;
	if (j->count_at >= j->count_end || s->lang.spent.javascript.texts++ >= JS_TEXTS)
		return 1;
	if (n > JS_TEXT >> j->count_wide)
		n = JS_TEXT >> j->count_wide;
	bytes = n << j->count_wide;
	if (!bytes || copy_user_part(s->lang.window, bytes, JS_TEXT,
				     j->text + ((u64)j->count_at << j->count_wide)))
		return 1;
	*(u64 *)(s->lang.window + AT_MOST(bytes, JS_TEXT)) = 0;
#pragma clang loop unroll(disable)
	for (i = 0; i < JS_TEXT; i += 8) {
		if (i >= bytes)
			break;
		sum += js_ends(*(u64 *)(s->lang.window + i), j->count_wide);
	}
	j->count += sum;
	j->count_at += n;
	if (j->count_at & (SF_JS_PIECE - 1))
		return 0;
	script = bpf_map_lookup_elem(&js_scripts, &j->script_key);
	n = j->count_at / SF_JS_PIECE;
	if (script && n < SF_JS_PIECES && script->cookie == j->script_cookie) {
		script->lines[INDEX(n, SF_JS_PIECES)] = j->count;
		if (script->known < n)
			script->known = n;
	}
	return 0;
}

/*
 * Goes from the string at j->text, whose type is in hand, to the one that has its text. Scripts of
 * vm.Script and eval are strings that programs have put together, or cut out of others. 1: it is
 * this one; 0: it is another one, now in hand; -1: none.
 */
static __always_inline int js_source_hop(struct sf_javascript_walk *j)
{
	u32 kind = j->type & 7;

	if (j->type >= JS_STRING_TYPES || copy_user(j->word, 32, j->text - JS_TAG))
		return -1;
	if (kind == JS_SEQ || kind == JS_EXTERNAL) {
		j->text = kind == JS_SEQ ? j->text + JS_STRING_TEXT - JS_TAG : j->word[3];
		return 1;
	}
	/* A chain that was made flat: its first part has all of it */
	if (kind == JS_CONS && (user_u64(j->word[3] - JS_TAG + 8, &j->word[0]) || j->word[0] >> 32))
		return -1;
	if (kind == JS_SLICED)
		j->start += JS_SMI(j->word[3]);
	j->text = j->word[2];
	return js_type(j, j->text - JS_TAG);
}

/* Finds the text of the script that the function in hand is from. 0 or -1. */
static __always_inline int js_source(struct sf_scratch *s, const struct sf_javascript *d)
{
	struct sf_javascript_walk *j = &s->lang.javascript;
	u64 script = OBJECT64(&s->lang, d->shared_script) - JS_TAG, h;
	int hop, found = 0;

	if (js_type(j, script) || j->type != d->type_script ||
	    user_u64(script + JS_SCRIPT_SOURCE, &j->text) || js_type(j, j->text - JS_TAG) ||
	    user_u64(j->text - JS_TAG + 8, &j->word[1]))
		return -1;
	h = MM_ID(s->mm);
	FOLD(h, script, FOLD_MUL1);
	FOLD(h, j->text, FOLD_MUL2);
	FOLD(h, j->word[1], FOLD_MUL1);
	j->script_cookie = h;
	j->script_key = js_script_key(MM_ID(s->mm), script);
	j->start = 0;
#pragma clang loop unroll(disable)
	for (hop = 0; hop < JS_SOURCE_HOPS && !found; hop++)
		found = js_source_hop(j);
	j->count_wide = !(j->type & JS_ONE_BYTE);
	j->text += (u64)j->start << j->count_wide;
	return found > 0 ? 0 : -1;
}

/*
 * Prepares js_count for a place in the script of the function in hand. 0 or -1. Global, so it is
 * verified once and its stack is not that of js_line.
 */
__noinline int js_lines_before(u32 slot, u32 place)
{
	struct sf_scratch *s = scratch_of(slot);
	const struct sf_javascript *d;
	struct sf_javascript_walk *j;
	struct sf_js_script *script;
	u32 n;

	if (!s)
		return -1;
	j = &s->lang.javascript;
	d = js_lang(s->lang.begin.javascript.module);
	n = (place - 1) / SF_JS_PIECE;
	if (!d || n >= SF_JS_PIECES || js_source(s, d))
		return -1;
	script = bpf_map_lookup_elem(&js_scripts, &j->script_key);
	if (!script || script->cookie != j->script_cookie) {
		j->script.cookie = j->script_cookie;
		script = NULL;
		if (!bpf_map_update_elem(&js_scripts, &j->script_key, &j->script, BPF_ANY))
			script = bpf_map_lookup_elem(&js_scripts, &j->script_key);
		if (!script) { /* the kernel has little memory at hand for each sample */
			j->owed = 1;
			return -1;
		}
	}
	if (n > script->known)
		n = script->known;
	j->count = script->lines[INDEX(n, SF_JS_PIECES)];
	j->count_at = n * SF_JS_PIECE;
	j->count_end = place - 1;
	return 0;
}

/*
 * The line of a place in the script of the function in hand. 0: it has none, or is not known yet
 * (j->owed). Global, so it is verified once.
 */
__noinline int js_line(u32 slot, u32 place)
{
	struct sf_scratch *s = scratch_of(slot);
	struct sf_javascript_walk *j;

	if (!s || !cfg_lines || !place || js_lines_before(slot, place))
		return 0;
	j = &s->lang.javascript;
	bpf_loop(JS_TEXTS, js_count, &slot, 0);
	if (j->count_at < j->count_end) {
		j->owed = 1;
		return 0;
	}
	return j->count + 1;
}

#endif
#endif
