/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Ids of code objects, and the frames that carry them. A code object that is met for the first time
 * is described to user space at once: the process may be gone before user space could read it.
 */
#ifndef SFBPF_LANG_CODE_BPF_H
#define SFBPF_LANG_CODE_BPF_H

#include "core/fold.bpf.h"
#include "core/memory.bpf.h"
#include "core/regs.bpf.h"
#include "core/space.bpf.h"
#include "core/vma.bpf.h"

/*
 * What a step returns, in place of SF_STEP_GO or an enum sf_stop, when unwind_next has to call
 * another function before the walk goes on. A call from the step itself would need more than the
 * 512 bytes of stack that all functions in a chain of calls have together. A language has eight
 * such values of its own, which <name>_later takes.
 */
#define LATER(language, what) (-64 - 8 * (language) - (what))

enum later {
	LATER_ROUND = -5, /* nothing: the next round of the walk goes on */
	LATER_PROBE,	  /* probe_step, then unwind_frame again, or a frame without mapping */
	LATER_COPIED,	  /* copied_learn, then unwind_frame again */
	LATER_GO_RULE,	  /* go_step */
	NOT_MINE,	  /* the language does not know this code */
};

/* sf_scratch.lang_at; LANG_BRIDGE: bridge_look takes the next round */
enum { LANG_NATIVE, LANG_LOOP, LANG_INSIDE, LANG_BRIDGE };

#define CODE_PER_SAMPLE 128 /* new code objects that a sample describes; some 70 us */
#define CODE_TRIES	8   /* tries for texts that are not resident */

/* Limits as in need_allowed: a program can make code objects without end. */
#define CODE_BURST   16384
#define CODE_STEP_NS (1000000000ull / 1024)

#define LIBC_KEYS 32 /* keys that glibc has in struct pthread; others are in a table */

#ifdef __TARGET_ARCH_x86
#define GLIBC_VALUES 0x318 /* thread pointer -> the value of key 0 */
#define MUSL_TSD     0x80  /* thread pointer -> array of values */
#else
/*
 * AArch64's struct pthread ends at the thread pointer, and its size depends on the release: the
 * value of key 0 is 1512 (2.31), 1576 (2.36) or 1544 (2.41) bytes before.
 */
#define GLIBC_VALUES_MOST 1672
#define GLIBC_VALUES_ENDS 1416
#define MUSL_TSD	  (-88)
#define PTHREAD_MAX	  4096 /* its size, in either libc; stacks of threads are further apart */
#endif

#define TLS_OFFSET_MAX (1ll << 24) /* limit of an offset in a TLS descriptor; above: a pointer */

/* The field at `off` of the current object. */
#define OBJECT64(w, off) (*(u64 *)((w)->object + INDEX(off, SF_LANG_OBJECT)))
#define OBJECT32(w, off) (*(u32 *)((w)->object + INDEX(off, SF_LANG_OBJECT)))

static __always_inline int user_u64(u64 addr, u64 *ret)
{
	return copy_user(ret, sizeof(*ret), addr);
}

/* The description before a module's directory, or NULL. */
static __always_inline const struct sf_lang *lang_at(u32 dir)
{
	u32 off = SF_LOC_OFFSET(dir) - sizeof(struct sf_lang);
	const unsigned char *chunk = sf_chunk(SF_LOC_CHUNK(dir));

	if (!chunk || off > SF_CHUNK - sizeof(struct sf_lang))
		return NULL;
	return (const struct sf_lang *)(chunk + off);
}

/* The address of {module, offset} in the thread; 0: its block is not allocated yet. */
static __always_inline u64 tls_address(const u64 pair[2], bool musl, u64 tp)
{
	u64 dtv, block;

#ifdef __TARGET_ARCH_x86
	if (user_u64(tp + 8, &dtv) || user_u64(dtv + pair[0] * (musl ? 8 : 16), &block))
		return 0;
#else
	if (musl || user_u64(tp, &dtv) || user_u64(dtv + pair[0] * 16, &block))
		return 0;
#endif
	return block + 1 <= 1 ? 0 : block + pair[1];
}

/* The value of the thread-local variable; 0: none, or its block is not allocated yet. */
static __always_inline u64 lang_tls(u32 how, bool musl, u64 tls, u64 delta, u64 tp)
{
	u64 pair[2] = {}, val = 0, at = tp + tls;
	bool dynamic = how == SF_TLS_GOT;

	if (how != SF_TLS_EXEC && copy_user(pair, sizeof(pair), tls - delta))
		return 0;
	if (how == SF_TLS_WORD)
		at = tp + pair[0];
	/* ld.so's function, and its argument: an offset, or where {module, offset} is */
	if (how == SF_TLS_DESC) {
		at = tp + pair[1];
		dynamic = (s64)pair[1] >= TLS_OFFSET_MAX;
		if (dynamic && copy_user(pair, sizeof(pair), pair[1]))
			return 0;
	}
	if (dynamic)
		at = tls_address(pair, musl, tp);
	return !at || user_u64(at, &val) ? 0 : val;
}

