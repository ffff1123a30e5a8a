/* SPDX-License-Identifier: BSD-2-Clause */
#include "readers/code_rows_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/huge.h"
#include "base/vec.h"
#include "readers/stg_rows.h"
#include "rows/fntab.h"

#define TEXT_MAX   (192ull << 20) /* bytes of one segment; larger ones are left out */
/* Bytes of a function outside of tables that may start there */
#define MAYBE_MAX  (64u << 10)
#define TICK	   64 /* functions between two calls of tick() */
#define ROUNDS_MAX 8

/* Instructions that are looked at in each byte of code, on average, over all attempts */
#define BUDGET_PER_BYTE 8
#define BUDGET_MORE	100000

/* ---- Where a function may extend ---- */

/* The function of a table that holds the address, in a file that is analysed as a whole. */
static const struct fn *described_fn(const struct analysis *a, uint64_t addr)
{
	return a->opts->whole ? unwind_file_fn_at(a->file, addr) : NULL;
}

/* Whether the address is code that may be analysed here. */
bool code_wanted(const struct analysis *a, uint64_t addr)
{
	return code_mark_of(&a->code.bin, addr) &&
	       (code_range_of(&a->gaps, addr) || described_fn(a, addr));
}

int code_push_start(struct starts *to, uint64_t addr, bool certain)
{
	int err = vec_reserve(&to->v, &to->cap, to->n + 1, sizeof(*to->v));

	if (!err)
		to->v[to->n++] = (struct start){ addr, certain };
	return err;
}

int code_note_start(void *ctx, uint64_t addr, bool certain)
{
	struct analysis *a = ctx;
	const uint8_t mark = certain ? MARK_CALLED : MARK_ADDRESSED;
	uint8_t *m = code_mark_of(&a->code.bin, addr);

	if (!m || *m & mark)
		return 0;
	*m |= mark;
	if (!code_wanted(a, addr) || addr % a->code.bin.arch->align)
		return 0;
	return code_push_start(certain ? &a->certain : &a->maybe, addr, certain);
}

/* The first address in [at, end) that trusted code calls; end: none. */
static uint64_t next_called(const struct code_text *t, uint64_t at, uint64_t end)
{
	const uint64_t called = 0x0101010101010101ull * MARK_CALLED;
	uint64_t word;

	for (; end - at >= 8; at += 8) {
		memcpy(&word, &t->marks[at - t->start], 8);
		if (word & called)
			break;
	}
	while (at < end && !(t->marks[at - t->start] & MARK_CALLED))
		at++;
	return at;
}

/* The last address in [start, at] that trusted code calls; start: none. */
static uint64_t last_called(const struct code_text *t, uint64_t start, uint64_t at)
{
	start = start > t->start ? start : t->start;
	while (at > start && !(t->marks[at - t->start] & MARK_CALLED))
		at--;
	return at;
}

/* The end of a function in a gap: where the next certain start is, or the gap ends. */
static uint64_t end_in_gap(const struct analysis *a, struct start s)
{
	const struct code_range *gap = code_range_of(&a->gaps, s.addr);
	const struct code_text *t = code_text_of(&a->code.bin, s.addr);
	const struct fn *sym = fntab_find(&a->symbols, s.addr);
	const uint64_t most = s.certain ? FN_MAX : MAYBE_MAX;
	uint64_t end = gap && gap->end < t->end ? gap->end : t->end;

	if (sym && sym->end < end)
		end = sym->end;
	if (end - s.addr > most)
		end = s.addr + most;
	return next_called(t, s.addr + 1, end);
}

static struct code_range range_from(const struct analysis *a, struct start s)
{
	const struct fn *fn = described_fn(a, s.addr);

	return (struct code_range){ s.addr, fn ? fn->end : end_in_gap(a, s) };
}

/*
 * What is left of the padding between described functions: code may jump there, as to the cold part
 * of a function. False: the address is described, or in a larger gap.
 */
static bool small_gap(const struct analysis *a, uint64_t addr, struct code_range *ret)
{
	const struct code_range *next = code_range_from(&a->described, addr);

	if (!next || next->start <= addr || next->start - addr >= CODE_PADDING)
		return false;
	*ret = (struct code_range){ addr, next->start };
	return true;
}

static bool part_of(void *ctx, uint64_t addr, struct code_range *ret, bool *sized)
{
	const struct analysis *a = ctx;
	const struct fn *fn = described_fn(a, addr);
	const struct code_range *gap = code_range_of(&a->gaps, addr);

	*sized = fn;
	if (fn)
		*ret = (struct code_range){ fn->start, fn->end };
	else if (gap)
		*ret = (struct code_range){
			last_called(code_text_of(&a->code.bin, addr),
				    addr - gap->start < FN_MAX ? gap->start : addr - FN_MAX, addr),
			end_in_gap(a, (struct start){ addr, true })
		};
	else
		return *sized = small_gap(a, addr, ret);
	return true;
}

