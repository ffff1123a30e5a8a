/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of functions inside of code with one row (readers/code_inner.c): of this program's own. */
#include <fcntl.h>
#include <unistd.h>

#include "readers/row_stream.h"
#include "test.h"

#ifdef __x86_64__
extern const char __ehdr_start[] __attribute__((visibility("hidden")));

#define LABELS(X)                                                                              \
	X(inner_begin), X(inner_main), X(inner_enter), X(inner_entered), X(inner_other),       \
		X(inner_reached), X(inner_leave), X(inner_ret), X(inner_leaf), X(inner_after), \
		X(inner_deep), X(inner_wrong), X(inner_end)
#define DECLARE(x) x[]
extern const char LABELS(DECLARE);

/* As an interpreter: a frame of 48 bytes with rbp and rbx saved, all of it with one row. */
asm(".text\n"
    "inner_begin: .cfi_startproc\n"
    ".cfi_def_cfa_offset 48; .cfi_offset rbp, -16; .cfi_offset rbx, -24\n"
    "nop; jmp inner_main\n"
    "inner_enter: push %rbp; push %rbx; sub $24, %rsp\n"
    "inner_entered: mov $1, %ebx\n"
    "inner_main: call inner_leaf; call inner_deep; cmp $3, %ebx; je inner_leave; jmp inner_main\n"
    /* another order than that of the row; pushes that code runs on into */
    "inner_other: push %rbx; push %rbp; sub $24, %rsp; mov $2, %ebx\n"
    "inner_reached: push %rbp; push %rbx; sub $24, %rsp; jmp inner_main\n"
    "inner_leave: add $24, %rsp; pop %rbx; pop %rbp\n"
    "inner_ret: ret\n"
    "inner_leaf: test %eax, %eax; je 1f; xor %eax, %eax; ret; 1: inc %eax; ret\n"
    "inner_after: jmp inner_main\n"
    /* a function with a frame of its own, and pops that are too few */
    "inner_deep: push %rax; test %eax, %eax; pop %rax; ret\n"
    "inner_wrong: pop %rbx; pop %rbp; ret\n"
    ".skip 1100, 0x90\n"
    ".cfi_endproc\n"
    "inner_end:\n");

#define FRAMED(X)                                                                        \
	X(framed_begin), X(framed_frame), X(framed_end), X(framed_tail), X(framed_leaf), \
		X(framed_push), X(framed_late), X(framed_thrown), X(framed_after), X(framed_last)
extern const char FRAMED(DECLARE);

/* As Dart's code: one row, CFA = rbp + 16 */
asm(".text\n"
    "framed_begin: .cfi_startproc\n"
    ".cfi_def_cfa rbp, 16; .cfi_offset rbp, -16\n"
    "push %rbp; mov %rsp, %rbp\n"
    "framed_frame: push %rbx; call framed_tail; pop %rbx; mov %rbp, %rsp; pop %rbp\n"
    "framed_end: ret\n"
    "framed_tail: nop; jmp framed_leaf\n"
    "framed_leaf: test %eax, %eax; je 1f; push %rax\n"
    "framed_push: pop %rax\n"
    "1: ret\n"
    /* entered by nothing: a landing pad of a frame; a call that does not return ends it */
    "framed_late: lea -8(%rbp), %rsp; jmp framed_thrown\n"
    "framed_thrown: call framed_tail; nop\n"
    "framed_after: push %rbp; mov %rsp, %rbp; leave\n"
    "framed_last: ret; .cfi_endproc\n");

static struct unwind_file file;

/* The row at that label; a range of 0: there is none. */
static struct row row_at(const char *label, int more)
{
	const uint64_t addr = (uintptr_t)label - (uintptr_t)__ehdr_start + (uint64_t)more;

	for (size_t i = 0; i < file.known.n; i++)
		if (addr >= file.known.rows[i].start && addr < file.known.rows[i].end)
			return file.known.rows[i];
	return (struct row){ .start = 0 };
}

static void expect_row(const char *label, int more, int32_t cfa, bool fp_saved)
{
	const struct row row = row_at(label, more);

	EXPECT_EQ(row.cfa.off, cfa);
	EXPECT_EQ(row.fp.kind, fp_saved ? RULE_CFA_MEM : RULE_SAME);
	EXPECT_EQ(row.ra.off, -8);
}

TEST(code_with_one_row)
{
	const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	EXPECT_EQ(unwind_file_open_fd(&file, fd, NULL), 0);
	expect_row(inner_enter, 0, 8, false);
	EXPECT_EQ(row_at(inner_enter, 0).flags, ROW_LEADS);
	EXPECT_EQ(row_at(inner_enter, 1).flags, 0);
	expect_row(inner_enter, 1, 16, true);
	expect_row(inner_entered, -1, 24, true);
	EXPECT_EQ(row_at(inner_entered, 0).end, 0);
	EXPECT_EQ(row_at(inner_begin, 0).end, 0);
	EXPECT_EQ(row_at(inner_main, 0).end, 0);
	EXPECT_EQ(row_at(inner_other, 0).end, 0);
	EXPECT_EQ(row_at(inner_reached, 0).end, 0);
	expect_row(inner_leave, 0, 48, true);
	expect_row(inner_ret, -1, 16, true);
	expect_row(inner_ret, 0, 8, false);
	expect_row(inner_leaf, 0, 8, false);
	expect_row(inner_after, -1, 8, false);
	EXPECT_EQ(row_at(inner_after, 0).end, 0);
	EXPECT_EQ(row_at(inner_deep, 0).end, 0);
	EXPECT_EQ(row_at(inner_wrong, 0).end, 0);
	unwind_file_close(&file);
	close(fd);
}

TEST(code_with_one_frame_row)
{
	const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	EXPECT_EQ(unwind_file_open_fd(&file, fd, NULL), 0);
	expect_row(framed_begin, 0, 8, false);
	expect_row(framed_begin, 1, 16, false);
	EXPECT_EQ(row_at(framed_frame, 0).end, 0);
	EXPECT_EQ(row_at(framed_end, -1).end, 0);
	expect_row(framed_end, 0, 8, false);
	expect_row(framed_tail, 0, 8, false);
	EXPECT_EQ(row_at(framed_tail, 0).flags, ROW_LEADS);
	EXPECT_EQ(row_at(framed_leaf, 0).flags, 0);
	expect_row(framed_leaf, 0, 8, false);
	expect_row(framed_push, 0, 16, false);
	expect_row(framed_push, 1, 8, false);
	EXPECT_EQ(row_at(framed_late, 0).end, 0);
	EXPECT_EQ(row_at(framed_thrown, 0).end, 0);
	expect_row(framed_after, 0, 8, false);
	EXPECT_EQ(row_at(framed_last, -1).end, 0);
	expect_row(framed_last, 0, 8, false);
	unwind_file_close(&file);
	close(fd);
}
#endif
