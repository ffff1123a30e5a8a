/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The functions that optimised code of JavaScript has inlined at a pc, and positions in the source.
 *
 * Code made at run time is an object whose instructions follow its header, so going back from a
 * pc finds it by the map of such objects. A table leads from offsets in the code to positions in
 * the source, and these have the number of the function that was inlined there. Of each number, the
 * deoptimization data has the function, and the position that it was inlined at.
 *
 * Bytecode has such a table as well. Code of Sparkplug (baseline) has a table of where the code of
 * each bytecode ends.
 */
#ifndef SFBPF_LANG_JAVASCRIPT_INLINED_BPF_H
#define SFBPF_LANG_JAVASCRIPT_INLINED_BPF_H

#include "lang/javascript/javascript_lines.bpf.h"

#ifdef __TARGET_ARCH_x86

#define JS_ALIGN  32  /* alignment of the instructions of an object */
#define JS_STREAM 8   /* places that are looked at in a read */
#define JS_SEEKS  384 /* reads: 96 KiB of code */
#define JS_HEADER 32  /* bytes that tell one code from another */
#define JS_CHUNK  32  /* bytes of a table per read */
#define JS_TABLE  640 /* reads: 20 KiB */
/* A sample's reads of both kinds: enough for any one pc, so that later samples need fewer */
#define JS_EFFORT (JS_SEEKS + JS_TABLE)

/* Places in Code of all versions that are supported */
#define JS_CODE_START 40 /* address of the instructions, if the stream points to a Code */
#define JS_CODE_KIND  15 /* mask for the flags */
#define JS_LENGTH     8	 /* offset of an array's length */
#define JS_PREFIXES   4	 /* the first opcodes: operands of the next are 2 or 4 times as wide */
#define JS_ARRAY      32 /* bytes from fp down to the BytecodeArray, in frames that have bytecode */
#define JS_ELEMENTS   16

#define JS_RARE	    128 /* bytes of code at the end of a function that are searched */
#define JS_CALL	    64	/* bytes of the instructions of a call, at most */
/* Instructions; JS_REX_B: those with r8 to r15 */
#define JS_REX_B    0x41
#define JS_POP	    0x58
#define JS_JMP8	    0xeb
#define JS_JMP32    0xe9
#define JS_0F	    0x0f
#define JS_JCC32    0x80
#define JS_JE32	    0x84
#define JS_CALL_RCX 0xd1ff /* calls a function of JavaScript */

/* A position: the place in the script from bit 1 on, and the number; both are 1 higher, 0: none */
#define JS_PLACE(position)   ((u32)((position) >> 1) & 0x3fffffff)
#define JS_INLINED(position) ((u32)((position) >> 31) & 0xffff)

/* What changes when other code takes the place of that with the current function. */
static __always_inline u64 js_cookie(struct sf_javascript_walk *j, const struct sf_javascript *d,
				     u64 code, u64 function)
{
	u64 h = function;

	if (copy_user(j->word, JS_HEADER, code - d->stream_code))
		return 0;
	FOLD(h, j->word[0], FOLD_MUL1);
	FOLD(h, j->word[1], FOLD_MUL2);
	FOLD(h, j->word[2], FOLD_MUL1);
	FOLD(h, j->word[3], FOLD_MUL2);
	return h;
}

/* The frames that the code has at an address. NULL: js_scopes has to find them first. */
static __always_inline const struct sf_code_pc *js_pc(struct sf_scratch *s,
						      const struct sf_javascript *d, u64 at)
{
	u64 space = MM_ID(s->mm);
	u32 key = code_pc_key(space, at);
	const struct sf_code_pc *e = &s->lang.pc;

	if (e->at == at)
		return e;
	e = bpf_map_lookup_elem(&code_pcs, &key);
	if (e && e->at == at && e->space == space && e->epoch == *(volatile u32 *)&code_epoch &&
	    e->cookie == js_cookie(&s->lang.javascript, d, e->code, s->lang.code ^ s->lang.cookie))
		return e;
	return NULL;
}

/* ---- The code of a pc ---- */

