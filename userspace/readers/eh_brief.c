/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compilers emit few different instructions in few different states. The states that occur are
 * numbered, and the effect of an instruction on a state is remembered, so a known pair costs one
 * table lookup. eh_cfa.c evaluates each pair the first time.
 *
 * Damage, rare instructions and big-endian files have no brief form: the caller then evaluates the
 * function instruction by instruction.
 */
#include "readers/eh_brief.h"

#include <errno.h>

#include "base/hash.h"
#include "base/slots.h"
#include "readers/eh_cfa.h"

/* libLLVM needs a thousand; functions that need more than this have no brief form */
#define STATES_MAX     0x8000
#define STATES_FIRST   128 /* enough for a small file */
/* log2 of the entries of moves[]: instructions without a slot are 1% of libLLVM's */
#define MOVE_BITS      9
/* Nearly all registers are saved in the 28 words below the CFA */
#define QUICK_OFFSETS  28
#define CLASSES_MAX    16
#define CODE_ALIGN_MAX 256 /* real ones are 1 to 4; this and ADDR_MAX keep sums from overflowing */
#define ADDR_MAX       (UINT64_MAX / 2)

struct state {
	struct cfa_state rules; /* start, COL_SINK and the PLT fields are 0 */
	uint64_t cie;		/* class_of() its CIE */
};

/*
 * Slots: numbers of the commonest instructions. SLOT_NONE: the instruction has no slot. SLOT_SINK:
 * it sets the rule of a register that no row has.
 */
enum slot {
	SLOT_NONE,
	SLOT_SINK,
	SLOT_FP,		    /* DW_CFA_def_cfa_register with the frame pointer */
	SLOT_CFA,		    /* DW_CFA_def_cfa_offset, + operand / 8 */
	SLOT_SP = SLOT_CFA + 16,    /* DW_CFA_def_cfa with the stack pointer, + offset / 8 */
	SLOT_OFFSET = SLOT_SP + 16, /* DW_CFA_offset, + column * QUICK_OFFSETS + operand */
	SLOTS = 128
};

_Static_assert(SLOT_OFFSET + COL_SINK * QUICK_OFFSETS <= SLOTS, "each has its own");

/*
 * The state after the instruction of each slot; 0: not known yet. 256 bytes, a power of two,
 * because flow() waits for the address computation.
 */
struct quick {
	uint16_t next[SLOTS];
};

struct eh_brief {
	const struct eh_frame *e;
	struct state *states;
	struct quick *quick; /* one for each state */
	size_t n, cap, quick_cap;
	uint8_t sp, fp; /* registers */
	struct slots slots;
	/* The initial state of each CIE's functions; 0: not determined yet */
	uint32_t *starts;
	uint32_t classes[CLASSES_MAX], nclasses; /* the first CIE of each class */
	/* Padded copy of instructions at the section's end */
	uint8_t *insns;
	size_t insns_cap;
	const uint8_t *column; /* struct eh_cie's; CIEs with another one have no brief form */
	/* Instructions without a slot: token << 32 | state << 16 | state after it */
	uint64_t moves[1u << MOVE_BITS];
	/* enum slot of each two-byte instruction, the opcode in the low byte */
	uint8_t slot[1u << 16];
};

void eh_brief_free(struct eh_brief *m)
{
	if (!m)
		return;
	free(m->states);
	free(m->quick);
	free(m->starts);
	free(m->insns);
	slots_free(&m->slots);
	free(m);
}

static int add_state(struct eh_brief *m, const struct state *s)
{
	size_t want = m->n < STATES_FIRST ? STATES_FIRST : m->n + 1;
	int err = vec_reserve(&m->states, &m->cap, want, sizeof(*m->states));

	if (!err)
		err = vec_reserve(&m->quick, &m->quick_cap, want, sizeof(*m->quick));
	if (err)
		return err;
	m->quick[m->n] = (struct quick){ .next[SLOT_SINK] = (uint16_t)m->n };
	m->states[m->n++] = *s;
	return 0;
}

struct eh_brief *eh_brief_new(const struct eh_frame *e)
{
	struct eh_brief *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->e = e;
	m->sp = row_arch_regs(e->arch)->sp;
	m->fp = row_arch_regs(e->arch)->fp;
	m->starts = calloc(e->ncies ? e->ncies : 1, sizeof(*m->starts));
	/* State 0 is a placeholder, because 0 means "not known" in quick and starts. */
	if (!m->starts || add_state(m, &(struct state){ .cie = UINT64_MAX })) {
		eh_brief_free(m);
		return NULL;
	}
	return m;
}

