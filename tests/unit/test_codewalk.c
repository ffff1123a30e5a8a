/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of functions written in assembler, one for each shape, and functions that must have none. */
#include <stdlib.h>
#include <string.h>

#include "codewalk/codewalk.h"
#include "rows/row_text.h"

#include "test.h"

#ifndef __x86_64__
TEST(code_fn)
{
	SKIP("the shapes are x86-64's");
}
#else

/* SHAPE(name, "instructions"): bytes from shape_name to shape_name_end. */
#define SHAPE(name, text)                                                        \
	__asm__(".pushsection .rodata\nshape_" #name ":\n" text "\nshape_" #name \
		"_end:\n.byte 0\n.popsection");                                  \
	extern const uint8_t shape_##name[] __asm__("shape_" #name);             \
	extern const uint8_t shape_##name##_end[] __asm__("shape_" #name "_end");

SHAPE(leaf, "mov %edi, %eax\n ret")
SHAPE(pushes, "push %rbx\n sub $32, %rsp\n call 0f\n add $32, %rsp\n pop %rbx\n ret\n 0:")
SHAPE(framed, "push %rbp\n mov %rsp, %rbp\n sub %rdi, %rsp\n call 0f\n leave\n ret\n 0:")
SHAPE(aligned, "lea 8(%rsp), %r10\n and $-32, %rsp\n push -8(%r10)\n push %rbp\n"
	       "mov %rsp, %rbp\n push %r10\n sub $8, %rsp\n call 0f\n add $8, %rsp\n"
	       "pop %r10\n pop %rbp\n lea -8(%r10), %rsp\n ret\n 0:")
SHAPE(in_memory, "mov %rsp, %rax\n sub $200, %rsp\n and $-64, %rsp\n mov %rax, 152(%rsp)\n"
		 "call 0f\n mov 152(%rsp), %rsi\n mov %rsi, %rsp\n ret\n 0:")
SHAPE(early, "test %edi, %edi\n je 1f\n push %rbx\n call 0f\n pop %rbx\n 1: ret\n 0:")
SHAPE(probed, "lea -0x3000(%rsp), %r11\n 1: sub $0x1000, %rsp\n orq $0, (%rsp)\n"
	      "cmp %r11, %rsp\n jne 1b\n sub $8, %rsp\n add $0x3008, %rsp\n ret")
SHAPE(noreturn, "sub $8, %rsp\n test %edi, %edi\n jne 1f\n add $8, %rsp\n 2: ret\n"
		"1: call 0f\n jmp 2b\n 0:")
/* glibc's abort() is after the code that calls it. */
SHAPE(calls_next, "push %rbx\n test %edi, %edi\n jne 1f\n pop %rbx\n ret\n 1: call 0f\n 0:")
SHAPE(table, "cmp $2, %edi\n ja 1f\n mov %edi, %edi\n lea 9f(%rip), %rax\n"
	     "movslq (%rax,%rdi,4), %rdx\n add %rax, %rdx\n push %rbx\n jmp *%rdx\n"
	     "2: pop %rbx\n 1: ret\n 3: nop\n jmp 2b\n"
	     ".balign 4\n 9: .long 2b-9b, 3b-9b, 2b-9b")
SHAPE(plain_table, "push %rbp\n mov %rsp, %rbp\n cmp $1, %edi\n ja 1f\n mov %edi, %eax\n"
		   "lea 0(,%rax,4), %rdx\n lea 9f(%rip), %rax\n mov (%rdx,%rax,1), %eax\n"
		   "cltq\n lea 9f(%rip), %rdx\n add %rdx, %rax\n jmp *%rax\n"
		   "2: nop\n 1: pop %rbp\n 3: ret\n"
		   ".balign 4\n 9: .long 2b-9b, 1b-9b, 3b-9b")
/* glibc's strcmp() adds by lea. */
SHAPE(lea_table, "push %rbx\n cmp $1, %edi\n ja 1f\n mov %edi, %edi\n lea 9f(%rip), %r10\n"
		 "movslq (%r10,%rdi,4), %r9\n lea (%r10,%r9,1), %r10\n jmp *%r10\n"
		 "2: nop\n 1: pop %rbx\n 3: ret\n"
		 ".balign 4\n 9: .long 2b-9b, 1b-9b, 3b-9b")
SHAPE(indexed, "cmpb $1, 3(%rdi,%rsi,8)\n ja 1f\n movzbl 3(%rdi,%rsi,8), %eax\n"
	       "lea 9f(%rip), %rdx\n movslq (%rdx,%rax,4), %rax\n add %rdx, %rax\n push %rbx\n"
	       "jmp *%rax\n 2: nop\n 3: pop %rbx\n 1: ret\n"
	       ".balign 4\n 9: .long 2b-9b, 3b-9b, 1b-9b")
SHAPE(spilled, "sub $24, %rsp\n lea 9f(%rip), %rax\n mov %rax, 8(%rsp)\n call 0f\n"
	       "mov 8(%rsp), %rdx\n cmp $1, %edi\n ja 1f\n mov %edi, %edi\n"
	       "movslq (%rdx,%rdi,4), %rax\n add %rdx, %rax\n jmp *%rax\n"
	       "2: nop\n 1: add $24, %rsp\n 3: ret\n"
	       ".balign 4\n 9: .long 2b-9b, 1b-9b, 3b-9b\n 0:")
/* After the call, if it returned, rbx would not be the table: that of the other way counts. */
SHAPE(ends, "push %rbx\n lea 9f(%rip), %rbx\n 4: cmp $1, %edi\n ja 1f\n mov %edi, %edi\n"
	    "movslq (%rbx,%rdi,4), %rax\n add %rbx, %rax\n jmp *%rax\n"
	    "2: xor %ebx, %ebx\n call 0f\n jmp 4b\n 1: pop %rbx\n 3: ret\n"
	    ".balign 4\n 9: .long 2b-9b, 1b-9b, 3b-9b\n 0:")
