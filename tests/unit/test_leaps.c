/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of functions of this machine's libraries that jump to other frames. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "codewalk/code_op.h"
#include "readers/row_stream.h"
#include "test.h"

#ifdef __x86_64__
#define FUNCTION_MAX 4096 /* bytes */

static struct unwind_file file;
static uint64_t addr; /* of the function in the file */

/* Opens the library's file. False: it has no such function. */
static bool open_library(const char *library, const char *function)
{
	void *lib = dlopen(library, RTLD_LAZY), *fn = lib ? dlsym(lib, function) : NULL;
	Dl_info info;
	int fd;

	if (!fn || !dladdr(fn, &info))
		return false;
	addr = (uintptr_t)fn - (uintptr_t)info.dli_fbase;
	fd = open(info.dli_fname, O_RDONLY | O_CLOEXEC);
	EXPECT(fd >= 0);
	EXPECT_EQ(unwind_file_open_fd(&file, fd, NULL), 0);
	close(fd);
	return true;
}

/* The next row, after the k-th, that was added to the tables in the function; NULL: none. */
static const struct row *next_row(size_t *k, uint8_t flags)
{
	for (; *k < file.known.n; ++*k) {
		const struct row *row = &file.known.rows[*k];

		if (row->start >= addr && row->start < addr + FUNCTION_MAX && row->flags == flags)
			return row;
	}
	return NULL;
}

/* glibc's CFI of swapcontext() is that of the caller's stack. */
TEST(swapcontext_is_on_another_stack)
{
	const struct row *row;
	size_t k = 0;

	if (!open_library("libc.so.6", "swapcontext") ||
	    !dlsym(RTLD_DEFAULT, "gnu_get_libc_version"))
		SKIP("not glibc");
	row = next_row(&k, ROW_SIGNAL);
	EXPECT(row != NULL);
	EXPECT_EQ(rule_packed(&row->cfa), rule_pack(RULE_REG_MEM, X86_RDX, 160));
	EXPECT_EQ(rule_packed(&row->ra), rule_pack(RULE_REG_MEM, X86_RDX, 168));
	EXPECT_EQ(rule_packed(&row->fp), rule_pack(RULE_REG_MEM, X86_RDX, 120));
	unwind_file_close(&file);
}

/* libgcc's unwinder enters a landing pad. */
TEST(unwinder_loses_its_caller)
{
	const struct row *row, *last;
	size_t k = 0;

	if (!code_arch_x86())
		SKIP("built without Zydis");
	if (!open_library("libgcc_s.so.1", "_Unwind_RaiseException"))
		SKIP("no libgcc_s.so.1");
	row = next_row(&k, ROW_LOST);
	EXPECT(row != NULL);
	last = next_row(&k, ROW_SIGNAL);
	EXPECT(last != NULL);
	EXPECT_EQ(last->start, row->end);
	EXPECT_EQ(rule_packed(&last->cfa), rule_pack(RULE_REG, X86_RCX, 8));
	unwind_file_close(&file);
}
#endif
