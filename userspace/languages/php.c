/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PHP 7.4 to 8.4, x86-64, without thread safety (NTS): from the symbols that php exports for its
 * extensions. The layout of functions follows from the version, which is in the HTTP header that it
 * sends. That of executor_globals is checked against the code of a function that uses it.
 */
#include <string.h>

#include "languages/lang.h"

#define CURRENT	       488 /* executor_globals.current_execute_data */
#define RODATA_MAX     (16u << 20)
#define FUNCTION_BYTES 64
#define PROLOGUE_BYTES 64
#define RESUME_BYTES   512

/* zend_op_array, of which struct _zend_function has the same head */
static const struct version {
	uint16_t version;
	uint8_t opcodes, file;
} versions[] = {
	{ 7 << 8 | 4, 64, 136 }, { 8 << 8 | 0, 72, 144 }, { 8 << 8 | 1, 72, 144 },
	{ 8 << 8 | 2, 88, 152 }, { 8 << 8 | 3, 80, 144 }, { 8 << 8 | 4, 104, 168 },
};

static bool digits(struct bytes *b, uint32_t *ret)
{
	uint32_t n = 0, c;

	*ret = 0;
	while (n < 3 && bytes_left(b) && (c = bytes_u8(b) - '0') <= 9) {
		*ret = *ret * 10 + c;
		n++;
	}
	return n && n < 3;
}

/* Finds "X-Powered-By: PHP/8.2.36" in data that is not written to. 0: it is not there */
static uint16_t version_in(struct bytes data)
{
	static const char text[] = "X-Powered-By: PHP/";
	const uint8_t *start = bytes_here(&data), *at;
	uint32_t major, minor;

	at = start ? memmem(start, bytes_left(&data), text, sizeof(text) - 1) : NULL;
	if (!at)
		return 0;
	bytes_skip(&data, (size_t)(at - start) + sizeof(text) - 1);
	if (!digits(&data, &major) || !digits(&data, &minor))
		return 0;
	return (uint16_t)(major << 8 | minor);
}

static const struct version *version_of(const struct lang_file *f)
{
	uint16_t version = 0;

	for (uint32_t i = 0; i < f->img->nphdrs && !version; i++) {
		const struct elf_phdr *p = &f->img->phdrs[i];
		struct elf_blob b = { 0 };

		if (p->type == PT_LOAD && !(p->flags & PF_W) && p->filesz <= RODATA_MAX &&
		    !elf_image_read(f->img, p->offset, p->filesz, &b))
			version = version_in(b.view);
		elf_blob_free(&b);
	}
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
		if (versions[i].version == version)
			return &versions[i];
	return NULL;
}

/* The register that an instruction with a ModRM byte names in its reg field. */
static uint32_t reg_of(uint32_t op)
{
	return (op >> 19 & 7) | (op & 4 ? 8 : 0);
}

/*
 * Whether the function reads a word at executor_globals + CURRENT. A program has the address in the
 * instruction, or that of executor_globals before it. A library loads the latter from its GOT, as
 * the program may have a copy of it: *ret_got is where, or 0.
 */
static bool current_is_there(const struct lang_file *f, uint64_t globals, uint64_t *ret_got)
{
	struct elf_dynsym_value fn;
	struct elf_blob b = { 0 };
	bool found = false;
	uint32_t held = 0; /* the registers that hold the address of executor_globals */
	uint64_t got = 0;

	if (!elf_dynsym_find(&f->syms, "zend_get_executed_lineno", &fn) ||
	    !lang_bytes(f, fn.addr, FUNCTION_BYTES, &b))
		return false;
	for (uint64_t i = 0; bytes_left(&b.view); i++, bytes_skip(&b.view, 1)) {
		struct bytes code = b.view;
		uint32_t op = bytes_u32(&code);
		uint64_t disp, to;

		code = b.view;
		bytes_skip(&code, 3);
		disp = (uint64_t)(int64_t)bytes_s32(&code);
		to = fn.addr + i + 7 + disp;
		/* lea globals(%rip), reg; mov GOT(%rip), reg */
		if ((op & 0xc7fffb) == 0x058d48 && to == globals) {
			held |= 1u << reg_of(op);
		} else if ((op & 0xc7fffb) == 0x058b48 && to != globals + CURRENT && !held) {
			held |= 1u << reg_of(op);
			got = to;
		}
		/* mov CURRENT(reg), reg; mov globals + CURRENT(%rip), reg */
		found |= (op & 0xc0fff8) == 0x808b48 && disp == CURRENT &&
			 (held >> ((op >> 16 & 7) | (op & 1 ? 8 : 0)) & 1);
		found |= (op & 0xc7fffb) == 0x058b48 && to == globals + CURRENT;
	}
	elf_blob_free(&b);
	*ret_got = got;
	return found;
}