/* ---- Functions ---- */

/* Whether a table or a symbol says that a function has begun before the address. */
static bool within_function(const struct analysis *a, uint64_t addr)
{
	const struct fn *fn = described_fn(a, addr);
	const struct fn *sym = fntab_find(&a->symbols, addr);

	return (fn && fn->start < addr) || (sym && sym->start < addr);
}

static int note_found(struct analysis *a, uint64_t addr)
{
	const struct code_result *r = &a->got;
	uint64_t end = r->nrows ? r->rows[r->nrows - 1].end : 0;

	return end > addr ? fntab_push(&a->found, addr, end, 0) : 0;
}

/* The functions that this one goes on into with other registers are part of it. */
static void take_joined(struct analysis *a)
{
	for (size_t i = 0; i < a->got.njoined; i++) {
		const struct code_accepted_fn *fn = code_accepted_at(&a->accepted,
								     a->got.joined[i]);

		*code_mark_of(&a->code.bin, a->got.joined[i]) |= MARK_DONE;
		if (fn)
			code_drop_rows(&a->accepted, fn);
	}
}

/* Each function that is called must be known in a file where some remove their arguments. */
static struct code_callee callee_at(void *ctx, uint64_t addr)
{
	const struct analysis *a = ctx;
	const struct code_accepted_fn *fn = code_accepted_at(&a->accepted, addr);
	const bool unknown = a->code.bin.has_poppers && code_wanted(a, addr);

	return fn ? fn->callee
		  : (struct code_callee){ UINT32_MAX, unknown ? CODE_POPS_UNKNOWN : 0 };
}

static int data_at(void *ctx, uint64_t addr, struct bytes *ret, uint64_t *ret_start)
{
	struct analysis *a = ctx;

	return code_data_at(&a->data, addr, ret, ret_start);
}

static int labels(void *ctx, const uint64_t **ret, size_t *ret_n)
{
	struct analysis *a = ctx;

	return code_data_labels(&a->data, ret, ret_n);
}

/* Functions that it calls last may turn out not to return. */
static int note_late(struct analysis *a, uint64_t start)
{
	int err = 0;

	for (size_t i = 0; i < a->got.nlast && !err; i++) {
		const uint64_t callee = a->got.last[i];

		if (!code_wanted(a, callee) || *code_mark_of(&a->code.bin, callee) & MARK_DONE)
			continue;
		err = vec_reserve(&a->late, &a->late_cap, a->nlate + 1, sizeof(*a->late));
		if (!err)
			a->late[a->nlate++] = (struct late){ start, callee };
	}
	return err;
}

static void note_end(struct analysis *a, uint64_t addr)
{
	uint8_t *m = code_mark_of(&a->code.bin, addr);

	if (a->got.returns || a->got.leaps || a->got.guessed || *m & MARK_ENDS)
		return;
	*m |= MARK_ENDS;
	a->learnt = a->ends_learnt = true;
}

static int take(struct analysis *a, struct start s, int verdict)
{
	const bool propagate = verdict == CODE_PROVEN || s.certain;
	const int32_t pops = callee_at(a, s.addr).pops;
	int err = a->opts->whole ? 0 : note_found(a, s.addr);

	a->code.bin.has_poppers |= a->got.pops != 0;
	take_joined(a);
	if (!err)
		err = code_accept(&a->accepted, &a->got, a->code.bin.has_poppers, s.addr,
				  s.certain);
	if (!err)
		err = note_late(a, s.addr);
	if (!err && callee_at(a, s.addr).pops != pops)
		a->pops_learnt = a->learnt = true;
	for (size_t i = 0; i < a->got.ncalls && !err && propagate; i++)
		err = code_note_start(a, a->got.calls[i], true);
	for (size_t i = 0; i < a->got.ntails && !err && propagate; i++)
		if (!within_function(a, a->got.tails[i]))
			err = code_note_start(a, a->got.tails[i], true);
	for (size_t i = 0; i < a->got.naddressed && !err && propagate; i++)
		err = code_note_start(a, a->got.addressed[i], false);
	return err;
}

