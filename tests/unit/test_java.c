/* SPDX-License-Identifier: BSD-2-Clause */
/* The description of HotSpot, on the libjvm of this machine. */
#include <fcntl.h>
#include <glob.h>
#include <unistd.h>

#include "elf/elf_image.h"
#include "lang/lang.h"

#include "test.h"

static bool no_function(void *ctx, uint64_t addr, uint64_t *ret_start, uint64_t *ret_end)
{
	(void)ctx, (void)addr, (void)ret_start, (void)ret_end;
	return false;
}

/* Describes the first file that matches; false: there is none. */
static bool describe(const char *pattern, bool *ret_ok, struct sf_lang *ret)
{
	const struct lang_functions functions = { .at = no_function };
	struct elf_image img = { 0 };
	struct diag diag = { 0 };
	glob_t files;
	int fd;

	if (glob(pattern, 0, NULL, &files))
		return false;
	fd = open(files.gl_pathv[0], O_RDONLY | O_CLOEXEC);
	globfree(&files);
	*ret_ok = !elf_image_open_fd(&img, fd, &diag) && lang_describe(&img, &functions, ret);
	elf_image_close(&img);
	close(fd);
	return true;
}

/* Layouts of 17, as its headers have them */
TEST(java_17)
{
	struct sf_lang l;
	bool ok = false;

	if (!describe("/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so", &ok, &l))
		SKIP("no OpenJDK 17");
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
}

/* A blob has distances in place of pointers, and a shorter frame_complete. */
TEST(java_25)
{
	struct sf_lang l;
	bool ok = false;

	if (!describe("/usr/lib/jvm/*25*/lib/server/libjvm.so", &ok, &l))
		SKIP("no OpenJDK 25");
	EXPECT(ok);
	EXPECT_EQ(l.java.code_is_offset, 1);
	EXPECT_EQ(l.java.complete_bytes, 2);
	EXPECT_EQ(l.java.blob_code, 36);
	EXPECT_EQ(l.java.nmethod_method, 80);
	EXPECT_EQ(l.java.block_bytes, 8);
}

/* A description that an untrusted process made must stay inside what BPF reads. */
TEST(java_sound)
{
	struct sf_lang l = { .language = SF_LANG_JAVA };

	EXPECT(lang_sound(&l));
	l.java.nmethod_method = SF_JAVA_BLOB - 7;
	EXPECT(!lang_sound(&l));
	l.java.nmethod_method = 0;
	l.nloops = 1;
	EXPECT(!lang_sound(&l));
}