/* Whether the code at an address, whose object begins with this map, has the pc. */
static __always_inline bool js_is_code(struct sf_scratch *s, const struct sf_javascript *d, u64 map,
				       u64 code)
{
	struct sf_javascript_walk *j = &s->lang.javascript;
	u64 object = code - d->stream_code, id = MM_ID(s->mm);
	u32 size = 0;

	if ((map != j->stream || id != j->stream_space) &&
	    (copy_user(&j->type, sizeof(j->type), map - JS_TAG + JS_MAP_TYPE) ||
	     j->type != d->type_stream))
		return false;
	if (d->stream_has) {
		if (user_u64(object + d->stream_has, &j->word[0]))
			return false;
		object = j->word[0] - JS_TAG;
		if (user_u64(object + JS_CODE_START, &j->word[0]) || j->word[0] != code)
			return false;
	}
	if (copy_user(&size, sizeof(size), object + d->code_size) || s->lang.pc.at - code >= size)
		return false;
	j->stream = map;
	j->stream_space = id;
	j->code = object;
	s->lang.pc.code = code;
	return true;
}

/* Looks for the beginning of the code, at places before j->seek. 1: it was found, or cannot be. */
static int js_seek(u32 round, void *ctx)
{
	struct sf_scratch *s = scratch_of(*(u32 *)ctx);
	const struct sf_javascript *d;
	struct sf_javascript_walk *j;
	u32 cut = 0, i;

	if (!s)
		return 1;
	j = &s->lang.javascript;
	d = js_lang(s->lang.begin.javascript.module);
	if (!d || s->lang.spent.javascript.effort++ >= JS_EFFORT)
		return 1;
	j->seek -= JS_STREAM * JS_ALIGN;
	if (copy_user(s->lang.window, JS_STREAM * JS_ALIGN, j->seek)) {
		/* The code is the first one in its memory, or this is no code */
		cut = -(u32)j->seek & (SF_PAGE_MIN - 1);
		if (cut >= JS_STREAM * JS_ALIGN)
			return 1;
		if (copy_user_part(s->lang.window + INDEX(cut, SF_LANG_WINDOW),
				   JS_STREAM * JS_ALIGN - cut, JS_STREAM * JS_ALIGN, j->seek + cut))
			return 1;
	}
#pragma clang loop unroll(disable)
	for (i = JS_STREAM; i > 0; i--) {
		u32 at = (i - 1) * JS_ALIGN;
		u64 word = *(u64 *)(s->lang.window + INDEX(at, SF_LANG_WINDOW));

		if (at < cut)
			return 1;
		if ((word & 3) == JS_TAG && js_is_code(s, d, word, j->seek + at + d->stream_code))
			return 1;
	}
	return cut != 0;
}

/* ---- Tables ---- */

enum {
	JS_POSITIONS, /* pairs: how much further in the code, and in the source */
	JS_ENDS,      /* ends of the code of each bytecode; the first one is that of the prologue */
	JS_BYTECODE,
};

/* Adds a byte of a table of numbers. True: the next entries are for code after the target. */
static __always_inline bool js_number(struct sf_javascript_walk *j, u8 byte)
{
	u64 n = j->number | (u64)(byte & 0x7f) << (j->shift & 63);

	j->number = n;
	j->shift += 7;
	if (byte & 0x80)
		return false;
	j->number = j->shift = 0;
	if (j->reading == JS_ENDS) {
		j->offset += n;
		j->nth += j->offset <= j->target;
		return j->offset > j->target;
	}
	n = n >> 1 ^ -(n & 1);
	j->second ^= 1;
	if (j->second) {
		j->offset += (s64)n < 0 ? ~n : n; /* the sign tells what begins a statement */
		return j->offset > j->target + 1; /* they count from -1 */
	}
	j->position += n;
	j->placed = j->offset;
	return false;
}

/* Goes over a byte of bytecode. True: the wanted one begins here. */
static __always_inline bool js_opcode(struct sf_javascript_walk *j, const struct sf_javascript *d,
				      u8 byte)
{
	u32 size = d->bytecodes[byte];

	if (j->operands) {
		j->operands--;
	} else if (!j->wider && !j->nth) {
		return true;
	} else if (!j->wider && byte < JS_PREFIXES) {
		j->wider = byte & 1 ? 3 : 1;
	} else {
		j->operands = (size & 15) + j->wider * (size >> 4);
		j->wider = 0;
		j->nth--;
	}
	j->offset++;
	return false;
}

static int js_table(u32 round, void *ctx)
{
	struct sf_scratch *s = scratch_of(*(u32 *)ctx);
	const struct sf_javascript *d;
	struct sf_javascript_walk *j;
	u32 n, i;

	if (!s)
		return 1;
	j = &s->lang.javascript;
	d = js_lang(s->lang.begin.javascript.module);
	n = AT_MOST(j->left, JS_CHUNK);
	if (!d || !n)
		return 1;
	if (s->lang.spent.javascript.effort++ >= JS_EFFORT ||
	    copy_user_part(s->lang.window, n, JS_CHUNK, j->table)) {
		j->owed = 1;
		return 1;
	}
#pragma clang loop unroll(disable)
	for (i = 0; i < JS_CHUNK; i++) {
		u8 byte = s->lang.window[INDEX(i, JS_CHUNK)];

		if (i >= n)
			break;
		if (j->reading == JS_BYTECODE ? js_opcode(j, d, byte) : js_number(j, byte))
			return 1;
	}
	j->table += n;
	j->left -= n;
	return 0;
}

