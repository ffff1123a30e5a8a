/* SPDX-License-Identifier: BSD-2-Clause */
/* Line tables of Ruby, and which descriptions are refused. */
#include <string.h>

#include "languages/lang.h"

#include "test.h"

#define ENTRIES 4
#define BLOCKS	2

/* As BPF sends it: three entries begin at positions 0, 3, 60 and 700. */
struct table {
	uint32_t n;
	uint32_t entries[ENTRIES][3];
	uint64_t first[6];
	struct {
		uint32_t rank, zero;
		uint64_t ranks, bits[8];
	} blocks[BLOCKS];
} __attribute__((packed));

static const uint32_t starts[ENTRIES] = { 0, 3, 60, 700 }, lines[ENTRIES] = { 5, 7, 6, 900 };

static uint64_t entries_to(uint32_t position)
{
	uint64_t n = 0;

	while (n < ENTRIES && starts[n] <= position)
		n++;
	return n;
}

static void make_table(struct table *t)
{
	*t = (struct table){ .n = ENTRIES };
	for (uint32_t i = 0; i < ENTRIES; i++)
		t->entries[i][0] = lines[i];
	for (uint32_t i = 0; i < 54; i++)
		t->first[i / 9] |= entries_to(i) << (i % 9 * 7);
	for (uint32_t i = 2; i < ENTRIES; i++) {
		uint32_t at = starts[i] - 54;

		t->blocks[at / 512].bits[at % 512 / 64] |= 1ull << (at % 64);
	}
	for (uint32_t b = 0; b < BLOCKS; b++) {
		t->blocks[b].rank = (uint32_t)entries_to(53 + b * 512);
		for (uint32_t i = 1; i < 8; i++)
			t->blocks[b].ranks |=
				(entries_to(53 + b * 512 + i * 64) - t->blocks[b].rank)
				<< ((i - 1) * 9);
	}
}

static uint32_t line_of(const void *table, size_t len, uint32_t position)
{
	const struct lang_code c = { .version = 3, .lines = table, .lines_len = (uint32_t)len };

	return ruby_language.line(&c, position);
}

TEST(each_position_has_its_line)
{
	struct table t;

	make_table(&t);
	for (uint32_t i = 0; i < 54 + 512 * BLOCKS; i++)
		EXPECT_EQ(line_of(&t, sizeof(t), i), lines[entries_to(i) - 1]);
}

TEST(damaged_tables_have_no_lines)
{
	struct table t;
	uint8_t bytes[sizeof(t)];

	make_table(&t);
	memcpy(bytes, &t, sizeof(t));
	for (size_t len = 0; len < sizeof(t); len++) {
		uint32_t line = line_of(bytes, len, 1000);

		EXPECT(line == 0 || line == 900 || line == 5 || line == 6 || line == 7);
	}
	memset(bytes, 0xff, sizeof(bytes));
	EXPECT_EQ(line_of(bytes, sizeof(bytes), 10), 0);
	EXPECT_EQ(line_of(&t, sizeof(t), 1u << 23), 0);
}

TEST(unsound_descriptions)
{
	struct sf_lang l = { .language = SF_LANG_RUBY, .nloops = 2 };

	l.ruby = (struct sf_ruby){ .nexec = 1,
				   .frame_size = 64,
				   .insns = 120,
				   .insns_n = 136,
				   .insns_index = 144,
				   .insn_size = 12 };
	EXPECT(lang_sound(&l));
	l.ruby.nexec = 3;
	EXPECT(!lang_sound(&l));
	l.ruby.nexec = 1;
	l.ruby.frame_size = 0;
	EXPECT(!lang_sound(&l));
	l.ruby.frame_size = 64;
	l.ruby.insns_index = 250;
	EXPECT(!lang_sound(&l));
	l.ruby.insns_index = 144;
	l.ruby.insn_size = 200;
	EXPECT(!lang_sound(&l));
}
