/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * V8 10.2 to 13.6 (Node 18 to 24), x86-64, without compressed pointers: from the constants that V8
 * exports for debuggers (v8dbg_*, int each). Their names end in C++ types, which change from
 * version to version. The builtins are machine code that V8's build puts into one piece of .text,
 * without unwind tables.
 */
#include <string.h>

#include "languages/lang.h"

#define VERSION(major, minor) ((major) << 8 | (minor))
#define OLDEST		      VERSION(10, 2)
#define NEWEST		      VERSION(13, 6)
#define BUILTINS_MIN	      (512u << 10) /* 1.4 to 2.1 MB */
#define BUILTINS_MAX	      (16u << 20)
#define NAMES		      3

/* What bpf/lang_javascript.bpf.h takes for granted. */
static const struct {
	const char *name;
	int32_t value;
} granted[] = {
	{ "v8dbg_TaggedSize", 8 },
	{ "v8dbg_SmiShiftSize", 31 },
	{ "v8dbg_HeapObjectTag", 1 },
	{ "v8dbg_class_Map__instance_type__uint16_t", 12 },
	{ "v8dbg_class_String__length__int32_t", 12 },
	{ "v8dbg_class_SeqOneByteString__chars__char", 16 },
	{ "v8dbg_class_SeqTwoByteString__chars__char", 16 },
	{ "v8dbg_class_ConsString__first__String", 16 },
	{ "v8dbg_class_ThinString__actual__String", 16 },
	{ "v8dbg_class_SlicedString__offset__SMI", 24 },
	{ "v8dbg_FirstNonstringType", 128 },
	{ "v8dbg_StringRepresentationMask", 7 },
	{ "v8dbg_OneByteStringTag", 8 },
	{ "v8dbg_off_fp_context_or_frame_type", -8 },
	{ "v8dbg_off_fp_function", -16 },
};

enum field {
	FUNCTION_SHARED,
	SHARED_NAME,
	SHARED_SCRIPT,
	SHARED_TOKEN,
	SHARED_FLAGS,
	SCRIPT_NAME,
	SCOPE_COUNT,
	SCOPE_FIRST,
	TYPE_SHARED,
	TYPE_SCOPE,
	TYPE_SCRIPT,
	FIELDS
};

#define SHARED "v8dbg_class_SharedFunctionInfo__"

static const char *const fields[FIELDS][NAMES] = {
	[FUNCTION_SHARED] = { "v8dbg_class_JSFunction__shared__SharedFunctionInfo" },
	[SHARED_NAME] = { SHARED "name_or_scope_info__Object",
			  SHARED "name_or_scope_info__Tagged_Object_",
			  SHARED "name_or_scope_info__Tagged_NameOrScopeInfoT_" },
	[SHARED_SCRIPT] = { SHARED "script_or_debug_info__HeapObject",
			    SHARED "script__Tagged_HeapObject_" },
	[SHARED_TOKEN] = { SHARED "raw_function_token_offset__int16_t" },
	[SHARED_FLAGS] = { SHARED "flags__int" },
	[SCRIPT_NAME] = { "v8dbg_class_Script__name__Object" },
	[SCOPE_COUNT] = { "v8dbg_scopeinfo_idx_ncontextlocals" },
	[SCOPE_FIRST] = { "v8dbg_scopeinfo_idx_first_vars" },
	[TYPE_SHARED] = { "v8dbg_type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE" },
	[TYPE_SCOPE] = { "v8dbg_type_ScopeInfo__SCOPE_INFO_TYPE" },
	[TYPE_SCRIPT] = { "v8dbg_type_Script__SCRIPT_TYPE" },
};

#define SHARED_DATA 8  /* bytecode, or the number of a builtin as a small integer; all versions */
#define ARRAY_DATA  16 /* the elements of an array follow its map and length */
#define SCOPE_WORDS 8  /* the words of a ScopeInfo follow its map */

static bool constant(const struct lang_file *f, const char *name, int32_t *ret)
{
	struct elf_dynsym_value sym;
	struct elf_blob b = { 0 };
	bool ok;

	if (!elf_dynsym_find(&f->syms, name, &sym))
		return false;
	ok = lang_bytes(f, sym.addr, 4, &b);
	if (ok)
		*ret = bytes_s32(&b.view);
	elf_blob_free(&b);
	return ok;
}

