/* SPDX-License-Identifier: BSD-2-Clause */
#include "codewalk/code_state.h"

#include <string.h>

#define UNKNOWN ((struct code_val){ 0 })

static struct code_val on_stack(uint64_t sym, int64_t off)
{
	return (struct code_val){ .kind = VAL_STACK, .sym = sym, .off = off };
}

static struct code_val orig(uint8_t reg)
{
	return (struct code_val){ .kind = VAL_ORIG, .off = reg };
}

static bool same(const struct code_val *a, const struct code_val *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* ---- The stack ---- */

static void slot_drop(struct code_state *s, uint32_t i)
{
	s->nslots--;
	memmove(&s->slot[i], &s->slot[i + 1], (s->nslots - i) * sizeof(s->slot[0]));
}

/* Forgets the words in [off, off + size). */
static void slots_kill(struct code_state *s, uint64_t sym, int64_t off, int64_t size)
{
	for (uint32_t i = 0; i < s->nslots;)
		if (s->slot[i].sym == sym && s->slot[i].off > off - 8 &&
		    s->slot[i].off < off + size)
			slot_drop(s, i);
		else
			i++;
}

/* Smaller numbers are not the address of a jump table. */
#define ADDRESS_MIN 4096

/*
 * Sorted, so that equal states are equal bytes. When there are too many, the last one is lost that
 * is not the caller's: AArch64's functions save registers below all else.
 */
static void slot_set(struct code_state *s, uint64_t sym, int64_t off, struct code_val val)
{
	uint32_t i = 0;

	if (val.kind != VAL_ORIG && val.kind != VAL_STACK &&
	    (val.kind != VAL_CONST || val.off < ADDRESS_MIN))
		return;
	while (i < s->nslots &&
	       (s->slot[i].sym < sym || (s->slot[i].sym == sym && s->slot[i].off > off)))
		i++;
	if (s->nslots == CODE_SLOTS) {
		uint32_t end = CODE_SLOTS; /* end of the slots up to the one that is lost */

		while (end && s->slot[end - 1].val.kind == VAL_ORIG)
			end--;
		if (!end || (val.kind != VAL_ORIG && end <= i))
			return;
		slot_drop(s, end - 1);
		i -= end <= i;
	}
	memmove(&s->slot[i + 1], &s->slot[i], (s->nslots - i) * sizeof(s->slot[0]));
	s->slot[i] = (struct code_slot){ sym, off, val };
	s->nslots++;
}

void code_state_entry(struct code_state *s, const struct code_arch *arch)
{
	memset(s, 0, sizeof(*s));
	for (uint8_t i = 0; i < arch->nregs; i++)
		if (arch->callee_saved >> i & 1 || i == arch->ra)
			s->reg[i] = orig(i);
	s->reg[arch->sp] = on_stack(0, -arch->ra_bytes);
	s->cmp_reg = s->bound_place.base = CODE_NO_REG;
	if (arch->ra == CODE_NO_REG)
		slot_set(s, 0, -arch->ra_bytes, orig(VAL_RETURN_ADDRESS));
}

/* Forgets all that is relative to sym, which is about to name another value. */
static void forget_sym(struct code_state *s, uint64_t sym)
{
	for (uint32_t i = 0; i < CODE_REGS; i++)
		if (s->reg[i].kind == VAL_STACK && s->reg[i].sym == sym)
			s->reg[i] = UNKNOWN;
	for (uint32_t i = 0; i < s->nslots;)
		if (s->slot[i].sym == sym ||
		    (s->slot[i].val.kind == VAL_STACK && s->slot[i].val.sym == sym))
			slot_drop(s, i);
		else
			i++;
}

static struct code_val fresh(struct code_state *s, uint64_t at)
{
	forget_sym(s, at);
	return on_stack(at, 0);
}

/* ---- Instructions ---- */

static struct code_val reg_val(const struct code_state *s, uint8_t reg)
{
	return reg < CODE_REGS ? s->reg[reg] : UNKNOWN;
}

static struct code_val val_add(struct code_val v, int64_t by)
{
	if (!by)
		return v;
	if (v.kind != VAL_STACK && v.kind != VAL_CONST)
		return UNKNOWN;
	v.off = (int64_t)((uint64_t)v.off + (uint64_t)by);
	return v.kind == VAL_CONST || (v.off < INT32_MAX && v.off > INT32_MIN) ? v : UNKNOWN;
}

static struct code_val val_sum(const struct code_state *s, const struct code_op *op)
{
	struct code_val a = reg_val(s, op->src), b = reg_val(s, op->src2);

	const uint64_t by = (uint64_t)b.off << (op->shift & 31);

	if (op->src == CODE_NO_REG) { /* the index of a table, times the size of its entries */
		b.shift = op->shift;
		return b.kind == VAL_BOUND && !op->negative ? b : UNKNOWN;
	}
	if (b.kind == VAL_CONST && op->shift < 32 && a.kind != VAL_ENTRY)
		return val_add(a, (int64_t)(op->negative ? -by : by));
	if (a.kind == VAL_ENTRY && b.kind == VAL_CONST && !op->negative && !op->shift) {
		struct code_val t = a;

		a = b;
		b = t;
	}
	if (a.kind == VAL_CONST && b.kind == VAL_ENTRY && !op->negative) {
		b.kind = VAL_TARGET;
		b.sym = (uint64_t)a.off;
		b.shift = op->shift;
		/* AArch64's add extends the entry's sign itself */
		b.is_signed |= op->is_signed;
		return b;
	}
	return UNKNOWN;
}

static struct code_val val_and(struct code_state *s, const struct code_op *op, uint64_t at)
{
	struct code_val v = reg_val(s, op->src);

	if (v.kind == VAL_STACK && op->imm < 0)
		return fresh(s, at);
	if (op->imm >= 0 && op->imm < UINT16_MAX)
		return (struct code_val){
			.kind = VAL_BOUND, .size = 8, .masked = 1, .off = op->imm
		};
	return UNKNOWN;
}

static struct code_val val_copy(const struct code_state *s, const struct code_op *op)
{
	struct code_val v = reg_val(s, op->src);
	const int64_t most = op->size == 1 ? UINT8_MAX : UINT16_MAX - 1;

	if (v.kind == VAL_CONST && op->size >= 4)
		return v;
	if (v.kind == VAL_ENTRY && v.size == op->size && (!v.is_signed || op->is_signed)) {
		v.is_signed = op->is_signed;
		return v;
	}
	if (v.kind == VAL_BOUND && !v.shift && (v.size <= op->size || v.off <= most)) {
		v.size = 8;
		return v;
	}
	if (op->size <= 2)
		return (struct code_val){ .kind = VAL_BOUND, .size = 8, .n = 1, .off = most };
	return UNKNOWN;
}

/* Where the op's memory is; false: not on the stack at a known place. */
static bool stack_place(const struct code_state *s, const struct code_op *op, uint64_t *ret_sym,
			int64_t *ret_off)
{
	struct code_val base = reg_val(s, op->base);

	if (base.kind != VAL_STACK || op->index != CODE_NO_REG)
		return false;
	*ret_sym = base.sym;
	*ret_off = base.off + op->imm;
	return true;
}

static struct code_place place_of(const struct code_op *op)
{
	return (struct code_place){ op->base, op->index, op->shift, op->imm };
}

static bool is_place(const struct code_place *p, const struct code_op *op)
{
	return p->base == op->base && p->index == op->index && p->disp == op->imm &&
	       (p->index == CODE_NO_REG || p->shift == op->shift);
}

static struct code_val val_load(const struct code_state *s, const struct code_op *op, int64_t more)
{
	struct code_val base = reg_val(s, op->base), index = reg_val(s, op->index);
	const struct code_val *found = NULL;
	uint64_t sym;
	int64_t off;

	if (op->size == 8 && stack_place(s, op, &sym, &off))
		found = code_state_slot(s, sym, off + more);
	if (found)
		return *found;
	if (op->base != CODE_NO_REG && is_place(&s->bound_place, op) && op->size == s->bound_size)
		return (struct code_val){ .kind = VAL_BOUND, .size = 8, .off = s->bound };
	if (op->index != CODE_NO_REG && op->shift <= 3 &&
	    (op->base == CODE_NO_REG || base.kind == VAL_CONST || index.kind == VAL_CONST)) {
		struct code_val v = { .kind = VAL_ENTRY,
				      .size = op->size,
				      .is_signed = op->is_signed };
		struct code_val count = base.kind != VAL_CONST && index.kind == VAL_CONST ? base
											  : index;

		if (1 << op->shift != op->size && !(index.kind == VAL_CONST && !op->shift))
			return UNKNOWN;
		if (count.shift && 1 << (op->shift + count.shift) != op->size)
			return UNKNOWN;
		v.off = (base.kind == VAL_CONST	   ? base.off
			 : index.kind == VAL_CONST ? index.off
						   : 0) +
			op->imm;
		if (count.kind == VAL_BOUND && !count.n && count.off < UINT16_MAX)
			v.n = (uint16_t)(count.off + 1);
		v.masked = v.n ? count.masked : 0;
		return v;
	}
	if (op->size <= 2 && !op->is_signed)
		return (struct code_val){ .kind = VAL_BOUND,
					  .size = 8,
					  .n = 1,
					  .off = op->size == 1 ? UINT8_MAX : UINT16_MAX - 1 };
	return UNKNOWN;
}

struct code_val code_state_jump(const struct code_state *s, const struct code_op *op)
{
	struct code_val v = UNKNOWN;
	struct code_op load = *op;

	load.size = 8;
	if (op->kind == OP_JUMP_REG)
		v = reg_val(s, op->src);
	else if (op->kind == OP_JUMP_TABLE && op->index != CODE_NO_REG)
		v = val_load(s, &load, 0);
	if (v.kind == VAL_ENTRY && v.size == 8)
		v.kind = VAL_TARGET;
	return v.kind == VAL_TARGET ? v : UNKNOWN;
}

/* False: the return address was overwritten, and not by itself. */
static bool store(struct code_state *s, const struct code_arch *arch, const struct code_op *op)
{
	const int64_t each = op->kind == OP_STORE ? op->size : op->store_size,
		      size = each * (op->kind == OP_STORE && op->src3 != CODE_NO_REG ? 2 : 1);
	const struct code_val v = reg_val(s, op->src2);
	uint64_t sym;
	int64_t off;

	if (!stack_place(s, op, &sym, &off))
		return true;
	if (!sym && off < 0 && off + size > -arch->ra_bytes &&
	    (op->kind != OP_STORE || size != 8 || off != -8 ||
	     !val_is_orig(&v, VAL_RETURN_ADDRESS)))
		return false;
	slots_kill(s, sym, off, size);
	if (op->kind == OP_STORE && op->size == 8) {
		slot_set(s, sym, off, v);
		if (op->src3 != CODE_NO_REG)
			slot_set(s, sym, off + 8, reg_val(s, op->src3));
	}
	return true;
}

/* What was known by a comparison of the register, or of memory that it addresses, is void. */
static void forget_compared(struct code_state *s, uint8_t reg)
{
	if (reg == s->cmp_reg || reg == s->cmp_with || (s->cmp_memory && reg == s->cmp_place.index))
		s->cmp_reg = CODE_NO_REG;
	if (reg == s->bound_place.base || reg == s->bound_place.index)
		s->bound_place.base = CODE_NO_REG;
}

static void set(struct code_state *s, uint8_t reg, struct code_val v)
{
	if (reg < CODE_REGS)
		s->reg[reg] = v;
	forget_compared(s, reg);
}

static void clobber(struct code_state *s, const struct code_arch *arch, uint32_t regs, uint64_t at)
{
	const bool compared = s->cmp_reg != CODE_NO_REG || s->bound_place.base != CODE_NO_REG;

	for (; regs; regs &= regs - 1) {
		const uint8_t i = (uint8_t)__builtin_ctz(regs);

		s->reg[i] = i == arch->sp ? fresh(s, at) : UNKNOWN;
		if (compared)
			forget_compared(s, i);
	}
}

static void call(struct code_state *s, const struct code_arch *arch, const struct code_op *op,
		 uint64_t at)
{
	struct code_val sp = val_add(s->reg[arch->sp], op->pops);
	const uint32_t kept = op->spared | (op->keeps_result ? 1u << arch->result : 0);

	clobber(s, arch, arch->call_clobbers & ~kept, at);
	s->reg[arch->sp] = sp;
	if (sp.kind != VAL_STACK)
		return;
	for (uint32_t i = 0; i < s->nslots;)
		if (s->slot[i].sym == sp.sym && s->slot[i].off < sp.off)
			slot_drop(s, i);
		else
			i++;
}

static bool leave(struct code_state *s, const struct code_arch *arch)
{
	struct code_val fp = s->reg[arch->fp];
	const struct code_val *saved = fp.kind == VAL_STACK ? code_state_slot(s, fp.sym, fp.off)
							    : NULL;

	if (fp.kind != VAL_STACK)
		return false;
	set(s, arch->fp, saved ? *saved : UNKNOWN);
	s->reg[arch->sp] = val_add(fp, 8);
	return true;
}

static bool enter(struct code_state *s, const struct code_arch *arch, int64_t locals)
{
	const struct code_op push = { .kind = OP_STORE,
				      .size = 8,
				      .base = arch->sp,
				      .index = CODE_NO_REG,
				      .src2 = arch->fp,
				      .src3 = CODE_NO_REG,
				      .imm = -8 };

	if (!store(s, arch, &push))
		return false;
	s->reg[arch->sp] = val_add(s->reg[arch->sp], -8);
	set(s, arch->fp, s->reg[arch->sp]);
	s->reg[arch->sp] = val_add(s->reg[arch->sp], -locals);
	return true;
}

static void compare(struct code_state *s, const struct code_op *op)
{
	s->cmp_memory = op->kind == OP_COMPARE_MEMORY;
	s->cmp_reg = s->cmp_memory ? op->base : op->src;
	s->cmp_with = op->src2;
	s->cmp_size = op->size;
	s->cmp_imm = s->cmp_memory ? op->imm2 : op->imm;
	s->cmp_place = place_of(op);
}

/* The value that the op computes for dst. */
static struct code_val result(struct code_state *s, const struct code_op *op, uint64_t at)
{
	switch (op->kind) {
	case OP_LEA:
		return val_add(reg_val(s, op->src), op->imm);
	case OP_CONST:
		return (struct code_val){ .kind = VAL_CONST, .off = op->imm };
	case OP_ADD:
		return val_sum(s, op);
	case OP_AND:
		return val_and(s, op, at);
	case OP_COPY:
		return val_copy(s, op);
	case OP_LOAD:
		return val_load(s, op, 0);
	default:
		return UNKNOWN;
	}
}

/* Drops saved values that were loaded back to their registers, once sp has left them below it. */
static void drop_released(struct code_state *s, const struct code_arch *arch)
{
	const struct code_val *sp = &s->reg[arch->sp];

	for (uint32_t i = 0; val_from_cfa(sp) && i < s->nslots;) {
		const struct code_slot *slot = &s->slot[i];

		if (!slot->sym && slot->off < sp->off && slot->val.kind == VAL_ORIG &&
		    val_is_orig(&s->reg[slot->val.off], (uint8_t)slot->val.off))
			slot_drop(s, i);
		else
			i++;
	}
}

static bool moves(const struct code_op *op)
{
	return op->kind == OP_LEA || op->kind == OP_CONST || op->kind == OP_ADD ||
	       op->kind == OP_AND || op->kind == OP_COPY || op->kind == OP_LOAD;
}

bool code_state_apply(struct code_state *s, const struct code_arch *arch, const struct code_op *op,
		      uint64_t at)
{
	const bool moved = moves(op);
	struct code_val v = UNKNOWN, v2 = UNKNOWN;

	if (moved)
		v = result(s, op, at);
	if (op->kind == OP_LOAD && op->dst2 != CODE_NO_REG)
		v2 = val_load(s, op, op->size);
	if (op->kind == OP_OTHER && op->pops)
		set(s, arch->sp, val_add(s->reg[arch->sp], op->pops));
	if (op->kind == OP_STORE || op->store_size) {
		if (!store(s, arch, op))
			return false;
		s->bound_place.base = CODE_NO_REG;
		if (s->cmp_memory)
			s->cmp_reg = CODE_NO_REG;
	}
	if (op->writeback)
		set(s, op->base, val_add(reg_val(s, op->base), op->writeback));
	clobber(s, arch, op->writes, at);
	if (moved) {
		if (op->dst == arch->sp && v.kind != VAL_STACK)
			v = fresh(s, at);
		set(s, op->dst, v);
		if (op->dst2 != CODE_NO_REG)
			set(s, op->dst2, v2);
	}
	if (!arch->popped_is_valid)
		drop_released(s, arch);
	if (!op->keeps_flags && op->kind != OP_NOP)
		s->cmp_reg = CODE_NO_REG;
	switch (op->kind) {
	case OP_CALL:
		call(s, arch, op, at);
		break;
	case OP_COMPARE:
	case OP_COMPARE_MEMORY:
		compare(s, op);
		break;
	case OP_SIGN:
		if (s->reg[arch->ra].kind == VAL_ORIG)
			s->reg[arch->ra].n ^= 1;
		break;
	case OP_LEAVE:
		return leave(s, arch);
	case OP_ENTER:
		return enter(s, arch, op->imm);
	default:
		break;
	}
	return true;
}

void code_state_branch(struct code_state *s, const struct code_arch *arch, const struct code_op *op,
		       bool taken)
{
	int64_t most;

	if (!code_state_branch_tells(s, op))
		return;
	if (op->cond == COND_NOT_EQ && !taken && !s->cmp_memory && s->cmp_reg == arch->sp &&
	    s->cmp_with != CODE_NO_REG) {
		s->reg[arch->sp] = s->reg[s->cmp_with];
		return;
	}
	if (s->cmp_with != CODE_NO_REG || s->cmp_imm < 0 || s->cmp_imm > UINT16_MAX - 2)
		return;
	if ((op->cond == COND_ABOVE && !taken) || (op->cond == COND_BELOW_EQ && taken))
		most = s->cmp_imm;
	else if (((op->cond == COND_ABOVE_EQ && !taken) || (op->cond == COND_BELOW && taken)) &&
		 s->cmp_imm)
		most = s->cmp_imm - 1;
	else
		return;
	if (s->cmp_memory) {
		s->bound_place = s->cmp_place;
		s->bound_size = s->cmp_size;
		s->bound = most;
		return;
	}
	/* Not as the constant that it may be on one of several ways: it is the index of a table. */
	if (s->reg[s->cmp_reg].kind != VAL_STACK && s->reg[s->cmp_reg].kind != VAL_ORIG)
		s->reg[s->cmp_reg] =
			(struct code_val){ .kind = VAL_BOUND, .size = s->cmp_size, .off = most };
}

void code_state_forget(struct code_state *s, const struct code_arch *arch, uint32_t regs)
{
	for (uint8_t i = 0; i < arch->nregs; i++)
		if (regs >> i & 1)
			s->reg[i] = UNKNOWN;
	s->cmp_reg = s->bound_place.base = CODE_NO_REG;
}

bool code_state_conflict(const struct code_state *a, const struct code_state *b,
			 const struct code_arch *arch)
{
	const struct code_val *x = &a->reg[arch->sp], *y = &b->reg[arch->sp];

	return x->kind == VAL_STACK && y->kind == VAL_STACK && !x->sym && !y->sym &&
	       x->off != y->off;
}

enum code_merge code_state_merge(struct code_state *into, const struct code_state *from,
				 const struct code_arch *arch)
{
	enum code_merge ret = MERGE_SAME;
	const struct code_val *v;

	if (code_state_conflict(into, from, arch))
		ret = MERGE_CONFLICT;
	for (uint8_t i = 0; i < arch->nregs; i++)
		if (into->reg[i].kind && !same(&into->reg[i], &from->reg[i])) {
			into->reg[i] = UNKNOWN;
			ret = ret == MERGE_SAME ? MERGE_CHANGED : ret;
		}
	for (uint32_t i = 0; i < into->nslots;) {
		v = code_state_slot(from, into->slot[i].sym, into->slot[i].off);
		if (v && same(v, &into->slot[i].val)) {
			i++;
			continue;
		}
		slot_drop(into, i);
		ret = ret == MERGE_SAME ? MERGE_CHANGED : ret;
	}
	into->cmp_reg = into->bound_place.base = CODE_NO_REG;
	return ret;
}

/* ---- What follows from it ---- */

static bool sp_is(const struct code_state *s, const struct code_arch *arch, int64_t off)
{
	const struct code_val *sp = &s->reg[arch->sp];

	return sp->kind == VAL_STACK && !sp->sym && sp->off == off;
}

bool code_state_may_return(const struct code_state *s, const struct code_arch *arch)
{
	return sp_is(s, arch, -arch->ra_bytes) &&
	       (arch->ra == CODE_NO_REG || val_is_orig(&s->reg[arch->ra], arch->ra));
}

bool code_state_is_entry(const struct code_state *s, const struct code_arch *arch)
{
	return code_state_may_return(s, arch) && val_is_orig(&s->reg[arch->fp], arch->fp);
}

bool code_state_unpop_ra(struct code_state *s, const struct code_arch *arch, uint8_t reg)
{
	if (!sp_is(s, arch, 0) || !val_is_orig(&s->reg[reg], VAL_RETURN_ADDRESS))
		return false;
	s->reg[arch->sp] = on_stack(0, -arch->ra_bytes);
	return true;
}

bool code_state_syscall_is(const struct code_state *s, const struct code_arch *arch,
			   const uint16_t numbers[2])
{
	const struct code_val *nr = &s->reg[arch->syscall];

	return nr->kind == VAL_CONST && (nr->off == numbers[0] || nr->off == numbers[1]);
}

bool code_state_restored(const struct code_state *s, const struct code_arch *arch)
{
	for (uint8_t i = 0; i < arch->nregs; i++)
		if (arch->callee_saved >> i & 1 && !val_is_orig(&s->reg[i], i))
			return false;
	return true;
}

bool code_state_saves(const struct code_state *s, const struct code_arch *arch)
{
	for (uint32_t i = 0; i < s->nslots; i++) {
		const struct code_slot *slot = &s->slot[i];

		if (slot->sym || slot->val.kind != VAL_ORIG ||
		    slot->val.off == VAL_RETURN_ADDRESS ||
		    val_is_orig(&s->reg[slot->val.off], (uint8_t)slot->val.off))
			continue;
		if (arch->ra == CODE_NO_REG ? slot->off == -2 * arch->ra_bytes
					    : slot->val.off == arch->ra && slot->off < 0)
			return true;
	}
	return false;
}
