/* SPDX-License-Identifier: BSD-2-Clause */
#include "codewalk/code_jump.h"

#include <errno.h>
#include <string.h>

#include "base/u64s.h"
#include "base/vec.h"

#define OWN_MAX	    256
#define ENTRIES_MAX 8192

/* The segment that holds the address. 1, 0: none, -ENOMEM. */
static int data_of(const struct code_fn *f, uint64_t addr, struct bytes *ret, uint64_t *ret_start)
{
	const struct code_text *t = code_text_of(f->bin, addr);

	if (!t)
		return f->bin->data_at ? f->bin->data_at(f->bin->ctx, addr, ret, ret_start) : 0;
	*ret = t->bytes;
	*ret_start = t->start;
	return 1;
}

/* Where entry i of the table leads (v: VAL_TARGET). 1; 0: not to code; -ENOMEM. */
static int read_entry(struct code_fn *f, const struct code_val *v, unsigned int i,
		      uint64_t *ret_target)
{
	const uint64_t addr = (uint64_t)v->off + (uint64_t)i * v->size;
	struct bytes data;
	uint64_t start, entry;
	int more;

	if (i >= ENTRIES_MAX)
		return 0;
	more = data_of(f, addr, &data, &start);
	if (more <= 0)
		return more;
	bytes_seek(&data, addr - start);
	switch (v->size) {
	case 1:
		entry = v->is_signed ? (uint64_t)bytes_s8(&data) : bytes_u8(&data);
		break;
	case 2:
		entry = v->is_signed ? (uint64_t)bytes_s16(&data) : bytes_u16(&data);
		break;
	case 4:
		entry = v->is_signed ? (uint64_t)bytes_s32(&data) : bytes_u32(&data);
		break;
	default:
		entry = bytes_u64(&data);
	}
	*ret_target = v->sym + (entry << v->shift);
	return !data.err && code_text_of(f->bin, *ret_target) && !(*ret_target % f->arch->align);
}

/*
 * The table of the jump at `at`. On one of several ways to it less may be known, such as after a
 * call that does not return: then v becomes what it was on another way. 0 or -ENOMEM.
 */
static int known_table(struct code_fn *f, uint64_t at, struct code_val *v)
{
	for (size_t i = 0; i < f->try.njumps; i++) {
		if (f->room.jumps[i].at != at)
			continue;
		if (v->kind != VAL_TARGET || !v->n)
			*v = f->room.jumps[i].table;
		return 0;
	}
	/* Entries of 8 bytes may be one word, a pointer to another function. */
	if (v->kind != VAL_TARGET || v->size == 8)
		return 0;
	if (vec_reserve(&f->room.jumps, &f->room.jumps_cap, f->try.njumps + 1,
			sizeof(*f->room.jumps)))
		return -ENOMEM;
	f->room.jumps[f->try.njumps++] = (struct code_jump){ at, *v };
	return 0;
}

int code_note_table(struct code_fn *f, uint64_t addr)
{
	return u64_push(&f->room.tables, &f->run.ntables, &f->room.tables_cap, addr);
}

bool code_is_table(const struct code_fn *f, uint64_t addr)
{
	return u64_has(f->room.tables, f->run.ntables, addr);
}

/* The table at addr was read up to `end`. 0 or -ENOMEM. */
static int note_read(struct code_fn *f, uint64_t addr, uint64_t end)
{
	size_t i = 0;

	while (i < f->try.nread && f->room.read[i].start != addr)
		i++;
	if (vec_reserve(&f->room.read, &f->room.read_cap, i + 1, sizeof(*f->room.read)))
		return -ENOMEM;
	f->room.read[i] = (struct code_range){ addr, end };
	f->try.nread += i == f->try.nread;
	return 0;
}

/* Whether another table was read across the address. */
static bool is_in_table(const struct code_fn *f, uint64_t addr)
{
	for (size_t i = 0; i < f->try.nread; i++)
		if (addr > f->room.read[i].start && addr < f->room.read[i].end)
			return true;
	return false;
}