/*
 * Reads an array up to the target, or to the bytecode that is wanted. first: its first byte, from
 * its beginning. 0 or -1. Global, so it is verified once.
 */
__noinline int js_read(u32 slot, u64 array, u32 first, u32 reading)
{
	struct sf_scratch *s = scratch_of(slot);
	struct sf_javascript_walk *j;

	if (!s)
		return -1;
	j = &s->lang.javascript;
	j->owed = 1;
	if (!(array & JS_TAG) || user_u64(array - JS_TAG + JS_LENGTH, &j->word[0]))
		return -1;
	j->owed = 0;
	j->table = array - JS_TAG + first;
	j->left = JS_SMI(j->word[0]);
	j->reading = reading;
	j->number = j->shift = j->second = j->operands = j->wider = 0;
	j->offset = j->position = j->placed = 0;
	if (j->left > JS_TABLE * JS_CHUNK)
		return -1;
	bpf_loop(JS_TABLE, js_table, &slot, 0);
	return j->owed ? -1 : 0;
}

/* ---- Bytecode ---- */

/* Finds the BytecodeArray of the frame at s->regs. 0 or -1. */
static __always_inline int js_array(struct sf_scratch *s, const struct sf_javascript *d)
{
	struct sf_javascript_walk *j = &s->lang.javascript;
	struct sf_regs *r = &s->regs;

	if ((!(r->flags & SF_REGS_RA) && r->fp - r->sp < JS_ARRAY + 8) || !d->type_bytecode ||
	    sf_read_user(r, r->fp - JS_ARRAY, &j->array) || !(j->array & JS_TAG) ||
	    js_type(j, j->array - JS_TAG) || j->type != d->type_bytecode)
		return -1;
	return 0;
}

/* Finds the position of the bytecode that is j->target bytes from the first one. */
static __always_inline void js_of_bytecode(struct sf_javascript_walk *j, u32 slot,
					   const struct sf_javascript *d)
{
	u64 positions;

	if (!user_u64(j->array - JS_TAG + d->bytecode_positions, &positions))
		js_read(slot, positions, JS_ELEMENTS, JS_POSITIONS);
	else
		j->owed = 1;
}

/* Finds the position of the current code, which Sparkplug made: that of its bytecode. */
static __always_inline void js_of_baseline(struct sf_scratch *s, u32 slot,
					   const struct sf_javascript *d)
{
	struct sf_javascript_walk *j = &s->lang.javascript;
	u64 ends;

	j->nth = 0;
	if (js_array(s, d))
		return;
	if (user_u64(j->code + d->code_positions, &ends)) {
		j->owed = 1;
		return;
	}
	if (js_read(slot, ends, JS_ELEMENTS, JS_ENDS))
		return;
	j->nth -= !!j->nth; /* drops the end of the prologue */
	if (js_read(slot, j->array, d->bytecode_start, JS_BYTECODE))
		return;
	j->target = j->offset;
	js_of_bytecode(j, slot, d);
}

/* ---- The functions at a position ---- */

/* Adds the function that has the current position, and goes on to the one that inlined it. */
static int js_scope(u32 round, void *ctx)
{
	struct sf_scratch *s = scratch_of(*(u32 *)ctx);
	struct sf_javascript_walk *j;
	u32 number, n, literal;
	u64 position;

	if (!s)
		return 1;
	j = &s->lang.javascript;
	n = s->lang.pc.n;
	number = JS_INLINED(j->position);
	if (!number) {
		s->lang.pc.position = cfg_lines ? JS_PLACE(j->position) : 0;
		return 1;
	}
	if (number > j->ninlined || copy_user(j->word, 16, j->inlined + 16ull * (number - 1))) {
		j->owed = 1;
		return 1;
	}
	position = j->word[0];
	literal = j->word[1];
	if (literal == ~0u) /* the function itself */
		j->word[0] = j->own;
	else if (literal >= j->nliterals || user_u64(j->literals + 8ull * literal, &j->word[0]))
		j->word[0] = 0;
	s->lang.pc.words[INDEX(n, SF_PC_FRAMES)] = j->word[0] & ~2ull; /* weak pointers */
	j->places[INDEX(n, SF_PC_FRAMES)] = JS_PLACE(j->position);
	s->lang.pc.n = n + 1;
	j->position = position;
	return 0;
}