static bool as_granted(const struct lang_file *f)
{
	int32_t value;

	for (size_t i = 0; i < sizeof(granted) / sizeof(granted[0]); i++)
		if (!constant(f, granted[i].name, &value) || value != granted[i].value)
			return false;
	return true;
}

static bool read_fields(const struct lang_file *f, uint16_t ret[FIELDS])
{
	int32_t value;

	for (uint32_t k = 0; k < FIELDS; k++) {
		uint32_t i = 0;

		while (i < NAMES && fields[k][i] && !constant(f, fields[k][i], &value))
			i++;
		if (i == NAMES || !fields[k][i] || value < 0 || value > UINT16_MAX)
			return false;
		ret[k] = (uint16_t)value;
	}
	return true;
}

static bool known_version(const struct lang_file *f)
{
	int32_t major, minor;

	return constant(f, "_ZN2v88internal7Version6major_E", &major) &&
	       constant(f, "_ZN2v88internal7Version6minor_E", &minor) && major >= 0 &&
	       major < 256 && minor >= 0 && minor < 256 && VERSION(major, minor) >= OLDEST &&
	       VERSION(major, minor) <= NEWEST;
}

static bool find_builtins(const struct lang_file *f, struct sf_span *ret)
{
	uint64_t start, end;

	if (!f->functions->gap || !f->functions->gap(f->functions->ctx, &start, &end))
		return false;
	ret->size = end - start;
	return elf_image_vaddr_to_offset(f->img, start, &ret->start);
}

/*
 * The layout of code made at run time. Versions export a part of it only, so what they export is
 * compared.
 */
static const struct code_layout {
	int32_t version;
	uint16_t stream_code, stream_has, size, flags, deopt, positions, literals, inlining;
	uint16_t bytecode_positions, kind_fields;
} layouts[] = {
	{ VERSION(10, 2), 128, 0, 40, 48, 16, 24, 2, 7, 32, 0 },
	{ VERSION(11, 3), 16, 8, 56, 48, 16, 24, 2, 7, 32, 0 },
	{ VERSION(12, 4), 32, 8, 52, 48, 8, 16, 2, 7, 24, 24 },
	{ VERSION(13, 6), 32, 8, 56, 52, 8, 16, 3, 8, 24, 24 },
};

/* Whether the constant, if there is one, has this value. */
static bool agrees(const struct lang_file *f, const char *name, int32_t expected)
{
	int32_t value;

	return !constant(f, name, &value) || value == expected;
}

static const struct code_layout *find_layout(const struct lang_file *f)
{
	const struct code_layout *l = NULL;
	int32_t major, minor;

	if (!constant(f, "_ZN2v88internal7Version6major_E", &major) ||
	    !constant(f, "_ZN2v88internal7Version6minor_E", &minor))
		return NULL;
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (layouts[i].version >> 8 == major && (layouts[i].version & 0xff) == minor)
			l = &layouts[i];
	return l && agrees(f, "v8dbg_class_Code__flags__uint32_t", l->flags) &&
			       agrees(f, "v8dbg_class_Code__instruction_size__int", l->size) &&
			       agrees(f, "v8dbg_class_Code__deoptimization_data__FixedArray",
				      l->deopt) &&
			       agrees(f, "v8dbg_class_Code__source_position_table__ByteArray",
				      l->positions) &&
			       agrees(f, "v8dbg_DeoptimizationDataLiteralArrayIndex",
				      l->literals) &&
			       agrees(f, "v8dbg_DeoptimizationDataInliningPositionsIndex",
				      l->inlining) &&
			       agrees(f, "v8dbg_class_FixedArrayBase__length__SMI", 8) &&
			       agrees(f, "v8dbg_class_Script__source__Object", 8) &&
			       agrees(f, "v8dbg_CodeKindFieldMask", 15) &&
			       agrees(f, "v8dbg_CodeKindFieldShift", 0)
		       ? l
		       : NULL;
}

/*
 * Bytecodes::kBytecodeSizes: a byte for each opcode, in three rows: for operands of single, double
 * and quadruple width. The first opcodes are prefixes and breakpoints. Not every version exports
 * the table, so it is found by how its rows begin.
 */
