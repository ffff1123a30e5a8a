/* SPDX-License-Identifier: BSD-2-Clause */
#include "readers/trampoline.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arm64.h"
#include "elf/elf_dynamic.h"
#include "elf/elf_dynsym.h"
#include "elf/known_code.h"
#include "readers/vdso_arm64.h"
#include "rows/fntab.h"

#define TEXT_MAX (512u << 20) /* bytes of a segment */

static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
/* stp x16, x30, [sp, #-16]! */
static const uint8_t a64_plt0_push[] = { 0xf0, 0x7b, 0xbf, 0xa9 };

/* Reads what the dynamic section says. False: there is none, or the name in it cannot be read. */
static bool dynamic_facts(const struct elf_image *img, struct elf_dynamic *ret)
{
	elf_dynamic_read(img, ret);
	return ret->found && (!ret->named || ret->name[0]);
}

static bool is_c_library(const char *name)
{
	return !strncmp(name, "libc.", 5) || !strncmp(name, "ld-musl", 7) ||
	       !strncmp(name, "libpthread", 10);
}

static bool worth_searching(const struct elf_image *img)
{
	/* glibc's libc.so.6 has one too */
	bool interp = elf_image_segment(img, PT_INTERP) != NULL;
	struct elf_dynamic dyn;

	if (!dynamic_facts(img, &dyn))
		return !interp && img->type == ET_EXEC;
	return (!dyn.name[0] && !interp) || is_c_library(dyn.name);
}

/*
 * The signal restorer's registers: rsp points to the ucontext, and the saved registers start 40
 * bytes into it (see step_sigcontext).
 */
#define AT_RSP(offset)                                          \
	{                                                       \
		.kind = RULE_REG_MEM, .reg = 7, .off = (offset) \
	}
static const struct row restorer_row = {
	.cfa = AT_RSP(160),
	.ra = AT_RSP(168),
	.fp = AT_RSP(120),
	.bx = AT_RSP(128),
	.source = ROW_EH_FRAME,
	.flags = ROW_SIGNAL,
};
#define LEAF(flag)                                                                      \
	{                                                                               \
		.cfa = { .kind = RULE_REG, .reg = 7, .off = 8 },                        \
		.ra = { .kind = RULE_CFA_MEM, .off = -8 }, .fp = { .kind = RULE_SAME }, \
		.bx = { .kind = RULE_SAME }, .source = ROW_EH_FRAME, .flags = (flag),   \
	}
static const struct row leaf_row = LEAF(0);
static const struct row clone_row = LEAF(ROW_CHILD);
static const struct row outermost_row = { .ra = { .kind = RULE_UNDEF }, .source = ROW_EH_FRAME };

/* The next context's ucontext is at rdx. As after a signal: its address need not follow a call. */
#define AT_RDX(offset)                                                \
	{                                                             \
		.kind = RULE_REG_MEM, .reg = X86_RDX, .off = (offset) \
	}
static const struct row swap_row = {
	.cfa = AT_RDX(160),
	.ra = AT_RDX(168),
	.fp = AT_RDX(120),
	.source = ROW_EH_FRAME,
	.flags = ROW_SIGNAL,
};

static const struct row a64_stub_row = {
	.cfa = { .kind = RULE_REG, .reg = 31 },
	.ra = { .kind = RULE_REG, .reg = 30 },
	.fp = { .kind = RULE_SAME },
	.source = ROW_EH_FRAME,
};
static const struct row a64_clone_row = {
	.cfa = { .kind = RULE_REG, .reg = 31 },
	.ra = { .kind = RULE_REG, .reg = 30 },
	.fp = { .kind = RULE_SAME },
	.source = ROW_EH_FRAME,
	.flags = ROW_CHILD,
};
static const struct row a64_pushed_row = {
	.cfa = { .kind = RULE_REG, .reg = 31, .off = 16 },
	.ra = { .kind = RULE_CFA_MEM, .off = -8 },
	.fp = { .kind = RULE_SAME },
	.source = ROW_EH_FRAME,
};