/* The call does not return: what was pushed for it would never be popped. */
SHAPE(pushed, "push %rbx\n test %edi, %edi\n jne 1f\n 2: pop %rbx\n ret\n"
	      "1: push %rax\n push %rax\n call 0f\n mov $1, %ebx\n jmp 2b\n 0:")
/* The same, where rbx happens to point into the frame. */
SHAPE(pushed_kept, "push %rbx\n sub $16, %rsp\n mov %rsp, %rbx\n test %edi, %edi\n jne 1f\n"
		   "2: mov %rbx, %rdi\n add $16, %rsp\n pop %rbx\n ret\n"
		   "1: push %rax\n push %rax\n call 0f\n jmp 2b\n 0:")
/* OCaml raises an exception: sp is loaded, and what is there leads on. */
SHAPE(raises_by_jump, "sub $8, %rsp\n test %eax, %eax\n je 1f\n add $8, %rsp\n ret\n"
		      "1: mov 16(%r14), %rsp\n pop 16(%r14)\n pop %r11\n jmp *%r11")
/* A computed goto: labels at 10 and 12, with the height of the jump. */
SHAPE(threaded, "push %rbx\n mov (%rdi), %rax\n add $8, %rdi\n jmp *%rax\n"
		"2: inc %eax\n 3: pop %rbx\n ret\n 0:")
/* The labels are taken in the function. GMP's multiplication has such jumps. */
SHAPE(stepped, "push %rbx\n lea 2f(%rip), %rax\n test %edi, %edi\n je 1f\n"
	       "lea 3f(%rip), %rax\n 1: jmp *%rax\n 2: inc %eax\n 3: pop %rbx\n ret\n 0:")
/* The same without a frame: it might be a jump to another function. */
SHAPE(own_tail, "lea 2f(%rip), %r8\n test %edi, %edi\n je 1f\n lea 3f(%rip), %r8\n 1: jmp *%r8\n"
		"2: inc %eax\n 3: ret\n 0:")
SHAPE(hands_over, "push %rbx\n xor %ebx, %ebx\n pop %rbx\n jmp 0f\n 0:")
/* Code of a frame that was entered elsewhere: what follows the call returns at another height. */
SHAPE(hands_over_late, "call *%rdi\n test %edi, %edi\n je 0f\n call *%rdi\n"
		       "lea -8(%rbp), %rsp\n pop %rbx\n pop %rbp\n ret\n 0:")
/* The call does not return: the jump after it leads out of the function with its frame. */
SHAPE(jumps_out, "push %rbx\n test %edi, %edi\n jne 1f\n pop %rbx\n ret\n"
		 "1: call *%rdi\n jmp 0f\n 0:")
SHAPE(hands_over_rbx, "xor %ebx, %ebx\n jmp 0f\n 0:")
SHAPE(goes_on, "push %rbx\n pop %rbx")
/* No index leads to the first entry, which is another table's. */
SHAPE(unused, "mov %edi, %edi\n lea 9f(%rip), %rdx\n movslq (%rdx,%rdi,4), %rax\n"
	      "add %rdx, %rax\n jmp *%rax\n 2: inc %eax\n 3: ret\n"
	      ".balign 4\n 9: .long -0x400, 2b-9b, 3b-9b\n 0:")
/* No index leads to the first entry. */
SHAPE(from_one, "mov %edi, %edi\n cmp $2, %edi\n ja 3f\n lea 9f(%rip), %rdx\n"
		"movslq (%rdx,%rdi,4), %rax\n add %rdx, %rax\n jmp *%rax\n"
		"2: inc %eax\n 3: ret\n .balign 4\n 9: .long 0, 2b-9b, 3b-9b\n 0:")
SHAPE(uneven, "test %edi, %edi\n je 1f\n push %rbx\n 1: ret")
SHAPE(pointer, "push %rbp\n sub $16, %rsp\n mov %rsp, %rbp\n test %edi, %edi\n je 1f\n"
	       "push %rdi\n 1: lea 16(%rbp), %rsp\n pop %rbp\n ret")
SHAPE(unknown_sp, "sub %rdi, %rsp\n ret")
SHAPE(own_ra, "mov %rdi, (%rsp)\n ret")
SHAPE(overlap, "test %edi, %edi\n je 1f+1\n 1: mov $0xc3, %eax\n ret")
SHAPE(privileged, "cli\n ret")
SHAPE(unresolved, "push %rbx\n jmp *%rdi")
SHAPE(tail, "jmp *%rdi")
SHAPE(loses, "xor %ebx, %ebx\n ret")
/* musl's _start calls the function right behind it. */
SHAPE(entry, "mov %rsp, %rdi\n and $-16, %rsp\n call 1f\n 1: push %rbx\n pop %rbx\n ret")
SHAPE(own_pc, "call 1f\n 1: pop %rbx\n mov %rbx, %rdi\n call 0f\n 0:")

/* It never returns, and saves a register of the caller first. */
SHAPE(forever, "push %rbx\n mov %rdi, %rbx\n 1: call 0f\n jmp 1b\n 0:")
SHAPE(forever_unsaved, "sub $8, %rsp\n 1: call 0f\n jmp 1b\n 0:")
SHAPE(loses_fp, "mov %edi, %ebp\n nop\n ret")
/* The stub that Free Pascal puts between a C library and a program. */
SHAPE(reads_ra, "pop %rax\n push %rax\n push %rax\n xor %ebp, %ebp\n call 0f\n hlt\n 0:")
/* It ends a dynamic linker: the program has another stack. */
SHAPE(leaves_stack, "push %rbx\n mov %rdi, %rbx\n call 0f\n mov %rbx, %rsp\n jmp *%rax\n 0:")
/* Words that are not entries follow the table, or precede it: they lead into an instruction. */
#define OPEN_TABLE(entries)                                                           \
	"mov %edi, %edi\n lea 9f(%rip), %rdx\n movslq (%rdx,%rdi,4), %rax\n"          \
	"add %rdx, %rax\n jmp *%rax\n 2: inc %eax\n 3: mov $0x11c3c3c3, %ecx\n ret\n" \
	".balign 4\n 9: .long " entries "\n 0:"
