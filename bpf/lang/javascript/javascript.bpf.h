/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Frames of JavaScript in V8 (struct sf_javascript, made by userspace/languages/javascript.c).
 *
 * V8's code has no unwind tables, but it keeps frame pointers. Code made at run time is in
 * anonymous memory. Builtins, among them the interpreter, are one piece of the file. The word below
 * the caller's frame pointer says what a frame is. A tagged pointer is a context, and the function
 * is the next word: of interpreted, baseline and optimised code, and of builtins that programs can
 * call. Any other word is the type of an internal frame (entry, exit, construct, stub). Internal
 * frames of builtins are stepped over, and shown with --native only.
 */
#ifndef SFBPF_LANG_JAVASCRIPT_BPF_H
#define SFBPF_LANG_JAVASCRIPT_BPF_H

#include "lang/code.bpf.h"
#include "lang/javascript/javascript_inlined.bpf.h"
#include "core/space.bpf.h"

#ifdef __TARGET_ARCH_x86

#define JS_FRAME_MAX	   (16 << 20) /* bytes of a frame; functions may have 65,534 arguments */
#define JS_TYPES	   64	      /* types of internal frames are below */
#define JS_PUSH_RSI	   0x56	      /* the prologue: push rbp; mov rbp, rsp; push rsi; push rdi */
/* Registers by DWARF number: the function in the prologue; the interpreter's BytecodeArray */
#define JS_FUNCTION	   5
#define JS_ARRAY_REGISTER  12
#define JS_OFFSET_REGISTER 9  /* the offset in it */
#define JS_OFFSET	   40 /* bytes from the frame pointer down to this offset */

#define LATER_JS_EMIT	LATER(SF_LANG_JAVASCRIPT, 0) /* js_emit */
#define LATER_JS_SCOPES LATER(SF_LANG_JAVASCRIPT, 1) /* js_scopes, then js_frame again */
#define LATER_JS_WORD	LATER(SF_LANG_JAVASCRIPT, 2) /* js_word, then js_frame again */

/* ---- The runtime of the address space ---- */

/* The key is MM_ID modulo SF_JS_SPACES. Address spaces with one key replace each other's entry. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SF_JS_SPACES);
	__type(key, u32);
	__type(value, struct sf_js_space);
} js_spaces SEC(".maps");

/* Notes the module with V8 of an address space, so that code without a file is recognized. */
static __always_inline void js_note(struct sf_scratch *s, u32 module)
{
	struct sf_js_space *note = &s->lang.javascript.note, *have;
	u64 id = MM_ID(s->mm);
	u32 key = id & (SF_JS_SPACES - 1);

	have = bpf_map_lookup_elem(&js_spaces, &key);
	if (have && have->space == id && have->module == module)
		return;
	note->space = id;
	note->module = module;
	bpf_map_update_elem(&js_spaces, &key, note, BPF_ANY);
}

/* V8's description, if the mapping can have code of V8. */
static __always_inline const struct sf_javascript *js_here(struct sf_scratch *s,
							   const struct sf_vma *v)
{
	const struct sf_javascript *d;
	u32 module = v->word >> SF_FRAME_MODULE_SHIFT, key;
	struct sf_js_space *have;

	if (v->state == SF_MOD_READY) {
		d = js_lang(module);
		if (d && s->lang.begin.javascript.module != module) {
			s->lang.begin.javascript.module = module;
			js_note(s, module);
		}
		return d;
	}
	if (!s->lang.begin.javascript.module && !s->lang.begin.javascript.asked) {
		s->lang.begin.javascript.asked = 1;
		key = MM_ID(s->mm) & (SF_JS_SPACES - 1);
		have = bpf_map_lookup_elem(&js_spaces, &key);
		if (have && have->space == MM_ID(s->mm))
			s->lang.begin.javascript.module = have->module;
	}
	return s->lang.begin.javascript.module ? js_lang(s->lang.begin.javascript.module) : NULL;
}

/* ---- Frames ---- */

/* What the frame is about: 1: the function in hand; 0: an internal frame; -1: unknown. */
static __always_inline int js_kind(struct sf_scratch *s, const struct sf_javascript *d)
{
	struct sf_regs *r = &s->regs;
	bool inner = !(r->flags & SF_REGS_RA);
	u64 word, function = r->r[JS_FUNCTION], *insn = &s->lang.javascript.word[0];

	if (inner && r->fp == r->sp) /* the prologue */
		return !user_u64(r->pc, insn) && (u8)*insn == JS_PUSH_RSI &&
		       !js_function(s, d, function);
	/* Reads go in ascending order, for the window of the stack */
	if ((!inner || r->fp - r->sp >= 16) && sf_read_user(r, r->fp - 16, &function))
		return -1;
	if (sf_read_user(r, r->fp - 8, &word))
		return -1;
	if (word & JS_TAG)
		return js_function(s, d, function) ? -1 : !s->lang.javascript.glue;
	return word && word < 2 * JS_TYPES ? 0 : -1;
}

