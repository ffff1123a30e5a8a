/* SPDX-License-Identifier: BSD-2-Clause */
/* The description of V8, on the node of this machine. */
#include <fcntl.h>
#include <glob.h>
#include <unistd.h>

#include "elf/elf_image.h"
#include "languages/lang.h"

#include "test.h"

/* An address with code of the file, and a piece as long as V8's builtins */
static bool a_gap(void *ctx, uint64_t *ret_start, uint64_t *ret_end)
{
	*ret_start = *(const uint64_t *)ctx;
	*ret_end = *ret_start + (1 << 20);
	return true;
}

static uint64_t first_code(const struct elf_image *img)
{
	for (uint32_t i = 0; i < img->nphdrs; i++)
		if (img->phdrs[i].type == PT_LOAD && (img->phdrs[i].flags & PF_X) &&
		    img->phdrs[i].filesz > 2 << 20)
			return img->phdrs[i].vaddr;
	return 0;
}

/* What the headers of V8 10.2 to 13.6 have in common, and what differs. */
TEST(javascript_node)
{
	uint64_t code = 0;
	const struct lang_functions functions = { .gap = a_gap, .ctx = &code };
	struct elf_image img = { 0 };
	struct diag diag = { 0 };
	struct sf_lang l;
	bool newest;
	glob_t library;
	int fd;

	/* Debian's node has V8 in a library. */
	if (glob("/usr/lib/*/libnode.so.*", 0, NULL, &library)) {
		fd = open("/usr/bin/node", O_RDONLY | O_CLOEXEC);
	} else {
		fd = open(library.gl_pathv[0], O_RDONLY | O_CLOEXEC);
		globfree(&library);
	}
	if (fd < 0)
		SKIP("no /usr/bin/node");
	EXPECT(!elf_image_open_fd(&img, fd, &diag));
	code = first_code(&img);
	if (!lang_describe(&img, &functions, &l)) {
		elf_image_close(&img);
		close(fd);
		SKIP("another version of V8");
	}
	EXPECT_EQ(l.language, SF_LANG_JAVASCRIPT);
	EXPECT_EQ(l.nloops, 0);
	EXPECT_EQ(l.javascript.builtins.size, 1 << 20);
	newest = l.javascript.scope_names == 8 + 5 * 8; /* 13.6 */
	EXPECT_EQ(l.javascript.shared_name, newest ? 24 : 16);
	EXPECT_EQ(l.javascript.shared_script, newest ? 40 : 32);
	EXPECT_EQ(l.javascript.shared_token, newest ? 52 : 44);
	EXPECT_EQ(l.javascript.shared_flags, newest ? 56 : 48);
	EXPECT_EQ(l.javascript.shared_bytes, newest ? 64 : 56);
	EXPECT_EQ(l.javascript.scope_count, 8 + 2 * 8);
	EXPECT_EQ(l.javascript.script_name, 16);
	EXPECT(l.javascript.function_shared == 24 || l.javascript.function_shared == 32);
	EXPECT(l.javascript.type_shared > l.javascript.type_scope);
	if (l.javascript.stream_code) { /* one of the four versions that Node.js has for long */
		EXPECT_EQ(l.javascript.deopt_literals, newest ? 40 : 32);
		EXPECT_EQ(l.javascript.deopt_inlining, newest ? 80 : 72);
		EXPECT_EQ(l.javascript.code_positions, l.javascript.code_deopt + 8);
		EXPECT(l.javascript.type_stream != 0);
	}
	elf_image_close(&img);
	close(fd);
}

/* A description that an untrusted process made must stay inside what BPF reads. */
TEST(javascript_sound)
{
	struct sf_lang l = { .language = SF_LANG_JAVASCRIPT };

	l.javascript.builtins.size = 1 << 20;
	l.javascript.shared_bytes = SF_JS_SHARED_MAX;
	EXPECT(lang_sound(&l));
	l.javascript.shared_bytes = SF_JS_SHARED_MAX + 1;
	EXPECT(!lang_sound(&l));
	l.javascript.shared_bytes = 48;
	l.javascript.shared_name = 41;
	EXPECT(!lang_sound(&l));
	l.javascript.shared_name = 40;
	EXPECT(lang_sound(&l));
	l.javascript.shared_token = 45;
	EXPECT(!lang_sound(&l));
	l.javascript.shared_token = 44;
	EXPECT(lang_sound(&l));
	l.javascript.shared_flags = 45;
	EXPECT(!lang_sound(&l));
	l.javascript.shared_flags = 44;
	EXPECT(lang_sound(&l));
	l.javascript.stream_code = 36;
	EXPECT(!lang_sound(&l));
	l.javascript.stream_code = 32;
	EXPECT(lang_sound(&l));
	l.javascript.deopt_inlining = SF_JS_FIELD_MAX + 1;
	EXPECT(!lang_sound(&l));
	l.javascript.deopt_inlining = 72;
	EXPECT(lang_sound(&l));
	l.javascript.script_name = SF_JS_FIELD_MAX + 1;
	EXPECT(!lang_sound(&l));
	l.javascript.script_name = 16;
	l.nloops = 1;
	EXPECT(!lang_sound(&l));
	l.nloops = 0;
	l.javascript.builtins.size = 4096;
	EXPECT(!lang_sound(&l));
}