/*
 * The packed rule of the loop after its prologue, which pushes registers and makes room. 0: the
 * code is another.
 */
static uint16_t rule_of(const struct lang_file *f, uint64_t loop)
{
	struct elf_blob b = { 0 };
	uint32_t pushes = 0, fp = 0, room = 0;

	if (!lang_bytes(f, loop, PROLOGUE_BYTES, &b))
		return 0;
	while (bytes_left(&b.view) && !room) {
		uint32_t insn = (uint32_t)bytes_peek64le(&b.view);

		if (insn == 0xfa1e0ff3) { /* endbr64 */
			bytes_skip(&b.view, 4);
		} else if ((insn & 0xffffff) == 0xe58948) { /* mov %rsp, %rbp */
			bytes_skip(&b.view, 3);
		} else if ((insn & 0xffffff) == 0xec8348) { /* sub $imm8, %rsp */
			room = insn >> 24;
		} else if ((insn & 0xffffff) == 0xec8148) { /* sub $imm32, %rsp */
			bytes_skip(&b.view, 3);
			room = bytes_u32(&b.view);
		} else if ((insn & 0xf8) == 0x50 || (insn & 0xf8ff) == 0x5041) { /* push */
			pushes++;
			fp = (insn & 0xff) == 0x55 ? pushes + 1 : fp;
			bytes_skip(&b.view, (insn & 0xf8) == 0x50 ? 1 : 2);
		} else {
			break;
		}
	}
	elf_blob_free(&b);
	room += 8 * pushes + 8;
	if (!fp || room <= 8 * pushes + 8 || room % 8 || room > 0xff8)
		return 0;
	return (uint16_t)(room / 8 << 5 | fp);
}

/* The offset of a generator's flags, in which zend_generator_resume() sets bit 0. 0: not found */
static uint16_t generator_flags(const struct lang_file *f)
{
	struct elf_dynsym_value fn;
	struct elf_blob b = { 0 };
	uint32_t disp = 0;

	if (!elf_dynsym_find(&f->syms, "zend_generator_resume", &fn) ||
	    !lang_bytes(f, fn.addr, RESUME_BYTES, &b))
		return 0;
	for (; bytes_left(&b.view) && !disp; bytes_skip(&b.view, 1)) {
		uint64_t op = bytes_peek64le(&b.view);

		/* orb $1, DISP(reg) */
		if ((op & 0xff00000000f8ff) == 0x01000000008880 && (uint32_t)(op >> 16) < 1024)
			disp = (uint32_t)(op >> 16);
	}
	elf_blob_free(&b);
	return (uint16_t)disp;
}

/* Where the code of a function is in the file; no bytes: not known */
static struct sf_span span_of(const struct lang_file *f, const char *name)
{
	struct sf_span span = { 0 };
	struct elf_dynsym_value fn;

	if (elf_dynsym_find(&f->syms, name, &fn) &&
	    elf_image_vaddr_to_offset(f->img, fn.addr, &span.start))
		span.size = fn.size;
	return span;
}