static __always_inline int js_step(struct sf_regs *r)
{
	u64 fp, ra;

	if (sf_read_user(r, r->fp, &fp) || sf_read_user(r, r->fp + 8, &ra))
		return SF_STOP_READ_FAULT;
	r->pc = ra;
	r->sp = r->fp + 16;
	r->fp = fp;
	r->flags = SF_REGS_RA;
	return ra ? SF_STEP_GO : SF_STOP_ZERO_RA;
}

/* Notes the frame, which may be V8's: its caller may tell. */
static __always_inline void js_leave(struct sf_scratch *s)
{
	struct sf_javascript_walk *j = &s->lang.javascript;

	if (s->lang.begin.javascript.pc)
		return;
	s->lang.begin.javascript.pc = s->regs.pc;
	j->sp = s->regs.sp;
	j->fp = s->regs.fp;
	j->flags = s->regs.flags;
	j->n = s->n;
	j->cause = s->cause;
}

/* Goes back to that frame. */
static __always_inline int js_back(struct sf_scratch *s)
{
	struct sf_javascript_walk *j = &s->lang.javascript;

	s->regs.pc = s->lang.begin.javascript.pc;
	s->regs.sp = j->sp;
	s->regs.fp = j->fp;
	s->regs.flags = j->flags;
	s->n = j->n;
	s->cause = j->cause;
	s->lang.begin.javascript.pc = 0;
	return SF_STEP_GO;
}

/*
 * Finds the address of the bytecode that the frame at s->regs runs, and j->array. 0: none. A frame
 * that calls has stored the offset. In the innermost one, it is in a register as long as the array
 * is.
 */
static __always_inline u64 js_interpreted(struct sf_scratch *s, const struct sf_javascript *d)
{
	struct sf_javascript_walk *j = &s->lang.javascript;
	struct sf_regs *r = &s->regs;
	bool inner = !(r->flags & SF_REGS_RA);
	u64 offset;

	/* Reads go in ascending order, for the window of the stack */
	if ((inner && r->fp - r->sp < JS_OFFSET) || sf_read_user(r, r->fp - JS_OFFSET, &offset) ||
	    js_array(s, d) || user_u64(j->array - JS_TAG + JS_LENGTH, &j->word[0]))
		goto none;
	offset = JS_SMI(offset);
	if (inner && r->r[JS_ARRAY_REGISTER] == j->array)
		offset = r->r[JS_OFFSET_REGISTER];
	offset += JS_TAG; /* it counts from the tagged pointer */
	if (offset - d->bytecode_start < JS_SMI(j->word[0]))
		return j->array - JS_TAG + offset;
none:
	j->array = 0;
	return 0;
}

/*
 * Finds the call of the builtin that the frame at s->regs, which is a function's, is in. 0: there
 * is none, as in the interpreter. Builtins that compare strings or search arrays, for example,
 * have no frame of their own: the return address is the first word of the stack, or the second one
 * after the first instruction of a prologue.
 */
static __always_inline u64 js_call(struct sf_scratch *s, const struct sf_javascript *d,
				   const struct sf_vma *v)
{
	struct sf_regs *r = &s->regs;
	u64 *ra = &s->lang.javascript.word[0], *before = &s->lang.javascript.word[1];

	if ((r->flags & SF_REGS_RA) || r->fp == r->sp || user_u64(r->sp, ra) ||
	    (*ra == r->fp && user_u64(r->sp + 8, ra)))
		return 0;
	if (*ra + v->delta - d->builtins.start < d->builtins.size ||
	    user_u64(*ra - SF_CALL_BYTES, before) || !after_call(*before))
		return 0;
	return *ra - 1;
}

/*
 * Records the functions that the code at an address has inlined there. SF_STEP_GO, or what js_frame
 * returns.
 */
static __always_inline int js_inlined(struct sf_scratch *s, const struct sf_javascript *d, u64 at)
{
	const struct sf_code_pc *e;
	u32 n = s->n;

	if (s->lang.pc.at == at && s->lang.javascript.made < s->lang.javascript.words)
		return LATER_JS_WORD;
	e = js_pc(s, d, at);
	if (!e)
		return LATER_JS_SCOPES;
	if (pc_record_all(s, e) != SF_STEP_GO)
		return SF_STOP_DEPTH;
	s->lang.javascript.position_here = e->position;
	if (*(volatile const u64 *)&e->at == at)
		return SF_STEP_GO;
	s->n = n; /* another CPU reused it */
	return LATER_JS_SCOPES;
}