/* A function of the file may start right after this one. */
static int next_start(struct analysis *a)
{
	uint64_t end = 0;
	struct code_op op;

	if (!a->got.nrows || a->opts->whole)
		return 0;
	end = a->got.rows[a->got.nrows - 1].end;
	for (int i = 0; i < 16 && code_wanted(a, end); i++) {
		code_decode(&a->code.bin, end, &op);
		if (op.kind != OP_NOP && op.kind != OP_END)
			break;
		end += op.len;
	}
	return code_wanted(a, end) ? code_note_start(a, end, false) : 0;
}

/* Whether all that the function jumps to was accepted; what was not is to be analysed. 1, 0, err */
static int tails_proven(struct analysis *a)
{
	int proven = 1;

	for (size_t i = 0; i < a->got.ntails; i++) {
		const uint64_t to = a->got.tails[i];
		const uint8_t *m = code_mark_of(&a->code.bin, to);
		int err = m && *m & MARK_DONE ? 1 : code_described_start(a, to);

		if (err < 0)
			return err;
		if (err)
			continue;
		proven = 0;
		err = code_note_start(a, to, false);
		if (err)
			return err;
	}
	return proven;
}

/*
 * A function that makes no sense may call one of another file that does not return, as other code
 * follows another call of it. Where the end is not known, it might go on into the next function.
 */
static int look_at(struct analysis *a, struct start s)
{
	const struct fn *sym = fntab_find(&a->symbols, s.addr);
	struct code_subject fn = {
		.range = range_from(a, s),
		.sized = described_fn(a, s.addr) || (sym && sym->start == s.addr),
		.outermost = a->has_entry && s.addr == a->entry,
	};
	const size_t finals = code_fn_finals(a->fn);
	int verdict = code_fn_analyse(a->fn, &fn, &a->got);

	if (verdict != CODE_PROVEN && (verdict == CODE_REJECTED || !s.certain))
		code_fn_keep_finals(a->fn, finals);
	a->learnt |= code_fn_finals(a->fn) > finals;
	if (verdict != CODE_REJECTED || !fn.sized || !s.certain || !code_fn_calls_final(a->fn))
		return verdict;
	fn.by_finals = true;
	verdict = code_fn_analyse(a->fn, &fn, &a->got);
	a->got.guessed = true;
	return verdict;
}

/*
 * Analyses the function once more. Where that fails, its rows stay, if they do not depend on what
 * its callees remove from the stack. 0 or -ENOMEM.
 */
static int analyse_again(struct analysis *a, struct start s)
{
	int verdict = look_at(a, s);

	if (verdict < 0)
		return verdict;
	if (verdict == CODE_PROVEN || (verdict != CODE_REJECTED && s.certain)) {
		note_end(a, s.addr);
		return take(a, s, verdict);
	}
	if (!a->code.bin.has_poppers)
		return 0;
	code_reject(&a->accepted, code_accepted_at(&a->accepted, s.addr));
	return code_push_start(&a->rejected, s.addr, s.certain);
}

static int analyse(struct analysis *a, struct start s)
{
	uint8_t *m = code_mark_of(&a->code.bin, s.addr);
	int verdict;

	if (*m & MARK_DONE)
		return 0;
	verdict = look_at(a, s);
	if (verdict < 0)
		return verdict;
	if (s.certain)
		*m |= MARK_DONE;
	if (verdict == CODE_REJECTED)
		return code_push_start(&a->rejected, s.addr, s.certain);
	if (verdict == CODE_TAILS && !s.certain) {
		int proven = tails_proven(a);

		if (proven <= 0)
			return proven ? proven : code_push_start(&a->waiting, s.addr, false);
		verdict = CODE_PROVEN;
	}
	if (verdict == CODE_SOUND && !s.certain)
		return 0;
	*m |= MARK_DONE | (within_function(a, s.addr) ? 0 : MARK_CALLED);
	a->proved = true;
	note_end(a, s.addr);
	verdict = take(a, s, verdict);
	return verdict ? verdict : next_start(a);
}

static void swap(struct starts *empty, struct starts *full)
{
	struct starts t = *empty;

	*empty = *full;
	*full = t;
}

/*
 * Functions that were rejected may make sense with what is known now of those that they call, and
 * those that end in jumps are proven if their targets are. True: there are some.
 */
static bool again(struct analysis *a)
{
	if (a->rounds == ROUNDS_MAX)
		return false;
	if (a->waiting.n && a->proved) {
		a->rounds++;
		a->proved = false;
		swap(&a->maybe, &a->waiting);
		return true;
	}
	if (!a->learnt || !a->rejected.n)
		return false;
	a->rounds++;
	a->learnt = false;
	swap(&a->certain, &a->rejected);
	for (size_t i = 0; i < a->certain.n; i++)
		*code_mark_of(&a->code.bin, a->certain.v[i].addr) &= (uint8_t)~MARK_DONE;
	return true;
}