/* Whether the code in the window jumps back at this byte. 1: j->on is the target. */
static int js_jump(u32 i, void *ctx)
{
	struct sf_scratch *s = scratch_of(*(u32 *)ctx);
	struct sf_javascript_walk *j;
	u8 insn, before;
	u64 next, to;
	u32 far;

	if (!s)
		return 1;
	j = &s->lang.javascript;
	next = j->at + j->called + i;
	before = i ? s->lang.window[INDEX(i - 1, JS_RARE)] : 0;
	insn = s->lang.window[INDEX(i, JS_RARE)];
	far = *(u32 *)(s->lang.window + INDEX(i, JS_RARE) + 1);
	if (j->restores && insn == JS_JMP8) {
		j->on = next + 2 + (signed char)far;
		return 1;
	}
	j->restores &= insn == JS_REX_B || (insn & ~7) == JS_POP;
	to = next + 5 + (s32)far;
	/* What comes after a call in code for rare cases has no conditions */
	if (j->called && before == JS_0F && (insn & ~15) == JS_JCC32 &&
	    to - s->lang.pc.code < JS_SEEKS * JS_STREAM * JS_ALIGN)
		return 1;
	if ((insn != JS_JMP32 && (j->left || insn != JS_JE32 || before != JS_0F)) ||
	    to - s->lang.pc.code >= j->target)
		return 0;
	j->on = to;
	return 1;
}

/*
 * V8 puts code for rare cases, such as write barriers and allocation, at the end of a function, and
 * writes no positions for it. Such code has the position of the target of its first jump back.
 * A call of a function is no rare case, wherever its code is.
 * Finds the offset of that target. At or above j->target: the code has a position of its own, or
 * does not jump back.
 */
static __always_inline u64 js_goes_on(struct sf_scratch *s, u32 slot)
{
	struct sf_javascript_walk *j = &s->lang.javascript;
	u16 call = 0;

	j->called = s->regs.flags & SF_REGS_RA || j->at != s->regs.pc;
	j->restores = j->called;
	if ((j->called ? j->target + 2 - j->placed <= JS_CALL : j->left) ||
	    copy_user(s->lang.window, JS_RARE, j->at + j->called))
		return ~0ull;
	if (j->called && (copy_user(&call, sizeof(call), j->at - 1) || call == JS_CALL_RCX))
		return ~0ull;
	j->on = 0;
	bpf_loop(JS_RARE - 4, js_jump, &slot, 0);
	return j->on - s->lang.pc.code;
}

/* Finds the position of the current code, which is optimised, and what was inlined there. */
static __always_inline void js_of_optimised(struct sf_scratch *s, u32 slot,
					    const struct sf_javascript *d)
{
	struct sf_javascript_walk *j = &s->lang.javascript;
	u64 positions, on;

	j->owed = 1;
	if (user_u64(j->code + d->code_deopt, &positions) ||
	    user_u64(positions - JS_TAG + d->deopt_literals, &j->literals) ||
	    user_u64(positions - JS_TAG + d->deopt_inlining, &j->inlined) ||
	    user_u64(j->code + d->code_positions, &positions) ||
	    user_u64(j->literals - JS_TAG + JS_LENGTH, &j->word[0]) ||
	    user_u64(j->inlined - JS_TAG + JS_LENGTH, &j->word[1]))
		return;
	j->literals += JS_ELEMENTS - JS_TAG;
	j->inlined += JS_ELEMENTS - JS_TAG;
	j->nliterals = JS_SMI(j->word[0]);
	j->ninlined = JS_SMI(j->word[1]) / 16;
	j->owed = 0;
	if ((!cfg_lines && !j->ninlined) || js_read(slot, positions, JS_ELEMENTS, JS_POSITIONS))
		return;
	on = js_goes_on(s, slot);
	if (on && on < j->target) {
		j->target = on - 1;
		js_read(slot, positions, JS_ELEMENTS, JS_POSITIONS);
	}
}