SHAPE(table_and_more, OPEN_TABLE("2b-9b, 3b-9b, 3b+2-9b"))
SHAPE(more_and_table, OPEN_TABLE("3b+2-9b, 2b-9b, 3b-9b"))
/* Assembly calls its own, which leave rcx alone. */
SHAPE(keeps_sp, "mov %rsp, %rcx\n and $-16, %rsp\n sub $48, %rsp\n call 0f\n mov %rcx, %rsp\n"
		"ret\n 0:")

/* Returns that remove arguments, and calls of such functions */
SHAPE(removes, "mov 8(%rsp), %rax\n ret $8")
SHAPE(removes_or_not, "test %edi, %edi\n je 1f\n ret\n 1: ret $8")
SHAPE(calls_remover, "push %rdi\n call 0f\n ret\n 0:")
/* exit and exit_group; no instructions follow */
SHAPE(exits, "test %edi, %edi\n jne 1f\n ret\n 1: mov $60, %eax\n syscall\n .byte 6, 6")
SHAPE(exits_group, "mov $231, %eax\n xor %edi, %edi\n syscall\n .byte 6, 6")
/* As in haproxy: a store to an address of the first page ends a path on purpose. */
SHAPE(traps, "push %rbx\n test %edi, %edi\n jne 1f\n pop %rbx\n ret\n 1: call *%rdi\n"
	     "movb $0, 1\n .byte 6, 6")
/* The child has another stack. */
SHAPE(clones, "mov $56, %eax\n syscall\n test %eax, %eax\n jz 1f\n ret\n"
	      "1: pop %rax\n call *%rax\n hlt")
SHAPE(calls_system, "mov $39, %eax\n syscall\n .byte 6, 6")

/* A landing pad: what no jump leads to, and what is none, as its stack has another height */
SHAPE(landing_pad, "push %rbx\n call *%rdi\n pop %rbx\n ret\n mov %rax, %rdi\n"
		   "call 0f\n nop\n 0:")
/* As OCaml's handlers of exceptions: rax is not pushed where the last code is entered. */
SHAPE(own_handler, "push %rbx\n lea 1f(%rip), %rax\n push %rax\n call *%rdi\n add $8, %rsp\n"
		   "2: pop %rbx\n ret\n 1: call *%rdi\n jmp 2b\n 0:")
SHAPE(unlocked, "cmpl $0, %fs:24\n je 1f\n .byte 0xf0\n 1: cmpxchg %rbx, (%rcx)\n ret")
/* Arguments of a call are removed where its pad begins. */
SHAPE(pad_of_pushed, "push %rbx\n call *%rdi\n push %rax\n push %rax\n call *%rdi\n"
		     "add $16, %rsp\n pop %rbx\n ret\n mov %rax, %rdi\n call 0f\n nop\n 0:")
/* All calls have arguments. The pad goes on in the middle of other code. */
SHAPE(pad_joins, "push %rbx\n push %rax\n push %rax\n call *%rdi\n add $16, %rsp\n"
		 "2: mov %rbx, %rax\n pop %rbx\n ret\n mov %rax, %rdi\n jmp 2b\n 0:")
SHAPE(no_pad, "push %rbx\n call *%rdi\n pop %rbx\n ret\n nop\n ret\n 0:")

/* OCaml's: a handler is pushed and popped; an exception leaves the frame. */
SHAPE(handler, "sub $8, %rsp\n push 16(%r14)\n mov %rsp, 16(%r14)\n call *%rdi\n pop 16(%r14)\n"
	       "add $8, %rsp\n ret")
SHAPE(raises, "test %edi, %edi\n jne 1f\n ret\n 1: mov 16(%r14), %rsp\n pop 16(%r14)\n ret")

/* Jumps to another frame: from a buffer in the order of musl; glibc, which scrambles its words */
SHAPE(leaps, "mov (%rdi), %rbx\n mov 8(%rdi), %rbp\n mov 16(%rdi), %r12\n mov 48(%rdi), %rsp\n"
	     "jmp *56(%rdi)")
SHAPE(leaps_scrambled, "mov 48(%rdi), %r8\n mov 8(%rdi), %r9\n mov 56(%rdi), %rdx\n"
		       "xor %fs:48, %r8\n xor %fs:48, %r9\n xor %fs:48, %rdx\n mov (%rdi), %rbx\n"
		       "mov %r8, %rsp\n mov %r9, %rbp\n jmp *%rdx")
/* As setcontext(): the address is pushed on the other stack. */
SHAPE(leaps_by_push, "mov 160(%rdx), %rsp\n mov 120(%rdx), %rbp\n mov 168(%rdx), %rcx\n"
		     "push %rcx\n mov 136(%rdx), %rdx\n ret")
/* As LLVM's unwinder, which has put the address there first */
SHAPE(leaps_to_stored, "mov 56(%rdi), %rax\n mov 128(%rdi), %rbx\n mov %rbx, 8(%rax)\n"
		       "mov 48(%rdi), %rbp\n mov 56(%rdi), %rsp\n pop %rdi\n ret")
/* A coroutine switches stacks. */
SHAPE(switches, "push %rbp\n push %rbx\n mov %rsp, (%rdi)\n mov (%rsi), %rsp\n pop %rbx\n"
		"pop %rbp\n ret")
SHAPE(swaps, "mov %rsp, (%rsi)\n mov (%rdi), %rsp\n pop %rax\n mov %rbp, 8(%rsi)\n"
	     "mov 8(%rdi), %rbp\n jmp *%rax")
/* The buffer's address is overwritten while it is needed. */
SHAPE(leaps_lost, "mov 8(%rdi), %rbp\n mov 64(%rdi), %rdi\n mov 48(%rdi), %rsp\n"
		  "jmp *56(%rdi)")