/* Certain starts first: they tell where others end, and need no proof. */
static int analyse_all(struct analysis *a)
{
	int err = 0;

	while (!err && !a->stopped && (a->certain.n || a->maybe.n || again(a))) {
		err = analyse(a, a->certain.n ? a->certain.v[--a->certain.n]
					      : a->maybe.v[--a->maybe.n]);
		if (a->opts->tick && ++a->ticks % TICK == 0)
			a->stopped = !a->opts->tick(a->opts->ctx);
	}
	return err;
}

/* Whether its rows go on into a function, of which a call told later that it starts there. */
static bool runs_into_function(const struct analysis *a, const struct code_accepted_fn *fn)
{
	const size_t last = fn->first + fn->n;
	const struct row *rows = a->accepted.rows.rows;

	for (size_t i = fn->first; i < last; i++) {
		const struct code_text *text = code_text_of(&a->code.bin, rows[i].start);
		const uint64_t from = rows[i].start == fn->start ? rows[i].start + 1
								 : rows[i].start;
		uint64_t end;

		while (i + 1 < last && rows[i + 1].start == rows[i].end)
			i++;
		end = text && text->end < rows[i].end ? text->end : rows[i].end;
		if (text && from < end && next_called(text, from, end) < end)
			return true;
	}
	return false;
}

/* Functions that go on after a call of one that does not return are to be analysed again. */
static void compare_late(struct analysis *a)
{
	const struct code_accepted_fn *fn;
	size_t n = 0;

	a->ends_learnt = false;
	for (size_t i = 0; i < a->nlate; i++) {
		fn = code_accepted_at(&a->accepted, a->late[i].start);
		if (!fn || !(*code_mark_of(&a->code.bin, a->late[i].callee) & MARK_ENDS))
			a->late[n++] = a->late[i];
		else
			a->accepted.fns[fn - a->accepted.fns].again = true;
	}
	a->nlate = n;
}

/* Analyses those that run into functions once more, and those whose callees are known better. */
static int look_again(struct analysis *a, bool first)
{
	const size_t n = a->accepted.n;
	const bool all = a->pops_learnt;
	int err = 0;

	a->pops_learnt = false;
	compare_late(a);
	for (size_t i = 0; i < n && !err && !a->stopped; i++) {
		const struct code_accepted_fn *fn = &a->accepted.fns[i];

		if (!all && !fn->again && (!first || (!fn->guessed && !runs_into_function(a, fn))))
			continue;
		err = analyse_again(a, (struct start){ fn->start, fn->certain });
		if (a->opts->tick && ++a->ticks % TICK == 0)
			a->stopped = !a->opts->tick(a->opts->ctx);
	}
	return err;
}

/* ---- The file ---- */

static int load_text(struct analysis *a)
{
	struct elf_phdr segs[EXEC_SEGMENTS_MAX];
	size_t n = exec_segments(&a->file->img, segs, EXEC_SEGMENTS_MAX);

	for (size_t i = 0; i < n; i++) {
		const size_t k = a->code.bin.ntexts;
		struct code_text *t = &a->texts[k];
		int err;

		if (segs[i].filesz > TEXT_MAX ||
		    (k && segs[i].vaddr < t[-1].end)) /* overlapping segments */
			continue;
		err = elf_image_read(&a->file->img, segs[i].offset, segs[i].filesz, &a->blobs[k]);
		if (err == -ENOMEM)
			return err;
		if (err)
			continue;
		t->bytes = a->blobs[k].view;
		t->start = segs[i].vaddr;
		t->end = t->start + segs[i].filesz;
		/* One function uses few pages of it. */
		t->marks = a->opts->at ? calloc(1, segs[i].filesz)
				       : huge_alloc(segs[i].filesz, true);
		a->code.lines[k] = calloc(1, segs[i].filesz / CODE_LINE / 8 + 1);
		a->code.bin.ntexts++;
		if (!t->marks || !a->code.lines[k])
			return -ENOMEM;
		a->code.bin.budget += segs[i].filesz * BUDGET_PER_BYTE;
	}
	a->code.bin.budget += BUDGET_MORE;
	return 0;
}

static void mark_gap(struct code_text *t, uint8_t *lines, const struct code_range *gap)
{
	uint64_t start = gap->start > t->start ? gap->start : t->start,
		 end = gap->end < t->end ? gap->end : t->end;

	if (start >= end)
		return;
	start -= t->start;
	end -= t->start;
	memset(&t->marks[start], MARK_GAP, end - start);
	for (uint64_t line = start / CODE_LINE; line <= (end - 1) / CODE_LINE; line++)
		lines[line / 8] |= (uint8_t)(1u << line % 8);
}