static const struct trampoline {
	enum row_arch arch;
	enum known_code code;
	const struct row *row;
} trampolines[] = {
	{ ROW_ARCH_X86_64, KNOWN_CLONE_RETURN, &clone_row },
	{ ROW_ARCH_X86_64, KNOWN_RESTORE_RT, &restorer_row },
	{ ROW_ARCH_X86_64, KNOWN_START_CONTEXT, &outermost_row },
	{ ROW_ARCH_X86_64, KNOWN_MUSL_CLONE, &clone_row },
	{ ROW_ARCH_X86_64, KNOWN_MUSL_THREAD, &outermost_row },
	{ ROW_ARCH_X86_64, KNOWN_SWAPCONTEXT, &swap_row },
	{ ROW_ARCH_AARCH64, KNOWN_A64_CLONE_RETURN, &a64_clone_row },
	{ ROW_ARCH_AARCH64, KNOWN_A64_RESTORE_RT, &a64_restorer_row },
	{ ROW_ARCH_AARCH64, KNOWN_A64_MUSL_THREAD, &outermost_row },
};

#define MAX_FOUND 16	       /* trampolines in a window; real files hold one of each */
#define WINDOW	  (256u << 10) /* bytes of text in memory at a time */
#define MARGIN	  64u	       /* a range may begin in one window and end in the next */

/* Appends the trampolines that begin in [from, to) of the text at vaddr. */
static int search(struct bytes text, uint64_t from, uint64_t to, uint64_t vaddr,
		  const struct trampoline *t, struct rowbuf *out)
{
	uint64_t start;
	int err = 0;

	for (int i = 0; i < MAX_FOUND && !err && known_code_next(&text, t->code, &start); i++) {
		struct row row = *t->row;

		row.start = vaddr + start;
		row.end = row.start + known_code_size(t->code);
		if (start >= from && start < to)
			err = rowbuf_push(out, &row);
	}
	return err;
}

static int search_window(const struct elf_image *img, const struct elf_phdr *seg,
			 enum row_arch arch, uint64_t from, struct rowbuf *out)
{
	uint64_t ahead = from < MARGIN ? from : MARGIN, start = from - ahead,
		 left = seg->filesz - start, len = WINDOW + ahead;
	struct elf_blob text = { 0 };
	int err = 0;

	if (elf_image_read(img, seg->offset + start, left < len + MARGIN ? left : len + MARGIN,
			   &text))
		return 0;
	for (size_t k = 0; k < sizeof(trampolines) / sizeof(trampolines[0]) && !err; k++)
		if (trampolines[k].arch == arch)
			err = search(text.view, ahead, len, seg->vaddr + start, &trampolines[k],
				     out);
	elf_blob_free(&text);
	return err;
}

static int push_range(struct rowbuf *out, const struct row *rules, uint64_t start, uint64_t end)
{
	struct row row = *rules;

	row.start = start;
	row.end = end;
	return start < end ? rowbuf_push(out, &row) : 0;
}

#define A64_PLT0 32 /* bytes at most, with a landing pad in front of the push */

static int a64_plt(const struct elf_image *img, struct rowbuf *out)
{
	const struct elf_shdr *s = elf_image_section(img, ".plt");
	struct elf_blob code = { 0 };
	uint64_t pushed;
	int err;

	if (!s || s->size < A64_PLT0 || s->addr + s->size < s->addr ||
	    elf_image_read(img, s->offset, A64_PLT0, &code))
		return 0;
	pushed = s->addr + (bytes_find(&code.view, a64_plt0_push, sizeof(a64_plt0_push))
				    ? code.view.pos + 4
				    : A64_PLT0);
	elf_blob_free(&code);
	err = push_range(out, &a64_stub_row, s->addr, pushed);
	if (!err)
		err = push_range(out, &a64_pushed_row, pushed, s->addr + A64_PLT0);
	return err ? err : push_range(out, &a64_stub_row, s->addr + A64_PLT0, s->addr + s->size);
}

static int search_text(const struct elf_image *img, enum row_arch arch, struct rowbuf *out)
{
	struct elf_phdr segs[EXEC_SEGMENTS_MAX];
	size_t n = exec_segments(img, segs, EXEC_SEGMENTS_MAX);
	int err = 0;

	for (size_t i = 0; i < n && !err; i++)
		for (uint64_t from = 0; segs[i].filesz <= TEXT_MAX && from < segs[i].filesz && !err;
		     from += WINDOW)
			err = search_window(img, &segs[i], arch, from, out);
	return err;
}

/* Debian's libc of musl has no name; its entry has one. */
static bool is_musl_linker(const struct elf_image *img)
{
	struct elf_dynsym_value sym;
	struct elf_dynsym syms;

	return img->entry && elf_dynsym_open(&syms, img) &&
	       elf_dynsym_find(&syms, "_dlstart", &sym) && sym.addr == img->entry;
}