void eh_brief_rule(const struct eh_brief *m, uint32_t rule, struct row *ret)
{
	eh_cfa_row(&m->states[rule].rules, ret);
}

static uint64_t hash_state(const void *ctx, size_t i)
{
	const struct state *s = &((const struct state *)ctx)[i];
	const struct cfa_state *r = &s->rules;

	return hash_mix(hash_mix(r->cfa ^ s->cie, r->col[COL_FP] ^ (uint64_t)r->cfa_off << 8),
			hash_mix(r->col[COL_BX], r->col[COL_RA] ^ r->flags));
}

/*
 * 1 and the state's number; 0: there are too many states, or it is a PLT's or one with a lost
 * caller, which have no brief form; -ENOMEM.
 */
static int number(struct eh_brief *m, const struct cfa_state *rules, uint64_t cie, uint32_t *ret)
{
	struct state s = { .rules = *rules, .cie = cie };
	struct row row;
	size_t at;
	int err;

	eh_cfa_row(rules, &row);
	if (s.rules.plt_rep || row.flags & ROW_LOST)
		return 0;
	s.rules.start = s.rules.col[COL_SINK] = 0;
	s.rules.plt_add = 0;
	s.rules.plt_at = 0;
	err = slots_reserve(&m->slots, m->n, hash_state, m->states);
	if (err)
		return err;
	slots_each(&m->slots, hash_state(&s, 0), at) {
		*ret = m->slots.ids[at] - 1;
		if (!memcmp(&m->states[*ret], &s, sizeof(s)))
			return 1;
	}
	if (m->n == STATES_MAX)
		return 0;
	*ret = (uint32_t)m->n;
	err = add_state(m, &s);
	if (!err)
		m->slots.ids[at] = (uint32_t)m->n;
	return err ? err : 1;
}

/*
 * The CIE's class: the first CIE under which all instructions mean the same. If there are too many
 * classes, the CIE itself.
 */
static uint32_t class_of(struct eh_brief *m, uint32_t cie)
{
	const struct eh_cie *cies = m->e->cies;

	for (uint32_t i = 0; i < m->nclasses; i++)
		if (eh_cfa_same(&cies[m->classes[i]], &cies[cie]))
			return m->classes[i];
	if (m->nclasses < CLASSES_MAX)
		m->classes[m->nclasses++] = cie;
	return cie;
}

/* Fills the slots of two-byte instructions, as the CIE's functions use them. */
static void fill_slots(struct eh_brief *m, const struct eh_cie *cie)
{
	m->column = cie->column;
	for (unsigned int arg = 0; arg < QUICK_OFFSETS; arg++)
		for (unsigned int reg = 0; reg < sizeof(cie->column); reg++)
			m->slot[arg << 8 | DW_CFA_offset | reg] =
				cie->column[reg] == COL_SINK ? SLOT_SINK
				: cie->column[reg] == COL_SP
					? SLOT_NONE
					: (uint8_t)(SLOT_OFFSET + cie->column[reg] * QUICK_OFFSETS +
						    arg);
	for (unsigned int arg = 0; arg < 16; arg++)
		m->slot[arg << 11 | DW_CFA_def_cfa_offset] = (uint8_t)(SLOT_CFA + arg);
	m->slot[(unsigned int)m->fp << 8 | DW_CFA_def_cfa_register] = SLOT_FP;
}

/*
 * Stores the initial state of the CIE's functions in m->starts. 1; 0: they have no brief form;
 * -ENOMEM.
 */
static __attribute__((noinline)) int begin(struct eh_brief *m, uint32_t cie)
{
	const struct eh_cie *c = &m->e->cies[cie];
	uint32_t state;
	int got;

	if (m->e->sec.be || c->code_align > CODE_ALIGN_MAX)
		return 0;
	if (!m->column)
		fill_slots(m, c);
	if (memcmp(m->column, c->column, sizeof(c->column)))
		return 0; /* no known file has CIEs with different columns */
	got = number(m, &c->init, class_of(m, cie), &state);
	if (got > 0)
		m->starts[cie] = state;
	return got;
}

/*
 * Length of the instruction at the start of v if its bytes can be a token, the key of moves[]. 0:
 * it is rare or longer than 4 bytes.
 */
