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
