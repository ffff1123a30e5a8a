/* SPDX-License-Identifier: BSD-2-Clause */
/* PHP: its description, on the php of this machine, and the names of its functions. */
#include <string.h>

#include "languages/lang_codes.h"

#include "runtime_file.h"
#include "test.h"

/* The layout of Debian's 8.2 is known. */
TEST(php_here)
{
	struct sf_lang l;
	bool ok = false;

	if (!runtime_describe("/usr/bin/php8.2", "execute_ex", &ok, &l) &&
	    !runtime_describe("/usr/bin/php[78].[0-9]", "execute_ex", &ok, &l))
		SKIP("no PHP");
	EXPECT(ok);
	EXPECT_EQ(l.language, SF_LANG_PHP);
	EXPECT(l.version >= (7 << 8 | 4) && l.version < 9 << 8);
	EXPECT_EQ(l.nloops, 1);
	EXPECT(l.php.current != 0);
	EXPECT(lang_sound(&l));
	if (l.version != (8 << 8 | 2))
		return;
	EXPECT_EQ(l.php.func_opcodes, 88);
	EXPECT_EQ(l.php.func_file, 152);
#ifdef __x86_64__
	/* push r13, r12, rbp, rbx; sub $0x78, %rsp: Debian's build */
	EXPECT_EQ(l.php.rule, 160 / 8 << 5 | 4);
#endif
}

TEST(php_sound)
{
	struct sf_lang l = { .language = SF_LANG_PHP };

	EXPECT(!lang_sound(&l)); /* no loop */
	l.nloops = 1;
	EXPECT(lang_sound(&l));
	l.php.func_file = SF_PHP_FUNC_MAX - 15;
	EXPECT(!lang_sound(&l));
	l.php.func_file = 0;
	l.php.func_opcodes = SF_PHP_FUNC_MAX - 7;
	EXPECT(!lang_sound(&l));
	l.php.func_opcodes = 0;
	l.php.rule = SF_RULE_BASE_FP;
	EXPECT(!lang_sound(&l));
}

/* The name and file that a record becomes. */
static void expect_code(const char *class, const char *name, size_t name_len, uint8_t kind,
			const char *file, const char *want, const char *want_file)
{
	struct sf_code rec = { .type = SF_REC_CODE,
			       .id = 7,
			       .language = SF_LANG_PHP,
			       .version = kind,
			       .name_len = (uint16_t)name_len,
			       .file_len = (uint16_t)strlen(file),
			       .lines_len = (uint16_t)strlen(class) };
	struct lang_codes *lc = lang_codes_new();
	struct lang_code got;
	uint64_t word;

	memcpy(rec.name, name, name_len);
	memcpy(rec.file, file, strlen(file));
	memcpy(rec.lines, class, strlen(class));
	EXPECT(lang_codes_add(lc, &rec, sizeof(rec)));
	word = lang_codes_word(lc, SF_FRAME_LANG_WORD(SF_LANG_PHP, 7, 12));
	EXPECT_EQ(SF_FRAME_POSITION(word), 12);
	EXPECT(lang_codes_get(lc, SF_FRAME_CODE(word), &got));
	if (want)
		EXPECT_STR(got.name, want);
	EXPECT_STR(got.file, want_file);
	lang_codes_free(lc);
}

TEST(php_names)
{
	static const char zero[] = "method\0/a.php:3$0";
	char longest[SF_CODE_TEXT + 1];

	expect_code("", "work", 4, SF_PHP_FUNCTION, "/a.php", "work", "/a.php");
	expect_code("A\\B", "get", 3, SF_PHP_FUNCTION, "/a.php", "A\\B::get", "/a.php");
	expect_code("", "", 0, SF_PHP_MAIN, "/a.php", "{main}", "/a.php");
	expect_code("", "", 0, SF_PHP_INCLUDE, "/b.php", "include", "/b.php");
	expect_code("", "", 0, SF_PHP_EVAL, "/a.php(12) : eval()'d code", "eval", "/a.php");
	expect_code("", "f", 1, SF_PHP_FUNCTION, "/a.php(12) : eval()'d code(3) : eval()'d code",
		    "f", "/a.php");
	expect_code("", "f", 1, SF_PHP_FUNCTION, ") : eval()'d code", "f", ") : eval()'d code");
	expect_code("", "f", 1, SF_PHP_FUNCTION, "12) : eval()'d code", "f", "12) : eval()'d code");
	expect_code("A", "{closure:/a.php:12}", 19, SF_PHP_FUNCTION, "/a.php", "A::{closure}",
		    "/a.php");
	expect_code("", "N\\{closure:N\\f():12}", 20, SF_PHP_FUNCTION, "/a.php", "N\\{closure}",
		    "/a.php");
	expect_code("A", zero, sizeof(zero) - 1, SF_PHP_FUNCTION, "", "A::method", "");
	expect_code("", "", 0, 200, "/a.php", "?", "/a.php");
	memset(longest, 'x', SF_CODE_TEXT);
	longest[SF_CODE_TEXT] = 0;
	memcpy(longest + SF_CODE_TEXT - 9, "{closure:", 9);
	expect_code(longest, longest, SF_CODE_TEXT, SF_PHP_FUNCTION, longest, NULL, longest);
}