/* Whether pthread_self() is this in the thread with that thread pointer. */
static __always_inline bool pthread_is(u64 self, u64 tp)
{
#ifdef __TARGET_ARCH_x86
	return self == tp;
#else
	return tp - self <= PTHREAD_MAX;
#endif
}

#ifndef __TARGET_ARCH_x86
/*
 * The value of key n, where glibc may have it: each is {sequence number, value}, and the number is
 * odd if the key is in use. The value is a structure that has pthread_self() at `owner`.
 */
static __always_inline u64 glibc_value(struct sf_lang_walk *w, u32 n, u32 owner, u64 tp)
{
	u64 self, *e;
	u32 i;

	if (copy_user(w->window, GLIBC_VALUES_MOST - GLIBC_VALUES_ENDS,
		      tp - GLIBC_VALUES_MOST - 8 + 16 * n))
		return 0;
#pragma clang loop unroll(disable)
	for (i = 0; i < GLIBC_VALUES_MOST - GLIBC_VALUES_ENDS; i += 16) {
		e = (u64 *)(w->window + INDEX(i, SF_LANG_WINDOW));
		if ((e[0] & 1) && e[1] && !user_u64(e[1] + owner, &self) && pthread_is(self, tp))
			return e[1];
	}
	return 0;
}
#endif

/*
 * The value of the pthread key at `key`; 0: none. On AArch64 it must point to a structure that has
 * pthread_self() at `owner`; overwrites the window.
 */
static __always_inline u64 lang_key(struct sf_lang_walk *w, bool musl, u64 key, u32 owner, u64 tp)
{
	u64 values, val = 0;
	u32 n = 0;

	if (copy_user(&n, sizeof(n), key) || n >= LIBC_KEYS)
		return 0;
	if (musl) {
		if (user_u64(tp + MUSL_TSD, &values) || user_u64(values + 8 * n, &val))
			return 0;
		return val;
	}
#ifdef __TARGET_ARCH_x86
	return user_u64(tp + GLIBC_VALUES + 16 * n, &val) ? 0 : val;
#else
	return glibc_value(w, n, owner, tp);
#endif
}

/* The description of the runtime that the mapping's file is, or NULL. */
static __always_inline const struct sf_lang *lang_of(const struct sf_vma *v)
{
	return lang_at(v->dir);
}

static __always_inline bool code_allowed(u32 owner, u64 now)
{
	u32 at = grant_at(owner);
	u64 *until = bpf_map_lookup_elem(&code_grants, &at), t;

	if (!until)
		return false;
	t = *until > now ? *until : now;
	if (t - now >= CODE_BURST * CODE_STEP_NS)
		return false;
	*until = t + CODE_STEP_NS;
	return true;
}

/*
 * The description of the runtime at hand; NULL: it is not of that language. Sets what the record of
 * the code object in hand has of the description.
 */
static __always_inline const struct sf_lang *code_runtime(struct sf_scratch *s, u32 language)
{
	const struct sf_lang *d = lang_of(vma_at(s, s->vma_last));

	if (!d || d->language != language)
		return NULL;
	s->lang.rec.language = d->language;
	s->lang.rec.version = d->version;
	return d;
}

/*
 * The mapping in slot i of vmas[], which the walk of a language began with. It becomes vma_last,
 * which code_runtime looks at. NULL: another mapping took the slot.
 */
static __always_inline struct sf_vma *lang_vma(struct sf_scratch *s, u32 i, u64 module)
{
	struct sf_vma *v = vma_at(s, i);

	if (v->word != module || !v->len)
		return NULL;
	s->vma_last = i;
	return v;
}

/* Sends the record of the code object in hand. 0 or -1. */
static __always_inline int code_send(struct sf_scratch *s, u32 id)
{
	struct sf_code *rec = &s->lang.rec;
	u32 len = sizeof(*rec) - SF_CODE_LINES + rec->lines_len;

	rec->type = SF_REC_CODE;
	rec->id = id;
	if (len > sizeof(*rec))
		return -1;
	len = AT_MOST(len, sizeof(*rec));
	return bpf_ringbuf_output(&ring, rec, len, BPF_RB_NO_WAKEUP) ? -1 : 0;
}

/*
 * A language's global function that describes the code object in hand in the record, and sends the
 * record with that id. 0, or -1: to be tried again.
 */
typedef int (*code_describe)(u32 slot, u32 id);

/*
 * Mixes the text in hand into a hash. A code object that takes the memory of another one may have
 * all its addresses, those of its names included: only the names differ.
 */
static __always_inline u64 lang_fold_text(const struct sf_lang_walk *w, u64 h)
{
	FOLD(h, w->text[0], FOLD_MUL1);
	FOLD(h, w->text[1], FOLD_MUL2);
	FOLD(h, w->text[2], FOLD_MUL1);
	FOLD(h, w->text[3], FOLD_MUL2);
	return h;
}