/* Marks the gaps for all that looks at many addresses, before there are other marks */
static void mark_gaps(struct analysis *a)
{
	for (size_t i = 0; i < a->gaps.n; i++)
		for (size_t k = 0; k < a->code.bin.ntexts; k++)
			mark_gap(&a->texts[k], a->code.lines[k], &a->gaps.v[i]);
}

static const struct code_arch *arch_of(const struct unwind_file *file)
{
	if (file->img.be)
		return NULL;
	return file->arch == ROW_ARCH_X86_64	? code_arch_x86()
	       : file->arch == ROW_ARCH_AARCH64 ? &code_arch_arm64
						: NULL;
}

/* All gaps have the row. 0 or -ENOMEM. */
static int fill_gaps(struct analysis *a, struct row row)
{
	int err = 0;

	for (size_t i = 0; i < a->gaps.n && !err; i++)
		err = stg_fill(a->file, row, a->opts->brief, a->gaps.v[i].start, a->gaps.v[i].end,
			       &a->accepted.rows);
	return err == -ENOMEM ? err : 0;
}

static int run(struct analysis *a)
{
	int err = code_described(a->file, &a->described);
	struct row row;

	if (!err)
		err = code_gaps(a->file, &a->described, &a->gaps);
	if (err || (!a->gaps.n && !a->opts->whole))
		return err;
	if (!a->opts->whole && stg_row(a->file, &row))
		return fill_gaps(a, row);
	err = load_text(a);
	if (!err && !a->opts->at)
		mark_gaps(a);
	if (!err)
		err = code_symbols(&a->file->img, &a->symbols);
	if (err)
		return err;
	a->fn = code_fn_new(&a->code.bin);
	err = a->fn ? code_ends(&a->ends, &a->file->img, &a->code.bin, code_note_start, a)
		    : -ENOMEM;
	if (err)
		return err;
	a->code.bin.has_pads = elf_image_section(&a->file->img, ".gcc_except_table");
	a->has_entry = code_entry(&a->file->img, &a->entry);
	err = code_note_starts(a);
	if (!err)
		err = analyse_all(a);
	for (int i = 0; !err && (!i || a->pops_learnt || a->ends_learnt) && i < ROUNDS_MAX; i++) {
		err = look_again(a, !i);
		if (!err)
			err = analyse_all(a);
	}
	return err;
}

int code_rows(struct unwind_file *file, const struct code_rows_opts *opts)
{
	struct analysis *a;
	int err;

	a = calloc(1, sizeof(*a));
	err = a ? 0 : -ENOMEM;
	if (err)
		return err;
	a->file = file;
	a->opts = opts;
	a->code.bin = (struct code_binary){
		.arch = arch_of(file),
		.texts = a->texts,
		.resolver = code_data_resolver(&file->img),
		.movable = file->img.type == ET_DYN,
		.part_of = part_of,
		.callee_at = callee_at,
		.data_at = data_at,
		.labels = labels,
		.ctx = a,
	};
	a->data = (struct code_data){ .img = &file->img, .bin = &a->code.bin };
	if (a->code.bin.arch)
		err = run(a);
	if (!err)
		err = fntab_arrange(&a->found, &file->img);
	if (!err) {
		fntab_free(&file->code_fns);
		file->code_fns = a->found;
		a->found = (struct fntab){ 0 };
		code_settle(&a->accepted);
		rowbuf_free(&file->code);
		file->code = a->accepted.rows;
		a->accepted.rows = (struct rowbuf){ 0 };
	}
	code_fn_free(a->fn);
	code_ends_free(&a->ends);
	code_data_free(&a->data);
	for (size_t i = 0; i < a->code.bin.ntexts; i++) {
		elf_blob_free(&a->blobs[i]);
		free(a->texts[i].marks);
		free(a->code.lines[i]);
	}
	free(a->described.v);
	free(a->gaps.v);
	free(a->certain.v);
	free(a->maybe.v);
	free(a->rejected.v);
	free(a->waiting.v);
	free(a->late);
	code_accepted_free(&a->accepted);
	fntab_free(&a->symbols);
	fntab_free(&a->found);
	free(a);
	return err;
}

uint64_t code_gap_bytes(const struct unwind_file *file)
{
	struct code_ranges described = { 0 }, gaps = { 0 };
	uint64_t sum = 0;

	if (!code_described(file, &described) && !code_gaps(file, &described, &gaps))
		for (size_t i = 0; i < gaps.n; i++)
			sum += gaps.v[i].end - gaps.v[i].start;
	free(described.v);
	free(gaps.v);
	return sum;
}
