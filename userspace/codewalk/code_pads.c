/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Landing pads of exceptions. No jump leads to them: the unwinder enters them with the stack and
 * the callee-saved registers as after a call of the function. In a file with tables of exceptions,
 * and a function whose end is certain, what nothing else leads to is one, if that makes sense. It
 * does not change what is known of the other code, and where it leads does not count. What is left
 * after one that makes no sense may be no landing pads.
 */
#include <stdlib.h>

#include "codewalk/code_fn.h"

#define TRIES	      4	  /* tries of a pad, each with one more call known not to return */
#define ARGUMENTS_MAX 256 /* bytes that are pushed for a call */

/*
 * The unwinder removes the arguments of a call: of two heights, a pad has that with less on the
 * stack. More than arguments is a frame that another call is to make.
 */
static void merge_calls(struct code_state *ret, const struct code_state *s,
			const struct code_arch *arch)
{
	struct code_state other;
	int64_t *a = &ret->reg[arch->sp].off, *b = &other.reg[arch->sp].off;

	if (!code_state_conflict(ret, s, arch)) {
		code_state_merge(ret, s, arch);
		return;
	}
	code_state_copy(&other, s);
	if (llabs(*a - *b) <= ARGUMENTS_MAX)
		*a = *b = *a > *b ? *a : *b;
	code_state_merge(ret, &other, arch);
}

/* Whether a pad may belong to the call; not to one that removes arguments, or makes the frame. */
static bool may_throw(const struct code_walk *w, const struct code_arch *arch)
{
	return w->op->kind == OP_CALL && !w->op->pops && !w->op->keeps_result &&
	       !code_state_may_return(&w->state, arch);
}

/* What all calls leave behind. False: there is none. */
static bool state_after_calls(const struct code_fn *f, struct code_state *ret)
{
	struct code_walk w;
	bool any = false;

	for (size_t i = 0; i < f->try.nleaders; i++) {
		code_walk_begin(&w, &f->room.leaders[i]);
		while (code_walk_next(f, &w)) {
			code_walk_apply(f, &w);
			if (!may_throw(&w, f->arch))
				continue;
			if (any)
				merge_calls(ret, &w.state, f->arch);
			else
				code_state_copy(ret, &w.state);
			any = true;
		}
	}
	if (any)
		code_state_forget(ret, f->arch, f->arch->call_clobbers);
	return any;
}

/* The first byte of the hole that is code and no padding; end: none. */
static uint64_t skip_padding(const struct code_fn *f, uint64_t at, uint64_t end)
{
	while (at < end && !(*code_mark_of(f->bin, at) & (MARK_START | MARK_BODY))) {
		const struct code_op *op = code_op_at(f, at);

		if (op->kind != OP_NOP)
			break;
		at += op->len;
	}
	return at < end ? at : end;
}

/* Back to what was known before the last pad. As code_fn_explore(). */
static int undo(struct code_fn *f, const struct code_try *before)
{
	size_t n = 0;

	code_fn_drop_followed(f, before->nfollowed);
	code_drop_leaders(f, before->nleaders);
	f->try.nparts = before->nparts;
	f->try.npending = 0;
	for (size_t i = 0; i < f->try.nwork; i++)
		if (f->room.work[i] < f->try.nleaders)
			f->room.work[n++] = f->room.work[i];
	f->try.nwork = n;
	return code_fn_explore(f);
}

/* *failed: the code makes no sense as a pad. 0 or as code_fn_explore(). */
static int follow_pad(struct code_fn *f, uint64_t addr, const struct code_state *s, bool *failed)
{
	const struct code_try before = f->try;
	int err = CODE_FN_AGAIN, err2 = 0;

	for (int i = 0; i < TRIES && err == CODE_FN_AGAIN && !err2; i++) {
		f->try.pushed = (struct code_pushed){ 0 };
		err = code_new_leader(f, addr, s, 0);
		if (!err)
			err = code_fn_explore(f);
		if (err > 0)
			err2 = undo(f, &before);
	}
	*failed = err > 0;
	return err < 0 ? err : err2;
}

/* *failed: what is left is not followed. As follow_pad(). */
static int pads_of_part(struct code_fn *f, struct code_range part, struct code_state *s,
			bool *has_state, bool *failed)
{
	uint64_t at = part.start;
	int err = 0;

	while (at < part.end && !err && !*failed) {
		if (*code_mark_of(f->bin, at) & (MARK_START | MARK_BODY)) {
			at++;
			continue;
		}
		at = skip_padding(f, at, part.end);
		if (at == part.end || *code_mark_of(f->bin, at) & MARK_START)
			continue;
		if (!*has_state && !state_after_calls(f, s))
			return 0;
		*has_state = true;
		if (*code_mark_of(f->bin, at) & MARK_CALLED)
			*failed = true;
		else
			err = follow_pad(f, at, s, failed);
	}
	return err;
}

/*
 * Whether the function takes the address of code of its own that nothing leads to. OCaml's handlers
 * of exceptions are such code, and are entered with the stack as where the address was pushed.
 */
static bool has_handlers(const struct code_fn *f)
{
	for (size_t i = 0; i < f->result.naddressed; i++)
		if (code_in_part(f, 0, f->room.addressed[i]) &&
		    !(*code_mark_of(f->bin, f->room.addressed[i]) & (MARK_START | MARK_BODY)) &&
		    !code_is_table(f, f->room.addressed[i]))
			return true;
	return false;
}

/* What the rest of the function does remains, but the function may return from a pad. */
static struct code_result without_pads(const struct code_result *before,
				       const struct code_result *after, bool failed)
{
	struct code_result r = *before;

	r.leaps |= failed || (after->returns && !before->returns);
	r.strays |= r.leaps != before->leaps;
	r.writes = after->writes;
	r.nlast = after->nlast;
	return r;
}

int code_pads(struct code_fn *f)
{
	const struct code_result before = f->result;
	const uint64_t left = f->run.left;
	bool has_state = false, failed = false;
	struct code_state s;
	int err = 0;

	if (f->run.fn.outermost || f->result.njoined)
		return 0;
	if (has_handlers(f)) {
		f->result.leaps = f->result.strays = true; /* it may return there */
		return 0;
	}
	f->try.in_pad = true;
	f->result.returns = false;
	for (size_t i = 0; i < f->try.nparts && !err; i++)
		if (!i || f->try.parts[i].sized)
			err = pads_of_part(f, f->try.parts[i].range, &s, &has_state, &failed);
	f->result = without_pads(&before, &f->result, failed);
	f->run.left = left;
	f->try.in_pad = err;
	return err == CODE_FN_AGAIN ? CODE_FN_REJECT : err;
}
