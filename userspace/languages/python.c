/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CPython with the GIL, 3.8 to 3.14 on x86-64 and 3.9 to 3.14 on AArch64: from the symbols that
 * python3.x or libpython3.x exports for its extension modules. The layout of its objects follows
 * from the minor version; from 3.13 on the file has a table of them (_Py_DebugOffsets), which is
 * preferred. Where the state of a thread is kept follows from the code of two small exported
 * functions.
 */
#include <string.h>

#include "languages/lang.h"

/* pyconfig and headers of each version: offsets that the versions share */
#define STR_38	.str_len = 16, .str_state = 32, .str_ascii = 48, .str_compact = 72
#define STR_312 .str_len = 16, .str_state = 32, .str_ascii = 40, .str_compact = 56
#define BYTES	.bytes_len = 16, .bytes_data = 32, .ob_type = 8
#define FRAME_38                                                                   \
	.kind = SF_PY_BACK, .frame_size = 112, .frame_code = 32, .frame_back = 24, \
	.tstate_frame = 24, .tstate_thread = 176
#define CODE_38                                                                          \
	.code_first_line = 40, .code_file = 104, .code_name = 112, .code_qualname = 112, \
	.code_lines = 120
#define CODE_312                                                                         \
	.code_first_line = 68, .code_file = 112, .code_name = 120, .code_qualname = 128, \
	.code_lines = 136
#define FRAME_313                                                                 \
	.kind = SF_PY_ENTRY, .frame_code = 0, .frame_back = 8, .frame_lasti = 56, \
	.tstate_frame = 72, .tstate_thread = 152

static const struct version {
	uint32_t minor;
	uint32_t current, key; /* offsets in _PyRuntime; key: unless the code says another */
	struct sf_python layout;
} versions[] = {
	{ 8, 1368, 1392, { FRAME_38, CODE_38, STR_38, BYTES, .frame_lasti = 104, .lasti = 1 } },
	{ 9, 568, 584, { FRAME_38, CODE_38, STR_38, BYTES, .frame_lasti = 104, .lasti = 1 } },
	{ 10,
	  568,
	  584,
	  { FRAME_38, CODE_38, STR_38, BYTES, .frame_lasti = 96, .frame_owner = 83, .lasti = 2 } },
	{ 11,
	  576,
	  592,
	  { .kind = SF_PY_CFRAME,
	    .tstate_frame = 56,
	    .tstate_thread = 152,
	    .cframe_frame = 8,
	    .cframe_back = 16,
	    .frame_size = 72,
	    .frame_code = 32,
	    .frame_back = 48,
	    .frame_lasti = 56,
	    .frame_owner = 68,
	    .code_first_line = 72,
	    .code_file = 112,
	    .code_name = 120,
	    .code_qualname = 128,
	    .code_lines = 136,
	    .code_start = 184,
	    STR_38,
	    BYTES } },
	{ 12,
	  0,
	  1544,
	  { .kind = SF_PY_ENTRY,
	    .tstate_frame = 56,
	    .tstate_thread = 136,
	    .cframe_frame = 0,
	    .cframe_back = 8,
	    .frame_size = 72,
	    .frame_back = 8,
	    .frame_lasti = 56,
	    .frame_owner = 70,
	    CODE_312,
	    .code_start = 192,
	    STR_312,
	    BYTES } },
	{ 13,
	  0,
	  2160,
	  { FRAME_313, CODE_312, STR_312, BYTES, .frame_size = 72, .frame_owner = 70,
	    .code_start = 200 } },
	{ 14,
	  0,
	  2336,
	  { FRAME_313, CODE_312, STR_312, BYTES, .frame_size = 80, .frame_owner = 74,
	    .code_start = 208 } },
};

/* A file in which the three symbols of an interpreter were found. */
struct runtime {
	const struct lang_file *f;
	struct elf_dynsym_value self, loop, code_type;
};

static const struct version *version_of(const struct runtime *rt)
{
	struct elf_dynsym_value sym;
	struct elf_blob b = { 0 };
	uint32_t word = 0, minor = 0;

	if (elf_dynsym_find(&rt->f->syms, "Py_Version", &sym)) {
		if (lang_bytes(rt->f, sym.addr, 4, &b))
			word = bytes_u32(&b.view);
		elf_blob_free(&b);
		minor = word >> 24 == 3 ? word >> 16 & 0xff : 0;
	} else {
		/* A mutex takes 8 bytes more on AArch64, and _PyRuntime has two. */
		uint64_t size = rt->self.size - (rt->f->img->machine == EM_AARCH64 ? 16 : 0);

		minor = size == 1464 ? 8 : size == 656 ? 9 : size == 672 ? 10 : 0;
	}
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
		if (versions[i].minor == minor)
			return &versions[i];
	return NULL;
}