/*
 * Finds out about the frame at s->regs, and steps to its caller. found: the slot of s->vmas.
 * NOT_MINE, an enum later, SF_STEP_GO or a stop.
 */
__noinline int js_frame(u32 slot, u32 found)
{
	struct sf_scratch *s = scratch_of(slot);
	const struct sf_javascript *d;
	struct sf_javascript_walk *j;
	struct sf_vma *v;
	bool jit, known;
	int kind;
	u64 at;

	if (!s)
		return NOT_MINE;
	v = vma_at(s, found);
	j = &s->lang.javascript;
	known = s->lang.begin.javascript.module;
	d = js_here(s, v);
	at = s->regs.pc - (s->regs.flags & SF_REGS_RA);
	jit = v->state == SF_MOD_JIT;
	if (!d && jit)
		js_leave(s);
	if (d && !known && s->lang.begin.javascript.pc) /* the process's first sample */
		return js_back(s);
	if (!d || (!jit && at + v->delta - d->builtins.start >= d->builtins.size) ||
	    (s->regs.fp & 7) || s->regs.fp - s->regs.sp > JS_FRAME_MAX)
		return NOT_MINE;
	if (cfg_note_words) /* the memo does not know what is read here */
		s->log_far = ~0ull;
	kind = js_kind(s, d);
	if (kind < 0) {
		if (s->lang.language == SF_LANG_JAVASCRIPT)
			s->lang.stop = SF_STOP_LANG_FAULT;
		return NOT_MINE;
	}
	j->native = (u64)(s->regs.flags & SF_REGS_RA) << 59;
	if (jit)
		j->native |= SF_FRAME_JIT << SF_FRAME_KIND_SHIFT | (at & SF_FRAME_ADDR_MASK);
	else
		j->native |= SF_FRAME_NOROW << SF_FRAME_KIND_SHIFT | v->word |
			     ((at + v->delta) & SF_FRAME_OFFSET_MASK);
	/* Internal frames at run-time code are regular expressions and WebAssembly. */
	if (!cfg_native && (kind || !jit))
		j->native = 0;
	j->position_here = 0;
	j->at = at;
	j->array = 0;
	if (kind && !jit)
		j->at = js_call(s, d, v);
	if (kind && !j->at && cfg_lines)
		j->at = js_interpreted(s, d);
	if (kind && d->stream_code && j->at) {
		kind = js_inlined(s, d, j->at);
		if (kind != SF_STEP_GO)
			return kind;
		kind = 1;
	}
	j->stop = js_step(&s->regs);
	if (!kind && !j->native)
		return j->stop;
	j->kind = kind;
	return LATER_JS_EMIT;
}

/* Records the frame that js_frame found. A stop, or SF_STEP_GO. */
__noinline int js_emit(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	struct sf_javascript_walk *j;
	u64 word;

	if (!s)
		return SF_STOP_DEPTH;
	j = &s->lang.javascript;
	if (j->kind) {
		if (s->lang.language != SF_LANG_JAVASCRIPT)
			s->lang.stop = SF_STOP_COMPLETE;
		s->lang.language = SF_LANG_JAVASCRIPT;
		js_known(s, slot);
		word = lang_word(s, slot, SF_LANG_JAVASCRIPT, js_send, j->position_here);
		if (pc_record(s, word) != SF_STEP_GO)
			return SF_STOP_DEPTH;
	}
	if (j->native && pc_record(s, j->native) != SF_STEP_GO)
		return SF_STOP_DEPTH;
	return j->stop;
}

/* ---- What lang.bpf.h calls ---- */

static __always_inline void javascript_met(u32 slot, u32 i)
{
	struct sf_scratch *s = scratch_of(slot);
	u32 module;

	if (!s)
		return;
	module = vma_at(s, i)->word >> SF_FRAME_MODULE_SHIFT;
	if (js_lang(module))
		js_note(s, module);
}

static __always_inline int javascript_unrowed(struct sf_scratch *s, u32 slot, u32 found)
{
	return js_frame(slot, found);
}

static __always_inline int javascript_later(u32 slot, int what)
{
	if (what == LATER_JS_EMIT)
		return js_emit(slot);
	if (what == LATER_JS_SCOPES)
		js_scopes(slot);
	else if (what == LATER_JS_WORD)
		js_word(slot);
	else
		return what;
	return LATER_ROUND;
}

static __always_inline bool javascript_jits(const struct sf_lang_walk *w)
{
	return w->begin.javascript.module;
}

/* The frames are the native walk's own. */
static __always_inline void javascript_finish(u32 slot)
{
	lang_native_end(slot);
}

#define LANG_HAS (LANG_MET | LANG_UNROWED | LANG_JITS | LANG_FINISH)
#else
#define LANG_HAS 0
#endif

#define LANG javascript
#include "lang/defaults.h"

#endif
