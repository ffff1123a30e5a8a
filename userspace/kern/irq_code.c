/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * x86: the interrupt entry points are adjacent in .irqentry.text, after those of exceptions, which
 * belong to the task. AArch64: arch/arm64/kernel/entry.S has the entry points of a mode in the
 * order sync, irq, fiq, error.
 */
#include "kern/irq_code.h"

#include <stdio.h>
#include <string.h>

/* arch/x86: the kernel's code is in this gigabyte, and begins at a multiple of 2 MB */
#define TEXT_FROM 0xffffffff80000000ull
#define TEXT_TO	  0xffffffffc0000000ull
#define TEXT_STEP (2ull << 20)
#define TEXT_MOST (64ull << 20)
#define STEP	  128 /* the code that is looked for is longer */

static bool is_irq(const char *name)
{
	return !strcmp(name, "asm_common_interrupt") || !strncmp(name, "asm_sysvec_", 11);
}

/* Linux 6.9 and later. Before, it was part of __do_softirq, which is now a few bytes. */
static bool is_softirq(const char *name)
{
	return !strcmp(name, "handle_softirqs");
}

static bool is_old_softirq(const char *name)
{
	return !strcmp(name, "__do_softirq");
}

/* [*start, *end) is the symbol that begins at *start: it ends at the next one. */
static void see_end(uint64_t addr, uint64_t start, uint64_t *end)
{
	if (start && addr > start && addr < *end)
		*end = addr;
}

static void see_idt(struct irq_code *k, uint64_t addr, const char *name)
{
	if (is_irq(name) && (!k->irq_start || addr < k->irq_start))
		k->irq_start = addr;
	else if (!strcmp(name, "__irqentry_text_end"))
		k->irq_end = addr;
	else if ((is_softirq(name) && k->softirq_start != addr) ||
		 (is_old_softirq(name) && !k->softirq_start))
		k->softirq_start = addr, k->softirq_end = UINT64_MAX;
	see_end(addr, k->softirq_start, &k->softirq_end);
}

static void see_fred(struct irq_code *k, uint64_t addr, const char *name)
{
	if (!k->irq_start && !strcmp(name, "asm_fred_entrypoint_kernel"))
		k->irq_start = addr, k->irq_end = UINT64_MAX;
	see_end(addr, k->irq_start, &k->irq_end);
	k->softirq_start = k->irq_start;
	k->softirq_end = k->irq_end;
}

static void see_arm64(struct irq_code *k, uint64_t addr, const char *name)
{
	if (!strcmp(name, "el1h_64_irq"))
		k->irq_start = addr;
	else if (!strcmp(name, "el1h_64_error"))
		k->irq_end = addr;
	else if (!strcmp(name, "el0t_64_irq"))
		k->softirq_start = addr;
	else if (!strcmp(name, "el0t_64_error"))
		k->softirq_end = addr;
}

/* Two passes: a function ends at the next symbol, and the symbols may be unordered. */
void irq_code_read(FILE *kallsyms, enum irq_entry entry, struct irq_code *ret)
{
	static void (*const see[])(struct irq_code * k, uint64_t addr, const char *name) = {
		[IRQ_IDT] = see_idt, [IRQ_FRED] = see_fred, [IRQ_ARM64] = see_arm64
	};
	unsigned long long addr;
	char line[512], name[256];

	*ret = (struct irq_code){ 0 };
	for (int pass = 0; pass < 2; pass++) {
		while (fgets(line, sizeof(line), kallsyms) &&
		       sscanf(line, "%llx %*c %255s", &addr, name) == 2)
			if (addr && !strchr(line, '['))
				see[entry](ret, addr, name);
		rewind(kallsyms);
	}
	if (ret->irq_start >= ret->irq_end ||
	    (entry == IRQ_ARM64 && ret->softirq_start >= ret->softirq_end))
		*ret = (struct irq_code){ 0 };
}

static enum irq_entry entry_here(void)
{
	enum irq_entry entry = IRQ_IDT;
	char word[64];
	FILE *f;

#ifdef __aarch64__
	return IRQ_ARM64;
#endif
	f = fopen("/proc/cpuinfo", "re");
	while (f && entry == IRQ_IDT && fscanf(f, "%63s", word) == 1)
		if (!strcmp(word, "fred"))
			entry = IRQ_FRED;
	if (f)
		fclose(f);
	return entry;
}

/* ---- By names alone ---- */

struct names {
	symbolizer_kernel_fn fn;
	void *ctx;
	char name[256]; /* the name of the address that was asked for last */
};

static bool has_name(struct names *n, uint64_t addr)
{
	return n->fn(n->ctx, addr, n->name, sizeof(n->name));
}

static bool names_like(struct names *n, uint64_t addr, bool (*is)(const char *name))
{
	return has_name(n, addr) && is(n->name);
}

/* Code whose names are like that was met at addr: extends [*start, *end) to its whole. */
static void extend(struct names *n, bool (*is)(const char *name), uint64_t addr, uint64_t *start,
		   uint64_t *end)
{
	if (!*start) {
		*start = addr;
		while (names_like(n, *start - 1, is))
			--*start;
	}
	if (addr >= *end)
		*end = addr + 1;
	while (names_like(n, *end, is))
		++*end;
}

void irq_code_search(symbolizer_kernel_fn name, void *ctx, struct irq_code *ret)
{
	struct names n = { .fn = name, .ctx = ctx };
	struct irq_code old = { 0 };
	uint64_t addr = TEXT_FROM, from;

	while (addr < TEXT_TO && !has_name(&n, addr))
		addr += TEXT_STEP;
	for (from = addr; addr < from + TEXT_MOST && addr < TEXT_TO; addr += STEP) {
		if (!has_name(&n, addr))
			continue;
		if (is_irq(n.name))
			extend(&n, is_irq, addr, &ret->irq_start, &ret->irq_end);
		else if (is_softirq(n.name))
			extend(&n, is_softirq, addr, &ret->softirq_start, &ret->softirq_end);
		else if (is_old_softirq(n.name))
			extend(&n, is_old_softirq, addr, &old.softirq_start, &old.softirq_end);
		else if (ret->irq_start && ret->softirq_start)
			break;
	}
	if (!ret->softirq_start) {
		ret->softirq_start = old.softirq_start;
		ret->softirq_end = old.softirq_end;
	}
}

void irq_code_find(symbolizer_kernel_fn name, void *ctx, struct irq_code *ret)
{
	enum irq_entry entry = entry_here();
	FILE *f = fopen("/proc/kallsyms", "re");

	*ret = (struct irq_code){ 0 };
	if (f) {
		irq_code_read(f, entry, ret);
		fclose(f);
	}
	if (!ret->irq_start && entry == IRQ_IDT)
		irq_code_search(name, ctx, ret);
	if (ret->irq_start >= ret->irq_end)
		*ret = (struct irq_code){ 0 };
}
