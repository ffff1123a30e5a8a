/* SPDX-License-Identifier: BSD-2-Clause */
#include "readers/code_ends.h"

#include <ctype.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/u64s.h"

#define STUB_BYTES 16 /* .plt.got of x86-64 has 8 */
#define STUB_OPS   6  /* instructions of a stub up to its jump */
#define PLT_MAX	   (16u << 20)

/* Declared noreturn by glibc, libgcc, libstdc++, GLib and Perl; sorted. */
static const char *const names[] = {
	"Perl_abort_execution",
	"Perl_my_exit",
	"Perl_my_failure_exit",
	"_Exit",
	"_Unwind_Resume",
	"_ZSt9terminatev",
	"__assert_fail",
	"__assert_perror_fail",
	"__chk_fail",
	"__cxa_bad_cast",
	"__cxa_bad_typeid",
	"__cxa_call_unexpected",
	"__cxa_pure_virtual",
	"__cxa_rethrow",
	"__cxa_throw",
	"__cxa_throw_bad_array_new_length",
	"__fortify_fail",
	"__longjmp_chk",
	"__stack_chk_fail",
	"_exit",
	"_longjmp",
	"abort",
	"err",
	"errx",
	"exit",
	"g_abort",
	"g_assertion_message",
	"g_assertion_message_expr",
	"g_thread_exit",
	"longjmp",
	"pthread_exit",
	"quick_exit",
	"siglongjmp",
	"thrd_exit",
	"verr",
	"verrx",
};

/* libstdc++'s std::__throw_bad_alloc() and its like: _ZSt17__throw_bad_allocv */
static bool is_throw(const char *name)
{
	if (strncmp(name, "_ZSt", 4) != 0)
		return false;
	for (name += 4; isdigit((unsigned char)*name);)
		name++;
	return strncmp(name, "__throw_", 8) == 0;
}

static bool never_returns(const char *name)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(name, names[i]))
			return true;
	/* Perl_croak_xs_usage and its like */
	return !strncmp(name, "Perl_croak", 10) || !strncmp(name, "Perl_die", 8) || is_throw(name);
}

/* Functions of glibc that return only if their first argument is 0 */
static bool may_end(const char *name)
{
	return !strcmp(name, "error") || !strcmp(name, "error_at_line");
}

static bool leads_to_function(const struct elf_image *img, uint64_t info)
{
	const uint64_t type = ELF64_R_TYPE(info);

	return img->machine == EM_X86_64
		       ? type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT
		       : type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT;
}

struct imports {
	struct code_ends *to;
	const struct elf_image *img;
	struct bytes syms, str; /* .dynsym and its strings */
};

/* Adds the slot of a relocation for a function that never returns. */
static int add_slot(void *ctx, const Elf64_Rela *r)
{
	struct imports *s = ctx;
	struct code_ends *e = s->to;
	struct bytes sym = bytes_sub(&s->syms, ELF64_R_SYM(r->r_info) * sizeof(Elf64_Sym),
				     sizeof(Elf64_Sym));
	const char *name;
	int err = 0;

	if (!leads_to_function(s->img, r->r_info))
		return 0;
	s->str.err = false;
	bytes_seek(&s->str, bytes_u32(&sym));
	name = bytes_str(&s->str);
	if (name && never_returns(name))
		err = u64_push(&e->ends, &e->nends, &e->ends_cap, r->r_offset);
	else if (name && may_end(name))
		err = u64_push(&e->may_end, &e->nmay_end, &e->may_end_cap, r->r_offset);
	return err;
}

static int read_slots(struct code_ends *e, const struct elf_image *img)
{
	const struct elf_shdr *dynsym = elf_image_section_of_type(img, SHT_DYNSYM);
	struct elf_blob syms = { 0 }, str = { 0 };
	int err = 0;

	if (!dynsym || dynsym->flags & SHF_COMPRESSED || dynsym->link >= img->nshdrs ||
	    elf_image_section_bytes(img, dynsym, &syms))
		return 0;
	if (!elf_image_section_bytes(img, &img->shdrs[dynsym->link], &str))
		err = elf_image_each_rela(img, add_slot,
					  &(struct imports){ e, img, syms.view, str.view });
	elf_blob_free(&syms);
	elf_blob_free(&str);
	return err;
}

/* A no-op, or endbr64 */
static bool is_idle(const struct code_op *op)
{
	return op->kind == OP_NOP || (op->kind == OP_OTHER && !op->writes && !op->store_size);
}

/* The slot of the GOT through which a stub jumps; 0: it is none. */
static uint64_t slot_of_stub(const struct code_binary *bin, uint64_t addr)
{
	struct code_op op, page = { .dst = CODE_NO_REG };
	uint64_t slot = 0;

	for (int i = 0; i < STUB_OPS; i++, addr += op.len) {
		code_decode(bin, addr, &op);
		if (op.kind == OP_CONST) /* adrp */
			page = op;
		else if (op.kind == OP_LOAD && op.base == page.dst && op.index == CODE_NO_REG)
			slot = (uint64_t)(page.imm + op.imm);
		else if (op.kind == OP_JUMP_TABLE && op.base == CODE_NO_REG &&
			 op.index == CODE_NO_REG)
			return (uint64_t)op.imm;
		else if (op.kind == OP_JUMP_REG)
			return slot;
		else if (op.kind != OP_LEA && !is_idle(&op))
			break;
	}
	return 0;
}

/* Whether a stub begins there that only passes its number to the resolver: of a file with IBT. */
static bool passes_number(const struct code_binary *bin, uint64_t addr)
{
	struct code_op op;

	code_decode(bin, addr, &op);
	if (is_idle(&op)) {
		addr += op.len;
		code_decode(bin, addr, &op);
	}
	if (op.kind != OP_STORE || op.base != bin->arch->sp)
		return false;
	code_decode(bin, addr + op.len, &op);
	return op.kind == OP_JUMP && op.target;
}

static int note_stub(struct code_ends *e, const struct code_binary *bin, uint64_t addr,
		     code_note_fn note, void *ctx)
{
	uint8_t *mark = code_mark_of(bin, addr);
	const uint64_t slot = mark ? slot_of_stub(bin, addr) : 0;
	int err = slot || (mark && passes_number(bin, addr)) ? note(ctx, addr, true) : 0;

	if (slot && u64_has(e->ends, e->nends, slot))
		*mark |= MARK_ENDS;
	if (err || !slot || !u64_has(e->may_end, e->nmay_end, slot))
		return err;
	return u64_push(&e->may_end, &e->nmay_end, &e->may_end_cap, addr);
}

int code_ends(struct code_ends *e, const struct elf_image *img, struct code_binary *bin,
	      code_note_fn note, void *ctx)
{
	static const char *const sections[] = { ".plt", ".plt.sec", ".plt.got" };
	int err = read_slots(e, img);

	for (size_t i = 0; !err && i < sizeof(sections) / sizeof(*sections); i++) {
		const struct elf_shdr *s = elf_image_section(img, sections[i]);
		uint64_t size = s && s->size < PLT_MAX ? s->size : 0;
		const uint64_t step = s && s->entsize == 8 ? 8 : STUB_BYTES;

		for (uint64_t at = 0; at < size && !err; at += step)
			err = note_stub(e, bin, s->addr + at, note, ctx);
	}
	bin->ends = e->ends;
	bin->nends = e->nends;
	bin->may_end = e->may_end;
	bin->nmay_end = e->nmay_end;
	return err;
}

void code_ends_free(struct code_ends *e)
{
	free(e->ends);
	free(e->may_end);
}
