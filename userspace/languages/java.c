/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * HotSpot 8, 11 and later, x86-64 and AArch64: from the tables that libjvm.so exports for debuggers
 * (gHotSpotVMStructs, gHotSpotVMTypes). The file has the names of the fields, the sizes of types
 * and the addresses of static fields. The offsets of the others are 0 there, and a static
 * initialiser stores them: their values are in its instructions.
 */
#include <string.h>

#include "languages/lang.h"

#define ENTRIES_MAX  8192
#define NAME_MAX_LEN 48

/* An entry of gHotSpotVMStructs */
#define STRUCT_BYTES  48
#define STRUCT_FIELD  8
#define STRUCT_OFFSET 32
#define STRUCT_STATIC 40 /* the address of a static field */
/* An entry of gHotSpotVMTypes */
#define TYPE_BYTES    40
#define TYPE_SIZE     32

enum field {
	BLOB_NAME,
	BLOB_FRAME_SIZE,
	BLOB_COMPLETE,
	BLOB_CODE_BEGIN,  /* a pointer */
	BLOB_CODE_OFFSET, /* or the distance from the blob */
	BLOB_KIND,
	METHOD_OF_COMPILED,
	METHOD_OF_NMETHOD,
	NMETHOD_ID,
	SCOPES_POINTER, /* 11 to 22 */
	SCOPES_DATA,	/* 8, from 25 on */
	SCOPES_PCS,
	DEPENDENCIES,
	METADATA,
	IMMUTABLE_DATA,
	MUTABLE_DATA,
	RELOCATION_SIZE,
	METHOD_CONST,
	CONST_POOL,
	CONST_NAME,
	CONST_WORDS,
	CONST_CODE_SIZE,
	CONST_FLAGS,
	CONST_FLAGS_20, /* 20 and older */
	POOL_SOURCE,
	KLASS_SOURCE, /* 14 and older */
	POOL_HOLDER,
	KLASS_NAME,
	KLASS_SUPER,
	KLASS_LAYOUT,
	KLASS_POOL,
	KLASS_FIELDS, /* 21 and newer */
	SYMBOL_LEN,
	SYMBOL_BODY,
	HEAP_MEMORY,
	HEAP_SEGMAP,
	HEAP_SHIFT,
	LIST_LEN,
	LIST_LEN_11,
	LIST_DATA,
	FIELDS
};

static const struct {
	const char *type, *field;
	bool some; /* only some versions have it */
} fields[FIELDS] = {
	[BLOB_NAME] = { "CodeBlob", "_name", false },
	[BLOB_FRAME_SIZE] = { "CodeBlob", "_frame_size", false },
	[BLOB_COMPLETE] = { "CodeBlob", "_frame_complete_offset", false },
	[BLOB_CODE_BEGIN] = { "CodeBlob", "_code_begin", true },
	[BLOB_CODE_OFFSET] = { "CodeBlob", "_code_offset", true },
	[BLOB_KIND] = { "CodeBlob", "_kind", true },
	[METHOD_OF_COMPILED] = { "CompiledMethod", "_method", true },
	[METHOD_OF_NMETHOD] = { "nmethod", "_method", true },
	[NMETHOD_ID] = { "nmethod", "_compile_id", true },
	[SCOPES_POINTER] = { "CompiledMethod", "_scopes_data_begin", true },
	[SCOPES_DATA] = { "nmethod", "_scopes_data_offset", true },
	[SCOPES_PCS] = { "nmethod", "_scopes_pcs_offset", true },
	[DEPENDENCIES] = { "nmethod", "_dependencies_offset", true },
	[METADATA] = { "nmethod", "_metadata_offset", true },
	[IMMUTABLE_DATA] = { "nmethod", "_immutable_data", true },
	[MUTABLE_DATA] = { "CodeBlob", "_mutable_data", true },
	[RELOCATION_SIZE] = { "CodeBlob", "_relocation_size", true },
	[METHOD_CONST] = { "Method", "_constMethod", false },
	[CONST_POOL] = { "ConstMethod", "_constants", false },
	[CONST_NAME] = { "ConstMethod", "_name_index", false },
	[CONST_WORDS] = { "ConstMethod", "_constMethod_size", false },
	[CONST_CODE_SIZE] = { "ConstMethod", "_code_size", false },
	[CONST_FLAGS] = { "ConstMethod", "_flags._flags", true },
	[CONST_FLAGS_20] = { "ConstMethod", "_flags", true },
	[POOL_SOURCE] = { "ConstantPool", "_source_file_name_index", true },
	[KLASS_SOURCE] = { "InstanceKlass", "_source_file_name_index", true },
	[POOL_HOLDER] = { "ConstantPool", "_pool_holder", false },
	[KLASS_NAME] = { "Klass", "_name", false },
	[KLASS_SUPER] = { "Klass", "_super", false },
	[KLASS_LAYOUT] = { "Klass", "_layout_helper", false },
	[KLASS_POOL] = { "InstanceKlass", "_constants", false },
	[KLASS_FIELDS] = { "InstanceKlass", "_fieldinfo_stream", true },
	[SYMBOL_LEN] = { "Symbol", "_length", false },
	[SYMBOL_BODY] = { "Symbol", "_body", false },
	[HEAP_MEMORY] = { "CodeHeap", "_memory", false },
	[HEAP_SEGMAP] = { "CodeHeap", "_segmap", false },
	[HEAP_SHIFT] = { "CodeHeap", "_log2_segment_size", false },
	[LIST_LEN] = { "GrowableArrayBase", "_len", true },
	[LIST_LEN_11] = { "GenericGrowableArray", "_len", true },
	[LIST_DATA] = { "GrowableArray<int>", "_data", false },
};