/* ---- _Py_DebugOffsets ---- */

#define DEBUG_WORDS 64

/* Offset i of a group. Its first word is the size of the structure, which the others lie in. */
static bool take(const uint64_t *group, size_t i, uint64_t most, uint64_t *ret)
{
	*ret = group[i];
	return *ret < group[0] && *ret <= most;
}

/* Replaces offsets by those in the file. False: they are not usable (free-threaded builds). */
static bool debug_offsets(const struct runtime *rt, uint32_t minor, struct sf_python *py)
{
	uint32_t thread = 3 + 3 + (minor == 13 ? 13 : 16), frame = thread + 9,
		 code = frame + (minor == 13 ? 6 : 8);
	struct elf_blob b = { 0 };
	uint64_t w[DEBUG_WORDS], v[12];
	bool ok;

	if (!lang_bytes(rt->f, rt->self.addr, sizeof(w), &b))
		return true;
	for (size_t i = 0; i < DEBUG_WORDS; i++)
		w[i] = bytes_u64(&b.view);
	elf_blob_free(&b);
	if (memcmp(&w[0], "xdebugpy", 8) != 0)
		return true;
	if (w[2] || w[1] >> 16 != (0x300u | minor))
		return false;
	ok = take(w + thread, 4, 4096, &v[0]) && take(w + thread, 5, 4096, &v[1]) &&
	     take(w + frame, 1, 104, &v[2]) && take(w + frame, 2, 104, &v[3]) &&
	     take(w + frame, 3, 104, &v[4]) && take(w + frame, 5, 110, &v[5]) &&
	     take(w + code, 1, 160, &v[6]) && take(w + code, 2, 160, &v[7]) &&
	     take(w + code, 3, 160, &v[8]) && take(w + code, 4, 160, &v[9]) &&
	     take(w + code, 5, 160, &v[10]) && take(w + code, 9, 250, &v[11]);
	if (!ok)
		return true;
	py->tstate_frame = (uint16_t)v[0];
	py->tstate_thread = (uint16_t)v[1];
	py->frame_back = (uint8_t)v[2];
	py->frame_code = (uint8_t)v[3];
	py->frame_lasti = (uint8_t)v[4];
	py->frame_owner = (uint8_t)v[5];
	py->code_file = (uint8_t)v[6];
	py->code_name = (uint8_t)v[7];
	py->code_qualname = (uint8_t)v[8];
	py->code_lines = (uint8_t)v[9];
	py->code_first_line = (uint8_t)v[10];
	py->code_start = (uint8_t)v[11];
	return true;
}

/* ---- The state of a thread ---- */

static bool in_runtime(const struct runtime *rt, uint64_t addr)
{
	return addr - rt->self.addr < rt->self.size;
}

/*
 * The address that an instruction loads into a register, if it lies in _PyRuntime: lea of rip+disp,
 * lea of reg+disp after _PyRuntime's address was taken from the GOT, mov of an immediate.
 */
static bool loads_key(const struct runtime *rt, struct bytes code, uint64_t addr, uint64_t *ret)
{
	uint8_t op = bytes_u8(&code), modrm;
	uint64_t to;

	if (op == 0xbf || op == 0xbb || op == 0xbd) { /* mov imm32, %edi, %ebx, %ebp */
		to = bytes_u32(&code);
	} else if (op == 0x48 || op == 0x4c) {
		op = bytes_u8(&code);
		modrm = bytes_u8(&code);
		to = (uint64_t)(int64_t)bytes_s32(&code);
		if (op == 0x8d && (modrm & 0xc7) == 0x05) /* lea disp(%rip), reg */
			to += addr + 7;
		else if (op == 0x8d && (modrm & 0xc0) == 0x80 && (modrm & 7) != 4)
			to += rt->self.addr;		       /* lea disp(reg), reg */
		else if (op != 0xc7 || (modrm & 0xf8) != 0xc0) /* mov imm32, reg */
			return false;
	} else {
		return false;
	}
	if (code.err || !in_runtime(rt, to))
		return false;
	*ret = to;
	return true;
}

