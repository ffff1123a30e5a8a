/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/text.h"

#include "test.h"

#define FFFD "\xef\xbf\xbd"

struct text_case {
	const char *in, *want;
};

TEST(text_path_of_deleted_file)
{
	EXPECT_EQ(text_path_len("/bin/a (deleted)"), 6);
	EXPECT_EQ(text_path_len("/bin/a"), 6);
	EXPECT_EQ(text_path_len("/bin/a (deleted) b"), 18);
	EXPECT_EQ(text_path_len(" (deleted)"), 10);
	EXPECT_EQ(text_path_len(""), 0);
}

TEST(text_encode)
{
	static const uint32_t chars[] = { 0,	  0x7f,	  0x80,	   0x7ff,   0x800,
					  0xd7ff, 0xffff, 0x10000, 0x10ffff };
	char utf8[TEXT_CHAR_MAX];
	uint32_t back;
	size_t n;

	for (size_t i = 0; i < sizeof(chars) / sizeof(*chars); i++) {
		n = text_encode(utf8, chars[i]);
		EXPECT_EQ(text_decode(utf8, n, &back), n);
		EXPECT_EQ(back, chars[i]);
	}
	EXPECT_EQ(text_encode(utf8, 0xdc00), 3);
	EXPECT_EQ(text_encode(utf8, UINT32_MAX), 4);
}

TEST(text_clean)
{
	static const struct text_case cases[] = {
		{ "plain_name", "plain_name" },
		{ "a;b", "a;b" },
		{ "\x1b[31mred\r\n\t\x7f", ".[31mred...." },
		{ "caf\xc3\xa9 \xe4\xb8\xad \xf0\x9f\x98\x80",
		  "caf\xc3\xa9 \xe4\xb8\xad \xf0\x9f\x98\x80" },
		{ "\xc2\x9b"
		  "31m",
		  ".31m" },		   /* C1: CSI */
		{ "\xc0\xaf", FFFD FFFD }, /* overlong '/' */
		{ "\xe0\x80\xaf", FFFD FFFD FFFD },
		{ "\xed\xa0\x80", FFFD FFFD FFFD },	     /* surrogate */
		{ "\xf4\x90\x80\x80", FFFD FFFD FFFD FFFD }, /* past U+10FFFF */
		{ "\xff"
		  "a\x80",
		  FFFD "a" FFFD },
		{ "\xe4\xb8", FFFD FFFD }, /* cut short */
		{ "\xe4\xb8"
		  "a",
		  FFFD FFFD "a" },
		{ "\xe2\x80\xae"
		  "txt.exe",
		  FFFD "txt.exe" },				/* right-to-left override */
		{ "\xe2\x81\xa7x\xe2\x80\xa8", FFFD "x" FFFD }, /* isolate, line separator */
		{ "\xef\xbb\xbf", FFFD },
		{ "", "" },
	};
	char buf[64];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t n = text_clean(buf, sizeof(buf), cases[i].in, strlen(cases[i].in), 0);

		EXPECT_STR(buf, cases[i].want);
		EXPECT_EQ(n, strlen(cases[i].want));
	}
	EXPECT_EQ(text_clean(buf, sizeof(buf), "a;b\n\0c", 6, TEXT_FOLDED), 6);
	EXPECT_STR(buf, "a:b..c");
}

TEST(text_clean_cuts_between_characters)
{
	char buf[8];

	EXPECT_EQ(text_clean(buf, 4, "ab\xc3\xa9", 4, 0), 2);
	EXPECT_STR(buf, "ab");
	EXPECT_EQ(text_clean(buf, 5, "ab\xc3\xa9", 4, 0), 4);
	EXPECT_EQ(text_clean(buf, 1, "ab", 2, 0), 0);
	EXPECT_STR(buf, "");
	EXPECT_EQ(text_clean(buf, 3, "\xff", 1, 0), 0);
}

TEST(text_width)
{
	EXPECT_EQ(text_width("abc"), 3);
	EXPECT_EQ(text_width("\xe4\xb8\xad\xe6\x96\x87"), 4);
	EXPECT_EQ(text_width("e\xcc\x81"), 1); /* combining acute */
	EXPECT_EQ(text_width("\xf0\x9f\x98\x80"), 2);
	EXPECT_EQ(text_width("\xef\xbd\xb1"), 1); /* halfwidth katakana */
	EXPECT_EQ(text_width(""), 0);
}

TEST(text_fit)
{
	char buf[32];

	EXPECT_EQ(text_fit(buf, sizeof(buf), "abcdef", 6, true), 6);
	EXPECT_STR(buf, "abcdef");
	EXPECT_EQ(text_fit(buf, sizeof(buf), "abcdef", 4, false), 4);
	EXPECT_STR(buf, "abc~");
	EXPECT_EQ(text_fit(buf, sizeof(buf), "abcdef", 4, true), 4);
	EXPECT_STR(buf, "abc\xe2\x80\xa6");
	EXPECT_EQ(text_fit(buf, sizeof(buf), "a\xe4\xb8\xad\xe4\xb8\xad", 4, false), 4);
	EXPECT_STR(buf, "a\xe4\xb8\xad~");
	EXPECT_EQ(text_fit(buf, sizeof(buf), "\xe4\xb8\xad\xe4\xb8\xad", 2, false), 1);
	EXPECT_STR(buf, "~");
	EXPECT_EQ(text_fit(buf, sizeof(buf), "abc", 0, true), 0);
	EXPECT_STR(buf, "");
	EXPECT_EQ(text_fit(buf, 4, "abcdef", 10, false), 3);
	EXPECT_STR(buf, "ab~");
	EXPECT_EQ(text_fit(buf, 2, "abcdef", 10, true), 0);
}