/*
 * Whether the kernel starts processes at e_entry. In other libraries it means nothing. *ret_linker:
 * the file is a dynamic linker.
 */
static bool is_program(const struct elf_image *img, bool *ret_linker)
{
	struct elf_dynamic dyn;
	const bool dynamic = dynamic_facts(img, &dyn);

	*ret_linker = dynamic && (!strncmp(dyn.name, "ld-", 3) || !strncmp(dyn.name, "ld64", 4));
	return *ret_linker || img->type == ET_EXEC || elf_image_segment(img, PT_INTERP) ||
	       dyn.pie || (dynamic && (dyn.name[0] ? is_c_library(dyn.name) : is_musl_linker(img)));
}

#define ENTRY_MAX 96u /* bytes; _start is shorter than this up to its first call */

/*
 * The bytes of glibc's dynamic linker from its entry up to the jump to the program's entry, through
 * a register; 0: there is none. This code calls two functions.
 */
static uint64_t until_program(struct bytes code, enum row_arch arch)
{
	if (arch == ROW_ARCH_AARCH64) {
		while (bytes_left(&code) >= 4)
			if ((bytes_u32(&code) & 0xfffffc1f) == 0xd61f0000) /* br */
				return code.pos;
		return 0;
	}
	for (; bytes_left(&code) >= 2; bytes_skip(&code, 1))
		if ((bytes_peek64le(&code) & 0xf8ff) == 0xe0ff) /* jmp *reg */
			return code.pos + 2;
	return 0;
}

/*
 * The bytes of x86-64 code up to the end of the first instruction that may be a call or a jump; 0:
 * none was found. Instructions are not decoded, so an operand may be taken for one. Then too little
 * code is said to be outermost.
 */
static uint64_t x86_until_branch(struct bytes code)
{
	for (; bytes_left(&code) >= 5; bytes_skip(&code, 1)) {
		uint64_t next = bytes_peek64le(&code);
		unsigned int op = next & 0xff, modrm = next >> 8 & 0xff, reg = modrm >> 3 & 7;

		if (op == 0xe8 || op == 0xe9) /* call, jmp rel32 */
			return code.pos + 5;
		if (op == 0xeb) /* jmp rel8 */
			return code.pos + 2;
		if (op == 0xff && (reg == 2 || reg == 4)) { /* call, jmp through memory at rip */
			const unsigned int len = (modrm & 0xc7) == 5 ? 6 : 2;

			return bytes_left(&code) < len ? 0 : code.pos + len;
		}
	}
	return 0;
}

/* x86_until_branch for AArch64: b, bl, br, blr and their signed forms. */
static uint64_t a64_until_branch(struct bytes code)
{
	while (bytes_left(&code) >= 4) {
		uint32_t insn = bytes_u32(&code);

		if (arm64_is_jump(insn))
			return code.pos;
	}
	return 0;
}

/*
 * The code at a program's entry up to its first call. No frame is outside of it: the kernel jumps
 * there.
 */
static int entry_row(const struct elf_image *img, enum row_arch arch, struct rowbuf *out)
{
	struct elf_phdr segs[EXEC_SEGMENTS_MAX];
	bool linker;
	size_t n = is_program(img, &linker) ? exec_segments(img, segs, EXEC_SEGMENTS_MAX) : 0;
	struct elf_blob code = { 0 };
	uint64_t at, left, len;

	for (size_t i = 0; i < n; i++) {
		at = img->entry - segs[i].vaddr;
		if (at >= segs[i].filesz)
			continue;
		left = segs[i].filesz - at;
		if (elf_image_read(img, segs[i].offset + at, left < ENTRY_MAX ? left : ENTRY_MAX,
				   &code))
			return 0;
		len = linker ? until_program(code.view, arch) : 0;
		if (!len)
			len = arch == ROW_ARCH_AARCH64 ? a64_until_branch(code.view)
						       : x86_until_branch(code.view);
		elf_blob_free(&code);
		return push_range(out, &outermost_row, img->entry, img->entry + len);
	}
	return 0;
}

#define FCONTEXT_MAX 256u /* bytes of jump_fcontext() or make_fcontext() */
#define JUMP_SAVES   9	  /* bytes of the former up to where sp is below what it saves */

