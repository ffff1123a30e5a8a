/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ruby 2.7 to 3.4, x86-64: from the symbols that libruby exports for extensions, and the code of
 * the functions there. The layout of its objects follows from the version.
 */
#include <string.h>

#include "lang/lang.h"

#define FUNCTION_MAX 4096 /* bytes of a function whose calls are looked at */
#define SYMBOLS_MAX  160  /* bytes of the function that finds the name of a symbol */
#define CORE_MIN     4096 /* bytes of vm_exec_core; other functions there have 2 KB */
#define TARGETS_MAX  64

static const struct version {
	const char *prefix; /* of ruby_version */
	uint16_t number;
	struct sf_ruby layout;
} versions[] = {
	{ "2.7.",
	  2 << 8 | 7,
	  { .frame_size = 56,
	    .ec_thread = 56,
	    .thread_pthread = 72,
	    .insns = 120,
	    .insns_n = 136,
	    .insns_index = 144,
	    .insn_size = 8,
	    .before_3_2 = 1 } },
	{ "3.0.",
	  3 << 8 | 0,
	  { .frame_size = 56,
	    .insns = 120,
	    .insns_n = 136,
	    .insns_index = 144,
	    .insn_size = 8,
	    .before_3_2 = 1 } },
	{ "3.1.",
	  3 << 8 | 1,
	  { .frame_size = 64,
	    .insns = 120,
	    .insns_n = 136,
	    .insns_index = 144,
	    .insn_size = 12,
	    .before_3_2 = 1 } },
	{ "3.2.",
	  3 << 8 | 2,
	  { .frame_size = 64, .insns = 112, .insns_n = 128, .insns_index = 136, .insn_size = 12 } },
	{ "3.3.",
	  3 << 8 | 3,
	  { .frame_size = 56, .insns = 112, .insns_n = 128, .insns_index = 136, .insn_size = 12 } },
	{ "3.4.",
	  3 << 8 | 4,
	  { .frame_size = 56,
	    .insns = 112,
	    .insns_n = 128,
	    .insns_index = 136,
	    .insn_size = 12,
	    .local_iseq = 168 } },
};

static const struct version *version_of(const struct lang_file *f)
{
	struct elf_dynsym_value sym;
	struct elf_blob b = { 0 };
	const struct version *v = NULL;

	if (!elf_dynsym_find(&f->syms, "ruby_version", &sym) || !lang_bytes(f, sym.addr, 4, &b))
		return NULL;
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]) && !v; i++)
		if (bytes_are(&b.view, 0, versions[i].prefix, 4))
			v = &versions[i];
	elf_blob_free(&b);
	return v;
}

/* ---- Calls ---- */

/* The starts of functions that a piece of code calls, or jumps to at its end. */
struct targets {
	uint64_t start[TARGETS_MAX], size[TARGETS_MAX];
	size_t n;
};

static void add_target(const struct lang_file *f, uint64_t to, struct targets *t)
{
	uint64_t start, end;

	if (t->n == TARGETS_MAX || !f->functions->at(f->functions->ctx, to, &start, &end) ||
	    start != to)
		return;
	for (size_t i = 0; i < t->n; i++)
		if (t->start[i] == to)
			return;
	t->start[t->n] = to;
	t->size[t->n++] = end - start;
}

/* x86-64 has no alignment, but what only looks like a call rarely leads to a function's start. */
static void find_targets(const struct lang_file *f, uint64_t addr, struct targets *ret)
{
	struct elf_blob code = { 0 };
	uint64_t start, end;

	ret->n = 0;
	if (!f->functions->at(f->functions->ctx, addr, &start, &end) ||
	    end - start > FUNCTION_MAX || !lang_bytes(f, start, end - start, &code))
		return;
	while (bytes_left(&code.view)) {
		struct bytes at = code.view;
		uint8_t op = bytes_u8(&at);
		int64_t rel = bytes_s32(&at);

		if ((op == 0xe8 || op == 0xe9) && !at.err) /* call, jmp rel32 */
			add_target(f, start + at.pos + (uint64_t)rel, ret);
		bytes_skip(&code.view, 1);
	}
	elf_blob_free(&code);
}

static void targets_of(const struct lang_file *f, const char *name, struct targets *ret)
{
	struct elf_dynsym_value sym;

	ret->n = 0;
	if (elf_dynsym_find(&f->syms, name, &sym))
		find_targets(f, sym.addr, ret);
}

/*
 * rb_vm_exec. Where it is not exported, it is the function that both of these call. They call
 * exported functions through the PLT, which has no function that starts there.
 */
static uint64_t find_exec(const struct lang_file *f)
{
	struct elf_dynsym_value sym;
	struct targets a, b;
	uint64_t found = 0;

	if (elf_dynsym_find(&f->syms, "rb_vm_exec", &sym))
		return sym.addr;
	targets_of(f, "rb_iseq_eval", &a);
	targets_of(f, "rb_iseq_eval_main", &b);
	for (size_t i = 0; i < a.n; i++)
		for (size_t k = 0; k < b.n; k++)
			if (a.start[i] == b.start[k] && a.start[i] != found) {
				if (found)
					return 0;
				found = a.start[i];
			}
	return found;
}