/* The next entries of such a table are due when all code that is known was followed. */
static int put_off(struct code_fn *f, const struct code_val *v, const struct code_state *s,
		   unsigned int next, unsigned int to)
{
	int err = vec_reserve(&f->room.pending, &f->room.pending_cap, f->try.npending + 1,
			      sizeof(*f->room.pending));
	struct code_pending *p;

	if (err)
		return err;
	p = &f->room.pending[f->try.npending++];
	p->table = *v;
	p->at = f->try.at;
	p->next = next;
	p->to = to;
	code_state_copy(&p->state, s);
	return 0;
}

static bool is_unbound(const struct code_fn *f, const struct code_val *v)
{
	return !v->n || (v->masked && f->run.doubt_masks);
}

/* Follows the entries from `first` on. to: how many before it lead to code */
static int table_entries(struct code_fn *f, const struct code_val *v, const struct code_state *s,
			 unsigned int first, unsigned int to)
{
	const bool unbound = is_unbound(f, v), open = unbound && v->size < 8;
	uint64_t target;
	int err = 0, more;

	for (unsigned int i = first; !err && (!v->n || i < v->n); i++) {
		/* Tables do not overlap each other or other data. */
		uint64_t at = (uint64_t)v->off + (uint64_t)i * v->size;

		if (to && (code_is_table(f, at) || (open && code_is_ref(f, at))))
			return 0;
		more = read_entry(f, v, i, &target);
		if (more < 0)
			return more;
		if (!i && target == v->sym) /* an entry of 0: the index is never 0 */
			continue;
		if (unbound && !to &&
		    (i < f->run.unused || (!code_fn_inside(f, target) && i < CODE_FN_UNUSED)))
			continue;
		if (more && unbound && !to && !code_fn_inside(f, target) &&
		    code_state_is_entry(s, f->arch)) {
			/* It leads into another function, which shares the rest of its code */
			f->result.leaps = f->result.strays = true;
			f->result.loses |= !code_state_restored(s, f->arch);
			return 0;
		}
		if (!more || (unbound && !code_fn_inside(f, target)))
			return to && unbound ? 0 : CODE_FN_REJECT;
		/* It leads into an instruction: the end of the table was missed. */
		if (to && unbound && *code_mark_of(f->bin, target) & MARK_BODY)
			return 0;
		if (unbound && to) {
			f->try.entry = at;
			f->try.entry_index = i;
		}
		err = note_read(f, (uint64_t)v->off, at + v->size);
		if (!err)
			err = code_jump_to(f, target, s);
		if (!err && unbound)
			return put_off(f, v, s, i + 1, to + 1);
		to++;
	}
	return err;
}

static int jump_table(struct code_fn *f, const struct code_val *v, const struct code_state *s)
{
	int err = is_unbound(f, v) && v->size < 8 ? code_refs_load(f) : 0;

	if (err)
		return err;
	f->try.has_open |= !v->n;
	f->try.has_masked |= v->masked;
	if (!code_is_table(f, (uint64_t)v->off)) {
		const bool read_too_far = is_in_table(f, (uint64_t)v->off);

		err = code_note_table(f, (uint64_t)v->off);
		if (err || read_too_far)
			return err ? err : CODE_FN_AGAIN;
	}
	return table_entries(f, v, s, 0, 0);
}

int code_jump_go_on(struct code_fn *f)
{
	const struct code_pending p = f->room.pending[--f->try.npending];

	f->try.at = p.at;
	return table_entries(f, &p.table, &p.state, p.next, p.to);
}

/* A word of the file, as in a PLT: before it is bound, a jump through it leads back to the stub. */
static int back_to_stub(struct code_fn *f, uint64_t slot, const struct code_state *s)
{
	const struct code_val word = { .kind = VAL_TARGET, .size = 8, .off = (int64_t)slot };
	uint64_t target;
	int known = read_entry(f, &word, 0, &target);

	return known > 0 && code_fn_inside(f, target) ? code_edge(f, target, s, 0)
	       : known < 0			      ? known
						      : 0;
}