static const uint8_t rows[3][12] = {
	{ 1, 1, 1, 1, 1, 2, 3, 4, 5, 5, 6, 2 },
	{ 1, 1, 1, 1, 1, 3, 5, 7, 9, 7, 9, 3 },
	{ 1, 1, 1, 1, 1, 5, 9, 13, 17, 11, 15, 5 },
};
#define ROW_MIN	     150 /* opcodes */
#define ROW_MAX	     256
#define OPERANDS_MAX 15 /* bytes */
#define SCAN_BYTES   (1u << 20)
#define RARE	     10 /* the place of a rare value in the first row */

/* Reads the table that begins at the cursor. False: it is none. */
static bool read_sizes(struct bytes b, struct sf_javascript *j)
{
	const uint8_t *p;
	uint32_t n = ROW_MIN;

	while (n < ROW_MAX && !(bytes_are(&b, b.pos + n, rows[1], sizeof(rows[1])) &&
				bytes_are(&b, b.pos + 2 * n, rows[2], sizeof(rows[2]))))
		n++;
	if (n == ROW_MAX)
		return false;
	p = bytes_take(&b, 3 * (size_t)n);
	for (uint32_t i = 0; p && i < n; i++) {
		int operands = p[i] - 1, wide = p[n + i] - p[i];

		if (operands < 0 || operands > OPERANDS_MAX || wide < 0 || wide > operands ||
		    p[2 * n + i] - p[n + i] != 2 * wide)
			return false;
		j->bytecodes[i] = (sf_u8)(operands | wide << 4);
	}
	return p;
}

static bool find_sizes(const struct lang_file *f, struct sf_javascript *j)
{
	const struct elf_shdr *s = elf_image_section(f->img, ".rodata");
	bool found = false;

	for (uint64_t at = 0; s && at < s->size && !found; at += SCAN_BYTES) {
		uint64_t left = s->size - at, size = SCAN_BYTES + 3 * ROW_MAX;
		struct elf_blob b = { 0 };

		if (elf_image_read(f->img, s->offset + at, left < size ? left : size, &b))
			return false;
		for (; !found && bytes_find_rare(&b.view, rows[0], sizeof(rows[0]), RARE);
		     bytes_skip(&b.view, 1))
			found = read_sizes(b.view, j);
		elf_blob_free(&b);
	}
	return found;
}

/* Where bytecode says which lines it is of. Without it, functions that run it have no lines. */
static void find_bytecode(const struct lang_file *f, const struct code_layout *l,
			  struct sf_javascript *j)
{
	int32_t type, start;

	if (agrees(f, "v8dbg_off_fp_bytecode_array", -32) &&
	    agrees(f, "v8dbg_off_fp_bytecode_offset", -40) &&
	    agrees(f, "v8dbg_InterpreterBytecodeArrayRegister", 12) &&
	    agrees(f, "v8dbg_InterpreterBytecodeOffsetRegister", 9) &&
	    constant(f, "v8dbg_type_BytecodeArray__BYTECODE_ARRAY_TYPE", &type) &&
	    constant(f, "v8dbg_class_BytecodeArray__data__uintptr_t", &start) && type > 0 &&
	    type <= UINT16_MAX && start > 0 && start <= SF_JS_FIELD_MAX && find_sizes(f, j)) {
		j->type_bytecode = (uint16_t)type;
		j->bytecode_start = (uint16_t)start;
		j->bytecode_positions = l->bytecode_positions;
	}
}

