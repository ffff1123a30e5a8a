/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a small function of AArch64 code returns, or passes on as its first argument: an address, or
 * what it reads from one. Only the instructions that compilers make addresses of are known. Any
 * other one makes the register unknown that it may write.
 */
#include "base/arm64.h"
#include "languages/lang.h"

#define REG_ZERO 31
#define THREAD	 0xd53bd040u /* mrs xD, tpidr_el0 */

struct machine {
	struct lang_value reg[REG_ZERO + 1];
	uint64_t global, size; /* the variable that words of the GOT point to */
};

static bool is_address(const struct lang_value *v)
{
	return v->kind == LANG_ADDRESS || v->kind == LANG_THREAD;
}

/* ldr xD or wD, [xN, #imm] */
static struct lang_value load(const struct machine *m, const struct lang_value *base, uint64_t off,
			      bool wide)
{
	struct lang_value v = *base;

	v.at += off;
	if (base->kind == LANG_THREAD)
		v.kind = LANG_THREAD_WORD;
	else if (base->kind == LANG_TLS_PAIR && !off)
		v.kind = LANG_TLS_PAIR;
	else if (base->kind != LANG_ADDRESS)
		v = (struct lang_value){ 0 };
	else if (v.at - m->global < m->size || !wide)
		v.kind = LANG_WORD;
	else
		v.at = m->global;
	return v;
}

/* The thread pointer plus what a call to a TLS descriptor has returned. */
static struct lang_value sum(const struct lang_value *a, const struct lang_value *b)
{
	if (a->kind == LANG_THREAD && !a->at && b->kind == LANG_TLS_PAIR)
		return *b;
	if (b->kind == LANG_THREAD && !b->at && a->kind == LANG_TLS_PAIR)
		return *a;
	return (struct lang_value){ 0 };
}

/* False: the function ends, or calls another one. */
static bool step(struct machine *m, uint32_t insn, uint64_t pc)
{
	struct lang_value *d = &m->reg[insn & 31], *n = &m->reg[insn >> 5 & 31];
	const struct lang_value *other = &m->reg[insn >> 16 & 31];
	uint64_t imm = insn >> 10 & 0xfff;

	if ((insn & 0x7c000000) == 0x14000000 || (insn & 0xfffffc1f) == 0xd65f0000)
		return false; /* b, bl, ret */
	if ((insn & 0xfffff01f) == 0xd503201f || (insn & 0x7e000000) == 0x34000000)
		return true;			 /* hints, cbz, cbnz */
	if ((insn & 0xfffffc1f) == 0xd63f0000) { /* blr: of a TLS descriptor, only x0 changes */
		m->reg[0].kind = m->reg[0].kind == LANG_ADDRESS ? LANG_TLS_PAIR : LANG_UNKNOWN;
	} else if (arm64_is_adr(insn)) {
		*d = (struct lang_value){ LANG_ADDRESS, arm64_adr_target(insn, pc) };
	} else if ((insn & ~0x1fu) == THREAD) {
		*d = (struct lang_value){ LANG_THREAD, 0 };
	} else if ((insn & 0xff800000) == 0x91000000 && is_address(n)) { /* add xD, xN, #imm */
		*d = *n;
		d->at += insn & 1u << 22 ? imm << 12 : imm;
	} else if ((insn & 0xffc00000) == 0xf9400000) {
		*d = load(m, n, imm * 8, true);
	} else if ((insn & 0xffc00000) == 0xb9400000) {
		*d = load(m, n, imm * 4, false);
	} else if ((insn & 0xffe0fc00) == 0xf8606800 || (insn & 0xffe0fc00) == 0x8b000000) {
		*d = sum(n, other);			/* ldr xD, [xN, xM]; add xD, xN, xM */
	} else if ((insn & 0xffe0ffe0) == 0xaa0003e0) { /* mov xD, xM */
		*d = *other;
	} else {
		*d = (struct lang_value){ 0 };
	}
	m->reg[REG_ZERO] = (struct lang_value){ 0 };
	return true;
}

struct lang_value lang_value_arm64(const struct lang_file *f, const char *name, uint64_t global,
				   uint64_t size)
{
	struct machine m = { .global = global, .size = size };
	struct elf_dynsym_value sym;
	struct elf_blob b = { 0 };

	if (!elf_dynsym_find(&f->syms, name, &sym) ||
	    !lang_bytes(f, sym.addr, LANG_FUNCTION_BYTES, &b))
		return m.reg[0];
	while (bytes_left(&b.view) && b.view.pos < sym.size) {
		uint64_t pc = sym.addr + b.view.pos;

		if (!step(&m, bytes_u32(&b.view), pc))
			break;
	}
	elf_blob_free(&b);
	return m.reg[0];
}