static bool read_symbol(const struct elf_dynsym *syms, const char *name, struct elf_blob *ret,
			uint64_t *ret_addr)
{
	struct elf_dynsym_value sym;
	uint64_t off;

	if (!elf_dynsym_find(syms, name, &sym) || !sym.size || sym.size > FCONTEXT_MAX ||
	    !elf_image_vaddr_to_offset(syms->img, sym.addr, &off) ||
	    elf_image_read(syms->img, off, sym.size, ret))
		return false;
	*ret_addr = sym.addr;
	return true;
}

/* lea BY(%rsp), %rsp */
static bool next_lea_rsp(struct bytes *code, int8_t *ret_by)
{
	static const uint8_t lea[] = { 0x48, 0x8d, 0x64, 0x24 };

	if (!bytes_find(code, lea, sizeof(lea)))
		return false;
	bytes_skip(code, sizeof(lea));
	*ret_by = (int8_t)bytes_u8(code);
	return !code->err;
}

/*
 * jump_fcontext() saves all registers on the stack, goes to another stack where it had saved them
 * before, and restores them. So the CFA is where it was, until the last instructions, which have
 * the return address in r8.
 */
static int jump_fcontext_rows(struct bytes code, uint64_t at, struct rowbuf *out)
{
	static const uint8_t other_stack[] = { 0x48, 0x89, 0xfc }; /* mov %rdi, %rsp */
	static const uint8_t jump[] = { 0x41, 0xff, 0xe0 };	   /* jmp *%r8 */
	struct row row = leaf_row;
	uint64_t saved, moved, restored;
	int8_t down, up;
	int err;

	if (!next_lea_rsp(&code, &down) || code.pos > JUMP_SAVES || down >= 0)
		return 0;
	saved = code.pos;
	if (!bytes_find(&code, other_stack, sizeof(other_stack)))
		return 0;
	moved = code.pos + sizeof(other_stack);
	if (!next_lea_rsp(&code, &up) || up != 8 - down)
		return 0;
	restored = code.pos;
	if (!bytes_find(&code, jump, sizeof(jump)))
		return 0;
	err = push_range(out, &row, at, at + saved);
	row.cfa.off = 8 - down;
	if (!err)
		err = push_range(out, &row, at + saved, at + moved);
	row.fp = (struct rule){ .kind = RULE_CFA_MEM, .off = -16 };
	row.bx = (struct rule){ .kind = RULE_CFA_MEM, .off = -24 };
	if (!err)
		err = push_range(out, &row, at + moved, at + restored);
	row.cfa.off = 0;
	row.ra = (struct rule){ .kind = RULE_REG, .reg = 8 };
	row.fp = row.bx = (struct rule){ .kind = RULE_SAME };
	return err ? err : push_range(out, &row, at + restored, at + code.pos + sizeof(jump));
}

/*
 * make_fcontext() returns, and is followed by the code with which a stack begins that it made: a
 * jump to the stack's function, and what that returns to, which ends the process.
 */
static int make_fcontext_rows(struct bytes code, uint64_t at, struct rowbuf *out)
{
	static const uint8_t enter[] = { 0x55, 0xff, 0xe3 };	   /* push %rbp; jmp *%rbx */
	static const uint8_t leave[] = { 0x48, 0x31, 0xff, 0xe8 }; /* xor %rdi, %rdi; call */
	static const uint8_t ret[] = { 0xc3 };
	uint64_t begin;
	int err;

	if (!bytes_find(&code, enter, sizeof(enter)) || code.pos < sizeof(endbr64))
		return 0;
	begin = code.pos;
	if (bytes_are(&code, begin - sizeof(endbr64), endbr64, sizeof(endbr64)))
		begin -= sizeof(endbr64);
	bytes_skip(&code, sizeof(enter));
	if (bytes_are(&code, code.pos, endbr64, sizeof(endbr64)))
		bytes_skip(&code, sizeof(endbr64));
	if (!begin || !bytes_are(&code, begin - 1, ret, 1) ||
	    !bytes_are(&code, code.pos, leave, sizeof(leave)))
		return 0;
	err = push_range(out, &leaf_row, at, at + begin);
	return err ? err : push_range(out, &outermost_row, at + begin, at + code.len);
}

/* Boost's Context, which other projects have copied, has no unwind tables. */
static int fcontext_rows(const struct elf_image *img, struct rowbuf *out)
{
	struct elf_blob code = { 0 };
	struct elf_dynsym syms;
	uint64_t at;
	int err;

	if (!elf_dynsym_open(&syms, img) || !read_symbol(&syms, "make_fcontext", &code, &at))
		return 0;
	err = make_fcontext_rows(code.view, at, out);
	elf_blob_free(&code);
	if (err || !read_symbol(&syms, "jump_fcontext", &code, &at))
		return err;
	err = jump_fcontext_rows(code.view, at, out);
	elf_blob_free(&code);
	return err;
}