/* Finds the position of the current code or bytecode. */
static __always_inline void js_position(struct sf_scratch *s, u32 slot,
					const struct sf_javascript *d)
{
	struct sf_javascript_walk *j = &s->lang.javascript;
	u32 kind = 0;

	j->position = 0;
	if (j->array) {
		j->target = j->at - (j->array - JS_TAG) - d->bytecode_start;
		js_of_bytecode(j, slot, d);
		return;
	}
	j->target = j->at - s->lang.pc.code;
	if (copy_user(&kind, sizeof(kind), j->code + d->code_flags))
		return;
	kind &= JS_CODE_KIND;
	if (kind > d->kind_baseline)
		js_of_optimised(s, slot, d);
	else if (kind == d->kind_baseline && cfg_lines)
		js_of_baseline(s, slot, d);
}

/* Keeps what was found for the next samples. */
static __always_inline void js_keep(struct sf_scratch *s)
{
	struct sf_code_pc *e = &s->lang.pc;
	u32 key = code_pc_key(e->space, e->at);

	if (!s->lang.javascript.owed && e->cookie)
		bpf_map_update_elem(&code_pcs, &key, e, BPF_ANY);
}

/*
 * Finds the functions that the code at s->regs has inlined there, for js_pc; js_word makes
 * their frames. If they cannot be found, the frame has its own function alone. Always 0.
 */
__noinline int js_scopes(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	const struct sf_javascript *d;
	struct sf_javascript_walk *j;
	struct sf_code_pc *e;

	if (!s)
		return 0;
	j = &s->lang.javascript;
	d = js_lang(s->lang.begin.javascript.module);
	e = &s->lang.pc;
	e->at = j->at;
	e->n = e->position = 0;
	if (!d)
		return 0;
	if (s->lang.language != SF_LANG_JAVASCRIPT)
		s->lang.stop = SF_STOP_COMPLETE;
	s->lang.language = SF_LANG_JAVASCRIPT;
	e->space = MM_ID(s->mm);
	e->epoch = *(volatile u32 *)&code_epoch;
	e->code = 0;
	j->own = s->lang.code;
	j->owed = 0;
	j->seek = (e->at & ~(JS_ALIGN - 1ull)) - d->stream_code + JS_ALIGN;
	if (j->array)
		e->code = j->array - JS_TAG + d->stream_code; /* js_cookie needs it */
	else
		bpf_loop(JS_SEEKS, js_seek, &slot, 0);
	if (!e->code) { /* the object may be longer, or have another map */
		j->stream = 0;
		e->code = e->at & ~(JS_ALIGN - 1ull);
		j->owed = s->lang.spent.javascript.effort >= JS_EFFORT;
	} else {
		js_position(s, slot, d);
		if (!j->owed)
			bpf_loop(SF_PC_FRAMES, js_scope, &slot, 0);
		if (JS_INLINED(j->position)) /* the outermost ones are missing */
			e->words[SF_PC_FRAMES - 1] = 0;
	}
	e->cookie = js_cookie(j, d, e->code, j->own ^ s->lang.cookie);
	j->made = 0;
	j->words = e->n + !!e->position;
	if (!j->words)
		js_keep(s);
	return 0;
}

/*
 * Makes the frame word of the next function that js_scopes has found. The last one is the function
 * itself, of which only the line is needed. Always 0.
 */
__noinline int js_word(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	u64 word = SF_FRAME_LANG_WORD(SF_LANG_JAVASCRIPT, 0, 0);
	const struct sf_javascript *d;
	struct sf_javascript_walk *j;
	u32 i;

	if (!s)
		return 0;
	j = &s->lang.javascript;
	d = js_lang(s->lang.begin.javascript.module);
	i = j->made;
	if (j->made >= s->lang.pc.n) {
		if (!d || js_shared(s, d, j->own))
			s->lang.pc.position = 0;
		s->lang.pc.position = js_line(slot, s->lang.pc.position);
		js_keep(s);
		j->made = j->words;
		return 0;
	}
	s->lang.owed = 1;
	if (d && !js_shared(s, d, s->lang.pc.words[INDEX(i, SF_PC_FRAMES)])) {
		s->lang.owed = 0;
		j->closure = 0;
		j->places[INDEX(i, SF_PC_FRAMES)] = js_line(slot,
							    j->places[INDEX(i, SF_PC_FRAMES)]);
		js_known(s, slot);
		word = lang_word(s, slot, SF_LANG_JAVASCRIPT, js_send,
				 j->places[INDEX(i, SF_PC_FRAMES)]);
	}
	s->lang.pc.words[INDEX(i, SF_PC_FRAMES)] = word;
	j->owed |= s->lang.owed || !s->lang.id;
	j->made++;
	if (j->made >= j->words)
		js_keep(s);
	return 0;
}

#endif
#endif