/* Of a function with arrays on its stack; a computed goto follows. */
SHAPE(no_leap, "push %rbp\n mov %rsp, %rbp\n mov %rdi, %rsp\n jmp *%rax")
SHAPE(pops_own_slot, "push %rbp\n push %rax\n mov %rsp, %rbp\n pop 8(%rbp)\n pop %rbp\n ret")

/* The index is never 3: the table has three entries, and other data follows. */
SHAPE(masked, "and $3, %edi\n lea 9f(%rip), %rdx\n movslq (%rdx,%rdi,4), %rax\n add %rdx, %rax\n"
	      "jmp *%rax\n 2: inc %eax\n 3: ret\n"
	      ".balign 4\n 9: .long 2b-9b, 3b-9b, 2b-9b, -0x400\n 0:")

/* Its return address is in a register from the pop on, but during the call. */
SHAPE(pops_ra, "pop %r11\n push %r11\n push %rbx\n pop %rbx\n pop %r11\n nop\n jmp *%r11")
/* The words of the table are in the relocations. */
SHAPE(table_of_lld, "lea 9f(%rip), %rdx\n jmp *(%rdx,%rdi,8)\n push %rbx\n pop %rbx\n ret\n"
		    ".balign 8\n 9: .quad 0, 0\n")

static bool no_part(void *ctx, uint64_t addr, struct code_range *ret, bool *sized)
{
	(void)ctx;
	(void)addr;
	(void)ret;
	(void)sized;
	return false;
}

static struct code_callee callee = { UINT32_MAX, 0 };

static struct code_callee callee_at(void *ctx, uint64_t addr)
{
	(void)ctx;
	(void)addr;
	return callee;
}

#define ADDR 0x1000

static struct rowbuf rows;
static int verdict;
static bool call_ends; /* the call at the end of the shape does not return */
static bool is_sized;
static bool is_entry;
static uint64_t labels[2];
static size_t nlabels;

static int own_labels(void *ctx, const uint64_t **ret, size_t *ret_n)
{
	(void)ctx;
	*ret = labels;
	*ret_n = nlabels;
	return 0;
}

static const struct code_arch *arch;

static void analyse(const uint8_t *from, const uint8_t *to)
{
	const size_t len = (size_t)(to - from);
	uint8_t header[64] = { 0 }; /* as in AArch64's files, also at address 0 */
	struct code_text texts[2] = {
		{ .end = sizeof(header),
		  .bytes = bytes_of(header, sizeof(header), false),
		  .marks = calloc(1, sizeof(header)) },
		{ .start = ADDR, .end = ADDR + len },
	};
	struct code_text *text = &texts[1];
	struct code_binary bin = { .arch = arch,
				   .texts = texts,
				   .ntexts = 2,
				   .part_of = no_part,
				   .callee_at = callee_at,
				   .labels = nlabels ? own_labels : NULL,
				   .movable = true,
				   .has_pads = true,
				   .budget = 10000 };
	const struct code_subject fn = { { ADDR, ADDR + len }, is_sized, is_entry, false };
	struct code_fn *f = code_fn_new(&bin);
	struct code_result found;

	text->bytes = bytes_of(from, len + call_ends, false); /* a byte follows each shape */
	text->end += call_ends;
	text->marks = calloc(1, len + 1);
	text->marks[len] = call_ends ? MARK_ENDS : 0;
	rowbuf_free(&rows);
	verdict = code_fn_analyse(f, &fn, &found);
	for (size_t i = 0; i < found.nrows; i++)
		rowbuf_push(&rows, &found.rows[i]);
	code_fn_free(f);
	free(texts[0].marks);
	free(text->marks);
}

#define ANALYSE(name)                                      \
	do {                                               \
		arch = code_arch_x86();                    \
		if (!arch)                                 \
			SKIP("built without Zydis");       \
		analyse(shape_##name, shape_##name##_end); \
	} while (0)

/* The rules of the row at the offset; "" if there is none. */
static const char *at(uint64_t offset)
{
	static char text[ROW_TEXT_MAX];

	for (size_t i = 0; i < rows.n; i++)
		if (ADDR + offset >= rows.rows[i].start && ADDR + offset < rows.rows[i].end) {
			row_text_rules(text,
				       arch == &code_arch_arm64 ? ROW_ARCH_AARCH64
								: ROW_ARCH_X86_64,
				       &rows.rows[i]);
			return text;
		}
	return "";
}

TEST(leaf)
{
	ANALYSE(leaf);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_EQ(rows.n, 1);
	EXPECT_STR(at(0), "cfa=rsp+8 ra=*(cfa-8) fp=same");
}

TEST(pushes)
{
	ANALYSE(pushes);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(1), "cfa=rsp+16 ra=*(cfa-8) fp=same");
	EXPECT_STR(at(5), "cfa=rsp+48 ra=*(cfa-8) fp=same");
	EXPECT_STR(at(14), "cfa=rsp+16 ra=*(cfa-8) fp=same");
	EXPECT_STR(at(15), "cfa=rsp+8 ra=*(cfa-8) fp=same");
}

TEST(framed)
{
	ANALYSE(framed);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(1), "cfa=rsp+16 ra=*(cfa-8) fp=*(cfa-16)");
	EXPECT_STR(at(7), "cfa=rbp+16 ra=*(cfa-8) fp=*(cfa-16)");
	EXPECT_STR(at(13), "cfa=rsp+8 ra=*(cfa-8) fp=*(cfa-16)");
}

TEST(aligned)
{
	ANALYSE(aligned);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(9), "cfa=r10+0 ra=*(cfa-8) fp=same");
	EXPECT_STR(at(23), "cfa=*(rbp-8) ra=*(cfa-8) fp=*(rbp+0)");
}

TEST(in_memory)
{
	ANALYSE(in_memory);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(22), "cfa=*(rsp+152)+8 ra=*(cfa-8) fp=same");
}