enum variable { HEAPS, ONE_HEAP, OOP_BASE, OOP_SHIFT, CLASS_BASE, CLASS_SHIFT, VARIABLES };

/* Static fields, with the names of versions from 24 on and of those before */
static const struct {
	const char *type, *field, *older;
} variables[VARIABLES] = {
	[HEAPS] = { "CodeCache", "_heaps", "" },
	[ONE_HEAP] = { "CodeCache", "_heap", "" }, /* 8 */
	[OOP_BASE] = { "CompressedOops", "_base", "_narrow_oop._base" },
	[OOP_SHIFT] = { "CompressedOops", "_shift", "_narrow_oop._shift" },
	[CLASS_BASE] = { "CompressedKlassPointers", "_base", "_narrow_klass._base" },
	[CLASS_SHIFT] = { "CompressedKlassPointers", "_shift", "_narrow_klass._shift" },
};

struct vm {
	const struct lang_file *f;
	struct elf_blob relocs; /* struct Elf64_Rela */
	size_t nrelative;	/* the first ones, by address */
	uint64_t structs;	/* address of the table */
	uint32_t nstructs;
	uint32_t entry[FIELDS]; /* 1 + index in the table; 0: the VM has no such field */
	uint64_t offset[FIELDS];
	uint64_t variable[VARIABLES]; /* addresses; 0: the VM has no such variable */
};

/* ---- Pointers of the file ---- */

static uint64_t reloc_word(const struct vm *vm, size_t i, size_t word)
{
	struct bytes b = bytes_sub(&vm->relocs.view, i * sizeof(Elf64_Rela) + 8 * word, 8);

	return bytes_u64(&b);
}

static bool open_relocs(struct vm *vm)
{
	const struct elf_image *img = vm->f->img;
	uint32_t relative = img->machine == EM_AARCH64 ? R_AARCH64_RELATIVE : R_X86_64_RELATIVE;
	size_t n;

	if (elf_image_section_bytes(img, elf_image_section(img, ".rela.dyn"), &vm->relocs))
		return false;
	n = vm->relocs.view.len / sizeof(Elf64_Rela);
	while (vm->nrelative < n && ELF64_R_TYPE(reloc_word(vm, vm->nrelative, 1)) == relative)
		vm->nrelative++;
	return true;
}

