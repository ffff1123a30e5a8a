/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ruby 2.7 to 3.4, x86-64: from the symbols that libruby exports for extensions, and the code of
 * the functions there. The layout of its objects follows from the version.
 */
#include <stdio.h>
#include <string.h>

#include "languages/lang.h"

#define FUNCTION_MAX 4096 /* bytes of a function whose calls are looked at */
#define SYMBOLS_MAX  160  /* bytes of the function that finds the name of a symbol */
#define CORE_MIN     4096 /* bytes of vm_exec_core; other functions there have 2 KB */
#define TARGETS_MAX  64

static const struct version {
	const char *prefix; /* prefix of ruby_version */
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

static bool ruby_describe(const struct lang_file *f, struct sf_lang *ret)
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

static bool ruby_sound(const struct sf_lang *l)
{
	const struct sf_ruby *rb = &l->ruby;

	return rb->nexec && rb->nexec <= l->nloops && rb->frame_size >= 40 &&
	       rb->frame_size <= 64 && rb->insns <= SF_RUBY_BODY - 8 &&
	       rb->insns_n <= SF_RUBY_BODY - 8 && rb->insns_index <= SF_RUBY_BODY - 8 &&
	       rb->insn_size >= 8 && rb->insn_size <= 12 && rb->tls_how <= SF_TLS_GOT;
}

/* ---- Code ---- */

/* How many bytes of a label are "block in " or "block (2 levels) in " */
static size_t block_prefix(const uint8_t *label, size_t len)
{
	static const char block[] = "block in ", more[] = "block (", in[] = ") in ";
	const uint8_t *end = NULL;

	if (len > sizeof(block) && !memcmp(label, block, sizeof(block) - 1))
		return sizeof(block) - 1;
	if (len > sizeof(more) && !memcmp(label, more, sizeof(more) - 1))
		end = memmem(label, len, in, sizeof(in) - 1);
	return end ? (size_t)(end - label) + sizeof(in) - 1 : 0;
}

/* The label; since 3.4 with the class of the method: "block in Foo#bar". */
static void ruby_parts(const struct sf_code *rec, struct lang_parts *ret)
{
	size_t class = rec->class_len <= rec->name_len ? rec->class_len : 0,
	       len = rec->name_len - class, n;
	const uint8_t *label = rec->name + class;

	lang_plain_parts(rec, ret);
	n = class ? block_prefix(label, len) : 0;
	memcpy(ret->room, label, n);
	memcpy(ret->room + n, rec->name, class);
	memcpy(ret->room + n + class, label + n, len - n);
	ret->name = (struct lang_text){ ret->room, class + len, SF_CODE_UTF8 };
}

/*
 * A line table, as BPF sends it: the number of entries (u32), the entries, whose first word is a
 * line, and an index that tells the entry of an instruction.
 *
 * The index is a succinct bit vector, one bit for each instruction word, with counts of the bits
 * before a block. The count of bits up to a position is the number of its entry, from 1 on.
 *
 *   6 words for positions 0..53: 9 counts of 7 bits each, one for each position
 *   blocks of 80 bytes for 512 positions each: u32 count before the block, 4 bytes of padding, a
 *   word with 7 counts of 9 bits, before the 2nd to 8th word of the block; 8 words of bits
 */
#define FIRST	    54 /* positions in the first part */
#define EACH	    9
#define BLOCK	    512
#define BLOCK_BYTES 80

static uint64_t word_at(const struct bytes *b, uint64_t pos)
{
	struct bytes at = *b;

	bytes_seek(&at, pos);
	return bytes_u64(&at);
}

static uint64_t entry_of(const struct bytes *index, uint32_t position)
{
	uint32_t in, word;
	uint64_t block, before, bits;

	if (position < FIRST)
		return word_at(index, position / EACH * 8) >> (position % EACH * 7) & 0x7f;
	position -= FIRST;
	block = FIRST / EACH * 8 + (uint64_t)position / BLOCK * BLOCK_BYTES;
	in = position % BLOCK;
	word = in / 64;
	before = word ? word_at(index, block + 8) >> ((word - 1) * 9) & 0x1ff : 0;
	bits = word_at(index, block + 16 + 8 * word) << (63 - in % 64);
	return (uint32_t)word_at(index, block) + before + (uint64_t)__builtin_popcountll(bits);
}

static uint32_t ruby_line(const struct lang_code *c, uint32_t position)
{
	struct bytes b = bytes_of(c->lines, c->lines_len, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__),
		     index;
	uint64_t size = c->version == 7 || c->version == 0 ? 8 : 12, n = bytes_u32(&b), entry;

	index = bytes_sub(&b, 4 + n * size,
			  c->lines_len > 4 + n * size ? c->lines_len - 4 - n * size : 0);
	entry = entry_of(&index, position);
	if (b.err || index.err || !entry || entry > n)
		return 0;
	return (uint32_t)word_at(&b, 4 + (entry - 1) * size);
}

/* Ruby 3.3 and later: "(eval at PATH:LINE)" */
static const char *ruby_place(const struct lang_code *c, char room[LANG_PLACE_MAX])
{
	const char *base = strrchr(c->file, '/');

	if (!base || !base[1] || strncmp(c->file, "(eval at ", 9) != 0)
		return lang_file_base(c);
	snprintf(room, LANG_PLACE_MAX, "(eval at %.256s", base + 1);
	return room;
}

const struct language ruby_language = {
	.describe = ruby_describe,
	.sound = ruby_sound,
	.parts = ruby_parts,
	.line = ruby_line,
	.place = ruby_place,
};