TEST(entry)
{
	is_entry = true;
	ANALYSE(entry);
	EXPECT_STR(at(7), "cfa=? ra=undef fp=?");
	EXPECT_STR(at(12), "");
	ANALYSE(own_pc);
	is_entry = false;
	EXPECT_STR(at(6), "cfa=? ra=undef fp=?");
}

TEST(early)
{
	ANALYSE(early);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(5), "cfa=rsp+16 ra=*(cfa-8) fp=same");
	EXPECT_STR(at(11), "cfa=rsp+8 ra=*(cfa-8) fp=same");
}

TEST(probed)
{
	ANALYSE(probed);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(15), "cfa=r11+12296 ra=*(cfa-8) fp=same");
	EXPECT_STR(at((uint64_t)(shape_probed_end - shape_probed) - 1),
		   "cfa=rsp+8 ra=*(cfa-8) fp=same");
}

TEST(noreturn)
{
	ANALYSE(noreturn); /* the jump after the call would return at another height */
	EXPECT_EQ(verdict, CODE_REJECTED);
	ANALYSE(calls_next);
	EXPECT_EQ(verdict, CODE_PROVEN);
	ANALYSE(raises_by_jump);
	EXPECT_EQ(verdict, CODE_PROVEN);
}

TEST(jumps_to_another_frame)
{
	ANALYSE(leaps);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(7), "cfa=*(rdi+48) ra=*(rdi+56) fp=same signal");
	ANALYSE(leaps_scrambled);
	EXPECT_STR(at(45), "cfa=rsp+0 ra=rdx+0 fp=r9+0 signal");
	EXPECT_STR(at(48), "cfa=rsp+0 ra=rdx+0 fp=same signal");
	ANALYSE(leaps_by_push);
	EXPECT_STR(at(7), "cfa=rsp+0 ra=*(rdx+168) fp=*(rdx+120) signal");
	EXPECT_STR(at(19), "cfa=rsp+8 ra=*(cfa-8) fp=same signal");
	ANALYSE(leaps_to_stored);
	EXPECT_STR(at(19), "cfa=*(rdi+56)+16 ra=*(cfa-8) fp=same signal");
	ANALYSE(switches);
	EXPECT_STR(at(5), "cfa=rsp+24 ra=*(cfa-8) fp=*(cfa-16)");
	EXPECT_STR(at(8), "cfa=rsp+24 ra=*(cfa-8) fp=*(cfa-16) signal");
	ANALYSE(swaps);
	EXPECT_STR(at(6), "cfa=rsp+8 ra=*(cfa-8) fp=*(rdi+8) signal");
	ANALYSE(leaps_lost);
	EXPECT_STR(at(4), "cfa=? ra=? fp=same signal lost");
	ANALYSE(no_leap);
	EXPECT_STR(at(7), "cfa=rbp+16 ra=*(cfa-8) fp=*(cfa-16)");
}

TEST(table)
{
	ANALYSE(table);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(24), "cfa=rsp+16 ra=*(cfa-8) fp=same"); /* the first target */
	EXPECT_STR(at(25), "cfa=rsp+8 ra=*(cfa-8) fp=same");
	EXPECT_STR(at(26), "cfa=rsp+16 ra=*(cfa-8) fp=same"); /* the second */
}

TEST(bounds_of_tables)
{
	ANALYSE(plain_table);
	EXPECT_EQ(verdict, CODE_PROVEN);
	ANALYSE(lea_table);
	EXPECT_EQ(verdict, CODE_PROVEN);
	ANALYSE(indexed);
	EXPECT_EQ(verdict, CODE_PROVEN);
	ANALYSE(from_one);
	EXPECT_EQ(verdict, CODE_PROVEN);
	ANALYSE(unused);
	EXPECT_EQ(verdict, CODE_PROVEN);
	ANALYSE(spilled);
	EXPECT_EQ(verdict, CODE_PROVEN);
}

TEST(tables_without_a_length)
{
	ANALYSE(table_and_more);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(25), "cfa=rsp+8 ra=*(cfa-8) fp=same"); /* ret */
	ANALYSE(more_and_table);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(25), "cfa=rsp+8 ra=*(cfa-8) fp=same");
}

TEST(table_shorter_than_its_mask)
{
	const uint64_t ret = (uint64_t)(shape_masked_end - shape_masked) - 17;

	ANALYSE(masked);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(16), "cfa=rsp+8 ra=*(cfa-8) fp=same");
	EXPECT_STR(at(ret - 4), "cfa=rsp+8 ra=*(cfa-8) fp=same");
}

TEST(never_returns)
{
	ANALYSE(forever);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(4), "cfa=rsp+16 ra=*(cfa-8) fp=same");
	ANALYSE(forever_unsaved);
	EXPECT_EQ(verdict, CODE_SOUND);
}

TEST(fp_that_is_lost)
{
	ANALYSE(loses_fp);
	EXPECT_EQ(verdict, CODE_SOUND);
	EXPECT_STR(at(0), "cfa=rsp+8 ra=*(cfa-8) fp=same");
	EXPECT_STR(at(2), "cfa=rsp+8 ra=*(cfa-8) fp=?");
}

TEST(return_address_that_is_read)
{
	ANALYSE(reads_ra);
	EXPECT_EQ(verdict, CODE_SOUND);
	EXPECT_STR(at(1), "cfa=rsp+0 ra=rax+0 fp=same");
	EXPECT_STR(at(3), "cfa=rsp+16 ra=*(cfa-8) fp=same");
	EXPECT_STR(at(5), "cfa=rsp+16 ra=*(cfa-8) fp=?");
}

TEST(stack_that_is_left)
{
	ANALYSE(leaves_stack);
	EXPECT_EQ(verdict, CODE_SOUND);
	EXPECT_STR(at(4), "cfa=rsp+16 ra=*(cfa-8) fp=same");
	EXPECT_STR(at(9), "cfa=rsp+16 ra=*(cfa-8) fp=same");
	EXPECT_STR(at(12), "");
}

