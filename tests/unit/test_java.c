/* SPDX-License-Identifier: BSD-2-Clause */
/* The description of HotSpot, on the libjvm of this machine. */

#include "runtime_file.h"
#include "test.h"

static bool java_17(void)
{
	struct sf_lang l;
	bool ok = false;

	if (!runtime_describe("/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so", NULL, &ok,
			      &l))
		return false;
	EXPECT(ok);
	EXPECT_EQ(l.language, SF_LANG_JAVA);
	EXPECT_EQ(l.nloops, 0);
	EXPECT(l.java.heaps != 0);
	EXPECT_EQ(l.java.blob_name, 96);
	EXPECT_EQ(l.java.blob_frame_size, 28);
	EXPECT_EQ(l.java.blob_complete, 20);
	EXPECT_EQ(l.java.blob_code, 32);
	EXPECT_EQ(l.java.code_is_offset, 0);
	EXPECT_EQ(l.java.complete_bytes, 4);
	EXPECT_EQ(l.java.nmethod_method, 112);
	EXPECT_EQ(l.java.method_const, 8);
	EXPECT_EQ(l.java.const_name, 34);
	EXPECT_EQ(l.java.pool_holder, 24);
	EXPECT_EQ(l.java.pool_bytes, 72);
	EXPECT_EQ(l.java.klass_name, 24);
	EXPECT_EQ(l.java.symbol_len, 4);
	EXPECT_EQ(l.java.symbol_body, 6);
	EXPECT_EQ(l.java.heap_memory, 8);
	EXPECT_EQ(l.java.heap_segmap, 120);
	EXPECT_EQ(l.java.heap_shift, 256);
	EXPECT_EQ(l.java.list_data, 8);
	EXPECT_EQ(l.java.block_bytes, 16);
	EXPECT_EQ(l.java.number_excluded, 0);
	EXPECT_EQ(l.java.pcs, 268);
	EXPECT_EQ(l.java.pcs_end, 272);
	EXPECT_EQ(l.java.scopes, 120);
	EXPECT_EQ(l.java.metadata, 260);
	EXPECT_EQ(l.java.immutable, 0);
	EXPECT_EQ(l.java.const_bytes, 48);
	EXPECT_EQ(l.java.const_words, 24);
	EXPECT_EQ(l.java.const_code_size, 32);
	EXPECT_EQ(l.java.const_flags, 28);
	EXPECT_EQ(l.java.pool_source, 54);
	EXPECT_EQ(l.java.scopes_is_offset, 0);
	EXPECT_EQ(l.java.bcp_below, 64);
	return true;
}

/* One heap; the scopes are at an offset. From `make check-languages` */
static bool java_8(void)
{
	struct sf_lang l;
	bool ok = false;

	if (!runtime_describe(
		    "build/userlands/sid-java-8/root/usr/lib/jvm/java-8-openjdk-amd64/jre/lib/*/"
		    "server/libjvm.so",
		    NULL, &ok, &l))
		return false;
	EXPECT(ok);
	EXPECT_EQ(l.java.list_data, 0);
	EXPECT_EQ(l.java.bcp_below, 56);
	EXPECT_EQ(l.java.blob_name, 8);
	EXPECT_EQ(l.java.blob_frame_size, 44);
	EXPECT_EQ(l.java.blob_code, 32);
	EXPECT_EQ(l.java.code_is_offset, 1);
	EXPECT_EQ(l.java.nmethod_method, 64);
	EXPECT_EQ(l.java.scopes, 176);
	EXPECT_EQ(l.java.scopes_is_offset, 1);
	EXPECT_EQ(l.java.pcs, 180);
	EXPECT_EQ(l.java.pcs_end, 184);
	EXPECT_EQ(l.java.metadata, 172);
	EXPECT_EQ(l.java.immutable, 0);
	EXPECT_EQ(l.java.klass_source, 258);
	return true;
}