/*
 * The first instruction of a small exported function that `is` recognizes. x86-64 has no
 * alignment, but no other instruction there looks like one of these.
 */
typedef bool (*code_fn)(const struct runtime *rt, struct bytes code, uint64_t addr, uint64_t *ret);

static bool find_in_code(const struct runtime *rt, const char *name, code_fn is, uint64_t *ret)
{
	struct elf_dynsym_value sym;
	struct elf_blob b = { 0 };
	bool found = false;

	if (!elf_dynsym_find(&rt->f->syms, name, &sym) ||
	    !lang_bytes(rt->f, sym.addr, LANG_FUNCTION_BYTES, &b))
		return false;
	for (uint64_t i = 0; bytes_left(&b.view) && i < sym.size && !found; i++) {
		found = is(rt, b.view, sym.addr + i, ret);
		bytes_skip(&b.view, 1);
	}
	elf_blob_free(&b);
	return found;
}

/* Where the state of the current thread is, from 3.12 on: in a thread-local variable. */
static void find_tls(const struct runtime *rt, struct sf_python *py)
{
	static const char *const names[] = { "PyThreadState_GetUnchecked",
					     "_PyThreadState_GetCurrent",
					     "_PyThreadState_UncheckedGet" };
	uint64_t at = 0;

	for (size_t i = 0; i < 3 && py->tls_how == SF_TLS_NONE; i++)
		py->tls_how = lang_tls(rt->f, names[i], &at);
	py->tls = py->tls_how == SF_TLS_GOT ? lang_address(rt->f, rt->loop.addr, at) : at;
}

/* Where the state of the current thread is on AArch64: the code says all of it. */
static void find_state_arm64(const struct runtime *rt, const struct version *v,
			     struct sf_python *py)
{
	uint64_t self = rt->self.addr, size = rt->self.size, loop = rt->loop.addr;
	struct lang_value key = lang_value_arm64(rt->f, "PyGILState_GetThisThreadState", self,
						 size),
			  now = lang_value_arm64(rt->f, "_PyThreadState_UncheckedGet", self, size);

	if (now.kind == LANG_UNKNOWN)
		now = lang_value_arm64(rt->f, "PyThreadState_GetUnchecked", self, size);
	if (key.kind == LANG_WORD) /* loads the key, or passes on the Py_tss_t */
		py->key = lang_address(rt->f, loop, key.at);
	else if (key.kind == LANG_ADDRESS && in_runtime(rt, key.at))
		py->key = lang_address(rt->f, loop, key.at + 4);
	if (v->current && now.kind == LANG_WORD) {
		py->current = lang_address(rt->f, loop, now.at);
	} else if (now.kind == LANG_THREAD_WORD) {
		py->tls_how = SF_TLS_EXEC;
		py->tls = now.at;
	} else if (now.kind == LANG_TLS_PAIR) {
		py->tls_how = SF_TLS_DESC;
		py->tls = lang_address(rt->f, loop, now.at);
	}
}

static void find_state(const struct runtime *rt, const struct version *v, struct sf_python *py)
{
	uint64_t at = rt->self.addr + v->key;

	find_in_code(rt, "PyGILState_GetThisThreadState", loads_key, &at);
	/* Py_tss_t: whether it was created, then the key */
	py->key = lang_address(rt->f, rt->loop.addr, at + 4);
	if (v->current)
		py->current = lang_address(rt->f, rt->loop.addr, rt->self.addr + v->current);
	else
		find_tls(rt, py);
}

/* ---- The description ---- */

static bool python_describe(const struct lang_file *f, struct sf_lang *ret)
{
	struct runtime rt = { .f = f };
	const struct version *v;

	if ((f->img->machine != EM_X86_64 && f->img->machine != EM_AARCH64) ||
	    !elf_dynsym_find(&f->syms, "_PyRuntime", &rt.self) ||
	    !elf_dynsym_find(&f->syms, "_PyEval_EvalFrameDefault", &rt.loop) ||
	    !elf_dynsym_find(&f->syms, "PyCode_Type", &rt.code_type))
		return false;
	v = version_of(&rt);
	if (!v)
		return false;
	ret->version = (uint16_t)(3 << 8 | v->minor);
	ret->python = v->layout;
	ret->nloops = lang_loops(f, rt.loop.addr, ret->loops);
	if (v->minor >= 13 && !debug_offsets(&rt, v->minor, &ret->python))
		return false;
	ret->python.code_type = lang_address(f, rt.loop.addr, rt.code_type.addr);
	ret->python.musl = f->syms.musl;
	if (f->img->machine == EM_AARCH64)
		find_state_arm64(&rt, v, &ret->python);
	else
		find_state(&rt, v, &ret->python);
	return true;
}

