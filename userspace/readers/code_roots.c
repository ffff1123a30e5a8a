/* SPDX-License-Identifier: BSD-2-Clause */
/* Where an analysis begins: functions that symbols, the entry, tables, data and code tell of. */
#include "readers/code_rows_internal.h"

#include "readers/code_data.h"
#include "readers/code_scan.h"

/* A symbol within a function of a table may name a part of it, as LuaJIT's do. */
static int note_symbols(struct analysis *a)
{
	int err = 0;

	for (size_t i = 0; i < a->symbols.n && !err; i++) {
		const uint64_t start = a->symbols.fns[i].start;
		const struct fn *fn = a->opts->whole ? unwind_file_fn_at(a->file, start) : NULL;

		err = code_note_start(a, start, !fn || fn->start == start);
	}
	return err;
}

/*
 * Whether the table's first row is that of a function's start, not of a part that is elsewhere. A
 * part that begins with a no-op may have another row after it.
 */
static bool starts_as_function(const struct analysis *a, const struct fn *fn,
			       const struct rowbuf *rows)
{
	const struct row *r = rows->n ? &rows->rows[0] : NULL;
	struct code_op op;

	if (!r || r->start != fn->start || r->plt_rep || r->flags || r->ra.kind == RULE_UNDEF ||
	    r->cfa.kind != RULE_REG || r->cfa.reg != a->code.bin.arch->sp ||
	    r->cfa.off != a->code.bin.arch->ra_bytes)
		return false;
	if (rows->n == 1)
		return true;
	code_decode(&a->code.bin, fn->start, &op);
	return op.kind != OP_NOP || r->end != fn->start + op.len;
}

int code_described_start(const struct analysis *a, uint64_t addr)
{
	const struct fn *fn = a->file->has_eh ? fntab_find(&a->file->eh.fns, addr) : NULL;
	struct rowbuf rows = { 0 };
	int ret;

	if (!fn || fn->start != addr)
		return 0;
	ret = eh_frame_rows(&a->file->eh, fn, &rows, NULL);
	if (!ret)
		ret = starts_as_function(a, fn, &rows);
	rowbuf_free(&rows);
	return ret;
}

/* The functions of a table: of a file that is analysed as a whole. */
static int note_described(struct analysis *a, const struct fntab *t, bool is_eh)
{
	struct rowbuf rows = { 0 };
	int err = 0;

	for (size_t i = 0; i < t->n && !err; i++) {
		const struct fn *fn = &t->fns[i];

		rows.n = 0;
		err = is_eh ? eh_frame_rows(&a->file->eh, fn, &rows, NULL)
			    : sframe_rows(&a->file->sframe, fn, &rows, NULL);
		if (!err)
			err = code_note_start(a, fn->start, starts_as_function(a, fn, &rows));
	}
	rowbuf_free(&rows);
	return err;
}

#define ENTRY_OPS 24 /* instructions at the entry, up to the call of the C library */

/*
 * The code at the entry takes the addresses of main and its like, and of no other code. That of
 * musl calls a function first, which passes main as the first argument.
 */
static int note_main(struct analysis *a)
{
	bool taken = false, called = false;
	uint64_t at = a->entry, to;
	struct code_op op;
	int err = 0;

	for (int i = 0; i < 2 * ENTRY_OPS && !err; i++, at += op.len) {
		code_decode(&a->code.bin, at, &op);
		to = code_address_of(&a->code.bin, &op);
		if (to && (!called || op.dst == a->code.bin.arch->argument)) {
			taken |= code_wanted(a, to);
			err = code_note_start(a, to, true);
		}
		if (op.kind == OP_CALL && op.target && !taken && !called && i < ENTRY_OPS) {
			called = true;
			at = op.target - op.len;
		} else if (op.kind == OP_BAD || op.kind == OP_CALL || op.kind == OP_END ||
			   op.kind == OP_JUMP || op.kind == OP_RET || op.kind == OP_BRANCH) {
			break;
		}
	}
	return err;
}

/* A word of data, also of a relocation, that may be the address of a function. */
static int note_word(void *ctx, uint64_t word)
{
	const struct analysis *a = ctx;

	return code_in_gap(&a->code, word) ? code_note_start(ctx, word, false) : 0;
}

/* The symbols nearby still tell where functions end. */
static int note_one(struct analysis *a)
{
	const struct fn *sym = fntab_find(&a->symbols, a->opts->at);
	int err = 0;

	for (size_t i = 0; i < a->symbols.n && !err; i++)
		if (a->symbols.fns[i].start - (a->opts->at - FN_MAX) < 2 * FN_MAX)
			err = code_note_start(a, a->symbols.fns[i].start, true);
	a->certain.n = 0;
	if (!err && sym && code_wanted(a, sym->start) && sym->start % a->code.bin.arch->align == 0)
		err = code_push_start(&a->certain, sym->start, true);
	return err;
}

int code_note_starts(struct analysis *a)
{
	int err;

	if (a->opts->at)
		return note_one(a);
	err = note_symbols(a);
	if (!err && a->has_entry)
		err = code_note_start(a, a->entry, true);
	if (!err && a->has_entry)
		err = note_main(a);
	if (!err && a->opts->whole && a->file->has_sframe)
		err = note_described(a, &a->file->sframe.fns, false);
	if (!err && a->opts->whole && a->file->has_eh)
		err = note_described(a, &a->file->eh.fns, true);
	for (size_t i = 0; i < a->gaps.n && !err; i++)
		err = code_note_start(a, a->gaps.v[i].start, false);
	if (!err && !a->opts->whole)
		err = code_each_word(&a->file->img, note_word, a);
	if (!err && !a->opts->whole)
		err = code_scan(&a->code, &a->described, &a->file->eh.fns, code_note_start, a);
	return err;
}