#define INIT_MAX 4096u /* bytes of .init or .fini */

/*
 * How .init and .fini begin and end with glibc and musl. After the first instruction, the CFA is
 * 16 bytes above sp, up to the return. The calls between come from other object files.
 */
static const struct init_shape {
	enum row_arch arch;
	uint8_t nfirst, nlast;
	uint8_t first[4], last[8];
} init_shapes[] = {
	{ ROW_ARCH_X86_64, 4, 5, { 0x48, 0x83, 0xec, 0x08 }, { 0x48, 0x83, 0xc4, 0x08, 0xc3 } },
	{ ROW_ARCH_X86_64, 1, 2, { 0x50 }, { 0x58, 0xc3 } },
	{ ROW_ARCH_AARCH64,
	  4,
	  8,
	  { 0xfd, 0x7b, 0xbf, 0xa9 },
	  { 0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6 } },
};

static int init_shape_rows(struct bytes code, uint64_t at, const struct init_shape *shape,
			   struct rowbuf *out)
{
	static const uint8_t nop[] = { 0x1f, 0x20, 3, 0xd5 };
	const bool arm = shape->arch == ROW_ARCH_AARCH64;
	const struct row *outside = arm ? &a64_stub_row : &leaf_row;
	uint64_t pushed = bytes_are(&code, 0, arm ? nop : endbr64, 4) ? 4 : 0,
		 end = code.len - (arm ? 4 : 1); /* the return */
	struct row inside = arm ? a64_pushed_row : leaf_row;
	int err;

	if (code.len < pushed + shape->nfirst + shape->nlast ||
	    !bytes_are(&code, pushed, shape->first, shape->nfirst) ||
	    !bytes_are(&code, code.len - shape->nlast, shape->last, shape->nlast))
		return 0;
	pushed += shape->nfirst;
	inside.cfa.off = 16;
	if (arm)
		inside.fp = (struct rule){ .kind = RULE_CFA_MEM, .off = -16 };
	err = push_range(out, outside, at, at + pushed);
	if (!err)
		err = push_range(out, &inside, at + pushed, at + end);
	return err ? err : push_range(out, outside, at + end, at + code.len);
}

/* These sections have tables in no file. Slow constructors are called from .init. */
static int init_rows(const struct elf_image *img, enum row_arch arch, const char *section,
		     struct rowbuf *out)
{
	const struct elf_shdr *s = elf_image_section(img, section);
	struct elf_blob code = { 0 };
	int err = 0;

	if (!s || !s->size || s->size > INIT_MAX || s->addr > UINT64_MAX - s->size ||
	    elf_image_read(img, s->offset, s->size, &code))
		return 0;
	for (size_t i = 0; i < sizeof(init_shapes) / sizeof(init_shapes[0]) && !err; i++)
		if (init_shapes[i].arch == arch)
			err = init_shape_rows(code.view, s->addr, &init_shapes[i], out);
	elf_blob_free(&code);
	return err;
}

#define PLT_MAX	  (64u << 10) /* bytes of a PLT */
#define PLT_ENTRY 16

/*
 * One entry of a PLT of x86-64: the bytes that are the same in all entries, -1 for others, and from
 * where on an index was pushed. The first entry of a lazy PLT pushes another word.
 */
static const struct plt_shape {
	int16_t bytes[PLT_ENTRY];
	uint8_t pushed; /* PLT_ENTRY: nothing is */
} plt_shapes[] = {
	/* jmp *SLOT(%rip); push $INDEX; jmp PLT0 */
	{ { 0xff, 0x25, -1, -1, -1, -1, 0x68, -1, -1, -1, -1, 0xe9, -1, -1, -1, -1 }, 11 },
	/* endbr64; push $INDEX; jmp PLT0 */
	{ { 0xf3, 0x0f, 0x1e, 0xfa, 0x68, -1, -1, -1, -1, 0xe9, -1, -1, -1, -1, -1, -1 }, 9 },
	/* endbr64; jmp *SLOT(%rip) */
	{ { 0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1 },
	  PLT_ENTRY },
};

static bool is_plt_entry(const struct bytes *code, uint64_t at, const struct plt_shape *shape)
{
	for (size_t i = 0; i < PLT_ENTRY; i++)
		if (shape->bytes[i] >= 0 && code->base[at + i] != (uint8_t)shape->bytes[i])
			return false;
	return true;
}