TEST(registers_that_a_callee_spares)
{
	const uint64_t ret = (uint64_t)(shape_keeps_sp_end - shape_keeps_sp) - 1;

	ANALYSE(keeps_sp);
	EXPECT_STR(at(ret), "");
	callee.writes = 1; /* rax */
	ANALYSE(keeps_sp);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(ret - 3), "cfa=rcx+8 ra=*(cfa-8) fp=same");
	EXPECT_STR(at(ret), "cfa=rsp+8 ra=*(cfa-8) fp=same");
	callee.writes = UINT32_MAX;
}

TEST(arguments_that_a_callee_removes)
{
	ANALYSE(removes);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(5), "cfa=rsp+8 ra=*(cfa-8) fp=same");
	ANALYSE(removes_or_not);
	EXPECT_EQ(verdict, CODE_REJECTED);
	callee.pops = 8;
	ANALYSE(calls_remover);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(1), "cfa=rsp+16 ra=*(cfa-8) fp=same");
	EXPECT_STR(at(6), "cfa=rsp+8 ra=*(cfa-8) fp=same");
	callee.pops = CODE_POPS_UNKNOWN;
	ANALYSE(calls_remover);
	EXPECT(verdict != CODE_PROVEN);
	EXPECT_STR(at(6), "");
	callee.pops = 0;
}

TEST(store_that_traps)
{
	ANALYSE(traps);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(7), "cfa=rsp+16 ra=*(cfa-8) fp=same");
	EXPECT_STR(at(9), "cfa=rsp+16 ra=*(cfa-8) fp=same");
}

TEST(system_call_that_exits)
{
	ANALYSE(exits);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(10), "cfa=rsp+8 ra=*(cfa-8) fp=same");
	EXPECT_STR(at(12), "");
	ANALYSE(exits_group);
	EXPECT_EQ(verdict, CODE_SOUND);
	ANALYSE(calls_system);
	EXPECT_EQ(verdict, CODE_REJECTED);
	ANALYSE(clones);
	EXPECT_EQ(verdict, CODE_REJECTED);
}

TEST(call_that_ends)
{
	const uint64_t after = 31; /* jmp 4b */

	ANALYSE(ends);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(after), "cfa=rsp+16 ra=*(cfa-8) fp=same");
	call_ends = true;
	ANALYSE(ends);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(after - 1), "cfa=rsp+16 ra=*(cfa-8) fp=same");
	EXPECT_STR(at(after), "");
	is_sized = true;
	ANALYSE(ends);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(after), "cfa=rsp+16 ra=*(cfa-8) fp=same");
	call_ends = is_sized = false;
}

TEST(landing_pads)
{
	ANALYSE(landing_pad);
	EXPECT_STR(at(5), "");
	call_ends = is_sized = true;
	ANALYSE(landing_pad);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(5), "cfa=rsp+16 ra=*(cfa-8) fp=same");
	EXPECT_STR(at(8), "cfa=rsp+16 ra=*(cfa-8) fp=same");
	ANALYSE(pad_of_pushed);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(5), "cfa=rsp+32 ra=*(cfa-8) fp=same");
	EXPECT_STR(at(13), "cfa=rsp+16 ra=*(cfa-8) fp=same");
	call_ends = false;
	ANALYSE(pad_joins);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(14), "");
	ANALYSE(no_pad);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(4), "cfa=rsp+8 ra=*(cfa-8) fp=same");
	EXPECT_STR(at(6), "");
	ANALYSE(own_handler);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at((uint64_t)(shape_own_handler_end - shape_own_handler) - 4), "");
	is_sized = false;
}

TEST(jump_behind_a_prefix)
{
	ANALYSE(unlocked);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_EQ(rows.n, 1);
}

TEST(exceptions_of_ocaml)
{
	ANALYSE(handler);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(8), "cfa=rsp+24 ra=*(cfa-8) fp=same");
	EXPECT_STR(at(18), "cfa=rsp+16 ra=*(cfa-8) fp=same");
	ANALYSE(raises);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(5), "cfa=rsp+8 ra=*(cfa-8) fp=same");
	EXPECT_STR(at(9), "cfa=rsp+16 ra=*(cfa-8) fp=same signal");
	ANALYSE(pops_own_slot);
	EXPECT(verdict != CODE_PROVEN);
}

TEST(call_with_arguments_on_the_stack)
{
	ANALYSE(pushed);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(9), "cfa=rsp+32 ra=*(cfa-8) fp=same");
	EXPECT_STR(at(14), "");
	EXPECT_STR(at(5), "cfa=rsp+16 ra=*(cfa-8) fp=same");
	ANALYSE(pushed_kept);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(12), "cfa=rsp+32 ra=*(cfa-8) fp=same");
	EXPECT_STR(at(28), "");
}

TEST(computed_goto)
{
	ANALYSE(threaded);
	EXPECT_EQ(verdict, CODE_REJECTED);
	labels[0] = ADDR + 10;
	labels[1] = ADDR + 12;
	nlabels = 2;
	ANALYSE(threaded);
	EXPECT_EQ(verdict, CODE_REJECTED); /* the labels may be those of another function */
	is_sized = true;
	ANALYSE(threaded);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(10), "cfa=rsp+16 ra=*(cfa-8) fp=same");
	EXPECT_STR(at(13), "cfa=rsp+8 ra=*(cfa-8) fp=same");
	labels[1] = ADDR + 13; /* its code returns one word higher */
	ANALYSE(threaded);
	EXPECT_EQ(verdict, CODE_REJECTED);
	nlabels = 0;
	is_sized = false;
}

TEST(jump_through_relocated_table)
{
	ANALYSE(table_of_lld);
	EXPECT_STR(at(11), ""); /* another function's, for all that is known */
	labels[0] = ADDR + 10;
	labels[1] = ADDR + 12;
	nlabels = 2;
	is_sized = true;
	ANALYSE(table_of_lld);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(11), "cfa=rsp+16 ra=*(cfa-8) fp=same");
	EXPECT_STR(at(12), "cfa=rsp+8 ra=*(cfa-8) fp=same");
	nlabels = 0;
	is_sized = false;
}