static bool python_sound(const struct sf_lang *l)
{
	const struct sf_python *py = &l->python;

	return l->nloops && py->kind <= SF_PY_ENTRY && py->frame_size <= SF_PY_FRAME_MAX &&
	       py->frame_size >= 8 && py->frame_code <= py->frame_size - 8 &&
	       py->frame_back <= py->frame_size - 8 && py->frame_lasti <= py->frame_size - 8 &&
	       py->frame_owner < py->frame_size && py->code_file <= SF_PY_CODE_MAX - 8 &&
	       py->code_name <= SF_PY_CODE_MAX - 8 && py->code_qualname <= SF_PY_CODE_MAX - 8 &&
	       py->code_lines <= SF_PY_CODE_MAX - 8 && py->code_first_line <= SF_PY_CODE_MAX - 8 &&
	       py->ob_type <= SF_PY_CODE_MAX - 8;
}

/* ---- Code ---- */

/* Line tables: Objects/lnotab_notes.txt, Objects/locations.md */

/* 3.8, 3.9: pairs of bytes of code and of lines to add once these are passed. */
static uint32_t line_38(struct bytes t, int64_t line, uint32_t position)
{
	uint64_t addr = 0;

	while (bytes_left(&t) >= 2) {
		addr += bytes_u8(&t);
		if (addr > 2ull * position)
			break;
		line += bytes_s8(&t);
	}
	return line > 0 ? (uint32_t)line : 0;
}

/* 3.10: pairs of bytes of code and of lines to add before these; -128: no line. */
static uint32_t line_310(struct bytes t, int64_t line, uint32_t position)
{
	uint64_t addr = 0;

	while (bytes_left(&t) >= 2) {
		uint8_t size = bytes_u8(&t);
		int8_t delta = bytes_s8(&t);

		if (delta != -128)
			line += delta;
		addr += size;
		if (addr > 2ull * position)
			return delta != -128 && line > 0 ? (uint32_t)line : 0;
	}
	return 0;
}

static uint64_t varint(struct bytes *t)
{
	uint64_t val = 0;

	for (unsigned int shift = 0; shift < 60; shift += 6) {
		uint8_t b = bytes_u8(t);

		val |= (uint64_t)(b & 0x3f) << shift;
		if (!(b & 0x40))
			break;
	}
	return val;
}

static int64_t signed_varint(struct bytes *t)
{
	uint64_t val = varint(t);

	return val & 1 ? -(int64_t)(val >> 1) : (int64_t)(val >> 1);
}

/* 3.11 on: entries of a code and a number of units, then what the code says. */
static uint32_t line_311(struct bytes t, int64_t line, uint32_t position)
{
	uint64_t addr = 0;

	while (bytes_left(&t)) {
		uint8_t head = bytes_u8(&t);
		uint32_t code = head >> 3 & 15;

		addr += (head & 7u) + 1;
		if (code >= 10 && code <= 12)
			line += code - 10;
		else if (code == 13 || code == 14)
			line += signed_varint(&t);
		if (addr > position)
			return code != 15 && line > 0 && !t.err ? (uint32_t)line : 0;
		if (code < 10)
			bytes_skip(&t, 1);
		else if (code <= 12)
			bytes_skip(&t, 2);
		else if (code == 14)
			(void)varint(&t), (void)varint(&t), (void)varint(&t);
	}
	return 0;
}

/* Positions are units of two bytes of bytecode. A table that was cut has no lines for its end. */
static uint32_t python_line(const struct lang_code *c, uint32_t position)
{
	struct bytes t = bytes_of(c->lines, c->lines_len, false);

	/* 3.8, 3.9: one line of code has no table. Without --lines, position is 0. */
	if (!c->lines && !position)
		return 0;
	if (c->version >= 11)
		return line_311(t, c->first_line, position);
	return c->version == 10 ? line_310(t, c->first_line, position)
				: line_38(t, c->first_line, position);
}

const struct language python_language = {
	.describe = python_describe,
	.sound = python_sound,
	.line = python_line,
};
