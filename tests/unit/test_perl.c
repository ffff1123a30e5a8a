/* SPDX-License-Identifier: BSD-2-Clause */
/* Perl: its description, on the perl of this machine, and the names of its subs. */
#include <string.h>

#include "languages/lang_codes.h"

#include "runtime_file.h"
#include "test.h"

/* One of 5.32 to 5.42; the layout of 5.36 is known. */
TEST(perl_here)
{
	static const char *const patterns[] = { "/usr/bin/perl", "/usr/lib/*/libperl.so.5.[34]*" };
	struct sf_lang l;
	bool ok = false, found = false;

	for (size_t i = 0; i < 2; i++) {
		if (!runtime_describe(patterns[i], "Perl_runops_standard", &ok, &l))
			continue;
		found = true;
		EXPECT(ok);
		EXPECT_EQ(l.language, SF_LANG_PERL);
		EXPECT_EQ(l.version >> 8, 5);
		EXPECT_EQ(l.nloops, 1);
		EXPECT(l.perl.key != 0);
		EXPECT_EQ(l.perl.aux_in_body, 1);
		EXPECT(lang_sound(&l));
		if ((l.version & 0xff) != 36)
			continue;
		EXPECT_EQ(l.perl.cop, 208);
		EXPECT_EQ(l.perl.stack, 224);
	}
	if (!found)
		SKIP("no Perl");
}

TEST(perl_sound)
{
	struct sf_lang l = { .language = SF_LANG_PERL, .perl = { .cop = 208, .stack = 224 } };

	EXPECT(!lang_sound(&l)); /* no loop */
	l.nloops = 1;
	EXPECT(lang_sound(&l));
	l.perl.cop = 0;
	EXPECT(!lang_sound(&l));
	l.perl.cop = 1025;
	EXPECT(!lang_sound(&l));
	l.perl.cop = 208;
	l.perl.stack = 8;
	EXPECT(!lang_sound(&l));
	l.perl.stack = 1025;
	EXPECT(!lang_sound(&l));
}

/* The name and file that a record becomes. */
static void expect_code(const char *package, const char *name, uint8_t kind, const char *file,
			const char *want, const char *want_file)
{
	struct sf_code rec = { .type = SF_REC_CODE,
			       .id = 7,
			       .language = SF_LANG_PERL,
			       .version = kind,
			       .name_len = (uint16_t)strlen(name),
			       .file_len = (uint16_t)strlen(file),
			       .lines_len = (uint16_t)strlen(package) };
	struct lang_codes *lc = lang_codes_new();
	struct lang_code got;
	uint64_t word;

	memcpy(rec.name, name, strlen(name));
	memcpy(rec.file, file, strlen(file));
	memcpy(rec.lines, package, strlen(package));
	EXPECT(lang_codes_add(lc, &rec, sizeof(rec)));
	word = lang_codes_word(lc, SF_FRAME_LANG_WORD(SF_LANG_PERL, 7, 12));
	EXPECT_EQ(SF_FRAME_POSITION(word), 12);
	EXPECT(lang_codes_get(lc, SF_FRAME_CODE(word), &got));
	if (want)
		EXPECT_STR(got.name, want);
	EXPECT_STR(got.file, want_file);
	lang_codes_free(lc);
}

TEST(perl_names)
{
	char longest[SF_CODE_TEXT + 1];

	expect_code("main", "work", SF_PERL_SUB, "/a.pl", "main::work", "/a.pl");
	expect_code("A::B", "__ANON__", SF_PERL_SUB, "/A/B.pm", "A::B::__ANON__", "/A/B.pm");
	expect_code("A", "made", SF_PERL_SUB, "(eval 12)", "A::made", "eval");
	expect_code("A", "made", SF_PERL_SUB, "(eval 12)[/a.pl:3]", "A::made", "eval");
	expect_code("A", "made", SF_PERL_SUB, "(eval ", "A::made", "(eval ");
	expect_code("", "", SF_PERL_SUB, "/a.pl", "__ANON__::__ANON__", "/a.pl");
	expect_code("", "local", SF_PERL_LEXICAL, "/a.pl", "local", "/a.pl");
	expect_code("", "", SF_PERL_MAIN, "/a.pl", "main", "/a.pl");
	expect_code("", "", SF_PERL_MAIN, "-e", "main", "-e");
	expect_code("", "", SF_PERL_REQUIRE, "A/B.pm", "require", "A/B.pm");
	expect_code("", "", SF_PERL_EVAL, "", "eval", "eval");
	expect_code("", "", SF_PERL_EVAL, "/page.ep", "eval", "/page.ep");
	expect_code("A", "f", 200, "/a.pl", "A::f", "/a.pl");
	memset(longest, 'x', SF_CODE_TEXT);
	longest[SF_CODE_TEXT] = 0;
	expect_code(longest, longest, SF_PERL_SUB, longest, NULL, longest);
}
