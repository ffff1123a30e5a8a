/* SPDX-License-Identifier: BSD-2-Clause */
/* The code of interrupts, found by the names that the kernel gives to addresses. */
#include "kern/irq_code.h"

#include "test.h"

struct symbol {
	uint64_t start;
	const char *name;
};

#define TEXT 0xffffffff8a200000ull

static const struct symbol newer[] = {
	{ TEXT, "_stext" },
	{ TEXT + 0x1000, "asm_exc_debug" },
	{ TEXT + 0x1340, "asm_common_interrupt" },
	{ TEXT + 0x1380, "asm_sysvec_reboot" },
	{ TEXT + 0x1570, "common_interrupt_return" },
	{ TEXT + 0x9007, "handle_softirqs" },
	{ TEXT + 0x9287, "__irq_exit_rcu" },
	{ TEXT + 0xa000, "__do_softirq" },
	{ TEXT + 0xa00c, "thunk" },
	{ TEXT + 0x20000, NULL },
};

static const struct symbol older[] = {
	{ TEXT, "_stext" },
	{ TEXT + 0x8001, "__do_softirq" },
	{ TEXT + 0x8301, "some_function" },
	{ TEXT + 0x9000, NULL },
};

static bool name_at(void *ctx, uint64_t addr, char *ret, size_t cap)
{
	const struct symbol *s = ctx;

	if (addr < s->start)
		return false;
	while (s->name && addr >= s[1].start)
		s++;
	snprintf(ret, cap, "%s", s->name ? s->name : "");
	return s->name != NULL;
}

TEST(irq_code_by_names)
{
	struct irq_code k = { 0 };

	irq_code_search(name_at, (void *)newer, &k);
	EXPECT_EQ(k.irq_start, TEXT + 0x1340);
	EXPECT_EQ(k.irq_end, TEXT + 0x1570);
	EXPECT_EQ(k.softirq_start, TEXT + 0x9007);
	EXPECT_EQ(k.softirq_end, TEXT + 0x9287);
	k = (struct irq_code){ 0 };
	irq_code_search(name_at, (void *)older, &k);
	EXPECT_EQ(k.irq_start, 0);
	EXPECT_EQ(k.softirq_start, TEXT + 0x8001);
	EXPECT_EQ(k.softirq_end, TEXT + 0x8301);
}

static struct irq_code read_text(const char *text, enum irq_entry entry)
{
	FILE *f = fmemopen((char *)text, strlen(text), "r");
	struct irq_code k;

	irq_code_read(f, entry, &k);
	fclose(f);
	return k;
}

TEST(irq_code_of_kallsyms)
{
	static const char x86[] = "ffffffff81001340 T asm_common_interrupt\n"
				  "ffffffff81001380 T asm_sysvec_reboot\n"
				  "ffffffff81001570 T __irqentry_text_end\n"
				  "ffffffff81009007 t handle_softirqs\n"
				  "ffffffff81009287 t __irq_exit_rcu\n"
				  "ffffffff81ffe000 T asm_fred_entrypoint_user\n"
				  "ffffffff81ffe06e T asm_fred_exit_user\n"
				  "ffffffff81ffe100 T asm_fred_entrypoint_kernel\n"
				  "ffffffff81ffe180 T asm_fred_entry_from_kvm\n"
				  "ffffffffc0000000 t asm_sysvec_other\t[module]\n";
	static const char arm64[] = "ffff800080010000 t el1t_64_irq\n"
				    "ffff800080010a00 t el1h_64_sync\n"
				    "ffff800080010a80 t el1h_64_irq\n"
				    "ffff800080010b00 t el1h_64_fiq\n"
				    "ffff800080010b80 t el1h_64_error\n"
				    "ffff800080010c00 t el0t_64_sync\n"
				    "ffff800080010d00 t el0t_64_irq\n"
				    "ffff800080010e00 t el0t_64_fiq\n"
				    "ffff800080010e80 t el0t_64_error\n"
				    "ffff800080010f00 T __irqentry_text_end\n"
				    "ffff800080090000 t handle_softirqs\n";
	struct irq_code k = read_text(x86, IRQ_IDT);

	EXPECT_EQ(k.irq_start, 0xffffffff81001340);
	EXPECT_EQ(k.irq_end, 0xffffffff81001570);
	EXPECT_EQ(k.softirq_start, 0xffffffff81009007);
	EXPECT_EQ(k.softirq_end, 0xffffffff81009287);
	k = read_text(x86, IRQ_FRED);
	EXPECT_EQ(k.irq_start, 0xffffffff81ffe100);
	EXPECT_EQ(k.irq_end, 0xffffffff81ffe180);
	EXPECT(k.softirq_start == k.irq_start && k.softirq_end == k.irq_end);
	k = read_text(arm64, IRQ_ARM64);
	EXPECT_EQ(k.irq_start, 0xffff800080010a80);
	EXPECT_EQ(k.irq_end, 0xffff800080010b80);
	EXPECT_EQ(k.softirq_start, 0xffff800080010d00);
	EXPECT_EQ(k.softirq_end, 0xffff800080010e80);
	/* Hidden by kptr_restrict */
	k = read_text("0000000000000000 t el1h_64_irq\n0000000000000000 t el1h_64_error\n",
		      IRQ_ARM64);
	EXPECT(!k.irq_start && !k.irq_end);
}