TEST(return_by_jump)
{
	ANALYSE(pops_ra);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(2), "cfa=rsp+0 ra=r11+0 fp=same");
	EXPECT_STR(at(4), "cfa=rsp+8 ra=*(cfa-8) fp=same");
	EXPECT_STR(at(8), "cfa=rsp+0 ra=r11+0 fp=same");
}

TEST(jump_to_labels_that_are_taken)
{
	ANALYSE(stepped);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(21), "cfa=rsp+16 ra=*(cfa-8) fp=same"); /* 2 */
	EXPECT_STR(at(23), "cfa=rsp+16 ra=*(cfa-8) fp=same"); /* 3 */
	ANALYSE(own_tail);
	EXPECT_EQ(verdict, CODE_PROVEN);
}

TEST(ends_in_a_jump)
{
	ANALYSE(hands_over);
	EXPECT_EQ(verdict, CODE_TAILS);
	ANALYSE(goes_on);
	EXPECT_EQ(verdict, CODE_TAILS);
	ANALYSE(hands_over_rbx);
	EXPECT_EQ(verdict, CODE_SOUND);
	ANALYSE(hands_over_late);
	EXPECT_EQ(verdict, CODE_SOUND);
	ANALYSE(jumps_out);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(7), "cfa=rsp+16 ra=*(cfa-8) fp=same");
	EXPECT_STR(at(9), "");
}

static void analyse_arm64(const uint32_t *code, size_t n)
{
	arch = &code_arch_arm64;
	analyse((const uint8_t *)code, (const uint8_t *)(code + n));
}

#define ANALYSE_ARM64(code) analyse_arm64(code, sizeof(code) / sizeof(*(code)))

/* As GCC's tables: saved values count until sp is above them. */
/* musl's longjmp() */
TEST(arm64_jump_to_another_frame)
{
	/* ldp x19, x20, [x0]; ldp x29, x30, [x0, #80]; ldr x2, [x0, #104]; mov sp, x2; br x30 */
	static const uint32_t code[] = { 0xa9405013, 0xa945781d, 0xf9403402, 0x9100005f,
					 0xd61f03c0 };

	ANALYSE_ARM64(code);
	EXPECT_STR(at(8), "cfa=*(x0+104) ra=lr fp=same signal");
	EXPECT_STR(at(12), "cfa=x2+0 ra=lr fp=same signal");
	EXPECT_STR(at(16), "cfa=sp+0 ra=lr fp=same signal");
}

TEST(arm64_epilogue)
{
	static const uint32_t code[] = {
		0xd101c3ff, /* sub sp, sp, #112 */
		0xa9017bfd, /* stp x29, x30, [sp, #16] */
		0x910043fd, /* add x29, sp, #16 */
		0xd503201f, /* nop */
		0xa9417bfd, /* ldp x29, x30, [sp, #16] */
		0x52800000, /* mov w0, #0 */
		0x9101c3ff, /* add sp, sp, #112 */
		0xd65f03c0, /* ret */
	};

	ANALYSE_ARM64(code);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(4), "cfa=sp+112 ra=lr fp=same");
	EXPECT_STR(at(12), "cfa=sp+112 ra=*(cfa-88) fp=*(cfa-96)");
	EXPECT_STR(at(20), "cfa=sp+112 ra=*(cfa-88) fp=*(cfa-96)");
	EXPECT_STR(at(28), "cfa=sp+0 ra=lr fp=same");
}

/* Stored as data, too. The word of the frame record counts. */
TEST(arm64_return_address_as_data)
{
	static const uint32_t code[] = {
		0xa9bc7bfd, /* stp x29, x30, [sp, #-64]! */
		0xf9001bfe, /* str x30, [sp, #48] */
		0xd503201f, /* nop */
		0xa8c47bfd, /* ldp x29, x30, [sp], #64 */
		0xd65f03c0, /* ret */
	};

	ANALYSE_ARM64(code);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(8), "cfa=sp+64 ra=*(cfa-56) fp=*(cfa-64)");
}

/* Also where sp is known, before it is moved: the function uses its frame pointer. */
TEST(arm64_frame_pointer)
{
	static const uint32_t code[] = {
		0xa9be7bfd, /* stp x29, x30, [sp, #-32]! */
		0x910003fd, /* mov x29, sp */
		0xd503201f, /* nop */
		0xcb2063ff, /* sub sp, sp, x0 */
		0xd503201f, /* nop */
		0x910003bf, /* mov sp, x29 */
		0xa8c27bfd, /* ldp x29, x30, [sp], #32 */
		0xd65f03c0, /* ret */
	};

	ANALYSE_ARM64(code);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(4), "cfa=sp+32 ra=*(cfa-24) fp=*(cfa-32)");
	EXPECT_STR(at(8), "cfa=x29+32 ra=*(cfa-24) fp=*(cfa-32)");
	EXPECT_STR(at(16), "cfa=x29+32 ra=*(cfa-24) fp=*(cfa-32)");
	EXPECT_STR(at(28), "cfa=sp+0 ra=lr fp=same");
}

/* The load of fp does not move sp. */
TEST(arm64_frame_pointer_of_large_frame)
{
	static const uint32_t code[] = {
		0xd11a03ff, /* sub sp, sp, #1664 */
		0xa9007bfd, /* stp x29, x30, [sp] */
		0x910003fd, /* mov x29, sp */
		0xcb2063ff, /* sub sp, sp, x0 */
		0x910003bf, /* mov sp, x29 */
		0xd503201f, /* nop */
		0xa9407bfd, /* ldp x29, x30, [sp] */
		0x911a03ff, /* add sp, sp, #1664 */
		0xd65f03c0, /* ret */
	};

	ANALYSE_ARM64(code);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(16), "cfa=x29+1664 ra=*(cfa-1656) fp=*(cfa-1664)");
	EXPECT_STR(at(20), "cfa=sp+1664 ra=*(cfa-1656) fp=*(cfa-1664)");
}