/* The pointer at an address; 0: none is there. */
static uint64_t pointer_at(const struct vm *vm, uint64_t addr)
{
	size_t lo = 0, hi = vm->nrelative;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (reloc_word(vm, mid, 0) < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < vm->nrelative && reloc_word(vm, lo, 0) == addr ? reloc_word(vm, lo, 2) : 0;
}

/* Reads the string that the pointer at an address points to. "": none, or a longer one. */
static void text_at(const struct vm *vm, uint64_t addr, char ret[NAME_MAX_LEN])
{
	uint64_t at = pointer_at(vm, addr);
	struct elf_blob b = { 0 };

	memset(ret, 0, NAME_MAX_LEN);
	if (!at || !lang_bytes(vm->f, at, NAME_MAX_LEN, &b))
		return;
	memcpy(ret, bytes_take(&b.view, NAME_MAX_LEN), NAME_MAX_LEN);
	if (!memchr(ret, 0, NAME_MAX_LEN))
		ret[0] = 0;
	elf_blob_free(&b);
}

static uint64_t word_at(const struct vm *vm, uint64_t addr)
{
	struct elf_blob b = { 0 };
	uint64_t v = 0;

	if (lang_bytes(vm->f, addr, 8, &b))
		v = bytes_u64(&b.view);
	elf_blob_free(&b);
	return v;
}

/* The table that an exported variable points to; 0: none. */
static uint64_t table_of(const struct vm *vm, const char *name)
{
	struct elf_dynsym_value sym;

	return elf_dynsym_find(&vm->f->syms, name, &sym) ? pointer_at(vm, sym.addr) : 0;
}

/* ---- The tables ---- */

static void note_field(struct vm *vm, uint32_t i, const char *type, const char *field)
{
	uint64_t at = vm->structs + (uint64_t)i * STRUCT_BYTES;

	for (uint32_t k = 0; k < VARIABLES; k++)
		if (!strcmp(type, variables[k].type) &&
		    (!strcmp(field, variables[k].field) || !strcmp(field, variables[k].older)))
			vm->variable[k] = pointer_at(vm, at + STRUCT_STATIC);
	for (uint32_t k = 0; k < FIELDS; k++) {
		if (strcmp(type, fields[k].type) != 0 || strcmp(field, fields[k].field) != 0)
			continue;
		vm->entry[k] = i + 1;
		vm->offset[k] = word_at(vm, at + STRUCT_OFFSET);
	}
}

static void read_structs(struct vm *vm)
{
	char type[NAME_MAX_LEN], field[NAME_MAX_LEN];
	uint32_t i;

	for (i = 0; i < ENTRIES_MAX; i++) {
		uint64_t at = vm->structs + (uint64_t)i * STRUCT_BYTES;

		if (!pointer_at(vm, at))
			break;
		text_at(vm, at, type);
		text_at(vm, at + STRUCT_FIELD, field);
		note_field(vm, i, type, field);
	}
	vm->nstructs = i;
}

static uint64_t size_of_type(const struct vm *vm, uint64_t types, const char *want)
{
	char name[NAME_MAX_LEN];

	for (uint32_t i = 0; i < ENTRIES_MAX; i++) {
		uint64_t at = types + (uint64_t)i * TYPE_BYTES;

		if (!pointer_at(vm, at))
			break;
		text_at(vm, at, name);
		if (!strcmp(name, want))
			return word_at(vm, at + TYPE_SIZE);
	}
	return 0;
}

static void take_store(void *ctx, uint64_t addr, uint64_t value)
{
	struct vm *vm = ctx;
	uint64_t at = addr - vm->structs;

	if (at / STRUCT_BYTES >= vm->nstructs || at % STRUCT_BYTES != STRUCT_OFFSET)
		return;
	for (uint32_t k = 0; k < FIELDS; k++)
		if (vm->entry[k] == at / STRUCT_BYTES + 1)
			vm->offset[k] = value;
}

/* ---- The description ---- */

/* Address - file offset, of the segment that holds an address */
static bool skew_of(const struct elf_image *img, uint64_t addr, uint64_t *ret)
{
	uint64_t off;

	if (!elf_image_vaddr_to_offset(img, addr, &off))
		return false;
	*ret = addr - off;
	return true;
}

static uint64_t first_code(const struct elf_image *img)
{
	for (uint32_t i = 0; i < img->nphdrs; i++)
		if (img->phdrs[i].type == PT_LOAD && (img->phdrs[i].flags & PF_X))
			return img->phdrs[i].vaddr;
	return 0;
}

static bool has_fields(struct vm *vm)
{
	for (uint32_t k = 0; k < FIELDS; k++)
		if (vm->offset[k] >= SF_JAVA_FIELD_MAX)
			return false;
	for (uint32_t k = 0; k < FIELDS; k++)
		if (!vm->entry[k] && !fields[k].some)
			return false;
	return (vm->entry[BLOB_CODE_BEGIN] || vm->entry[BLOB_CODE_OFFSET]) &&
	       (vm->variable[HEAPS] || vm->variable[ONE_HEAP]) &&
	       (vm->entry[METHOD_OF_COMPILED] || vm->entry[METHOD_OF_NMETHOD]);
}

#define FIELD(vm, k) ((uint16_t)(vm)->offset[k])

static void fill(struct vm *vm, struct sf_java *j)
{
	bool pointers = vm->entry[BLOB_CODE_BEGIN], one_heap = vm->variable[ONE_HEAP];

	j->heaps = vm->variable[one_heap ? ONE_HEAP : HEAPS];
	j->blob_name = FIELD(vm, BLOB_NAME);
	j->blob_frame_size = FIELD(vm, BLOB_FRAME_SIZE);
	j->blob_complete = FIELD(vm, BLOB_COMPLETE);
	j->blob_code = FIELD(vm, pointers ? BLOB_CODE_BEGIN : BLOB_CODE_OFFSET);
	j->code_is_offset = !pointers;
	j->complete_bytes = vm->entry[BLOB_KIND] ? 2 : 4;
	j->nmethod_method = FIELD(vm, vm->entry[METHOD_OF_NMETHOD] ? METHOD_OF_NMETHOD
								   : METHOD_OF_COMPILED);
	j->nmethod_id = FIELD(vm, NMETHOD_ID);
	j->method_const = FIELD(vm, METHOD_CONST);
	j->const_pool = FIELD(vm, CONST_POOL);
	j->const_name = FIELD(vm, CONST_NAME);
	j->pool_holder = FIELD(vm, POOL_HOLDER);
	j->klass_name = FIELD(vm, KLASS_NAME);
	j->symbol_len = FIELD(vm, SYMBOL_LEN);
	j->symbol_body = FIELD(vm, SYMBOL_BODY);
	j->heap_memory = FIELD(vm, HEAP_MEMORY);
	j->heap_segmap = FIELD(vm, HEAP_SEGMAP);
	j->heap_shift = FIELD(vm, HEAP_SHIFT);
	j->list_len = FIELD(vm, vm->entry[LIST_LEN] ? LIST_LEN : LIST_LEN_11);
	j->list_data = one_heap ? 0 : FIELD(vm, LIST_DATA);
	/* The method's mirror is above it from 9 on; AArch64 has a word for alignment, too. */
	j->bcp_below = one_heap ? 56 : vm->f->img->machine == EM_AARCH64 ? 72 : 64;
}

static bool has(const struct vm *vm, enum field a, enum field b, enum field c, enum field d)
{
	return vm->entry[a] && vm->entry[b] && vm->entry[c] && vm->entry[d];
}

/* Where an nmethod has its scopes. Versions without either layout show no inlined methods. */
static void fill_scopes(struct vm *vm, struct sf_java *j)
{
	if (has(vm, SCOPES_DATA, SCOPES_PCS, IMMUTABLE_DATA, MUTABLE_DATA) &&
	    vm->entry[RELOCATION_SIZE]) {
		j->pcs_end = FIELD(vm, SCOPES_DATA);
		j->immutable = FIELD(vm, IMMUTABLE_DATA);
		j->mutable_data = FIELD(vm, MUTABLE_DATA);
		j->metadata = FIELD(vm, RELOCATION_SIZE);
	} else if (has(vm, SCOPES_POINTER, SCOPES_PCS, DEPENDENCIES, METADATA)) {
		j->pcs_end = FIELD(vm, DEPENDENCIES);
		j->scopes = FIELD(vm, SCOPES_POINTER);
		j->metadata = FIELD(vm, METADATA);
	} else if (has(vm, SCOPES_DATA, SCOPES_PCS, DEPENDENCIES, METADATA)) {
		j->pcs_end = FIELD(vm, DEPENDENCIES);
		j->scopes = FIELD(vm, SCOPES_DATA);
		j->scopes_is_offset = 1;
		j->metadata = FIELD(vm, METADATA);
	} else {
		return;
	}
	j->pcs = FIELD(vm, SCOPES_PCS);
}

/* What leads to the frames of virtual threads that are in the heap. */
static void fill_objects(struct vm *vm, struct sf_java *j)
{
	for (uint32_t k = OOP_BASE; k <= CLASS_SHIFT; k++)
		if (!vm->variable[k])
			return;
	j->oop_base = vm->variable[OOP_BASE];
	j->oop_shift = vm->variable[OOP_SHIFT];
	j->class_base = vm->variable[CLASS_BASE];
	j->class_shift = vm->variable[CLASS_SHIFT];
	j->klass_super = FIELD(vm, KLASS_SUPER);
	j->klass_layout = FIELD(vm, KLASS_LAYOUT);
	j->klass_pool = FIELD(vm, KLASS_POOL);
	j->klass_fields = FIELD(vm, KLASS_FIELDS);
}

static void fill_lines(struct vm *vm, uint64_t const_bytes, struct sf_java *j)
{
	/* Numbers changed with 20, flags with 21. */
	j->number_excluded = vm->entry[CONST_FLAGS] != 0;
	j->const_flags = FIELD(vm, vm->entry[CONST_FLAGS] ? CONST_FLAGS : CONST_FLAGS_20);
	j->const_bytes = (uint16_t)const_bytes;
	j->const_words = FIELD(vm, CONST_WORDS);
	j->const_code_size = FIELD(vm, CONST_CODE_SIZE);
	j->pool_source = FIELD(vm, POOL_SOURCE);
	j->klass_source = FIELD(vm, KLASS_SOURCE);
}

static bool describe(struct vm *vm, struct sf_java *j)
{
	uint64_t types = table_of(vm, "gHotSpotVMTypes"), block, pool, method;

	vm->structs = table_of(vm, "gHotSpotVMStructs");
	if (!vm->structs || !types)
		return false;
	read_structs(vm);
	lang_each_store(vm->f, take_store, vm);
	block = size_of_type(vm, types, "HeapBlock");
	pool = size_of_type(vm, types, "ConstantPool");
	method = size_of_type(vm, types, "ConstMethod");
	if (!has_fields(vm) || !block || block > 64 || !pool || pool > SF_JAVA_FIELD_MAX ||
	    !method || method > SF_JAVA_FIELD_MAX)
		return false;
	fill(vm, j);
	fill_scopes(vm, j);
	fill_lines(vm, method, j);
	fill_objects(vm, j);
	j->block_bytes = (uint8_t)block;
	j->pool_bytes = (uint16_t)pool;
	return skew_of(vm->f->img, first_code(vm->f->img), &j->code_skew) &&
	       skew_of(vm->f->img, vm->structs, &j->data_skew);
}

static bool java_describe(const struct lang_file *f, struct sf_lang *ret)
{
	struct elf_dynsym_value sym;
	struct vm vm = { .f = f };
	bool ok;

	if ((f->img->machine != EM_X86_64 && f->img->machine != EM_AARCH64) ||
	    !elf_dynsym_find(&f->syms, "gHotSpotVMStructs", &sym))
		return false;
	ok = open_relocs(&vm) && describe(&vm, &ret->java);
	elf_blob_free(&vm.relocs);
	return ok;
}

static bool java_sound(const struct sf_lang *l)
{
	const struct sf_java *j = &l->java;

	return !l->nloops && j->blob_name <= SF_JAVA_BLOB - 8 &&
	       j->blob_frame_size <= SF_JAVA_BLOB - 8 && j->blob_complete <= SF_JAVA_BLOB - 8 &&
	       j->blob_code <= SF_JAVA_BLOB - 8 && j->nmethod_method <= SF_JAVA_BLOB - 8 &&
	       j->scopes <= SF_JAVA_BLOB - 8 && j->immutable <= SF_JAVA_BLOB - 8 &&
	       j->mutable_data <= SF_JAVA_BLOB - 8 && j->number_excluded <= 1;
}

/* ---- Code ---- */

#define ESCAPE	0xff /* two numbers follow */
#define LOW	192  /* a byte below this ends a number */
#define NUM_MAX 5    /* bytes of a number */

/*
 * A class as programs write it: dots, and without the numbers and addresses that hidden classes
 * have, which differ from run to run ("A$$Lambda$14/0x0000000800c03000", "A+0x...").
 */
static uint16_t java_class(uint8_t *name, uint16_t len)
{
	static const char lambda[] = "$$Lambda";
	size_t n = sizeof(lambda) - 1;

	for (uint16_t i = 0; i < len; i++) {
		if (len - i >= (int)n && !memcmp(name + i, lambda, n))
			return (uint16_t)(i + n);
		if (len - i > 3 && (name[i] == '+' || name[i] == '/' || name[i] == '.') &&
		    name[i + 1] == '0' && name[i + 2] == 'x')
			return i;
		if (name[i] == '/')
			name[i] = '.';
	}
	return len;
}

/* UNSIGNED5 of a value whose lowest bit is its sign */
static int64_t number(struct bytes *t, uint32_t excluded)
{
	uint32_t val = 0;

	for (uint32_t i = 0; i < NUM_MAX; i++) {
		uint32_t b = bytes_u8(t);

		val += (b - excluded) << 6 * i;
		if (b < LOW)
			break;
	}
	return (int64_t)(val >> 1) ^ -(int64_t)(val & 1);
}

struct place {
	int64_t bci, line;
};

/* Adds the next entry of the table. False: it was the last one. */
static bool next(struct bytes *t, uint32_t excluded, struct place *p)
{
	uint8_t b = bytes_u8(t);

	if (!b || t->err)
		return false;
	if (b == ESCAPE) {
		p->bci += number(t, excluded);
		p->line += number(t, excluded);
	} else {
		p->bci += b >> 3;
		p->line += b & 7;
	}
	return !t->err;
}

/* The bytes of a line table that other data follow. `excluded` is sf_java.number_excluded. */
static size_t lines_len(const uint8_t *table, size_t len, uint32_t excluded)
{
	struct bytes t = bytes_of(table, len, false);
	struct place p = { 0 };
	size_t end;

	do {
		end = t.pos;
	} while (next(&t, excluded, &p));
	return end;
}

/* Entries are in the order of the source, so later ones may be about earlier bytecode. */
static uint32_t java_line(const struct lang_code *c, uint32_t position)
{
	struct bytes t = bytes_of(c->lines, c->lines_len, false);
	struct place p = { 0 }, best = { -1, 0 };

	while (next(&t, c->version, &p))
		if (p.bci <= position && p.bci >= best.bci)
			best = p;
	return best.line > 0 && best.line <= UINT32_MAX ? (uint32_t)best.line : 0;
}

/* "pkg.Class.method". The source file and the line table are in lines. */
static void java_parts(const struct sf_code *rec, struct lang_parts *ret)
{
	const uint8_t *lines = rec->lines;
	size_t len = rec->file_len;

	memcpy(ret->room, rec->file, len);
	len = java_class(ret->room, (uint16_t)len);
	ret->room[len++] = '.';
	memcpy(ret->room + len, rec->name, rec->name_len);
	ret->name = (struct lang_text){ ret->room, len + rec->name_len, SF_CODE_UTF8 };
	ret->file = (struct lang_text){ lines, 0, SF_CODE_UTF8 };
	ret->lines = lines + SF_JAVA_SOURCE;
	ret->lines_len = 0;
	if (rec->lines_len >= SF_JAVA_SOURCE && lines[0] < SF_JAVA_SOURCE) {
		ret->file = (struct lang_text){ lines + 1, lines[0], SF_CODE_UTF8 };
		ret->lines_len = lines_len(ret->lines, rec->lines_len - SF_JAVA_SOURCE,
					   rec->version);
	}
}

const struct language java_language = {
	.describe = java_describe,
	.sound = java_sound,
	.parts = java_parts,
	.line = java_line,
	.names_class = true,
};
