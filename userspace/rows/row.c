/* SPDX-License-Identifier: BSD-2-Clause */
#include "rows/row.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/vec.h"

int rowbuf_push(struct rowbuf *b, const struct row *row)
{
	int err = vec_reserve(&b->rows, &b->cap, b->n + 1, sizeof(*b->rows));

	if (err)
		return err;
	b->rows[b->n++] = *row;
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return x->start != y->start ? (x->start < y->start ? -1 : 1)
	       : x->end < y->end    ? -1
				    : x->end > y->end;
}

void rowbuf_sort(struct rowbuf *b)
{
	if (b->n)
		qsort(b->rows, b->n, sizeof(*b->rows), by_start);
}

void rowbuf_free(struct rowbuf *b)
{
	free(b->rows);
	*b = (struct rowbuf){ 0 };
}

int fntab_push(struct fntab *t, uint64_t start, uint64_t end, uint64_t ref)
{
	int err = vec_reserve(&t->fns, &t->cap, t->n + 1, sizeof(*t->fns));

	if (err)
		return err;
	t->fns[t->n++] = (struct fn){ .start = start, .end = end, .ref = ref };
	return 0;
}

void fntab_free(struct fntab *t)
{
	free(t->fns);
	*t = (struct fntab){ 0 };
}

/* x86-64 psABI figure 3.36; AAPCS64 DWARF table 1; s390x ELF ABI table 1-19. */
static const char *const x86_64_names[] = {
	"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
	"r9",  "r10", "r11", "r12", "r13", "r14", "r15", "rip",
};
static const char *const aarch64_names[] = {
	"x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",	 "x7",	"x8",  "x9",  "x10",
	"x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21",
	"x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "x30", "sp",
};
static const char *const s390x_names[] = {
	"r0",  "r1",  "r2",  "r3",  "r4",  "r5",  "r6", "r7",  "r8",  "r9",  "r10",
	"r11", "r12", "r13", "r14", "r15", "f0",  "f2", "f4",  "f6",  "f1",  "f3",
	"f5",  "f7",  "f8",  "f10", "f12", "f14", "f9", "f11", "f13", "f15",
};

#define NAMES(a) a, sizeof(a) / sizeof((a)[0])
static const struct row_regs arch_regs[] = {
	[ROW_ARCH_NONE] = { 0, 0, 0, NULL, 0 },
	[ROW_ARCH_X86_64] = { 7, 6, 16, NAMES(x86_64_names) },
	[ROW_ARCH_AARCH64] = { 31, 29, 30, NAMES(aarch64_names) },
	[ROW_ARCH_S390X] = { 15, 11, 14, NAMES(s390x_names) },
};

const struct row_regs *row_arch_regs(enum row_arch arch)
{
	return &arch_regs[arch];
}

enum row_arch row_arch_of_machine(uint16_t machine)
{
	switch (machine) {
	case EM_X86_64:
		return ROW_ARCH_X86_64;
	case EM_AARCH64:
		return ROW_ARCH_AARCH64;
	case EM_S390:
		return ROW_ARCH_S390X;
	default:
		return ROW_ARCH_NONE;
	}
}

enum row_arch row_arch_native(void)
{
#if defined(__x86_64__)
	return ROW_ARCH_X86_64;
#elif defined(__aarch64__)
	return ROW_ARCH_AARCH64;
#else
#error "sfbpf runs on x86-64 and AArch64"
#endif
}

bool rule_equal(const struct rule *a, const struct rule *b)
{
	return a->kind == b->kind && a->reg == b->reg && a->off == b->off;
}

bool row_same_rules(const struct row *a, const struct row *b)
{
	return rule_equal(&a->cfa, &b->cfa) && rule_equal(&a->ra, &b->ra) &&
	       rule_equal(&a->fp, &b->fp) && rule_equal(&a->bx, &b->bx) &&
	       a->cfa_off2 == b->cfa_off2 && a->source == b->source && a->flags == b->flags &&
	       a->go == b->go && a->plt_rep == b->plt_rep && a->plt_at == b->plt_at;
}