int code_jump_note_own(struct code_fn *f, uint8_t reg, uint64_t label)
{
	for (size_t i = 0; i < f->run.nown; i++)
		if (f->room.own[i].reg == reg && f->room.own[i].addr == label)
			return 0;
	if (f->run.nown == OWN_MAX || reg == CODE_NO_REG)
		return 0;
	if (vec_reserve(&f->room.own, &f->room.own_cap, f->run.nown + 1, sizeof(*f->room.own)))
		return -ENOMEM;
	f->room.own[f->run.nown++] = (struct code_own){ label, reg };
	f->try.own_late |= f->try.own_jumps >> reg & 1;
	return 0;
}

/*
 * Follows a computed goto to all labels: those that the function loads into the register, or else,
 * if it is not a jump to another function, those within it. by_table: it goes through a table of
 * which the file does not have the words (lld leaves them to the relocations)
 */
static int jump_to_labels(struct code_fn *f, const struct code_op *op, const struct code_state *s,
			  bool by_table)
{
	const bool may_leave = code_state_is_entry(s, f->arch);
	const uint64_t *labels = NULL;
	bool found = false;
	size_t n = 0;
	int err = 0;

	for (size_t i = 0; i < f->run.nown && op->kind == OP_JUMP_REG && !err; i++)
		if (f->room.own[i].reg == op->src) {
			found = true;
			err = code_jump_to(f, f->room.own[i].addr, s);
		}
	if (found) {
		f->try.own_jumps |= 1u << op->src;
		return err;
	}
	if (may_leave && !(by_table && f->run.fn.sized))
		return 0;
	if (!f->run.fn.sized)
		return CODE_FN_REJECT;
	if (f->bin->labels)
		err = f->bin->labels(f->bin->ctx, &labels, &n);
	for (size_t i = 0; i < f->try.nparts && !err; i++) {
		const struct code_range part = f->try.parts[i].range;
		size_t k = u64_first_from(labels, n, part.start + 1);

		for (; k < n && labels[k] < part.end && !err; k++) {
			found = true;
			err = code_edge(f, labels[k], s, 0);
		}
	}
	return err || found || may_leave ? err : CODE_FN_REJECT;
}

int code_jump_indirect(struct code_fn *f, const struct code_op *op, struct code_state *s,
		       uint64_t addr)
{
	const bool by_slot = op->kind == OP_JUMP_TABLE && op->base == CODE_NO_REG &&
			     op->index == CODE_NO_REG;
	struct code_val v = code_state_jump(s, op);
	int err = known_table(f, addr, &v);

	if (!err)
		err = v.kind == VAL_TARGET ? jump_table(f, &v, s) : CODE_FN_REJECT;
	if (v.kind == VAL_TARGET && (err != CODE_FN_REJECT || v.size < 8))
		return err;
	if (op->kind == OP_JUMP_REG && s->reg[op->src].kind == VAL_CONST)
		return code_jump_to(f, (uint64_t)s->reg[op->src].off, s);
	f->result.leaps = true;
	if (code_state_is_entry(s, f->arch) && !by_slot && v.kind != VAL_TARGET)
		f->result.hands_over = true;
	else if (!code_fn_left_frame(f, s, true))
		f->result.strays = true;
	if ((op->kind == OP_JUMP_REG || op->index == CODE_NO_REG) && code_fn_left_frame(f, s, true))
		return 0;
	f->result.loses |= !code_state_restored(s, f->arch);
	if (by_slot && (f->run.fn.outermost || code_state_is_entry(s, f->arch)))
		return back_to_stub(f, (uint64_t)op->imm, s);
	if (f->run.fn.outermost || (by_slot && f->bin->resolver == (uint64_t)op->imm && op->imm))
		return 0;
	return jump_to_labels(f, op, s, v.kind == VAL_TARGET);
}
