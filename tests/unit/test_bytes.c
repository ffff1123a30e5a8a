/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/bytes.h"
#include "test.h"

TEST(bytes_reads_both_orders)
{
	static const uint8_t raw[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	struct bytes le = bytes_of(raw, 8, false), be = bytes_of(raw, 8, true);

	EXPECT_EQ(bytes_u16(&le), 0x0201);
	EXPECT_EQ(bytes_u16(&be), 0x0102);
	EXPECT_EQ(bytes_u32(&le), 0x06050403);
	EXPECT_EQ(bytes_u32(&be), 0x03040506);
	EXPECT_EQ(bytes_left(&le), 2);
}

TEST(bytes_err_is_sticky_and_reads_zero)
{
	static const uint8_t raw[] = { 0xff, 0xff, 0xff };
	struct bytes b = bytes_of(raw, 3, false);

	EXPECT_EQ(bytes_u32(&b), 0);
	EXPECT(b.err);
	EXPECT_EQ(bytes_u8(&b), 0);
	EXPECT_EQ(bytes_left(&b), 0);
}

TEST(bytes_leb128)
{
	static const uint8_t u[] = { 0xe5, 0x8e, 0x26 }; /* DWARF 5, table 7.7: 624485 */
	static const uint8_t s[] = { 0xc0, 0xbb, 0x78 }; /* -123456 */
	static const uint8_t padded[] = { 0x81, 0x80, 0x80, 0x80, 0x80, 0x80,
					  0x80, 0x80, 0x80, 0x80, 0x00 };
	static const uint8_t big[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02 };
	static const uint8_t open[] = { 0x80, 0x80 };
	struct bytes b = bytes_of(u, 3, false);

	EXPECT_EQ(bytes_uleb(&b), 624485);
	b = bytes_of(s, 3, false);
	EXPECT_EQ(bytes_sleb(&b), -123456);
	b = bytes_of(padded, sizeof(padded), false);
	EXPECT_EQ(bytes_uleb(&b), 1);
	EXPECT(!b.err);
	b = bytes_of(big, sizeof(big), false);
	EXPECT_EQ(bytes_uleb(&b), 0);
	EXPECT(b.err);
	b = bytes_of(open, 2, false);
	bytes_sleb(&b);
	EXPECT(b.err);
}

TEST(bytes_sub_and_strings)
{
	static const uint8_t raw[] = "ab\0cd";
	struct bytes b = bytes_of(raw, 5, false), sub; /* without the final NUL */

	EXPECT_STR(bytes_str(&b), "ab");
	EXPECT(!bytes_str(&b));
	EXPECT(b.err);
	b = bytes_of(raw, 5, false);
	sub = bytes_sub(&b, 3, 2);
	EXPECT_EQ(sub.len, 2);
	EXPECT_EQ(bytes_u8(&sub), 'c');
	EXPECT(bytes_sub(&b, 4, 2).err);
	EXPECT(bytes_sub(&b, (uint64_t)-1, 2).err);
	bytes_seek(&b, 5);
	EXPECT(!b.err);
	bytes_seek(&b, 6);
	EXPECT(b.err);
}

TEST(find_rare)
{
	static const uint8_t hay[] = { 9, 1, 2, 3, 1, 2, 4, 1, 2 }, needle[] = { 1, 2, 4 };

	for (size_t rare = 0; rare < sizeof(needle); rare++) {
		struct bytes b = bytes_of(hay, sizeof(hay), false);

		EXPECT(bytes_find_rare(&b, needle, 3, rare));
		EXPECT_EQ(b.pos, 4);
		EXPECT(bytes_find_rare(&b, needle, 3, rare)); /* where it already is */
		EXPECT_EQ(b.pos, 4);
		bytes_skip(&b, 1);
		EXPECT(!bytes_find_rare(&b, needle, 3, rare));
		EXPECT_EQ(b.pos, 5);
		b = bytes_of(hay, 6, false); /* cut in the middle of the only one */
		EXPECT(!bytes_find_rare(&b, needle, 3, rare));
		b = bytes_of(hay, 2, false);
		EXPECT(!bytes_find_rare(&b, needle, 3, rare));
		b = bytes_of(NULL, 0, false);
		EXPECT(!bytes_find_rare(&b, needle, 3, rare));
	}
}