static bool php_describe(const struct lang_file *f, struct sf_lang *ret)
{
	struct elf_dynsym_value globals, loop;
	const struct version *v;
	uint64_t got;

	if (f->img->machine != EM_X86_64 ||
	    !elf_dynsym_find(&f->syms, "executor_globals", &globals) ||
	    !elf_dynsym_find(&f->syms, "execute_ex", &loop) || globals.size < CURRENT + 8 ||
	    !current_is_there(f, globals.addr, &got))
		return false;
	v = version_of(f);
	if (!v)
		return false;
	ret->version = v->version;
	ret->nloops = lang_loops(f, loop.addr, ret->loops);
	ret->php.current = lang_address(f, loop.addr, got ? got : globals.addr + CURRENT);
	ret->php.current_off = got ? CURRENT : 0;
	ret->php.call = span_of(f, "zend_call_function");
	ret->php.resume = span_of(f, "zend_generator_resume");
	ret->php.rule = rule_of(f, loop.addr);
	ret->php.func_opcodes = v->opcodes;
	ret->php.func_file = v->file;
	ret->php.generator_frame = v->version < 8 << 8 ? 64 : 56;
	ret->php.generator_flags = generator_flags(f);
	ret->php.generator_child = v->version < 8 << 8 ? 184 : 168;
	return true;
}

static bool php_sound(const struct sf_lang *l)
{
	const struct sf_php *php = &l->php;

	return l->nloops && php->func_opcodes <= SF_PHP_FUNC_MAX - 8 &&
	       php->func_file <= SF_PHP_FUNC_MAX - 16 && php->rule < 1 << 14;
}

/* ---- Code ---- */

/* "/a.php(12) : eval()'d code" is code in a.php, as is what that evaluates. */
static uint16_t source_file(const uint8_t *file, uint16_t len)
{
	static const char eval[] = ") : eval()'d code";
	size_t n = sizeof(eval) - 1;
	uint16_t digits;

	while (len > n && !memcmp(file + len - n, eval, n)) {
		digits = (uint16_t)(len - n);
		while (digits && file[digits - 1] >= '0' && file[digits - 1] <= '9')
			digits--;
		if (!digits || file[digits - 1] != '(')
			break;
		len = (uint16_t)(digits - 1);
	}
	return len;
}

/*
 * Names of classes and closures without the places that they are declared at: "class@anonymous", a
 * zero byte and a path; since 8.4 "{closure:/a.php:12}".
 */
static size_t plain_name(uint8_t *dst, const uint8_t *name, size_t len)
{
	static const char closure[] = "{closure:";
	const uint8_t *zero = memchr(name, 0, len), *at;

	if (zero)
		len = (size_t)(zero - name);
	at = memmem(name, len, closure, sizeof(closure) - 1);
	if (at)
		len = (size_t)(at - name) + sizeof(closure) - 2;
	memcpy(dst, name, len);
	if (at)
		dst[len++] = '}';
	return len;
}

/* "Class::method". The class is in lines. */
static void php_parts(const struct sf_code *rec, struct lang_parts *ret)
{
	static const char *const unnamed[] = { "?", "{main}", "include", "eval" };
	size_t n = 0, class_len = rec->lines_len < SF_CODE_TEXT ? rec->lines_len : SF_CODE_TEXT;
	uint8_t *text = ret->room;
	const char *name;

	if (rec->version != SF_PHP_FUNCTION) {
		name = unnamed[rec->version <= SF_PHP_EVAL ? rec->version : 0];
		n = strlen(name);
		memcpy(text, name, n);
	} else {
		if (class_len) {
			n = plain_name(text, rec->lines, class_len);
			text[n++] = ':';
			text[n++] = ':';
		}
		n += plain_name(text + n, rec->name, rec->name_len);
	}
	ret->name = (struct lang_text){ text, n, SF_CODE_UTF8 };
	ret->file = (struct lang_text){ rec->file, source_file(rec->file, rec->file_len),
					SF_CODE_UTF8 };
	ret->lines = rec->lines;
	ret->lines_len = 0;
}

const struct language php_language = {
	.describe = php_describe,
	.sound = php_sound,
	.parts = php_parts,
};