/* SIMD: v29 and v30 are not x29 and x30. umov writes x29. */
TEST(arm64_clears_vectors)
{
	static const uint32_t code[] = {
		0x6f00e41d, /* movi v29.2d, #0 */
		0x6f00e41e, /* movi v30.2d, #0 */
		0xd65f03c0, /* ret */
	};
	static const uint32_t moves[] = {
		0x0e013c1e, /* umov w30, v0.b[0] */
		0xd65f03c0, /* ret */
	};

	ANALYSE_ARM64(code);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(8), "cfa=sp+0 ra=lr fp=same");
	ANALYSE_ARM64(moves);
	EXPECT_EQ(verdict, CODE_REJECTED);
}

/* The offset of the load is no address, though there is code at address 0. */
TEST(arm64_computed_goto)
{
	static const uint32_t code[] = {
		0xa9bf7bfd, /* stp x29, x30, [sp, #-16]! */
		0xf9400402, /* ldr x2, [x0, #8] */
		0xd61f0040, /* br x2 */
		0xd503201f, /* nop */
		0xa8c17bfd, /* ldp x29, x30, [sp], #16 */
		0xd65f03c0, /* ret */
	};

	labels[0] = ADDR + 12;
	labels[1] = ADDR + 16;
	nlabels = 2;
	is_sized = true;
	ANALYSE_ARM64(code);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(16), "cfa=sp+16 ra=*(cfa-8) fp=*(cfa-16)");
	nlabels = 0;
	is_sized = false;
}

/* The first label is loaded by one instruction, the other by two, as the base of a table is. */
TEST(arm64_jump_to_labels_that_are_taken)
{
	static uint32_t code[] = {
		0xa9bf7bfd, /* stp x29, x30, [sp, #-16]! */
		0x100000e2, /* adr x2, 2f */
		0xb4000060, /* cbz x0, 1f */
		0x90000002, /* adrp x2, 0x1000 */
		0x91008042, /* add x2, x2, #32 */
		0xd61f0040, /* 1: br x2 */
		0xd4200000, /* brk */
		0xd4200000, /* brk */
		0xa8c17bfd, /* 2: ldp x29, x30, [sp], #16 */
		0xd65f03c0, /* ret */
	};

	ANALYSE_ARM64(code);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(32), "cfa=sp+16 ra=*(cfa-8) fp=*(cfa-16)");
	EXPECT_STR(at(36), "cfa=sp+0 ra=lr fp=same");
	code[1] = 0xd503201f; /* nop */
	ANALYSE_ARM64(code);
	EXPECT_EQ(verdict, CODE_REJECTED);
}

/* No function saves the return address in its caller's frame. */
TEST(arm64_return_address_in_callers_frame)
{
	static const uint32_t code[] = {
		0xf90007fe, /* str x30, [sp, #8] */
		0xd63f0000, /* blr x0 */
		0xf94007fe, /* ldr x30, [sp, #8] */
		0xd65f03c0, /* ret */
	};

	ANALYSE_ARM64(code);
	EXPECT_STR(at(8), "");
}

/* GCC leaves a store after a call that does not return. */
TEST(arm64_store_after_last_call)
{
	static const uint32_t code[] = {
		0xa9be7bfd, /* stp x29, x30, [sp, #-32]! */
		0xb4000080, /* cbz x0, 1f */
		0xd63f0000, /* blr x0 */
		0xa8c27bfd, /* ldp x29, x30, [sp], #32 */
		0xd65f03c0, /* ret */
		0xd63f0020, /* 1: blr x1 */
		0xf9000bf3, /* str x19, [sp, #16] */
	};

	is_sized = true;
	ANALYSE_ARM64(code);
	EXPECT_EQ(verdict, CODE_PROVEN);
	EXPECT_STR(at(20), "cfa=sp+32 ra=*(cfa-24) fp=*(cfa-32)");
	is_sized = false;
}

/* Registers are saved below many addresses of the frame. */
TEST(arm64_many_addresses_on_the_stack)
{
	enum { SLOTS = 30 };
	uint32_t code[2 * SLOTS + 4];
	size_t n = 0;

	code[n++] = 0xd11003ff; /* sub sp, sp, #1024 */
	code[n++] = 0xa9007bfd; /* stp x29, x30, [sp] */
	for (uint32_t i = 0; i < SLOTS; i++) {
		code[n++] = 0x910083e8;			/* add x8, sp, #32 */
		code[n++] = 0xf9000fe8 | (i + 1) << 12; /* str x8, [sp, #...] */
	}
	code[n++] = 0x911003ff; /* add sp, sp, #1024 */
	code[n++] = 0xd65f03c0; /* ret */
	analyse_arm64(code, n);
	EXPECT_STR(at(8 * SLOTS + 8), "cfa=sp+1024 ra=*(cfa-1016) fp=*(cfa-1024)");
}

TEST(no_rows)
{
	ANALYSE(uneven);
	EXPECT_EQ(verdict, CODE_REJECTED);
	ANALYSE(pointer);
	EXPECT_EQ(verdict, CODE_REJECTED);
	ANALYSE(unknown_sp);
	EXPECT_EQ(verdict, CODE_REJECTED);
	ANALYSE(own_ra);
	EXPECT_EQ(verdict, CODE_REJECTED);
	ANALYSE(overlap);
	EXPECT_EQ(verdict, CODE_REJECTED);
	ANALYSE(privileged);
	EXPECT_EQ(verdict, CODE_REJECTED);
	ANALYSE(unresolved);
	EXPECT_EQ(verdict, CODE_REJECTED);
}

/* Rows that are right if the start is, but do not show that it is one. */
TEST(not_proven)
{
	ANALYSE(tail);
	EXPECT_EQ(verdict, CODE_SOUND);
	ANALYSE(loses);
	EXPECT_EQ(verdict, CODE_SOUND);
	rowbuf_free(&rows);
}

#endif