static inline unsigned int token_len(uint64_t v)
{
	static const uint8_t operands[DW_CFA_advance_loc] = {
		/* 1 + the number of operands */
		[DW_CFA_offset_extended] = 3,
		[DW_CFA_restore_extended] = 2,
		[DW_CFA_undefined] = 2,
		[DW_CFA_same_value] = 2,
		[DW_CFA_register] = 3,
		[DW_CFA_def_cfa] = 3,
		[DW_CFA_def_cfa_register] = 2,
		[DW_CFA_def_cfa_offset] = 2,
		[DW_CFA_AARCH64_negate_ra_state] = 1,
		[DW_CFA_GNU_args_size] = 2,
	};
	uint8_t op = (uint8_t)v;

	if (op < DW_CFA_offset) {
		if (operands[op] == 3)
			return !(v & 0x8000) ? !(v & 0x800000) ? 3 : !(v & 0x80000000) ? 4 : 0 : 0;
		if (operands[op] != 2)
			return operands[op];
	} else if (op >= DW_CFA_restore) {
		return 1;
	}
	return !(v & 0x8000) ? 2 : !(v & 0x800000) ? 3 : 0;
}

static inline uint64_t *move_of(struct eh_brief *m, uint32_t token, uint32_t state)
{
	return &m->moves[((uint64_t)token << 32 | state) * 0x9e3779b97f4a7c15 >> (64 - MOVE_BITS)];
}

/* Enum slot of the instruction at the start of v. */
static inline unsigned int slot_of(const struct eh_brief *m, uint64_t v)
{
	if ((v & 0x87ffff) == ((uint64_t)m->sp << 8 | DW_CFA_def_cfa))
		return SLOT_SP + (unsigned int)(v >> 19 & 15);
	return m->slot[(uint16_t)v];
}

struct step {
	uint64_t left; /* bytes of instructions */
	uint32_t state;
};

/*
 * Evaluates the instruction at the start of v, if it only sets rules. 1: *s is after it; 0, -ENOMEM
 * as eh_brief_rows.
 */
static __attribute__((noinline)) int go_on(struct eh_brief *m, const struct eh_fde *fde, uint64_t v,
					   struct step *s)
{
	const struct eh_cie *cie = &m->e->cies[fde->cie];
	struct eh_insns insns = eh_insns_of(m->e, fde->insns_end - s->left, fde->insns_end);
	unsigned int len = token_len(v);
	uint32_t token = len ? (uint32_t)v << (32 - 8 * len) >> (32 - 8 * len) : 0, next;
	uint64_t *move = move_of(m, token, s->state);
	unsigned int slot = slot_of(m, v);
	struct cfa_state rules;
	int got;

	if (token_len(v) > s->left)
		return 0; /* cut short */
	if (token && *move >> 16 == ((uint64_t)token << 16 | s->state)) {
		s->left -= token_len(v);
		s->state = (uint16_t)*move;
		return 1;
	}
	rules = m->states[s->state].rules;
	got = eh_cfa_set(cie, &insns, &rules) ? number(m, &rules, m->states[s->state].cie, &next)
					      : 0;
	if (got <= 0)
		return got;
	if (slot)
		m->quick[s->state].next[slot] = (uint16_t)next;
	else if (token)
		*move = (uint64_t)token << 32 | s->state << 16 | next;
	s->left = insns.end - insns.pos;
	s->state = next;
	return 1;
}

/* Takes the DW_CFA_advance_loc1, 2 or 4 that v starts with. Returns its operand. */
static inline uint64_t take_wide_delta(struct words *w, uint64_t v)
{
	unsigned int wide = (uint8_t)v - DW_CFA_advance_loc1;

	words_skip(w, 1 + (1u << wide));
	return v >> 8 & (((uint64_t)1 << (8u << wide)) - 1);
}

/* Skips the DW_CFA_nop that v starts with, and those after it: padding at the end. */
static inline void skip_nops(struct words *w, uint64_t v)
{
	unsigned int len = v ? (unsigned int)__builtin_ctzll(v) / 8 : 8;

	if (len < words_left(w))
		words_skip(w, len);
	else
		words_to_end(w);
}

/* go_on() for flow(). */
static inline __attribute__((always_inline)) int go_on_at(struct eh_brief *m,
							  const struct eh_fde *fde, uint64_t v,
							  struct words *w, uint32_t *state)
{
	struct step s = { words_left(w), *state };
	int got = go_on(m, fde, v, &s);

	if (got > 0) {
		*state = s.state;
		words_skip(w, (unsigned int)(words_left(w) - s.left));
	}
	return got;
}