/* first: of the entries that are like the shape; those before it are PLT0 */
static int plt_rows(struct bytes code, uint64_t at, uint64_t first, const struct plt_shape *shape,
		    struct rowbuf *out)
{
	struct row pushed = leaf_row;
	int err;

	pushed.cfa.off = 16;
	err = first ? push_range(out, &pushed, at, at + 6) : 0;
	pushed.cfa.off = 24;
	if (!err && first)
		err = push_range(out, &pushed, at + 6, at + first);
	pushed.cfa.off = 16;
	if (shape->pushed == PLT_ENTRY)
		return err ? err : push_range(out, &leaf_row, at + first, at + code.len);
	for (uint64_t i = first; i < code.len && !err; i += PLT_ENTRY) {
		err = push_range(out, &leaf_row, at + i, at + i + shape->pushed);
		if (!err)
			err = push_range(out, &pushed, at + i + shape->pushed, at + i + PLT_ENTRY);
	}
	return err;
}

static bool all_like(const struct bytes *code, uint64_t first, const struct plt_shape *shape)
{
	for (uint64_t i = first; i < code->len; i += PLT_ENTRY)
		if (!is_plt_entry(code, i, shape))
			return false;
	return first < code->len;
}

int trampolines_add_plt(const struct elf_image *img, const struct elf_shdr *s, struct rowbuf *out)
{
	static const uint8_t push_slot[] = { 0xff, 0x35 };
	struct elf_blob code = { 0 };
	uint64_t first;
	int err = 0;

	if (!s->size || s->size > PLT_MAX || s->size % PLT_ENTRY ||
	    s->addr > UINT64_MAX - s->size || elf_image_read(img, s->offset, s->size, &code))
		return 0;
	first = bytes_are(&code.view, 0, push_slot, sizeof(push_slot)) ? PLT_ENTRY : 0;
	for (size_t i = 0; i < sizeof(plt_shapes) / sizeof(plt_shapes[0]); i++)
		if (all_like(&code.view, first, &plt_shapes[i])) {
			err = plt_rows(code.view, s->addr, first, &plt_shapes[i], out);
			break;
		}
	elf_blob_free(&code);
	rowbuf_sort(out);
	return err;
}

static bool is_bare_vdso(const struct elf_image *img)
{
	struct elf_dynamic dyn;

	return dynamic_facts(img, &dyn) && !strcmp(dyn.name, "linux-vdso.so.1") &&
	       !elf_image_segment(img, PT_GNU_EH_FRAME) && !elf_image_section(img, ".eh_frame");
}

int trampolines_find(const struct elf_image *img, enum row_arch arch, struct rowbuf *out)
{
	int err = 0;

	if ((arch != ROW_ARCH_X86_64 && arch != ROW_ARCH_AARCH64) || img->be)
		return 0;
	if (arch == ROW_ARCH_AARCH64 && is_bare_vdso(img))
		return vdso_arm64_rows(img, out);
	if (worth_searching(img))
		err = search_text(img, arch, out);
	if (!err)
		err = entry_row(img, arch, out);
	if (!err)
		err = init_rows(img, arch, ".init", out);
	if (!err)
		err = init_rows(img, arch, ".fini", out);
	if (!err)
		err = arch == ROW_ARCH_AARCH64 ? a64_plt(img, out) : fcontext_rows(img, out);
	rowbuf_sort(out);
	return err;
}

int trampolines_add_restorer(const struct elf_image *img, enum row_arch arch, uint64_t addr,
			     struct rowbuf *out)
{
	const uint32_t size = known_code_size(KNOWN_RESTORE_RT);
	const uint64_t from = addr - known_code_before(KNOWN_RESTORE_RT);
	struct elf_blob code = { 0 };
	uint64_t offset, start;
	bool found;
	int err;

	for (size_t i = 0; i < out->n; i++)
		if (out->rows[i].start == from)
			return 0;
	if (arch != ROW_ARCH_X86_64 || !addr || !elf_image_vaddr_to_offset(img, from, &offset) ||
	    elf_image_read(img, offset, size, &code))
		return 0;
	found = known_code_next(&code.view, KNOWN_RESTORE_RT, &start);
	elf_blob_free(&code);
	err = found ? push_range(out, &restorer_row, from, from + size) : 0;
	rowbuf_sort(out);
	return err;
}