/* Where optimised code says which functions it has inlined. Without it, there are none. */
static void find_code(const struct lang_file *f, struct sf_javascript *j)
{
	const struct code_layout *l = find_layout(f);
	int32_t type, start, baseline;

	if (!l || !constant(f, "v8dbg_CodeKindBaseline", &baseline) || baseline < 0 ||
	    baseline > 14)
		return;
	if (!constant(f, "v8dbg_class_InstructionStream__instruction_start__uintptr_t", &start) &&
	    !constant(f, "v8dbg_class_Code__instruction_start__uintptr_t", &start))
		return;
	if (!constant(f, "v8dbg_type_InstructionStream__INSTRUCTION_STREAM_TYPE", &type) &&
	    !constant(f, "v8dbg_type_Code__CODE_TYPE", &type))
		return;
	if (start != l->stream_code || type <= 0 || type > UINT16_MAX)
		return;
	j->type_stream = (uint16_t)type;
	j->stream_code = l->stream_code;
	j->stream_has = l->stream_has;
	j->code_size = l->size;
	j->code_flags = l->flags;
	j->code_deopt = l->deopt;
	j->code_positions = l->positions;
	j->deopt_literals = (uint16_t)(ARRAY_DATA + 8 * l->literals);
	j->deopt_inlining = (uint16_t)(ARRAY_DATA + 8 * l->inlining);
	j->kind_baseline = (uint16_t)baseline;
	j->kind_fields = l->kind_fields;
	find_bytecode(f, l, j);
}

static bool javascript_describe(const struct lang_file *f, struct sf_lang *ret)
{
	struct sf_javascript *j = &ret->javascript;
	uint16_t at[FIELDS];

	if (f->img->machine != EM_X86_64 || !known_version(f) || !as_granted(f) ||
	    !read_fields(f, at) || !find_builtins(f, &j->builtins))
		return false;
	j->function_shared = at[FUNCTION_SHARED];
	j->shared_data = SHARED_DATA;
	j->shared_name = at[SHARED_NAME];
	j->shared_script = at[SHARED_SCRIPT];
	j->shared_token = at[SHARED_TOKEN];
	j->shared_flags = at[SHARED_FLAGS];
	j->shared_bytes = (uint16_t)((at[SHARED_FLAGS] + 4u + 7) & ~7u);
	j->script_name = at[SCRIPT_NAME];
	j->scope_count = (uint16_t)(SCOPE_WORDS + 8 * at[SCOPE_COUNT]);
	j->scope_names = (uint16_t)(SCOPE_WORDS + 8 * at[SCOPE_FIRST]);
	j->type_shared = at[TYPE_SHARED];
	j->type_scope = at[TYPE_SCOPE];
	j->type_script = at[TYPE_SCRIPT];
	find_code(f, j);
	return true;
}

static bool in_shared(const struct sf_javascript *j, uint16_t at, uint16_t size)
{
	return at + size <= j->shared_bytes;
}

static bool sound_code(const struct sf_javascript *j)
{
	return j->stream_code <= SF_JS_FIELD_MAX && !(j->stream_code & 7) &&
	       j->stream_has <= SF_JS_FIELD_MAX && j->code_size <= SF_JS_FIELD_MAX &&
	       j->code_flags <= SF_JS_FIELD_MAX && j->code_deopt <= SF_JS_FIELD_MAX &&
	       j->code_positions <= SF_JS_FIELD_MAX && j->deopt_literals <= SF_JS_FIELD_MAX &&
	       j->deopt_inlining <= SF_JS_FIELD_MAX && j->bytecode_start <= SF_JS_FIELD_MAX &&
	       j->bytecode_positions <= SF_JS_FIELD_MAX;
}

static bool javascript_sound(const struct sf_lang *l)
{
	const struct sf_javascript *j = &l->javascript;

	return !l->nloops && j->builtins.size >= BUILTINS_MIN && j->builtins.size <= BUILTINS_MAX &&
	       j->shared_bytes <= SF_JS_SHARED_MAX && in_shared(j, j->shared_data, 8) &&
	       in_shared(j, j->shared_name, 8) && in_shared(j, j->shared_script, 8) &&
	       in_shared(j, j->shared_token, 4) && in_shared(j, j->shared_flags, 4) &&
	       j->function_shared <= SF_JS_FIELD_MAX && j->script_name <= SF_JS_FIELD_MAX &&
	       j->scope_count <= SF_JS_FIELD_MAX && j->scope_names <= SF_JS_FIELD_MAX &&
	       sound_code(j);
}

/* ---- Code ---- */

/* V8's own functions have no file. */
static const char *javascript_place(const struct lang_code *c, char room[LANG_PLACE_MAX])
{
	(void)room;
	return c->file[0] ? lang_file_base(c) : "native";
}

const struct language javascript_language = {
	.describe = javascript_describe,
	.sound = javascript_sound,
	.place = javascript_place,
};
