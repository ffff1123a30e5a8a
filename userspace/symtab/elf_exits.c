/* SPDX-License-Identifier: BSD-2-Clause */
#include "symtab/elf_exits.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/full_io.h"
#include "base/vec.h"
#include "codewalk/code_op.h"

int elf_exits_part(struct elf_exits *e, uint64_t start, uint64_t size, bool entry)
{
	if (vec_reserve(&e->v, &e->cap, e->n + 1, sizeof(*e->v)))
		return -ENOMEM;
	e->v[e->n++] = (struct elf_exits_part){
		.start = start, .size = size, .entry = entry, .once = start
	};
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct elf_exits_part *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->entry != y->entry)
		return x->entry ? -1 : 1;
	return x->size < y->size ? 1 : x->size > y->size ? -1 : 0;
}

/* Sorts the parts for stays(). A function may stand in two tables. */
static void sort_parts(struct elf_exits *e)
{
	size_t n = 0;
	uint64_t end = 0;

	if (e->n)
		qsort(e->v, e->n, sizeof(*e->v), by_start);
	for (size_t i = 0; i < e->n; i++)
		if (!n || e->v[i].start != e->v[n - 1].start || e->v[i].entry != e->v[n - 1].entry)
			e->v[n++] = e->v[i];
	e->n = n;
	for (size_t i = 0; i < n; i++) {
		struct elf_exits_part *p = &e->v[i];

		end = p->start + p->size > end ? p->start + p->size : end;
		p->end_before = end;
	}
}

/* The number of parts that begin at the address or below it. */
static size_t parts_until(const struct elf_exits *e, uint64_t addr)
{
	size_t lo = 0, hi = e->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (e->v[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Whether a jump there stays inside the functions. Each activation has one entry. */
static bool stays(const struct elf_exits *e, uint64_t to)
{
	bool inside = false;

	for (size_t i = parts_until(e, to); i-- > 0 && e->v[i].end_before > to;) {
		if (to == e->v[i].start && e->v[i].entry)
			return false;
		inside |= to - e->v[i].start < e->v[i].size;
		if (inside && e->v[i].start < to)
			break;
	}
	return inside;
}

/*
 * A switch loads the distance to its case from a table by an index, and adds it to an address:
 *
 *   movslq (%rdx,%rax,4),%rax    add %rdx,%rax    jmp *%rax
 */
struct switching {
	uint8_t distance, target; /* the registers that have them; CODE_NO_REG: none */
};

static void follow_switch(struct switching *s, const struct code_op *op)
{
	bool sums = op->kind == OP_ADD && (op->src == s->distance || op->src2 == s->distance) &&
		    s->distance != CODE_NO_REG;

	if (op->kind == OP_LOAD && op->index != CODE_NO_REG)
		s->distance = op->dst;
	else if (sums)
		s->target = op->dst;
	else if (s->target != CODE_NO_REG && code_op_writes(op) >> s->target & 1)
		s->target = CODE_NO_REG;
}

/* Whether the function may end at this instruction in another way than by returning. */
static bool leaves(const struct elf_exits *e, const struct code_op *op, const struct switching *s)
{
	switch (op->kind) {
	case OP_JUMP:
	case OP_BRANCH:
		return !stays(e, op->target);
	case OP_JUMP_REG:
		return op->src == CODE_NO_REG || op->src != s->target;
	case OP_BAD:
		return true;
	default:
		return false;
	}
}

static const struct code_arch *arch_of(const struct elf_image *img)
{
	if (img->machine == EM_AARCH64)
		return &code_arch_arm64;
	return img->machine == EM_X86_64 ? code_arch_x86() : NULL;
}

/*
 * Go's functions begin with a test of the stack's size. If it is too small, they call the runtime
 * and then jump to their start:
 *
 *   start: cmp 16(%r14),%rsp    jbe more    ...    more: call morestack    jmp start
 *
 * For large frames there are two such branches.
 */
#define TEST_BYTES 64

static bool restarts(const struct elf_exits_part *p, const struct code_op *op, uint64_t after_test)
{
	return p->entry && op->kind == OP_JUMP && op->target == p->start && after_test;
}

int elf_exits_find(struct elf_exits *e, const struct elf_image *img, bool go,
		   void (*fn)(void *ctx, uint64_t vaddr), void *ctx, bool *ret_known)
{
	const struct code_arch *arch = arch_of(img);
	uint8_t *code = arch ? malloc(ELF_EXITS_MOST) : NULL;
	int err = 0;

	*ret_known = arch != NULL;
	if (arch && !code)
		return -ENOMEM;
	sort_parts(e);
	for (size_t i = 0; i < e->n && *ret_known && !err; i++) {
		struct elf_exits_part *p = &e->v[i];
		struct switching jump = { CODE_NO_REG, CODE_NO_REG };
		uint64_t off, after_test = 0, more = 0;
		struct code_op op;

		*ret_known = p->size && p->size <= ELF_EXITS_MOST &&
			     elf_image_vaddr_to_offset(img, p->start, &off) && off <= img->size &&
			     p->size <= img->size - off;
		if (*ret_known)
			err = pread_full(img->fd, code, p->size, off);
		for (uint64_t at = 0; at < p->size && *ret_known && !err; at += op.len) {
			arch->decode(code + at, p->size - at, p->start + at, &op);
			if (op.kind == OP_RET)
				fn(ctx, p->start + at);
			if (op.kind == OP_BRANCH && at < TEST_BYTES &&
			    (!after_test || op.target == more)) {
				more = op.target;
				after_test = p->start + at + op.len;
			}
			if (go && restarts(p, &op, after_test))
				p->once = after_test;
			else
				*ret_known = !leaves(e, &op, &jump);
			follow_switch(&jump, &op);
		}
	}
	free(code);
	return err;
}

void elf_exits_free(struct elf_exits *e)
{
	free(e->v);
	*e = (struct elf_exits){ .v = NULL };
}