/* The id of the current code object. 0: none could be had. */
static __always_inline u32 code_id(struct sf_scratch *s, u32 slot, code_describe describe)
{
	struct sf_lang_walk *w = &s->lang;
	struct sf_code_key key = { .space = MM_ID(s->mm), .addr = w->code };
	struct sf_code_entry *have, now;

	if (w->id)
		return w->id;
	have = bpf_map_lookup_elem(&codes, &key);
	w->owed = 0;
	if (have && have->cookie == w->cookie && have->owed <= 1)
		return w->id = have->id;
	w->owed = 1;
	w->rec.owner = mm_owner(s->mm);
	if (w->spent.sent >= CODE_PER_SAMPLE || !code_allowed(w->rec.owner, bpf_ktime_get_ns()))
		return 0;
	w->spent.sent++;
	now.cookie = w->cookie;
	now.body = w->body;
	if (have && have->cookie == w->cookie) {
		now.id = have->id;
		now.owed = have->owed - 1;
	} else {
		now.id = __sync_fetch_and_add(&code_ids, 1) + 1;
		now.owed = CODE_TRIES;
	}
	/* The description is in the ring before another program can find the id. */
	if (!describe(slot, now.id))
		now.owed = 0;
	if (bpf_map_update_elem(&codes, &key, &now, BPF_ANY))
		return 0;
	w->owed = now.owed;
	return w->id = now.id;
}

/* The frame word of the current code object, at a position. */
static __always_inline u64 lang_word(struct sf_scratch *s, u32 slot, u32 language,
				     code_describe describe, u32 position)
{
	return SF_FRAME_LANG_WORD(language, code_id(s, slot, describe), cfg_lines ? position : 0);
}

/* Keeps the loop's frame in lang.word: frames of the language take its place. */
static __always_inline void lang_inside(struct sf_scratch *s)
{
	s->lang.word = *frame_at(s, s->lang.first);
	s->n = s->lang.first;
	s->lang_at = LANG_INSIDE;
}

/* Ends the frames of this activation. The loop is shown if wanted, or if frames are missing. */
static __always_inline int lang_end(struct sf_scratch *s, bool missing)
{
	s->lang_at = LANG_NATIVE;
	s->lang.end = s->n;
	if (!cfg_native && !missing)
		return SF_STEP_GO;
	return frame_push(s, s->lang.word) ? SF_STEP_GO : SF_STOP_DEPTH;
}

static __always_inline int lang_done(struct sf_scratch *s)
{
	return lang_end(s, s->n == s->lang.first);
}

/* Ends the walk of a language whose frames are the native walk's own. */
static __always_inline void lang_native_end(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);

	if (s && s->lang.stop == SF_STOP_COMPLETE)
		s->lang.stop = s->stop;
}

/*
 * The offset in the window of the `size` bytes of a frame at `at`; negative: they cannot be read.
 * The window is filled from `at` or, with `below`, to the end of the frame, for interpreters whose
 * callers' frames lie below their callees' in one piece of memory that begins at `first`.
 */
static __always_inline int lang_window(struct sf_lang_walk *w, u64 at, u32 size, bool below,
				       u64 first)
{
	u64 off = at - w->win_base, start = at, page = at & ~(SF_PAGE_MIN - 1ull);
	u32 len;

	if (off < SF_LANG_WINDOW && off + size <= w->win_len)
		return off;
	if (below && at + size <= page + SF_PAGE_MIN) {
		start = at + size - SF_LANG_WINDOW;
		start = start < page ? page : start;
		start = start < first ? first : start;
	}
	len = at + size - start;
	w->win_len = 0;
	if (copy_user_part(w->window, len, SF_LANG_WINDOW, start))
		return -1;
	w->win_base = start;
	w->win_len = len;
	return at - start;
}

/* A field of the frame at the offset `at` in the window. */
#define WINDOW64(w, at, off) (*(u64 *)((w)->window + INDEX((at) + (off), SF_LANG_WINDOW)))
#define WINDOW32(w, at, off) (*(u32 *)((w)->window + INDEX((at) + (off), SF_LANG_WINDOW)))
#define WINDOW8(w, at, off)  ((w)->window[INDEX((at) + (off), SF_LANG_WINDOW)])

/* ---- The frames at a pc of compiled code ---- */

static __always_inline u32 code_pc_key(u64 space, u64 at)
{
	u64 h = space;

	FOLD(h, at, FOLD_MUL1);
	return (h >> 32 ^ h) & (SF_CODE_PCS - 1);
}

static __always_inline int pc_record(struct sf_scratch *s, u64 word)
{
	return frame_push(s, word) ? SF_STEP_GO : SF_STOP_DEPTH;
}

static __always_inline int pc_record_all(struct sf_scratch *s, const struct sf_code_pc *e)
{
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < SF_PC_FRAMES; i++) {
		if (i >= e->n)
			break;
		if (pc_record(s, e->words[i]) != SF_STEP_GO)
			return SF_STOP_DEPTH;
	}
	return SF_STEP_GO;
}

#endif