/* Ends a row of `state` at `end`: the last row, if its state is the same, or a new one. */
static inline struct brief_row *end_row(struct brief_row *row, uint64_t end, uint32_t state,
					uint32_t last)
{
	row += state != last;
	*row = (struct brief_row){ end, state };
	return row;
}

/*
 * Writes the function's rows to row[1] and up; there is room for one per byte of instructions.
 * Returns their number; 0, -ENOMEM as eh_brief_rows.
 */
static inline __attribute__((always_inline)) long flow(struct eh_brief *m, const struct fn *fn,
						       struct words w, struct brief_row *row)
{
	const struct eh_fde *fde = &m->e->fdes[fn->ref];
	const uint64_t end = fn->end, code_align = m->e->cies[fde->cie].code_align;
	const struct brief_row *const first = row;
	const struct quick *quick = m->quick;
	uint32_t state = m->starts[fde->cie], last = UINT32_MAX, next, depth = 0, saved[CFA_DEPTH];
	uint64_t addr = fn->start, delta, v;
	int got;

	row->end = addr;
	while (words_peek(&w, &v)) {
		uint8_t op = (uint8_t)v;

		if ((op & 0xc0) == DW_CFA_advance_loc) {
			delta = op & 0x3f;
			words_skip(&w, 1);
		} else if ((next = quick[state].next[m->slot[(uint16_t)v]])) {
			state = next;
			words_skip(&w, 2);
			continue;
		} else if (op == DW_CFA_def_cfa && (next = quick[state].next[slot_of(m, v)])) {
			state = next;
			words_skip(&w, 3);
			continue;
		} else if (op >= DW_CFA_advance_loc1 && op <= DW_CFA_advance_loc4) {
			delta = take_wide_delta(&w, v);
		} else if (op == DW_CFA_remember_state && depth < CFA_DEPTH) {
			saved[depth++] = state;
			words_skip(&w, 1);
			continue;
		} else if (op == DW_CFA_restore_state && depth) {
			state = saved[--depth];
			words_skip(&w, 1);
			continue;
		} else if (op == DW_CFA_nop) {
			skip_nops(&w, v);
			continue;
		} else {
			got = go_on_at(m, fde, v, &w, &state);
			if (got <= 0)
				return got;
			quick = m->quick; /* go_on() may have moved it */
			continue;
		}
		delta *= code_align;
		if (delta - 1 >= end - addr - 1) {
			if (delta)
				break;
			continue;
		}
		addr += delta;
		row = end_row(row, addr, state, last);
		last = state;
	}
	row = end_row(row, end, state, last);
	return words_past(&w) ? 0 : row - first; /* the last instruction is cut short */
}

/* The function's instructions. 1, 0, -ENOMEM as eh_brief_rows. */
static inline int words_of(struct eh_brief *m, const struct eh_fde *fde, struct words *ret)
{
	uint64_t len = fde->insns_end - fde->insns;

	if (bytes_words(&m->e->sec, fde->insns, len, NULL, ret))
		return 1;
	if (vec_reserve(&m->insns, &m->insns_cap, len + BYTES_PADDING, 1))
		return -ENOMEM;
	return bytes_words(&m->e->sec, fde->insns, len, m->insns, ret);
}

void eh_brief_fetch(const struct eh_brief *m, const struct fn *soon, const struct fn *later)
{
	__builtin_prefetch(&m->e->fdes[later->ref]);
	bytes_fetch(&m->e->sec, m->e->fdes[soon->ref].insns);
}

int eh_brief_rows(struct eh_brief *m, const struct fn *fn, struct brief *out)
{
	const struct eh_fde *fde = &m->e->fdes[fn->ref];
	uint64_t len = fde->insns_end - fde->insns;
	struct words insns;
	long n = m->starts[fde->cie] ? 1 : begin(m, fde->cie);

	if (n <= 0 || fn->start >= fn->end || fn->end > ADDR_MAX || len > BRIEF_MAX_ROWS - 2)
		return n < 0 ? (int)n : 0;
	if (vec_reserve(&out->rows, &out->cap, len + 2, sizeof(*out->rows)))
		return -ENOMEM;
	n = words_of(m, fde, &insns);
	if (n > 0)
		n = flow(m, fn, insns, out->rows);
	if (n <= 0)
		return (int)n;
	out->n = (size_t)n;
	out->rules = (uint32_t)m->n;
	return 1;
}