/* The spans of rb_vm_exec, then those of vm_exec_core, the largest function that it calls. */
static bool find_loops(const struct lang_file *f, uint64_t exec, struct sf_lang *ret)
{
	struct sf_span core[SF_LANG_LOOPS];
	struct targets t;
	uint64_t addr = 0, size = CORE_MIN;
	uint32_t n;

	ret->nloops = lang_loops(f, exec, ret->loops);
	ret->ruby.nexec = (uint8_t)ret->nloops;
	find_targets(f, exec, &t);
	for (size_t i = 0; i < t.n; i++) {
		if (t.size[i] < size || t.start[i] == exec)
			continue;
		addr = t.start[i];
		size = t.size[i];
	}
	n = addr ? lang_loops(f, addr, core) : 0;
	for (uint32_t i = 0; i < n && ret->nloops < SF_LANG_LOOPS; i++)
		ret->loops[ret->nloops++] = core[i];
	return ret->nloops > 0;
}

/* ---- Where things are ---- */

/* The address of the first mov disp32(%rip), %rdi in a piece of code. */
static bool loads_array(const struct lang_file *f, uint64_t addr, uint64_t *ret)
{
	static const uint8_t mov[] = { 0x48, 0x8b, 0x3d };
	struct elf_blob b = { 0 };
	bool found = false;

	if (!lang_bytes(f, addr, SYMBOLS_MAX, &b))
		return false;
	if (bytes_find(&b.view, mov, sizeof(mov))) {
		bytes_skip(&b.view, sizeof(mov));
		*ret = (uint64_t)(int64_t)bytes_s32(&b.view) + addr + b.view.pos;
		found = !b.view.err;
	}
	elf_blob_free(&b);
	return found;
}

/* The operand of the first cmp $imm32, %rdi or, from 3.4 on, %rax. 0: there is none. */
static uint32_t compared_with(struct bytes code)
{
	static const uint8_t rdi[] = { 0x48, 0x81, 0xff }, rax[] = { 0x48, 0x3d };
	struct bytes at = code;

	if (bytes_find(&at, rdi, sizeof(rdi))) {
		bytes_skip(&at, sizeof(rdi));
		return bytes_u32(&at);
	}
	if (!bytes_find(&code, rax, sizeof(rax)))
		return 0;
	bytes_skip(&code, sizeof(rax));
	return bytes_u32(&code);
}

/*
 * The array of symbols: rb_id2str makes an index from an id, which it compares with the last
 * operator, and jumps to the function that looks it up.
 */
static void find_symbols(const struct lang_file *f, uint64_t exec, struct sf_ruby *rb)
{
	struct elf_dynsym_value sym;
	struct elf_blob b = { 0 };
	struct targets t;
	uint64_t at;

	if (!elf_dynsym_find(&f->syms, "rb_id2str", &sym) || sym.size > SYMBOLS_MAX ||
	    !lang_bytes(f, sym.addr, sym.size, &b))
		return;
	rb->last_op = compared_with(b.view);
	find_targets(f, sym.addr, &t);
	if (rb->last_op && t.n == 1 && loads_array(f, t.start[0], &at))
		rb->symbols = lang_address(f, exec, at);
	elf_blob_free(&b);
}

static bool find_context(const struct lang_file *f, uint64_t exec, struct sf_ruby *rb)
{
	struct elf_dynsym_value sym;
	uint64_t at;

	rb->musl = f->syms.musl;
	if (rb->ec_thread) {
		if (!elf_dynsym_find(&f->syms, "ruby_current_execution_context_ptr", &sym))
			return false;
		rb->tls = lang_address(f, exec, sym.addr);
		return true;
	}
	rb->tls_how = lang_tls(f, "rb_thread_current", &at);
	rb->tls = rb->tls_how == SF_TLS_GOT ? lang_address(f, exec, at) : at;
	return rb->tls_how != SF_TLS_NONE;
}

/* ---- The description ---- */

bool ruby_describe(const struct lang_file *f, struct sf_lang *ret)
{
	const struct version *v;
	uint64_t exec;

	if (f->img->machine != EM_X86_64)
		return false;
	v = version_of(f);
	exec = v ? find_exec(f) : 0;
	if (!exec)
		return false;
	ret->version = v->number;
	ret->ruby = v->layout;
	find_symbols(f, exec, &ret->ruby);
	return find_loops(f, exec, ret) && find_context(f, exec, &ret->ruby);
}

bool ruby_sound(const struct sf_lang *l)
{
	const struct sf_ruby *rb = &l->ruby;

	return rb->nexec && rb->nexec <= l->nloops && rb->frame_size >= 40 &&
	       rb->frame_size <= 64 && rb->insns <= SF_RUBY_BODY - 8 &&
	       rb->insns_n <= SF_RUBY_BODY - 8 && rb->insns_index <= SF_RUBY_BODY - 8 &&
	       rb->insn_size >= 8 && rb->insn_size <= 12 && rb->tls_how <= SF_TLS_GOT;
}