/* A blob has distances in place of pointers, and a shorter frame_complete. */
static bool java_25(void)
{
	struct sf_lang l;
	bool ok = false;

	if (!runtime_describe("/usr/lib/jvm/*25*/lib/server/libjvm.so", NULL, &ok, &l))
		return false;
	EXPECT(ok);
	EXPECT_EQ(l.java.code_is_offset, 1);
	EXPECT_EQ(l.java.complete_bytes, 2);
	EXPECT_EQ(l.java.blob_code, 36);
	EXPECT_EQ(l.java.nmethod_method, 80);
	EXPECT_EQ(l.java.block_bytes, 8);
	EXPECT_EQ(l.java.number_excluded, 1);
	EXPECT_EQ(l.java.pcs, 196);
	EXPECT_EQ(l.java.pcs_end, 200);
	EXPECT_EQ(l.java.metadata, 28);
	EXPECT_EQ(l.java.immutable, 96);
	EXPECT_EQ(l.java.mutable_data, 16);
	EXPECT_EQ(l.java.const_flags, 28);
	return true;
}

/* Any other, of 8 to 25 */
static bool java_other(void)
{
	struct sf_lang l;
	bool ok = false;

	if (!runtime_describe("/usr/lib/jvm/*/lib/server/libjvm.so", NULL, &ok, &l))
		return false;
	EXPECT(ok);
	EXPECT_EQ(l.language, SF_LANG_JAVA);
	EXPECT(l.java.heaps != 0);
	EXPECT(lang_sound(&l));
	return true;
}

/* Those that this machine has: layouts as the headers of their versions have them */
TEST(java_here)
{
	bool is_17 = java_17(), is_8 = java_8(), is_25 = java_25();

	printf("# OpenJDK 17 %d, 8 %d, 25 %d\n", is_17, is_8, is_25);
	if (!java_other() && !is_8)
		SKIP("no OpenJDK");
}

/* A description that an untrusted process made must stay inside what BPF reads. */
TEST(java_sound)
{
	struct sf_lang l = { .language = SF_LANG_JAVA };

	EXPECT(lang_sound(&l));
	l.java.nmethod_method = SF_JAVA_BLOB - 7;
	EXPECT(!lang_sound(&l));
	l.java.nmethod_method = 0;
	l.java.immutable = SF_JAVA_BLOB - 7;
	EXPECT(!lang_sound(&l));
	l.java.immutable = 0;
	l.nloops = 1;
	EXPECT(!lang_sound(&l));
}

static uint32_t line_of(const uint8_t *table, size_t len, uint32_t excluded, uint32_t position)
{
	const struct lang_code c = { .version = (uint8_t)excluded,
				     .lines = table,
				     .lines_len = (uint32_t)len };

	return java_language.line(&c, position);
}

/* The bytes of the line table in a record that has other data after it */
static size_t table_len(const uint8_t *table, size_t len, uint32_t excluded)
{
	static struct sf_code rec;
	struct lang_parts p;

	rec.version = (sf_u8)excluded;
	rec.lines_len = (sf_u16)(SF_JAVA_SOURCE + len);
	memcpy(rec.lines + SF_JAVA_SOURCE, table, len);
	java_language.parts(&rec, &p);
	return p.lines_len;
}

/* Bytecode 0 is of line 10, 3 of 11, 8 of 200, 12 of 9; other data follow. */
static void expect_lines(const uint8_t *table, size_t len, uint32_t excluded)
{
	EXPECT_EQ(table_len(table, len, excluded), len - 3);
	EXPECT_EQ(line_of(table, len, excluded, 0), 10);
	EXPECT_EQ(line_of(table, len, excluded, 2), 10);
	EXPECT_EQ(line_of(table, len, excluded, 3), 11);
	EXPECT_EQ(line_of(table, len, excluded, 11), 200);
	EXPECT_EQ(line_of(table, len, excluded, 12), 9);
	EXPECT_EQ(line_of(table, len, excluded, 65535), 9);
	EXPECT_EQ(line_of(table, 3, excluded, 12), 10);
	EXPECT_EQ(line_of(table, 0, excluded, 0), 0);
}

TEST(java_lines)
{
	/* 200 - 11 = 189 is 378 with its sign: 250 + 64 * 2. 9 - 200 is 381: 253 + 64 * 2. */
	static const uint8_t to_17[] = { 0xff, 0, 20,  3 << 3 | 1, 0xff, 10, 250, 2,
					 0xff, 8, 253, 2,	   0,	 7,  7 };
	static const uint8_t from_21[] = { 0xff, 1, 21,	 3 << 3 | 1, 0xff, 11, 251, 3,
					   0xff, 9, 254, 3,	     0,	   7,  7 };

	expect_lines(to_17, sizeof(to_17), 0);
	expect_lines(from_21, sizeof(from_21), 1);
}
