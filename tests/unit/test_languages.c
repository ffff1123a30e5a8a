/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptions of language runtimes, line tables, and the numbers of code. */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "elf/elf_dynsym.h"
#include "languages/lang.h"
#include "languages/lang_codes.h"
#include "test.h"

/* ---- A small interpreter ---- */

/* File offsets; addresses are BASE higher. */
#define BASE	  0x400000u
#define DYNAMIC	  0x200
#define HASH	  0x300
#define SYMTAB	  0x400
#define STRTAB	  0x600
#define RODATA	  0x700 /* Py_Version */
#define CODE	  0x800 /* the loop, its cold part after LOOP_SIZE, the small function */
#define LOOP_SIZE 0x100
#define COLD_SIZE 0x80
#define SMALL	  (CODE + LOOP_SIZE + COLD_SIZE)
#define RUNTIME	  0x1000
#define SIZE	  0x2000

struct symbol {
	const char *name;
	uint64_t at, size;
};

static uint8_t image[SIZE];

static uint32_t gnu_hash(const char *s)
{
	uint32_t h = 5381;

	for (; *s; s++)
		h = h * 33 + (uint8_t)*s;
	return h;
}

static void put32(size_t at, uint32_t v)
{
	memcpy(image + at, &v, 4);
}

static void put64(size_t at, uint64_t v)
{
	memcpy(image + at, &v, 8);
}

/* One bucket, and a filter that excludes nothing. */
static void put_symbols(const struct symbol *syms, uint32_t n)
{
	uint32_t name = 1;

	put32(HASH, 1);
	put32(HASH + 4, 1);
	put32(HASH + 8, 1);
	put32(HASH + 12, 6);
	put64(HASH + 16, UINT64_MAX);
	put32(HASH + 24, n ? 1 : 0);
	for (uint32_t i = 0; i < n; i++) {
		Elf64_Sym sym = { .st_name = name,
				  .st_shndx = 1,
				  .st_value = BASE + syms[i].at,
				  .st_size = syms[i].size };

		memcpy(image + SYMTAB + (i + 1) * sizeof(sym), &sym, sizeof(sym));
		strcpy((char *)image + STRTAB + name, syms[i].name);
		name += (uint32_t)strlen(syms[i].name) + 1;
		put32(HASH + 28 + 4 * i, (gnu_hash(syms[i].name) & ~1u) | (i + 1 == n ? 1 : 0));
	}
}

static void put_headers(void)
{
	const uint64_t dynamic[] = { DT_GNU_HASH, BASE + HASH,	 DT_SYMTAB, BASE + SYMTAB,
				     DT_STRTAB,	  BASE + STRTAB, DT_NULL,   0 };
	Elf64_Ehdr eh = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT },
			  .e_type = ET_EXEC,
			  .e_machine = EM_X86_64,
			  .e_version = EV_CURRENT,
			  .e_phoff = sizeof(eh),
			  .e_ehsize = sizeof(eh),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 2,
			  .e_shentsize = sizeof(Elf64_Shdr) };
	Elf64_Phdr ph[2] = { { .p_type = PT_LOAD,
			       .p_flags = PF_R | PF_X,
			       .p_vaddr = BASE,
			       .p_filesz = SIZE,
			       .p_memsz = SIZE },
			     { .p_type = PT_DYNAMIC,
			       .p_flags = PF_R,
			       .p_offset = DYNAMIC,
			       .p_vaddr = BASE + DYNAMIC,
			       .p_filesz = sizeof(dynamic) } };

	memset(image, 0, sizeof(image));
	memcpy(image, &eh, sizeof(eh));
	memcpy(image + sizeof(eh), ph, sizeof(ph));
	memcpy(image + DYNAMIC, dynamic, sizeof(dynamic));
}

/* jmp rel32 */
static void put_jump(size_t from, size_t to)
{
	image[from] = 0xe9;
	put32(from + 1, (uint32_t)(to - from - 5));
}

/* An interpreter whose key is loaded by lea, and whose loop has a part elsewhere. */
static void put_python(uint32_t minor, uint32_t key, uint32_t jumps)
{
	const struct symbol syms[] = {
		{ "_PyRuntime", RUNTIME, 0xa00 },
		{ "_PyEval_EvalFrameDefault", CODE, 0x20 },
		{ "PyCode_Type", 0x1c00, 408 },
		{ "Py_Version", RODATA, 8 },
		{ "PyGILState_GetThisThreadState", SMALL, 16 },
	};

	put_headers();
	put_symbols(syms, sizeof(syms) / sizeof(syms[0]));
	put32(RODATA, 3u << 24 | minor << 16);
	for (uint32_t i = 0; i < jumps; i++) {
		put_jump(CODE + 16 + 8 * i, CODE + LOOP_SIZE + 8 + i);
		put_jump(CODE + LOOP_SIZE + 16 + 8 * i, CODE + 32 + i);
	}
	/* cmpq $0, mem; lea key(%rip), %rdi */
	image[SMALL + 4] = 0x48;
	image[SMALL + 5] = 0x8d;
	image[SMALL + 6] = 0x3d;
	put32(SMALL + 7, RUNTIME + key - SMALL - 11);
}

static bool function_at(void *ctx, uint64_t addr, uint64_t *ret_start, uint64_t *ret_end)
{
	(void)ctx;
	if (addr - BASE - CODE < LOOP_SIZE) {
		*ret_start = BASE + CODE;
		*ret_end = BASE + CODE + LOOP_SIZE;
	} else {
		*ret_start = BASE + CODE + LOOP_SIZE;
		*ret_end = *ret_start + COLD_SIZE;
	}
	return addr >= *ret_start && addr < *ret_end;
}

static bool describe_size(size_t size, struct sf_lang *ret)
{
	const struct lang_functions functions = { .at = function_at };
	void *copy = malloc(size ? size : 1); /* of its exact size, for the sanitizer */
	struct elf_image img;
	bool ok = false;

	memcpy(copy, image, size);
	if (!elf_image_open_mem(&img, copy, size, NULL)) {
		ok = lang_describe(&img, &functions, ret);
		elf_image_close(&img);
	}
	free(copy);
	return ok;
}

static bool describe(struct sf_lang *ret)
{
	return describe_size(SIZE, ret);
}

TEST(python_is_described)
{
	struct sf_lang l;

	put_python(11, 700, 5);
	EXPECT(describe(&l));
	EXPECT_EQ(l.language, SF_LANG_PYTHON);
	EXPECT_EQ(l.version, 0x30b);
	/* Addresses are relative to the file offset of the code. */
	EXPECT_EQ(l.python.key, RUNTIME + 700 + 4);
	EXPECT_EQ(l.python.code_type, 0x1c00);
	EXPECT_EQ(l.python.current, RUNTIME + 576);
	EXPECT_EQ(l.python.kind, SF_PY_CFRAME);
	EXPECT_EQ(l.python.musl, 0);
	/* The unwind tables' function, not the symbol's size; and the part that jumps back. */
	EXPECT_EQ(l.nloops, 2);
	EXPECT_EQ(l.loops[0].start, CODE);
	EXPECT_EQ(l.loops[0].size, LOOP_SIZE);
	EXPECT_EQ(l.loops[1].start, CODE + LOOP_SIZE);
	EXPECT_EQ(l.loops[1].size, COLD_SIZE);
	EXPECT(lang_sound(&l));
}

TEST(few_jumps_make_no_part)
{
	struct sf_lang l;

	put_python(11, 700, 2);
	EXPECT(describe(&l));
	EXPECT_EQ(l.nloops, 1);
}

TEST(key_by_version_if_the_code_does_not_say)
{
	struct sf_lang l;

	put_python(12, 9000, 5); /* outside _PyRuntime */
	EXPECT(describe(&l));
	EXPECT_EQ(l.python.key, RUNTIME + 1544 + 4);
	EXPECT_EQ(l.python.current, 0);
	EXPECT_EQ(l.python.tls_how, SF_TLS_NONE);
}

TEST(unknown_versions_are_refused)
{
	struct sf_lang l;

	put_python(7, 700, 5);
	EXPECT(!describe(&l));
	put_python(40, 700, 5);
	EXPECT(!describe(&l));
	put_python(11, 700, 5);
	put32(RODATA, 2u << 24 | 11u << 16);
	EXPECT(!describe(&l));
	put_python(11, 700, 5);
	image[18] = EM_S390;
	EXPECT(!describe(&l));
}

/* ---- AArch64: code of Debian's packages, with other pages in adrp ---- */

#define ADRP_MASK 0x9f00001fu
#define SMALLER	  (SMALL + 0x40)

/* Copies code to `at`; what it addresses is in the page of RUNTIME, which is the next one. */
static void put_code(size_t at, const uint32_t *code, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool adrp = (code[i] & 0x9f000000) == 0x90000000;

		put32(at + 4 * i, adrp ? (code[i] & ADRP_MASK) | 1u << 29 : code[i]);
	}
}

/* The function that finds the key, and the one that returns the state; _PyRuntime's place. */
struct arm64 {
	uint32_t minor, runtime, size;
	uint32_t key[16], state[16];
};

static void put_arm64(const struct arm64 *a)
{
	const struct symbol syms[] = {
		{ "_PyRuntime", a->runtime, a->size },
		{ "_PyEval_EvalFrameDefault", CODE, 0x20 },
		{ "PyCode_Type", 0x1c00, 408 },
		{ "PyGILState_GetThisThreadState", SMALL, 60 },
		{ a->minor < 13 ? "_PyThreadState_UncheckedGet" : "PyThreadState_GetUnchecked",
		  SMALLER, 60 },
		{ "Py_Version", RODATA, 8 },
	};

	put_headers();
	image[18] = EM_AARCH64;
	put_symbols(syms, a->minor < 11 ? 5 : 6); /* 3.11 and later have Py_Version */
	put32(RODATA, 3u << 24 | a->minor << 16);
	put_code(SMALL, a->key, 16);
	put_code(SMALLER, a->state, 16);
}

TEST(arm64_static)
{
	static const struct arm64 py39 = { 9,
					   RUNTIME + 0x890,
					   672,
					   { 0xb0002520, 0x91220002, 0x91004043, 0xf9413041,
					     0xb4000061, 0xb9425c60, 0x17feb1c2, 0xd2800000,
					     0xd65f03c0 },
					   { 0xd0001ba0, 0x912b6001, 0xf9400020, 0xd65f03c0 } };
	static const struct arm64 py311 = { 11,
					    RUNTIME + 8,
					    0xa00,
					    { 0xb0002e20, 0x91002000, 0xf9412c01, 0xb4000061,
					      0xb9426400, 0x17feba0e, 0xd2800000, 0xd65f03c0 },
					    { 0x90002240, 0x91096000, 0xf9400000, 0xd65f03c0 } };
	struct sf_lang l;

	put_arm64(&py39);
	EXPECT(describe(&l));
	EXPECT_EQ(l.version, 0x309);
	EXPECT_EQ(l.python.key, RUNTIME + 2176 + 16 + 604);
	EXPECT_EQ(l.python.current, RUNTIME + 2776);
	EXPECT_EQ(l.python.tls_how, SF_TLS_NONE);
	put_arm64(&py311);
	EXPECT(describe(&l));
	EXPECT_EQ(l.python.key, RUNTIME + 8 + 612);
	EXPECT_EQ(l.python.current, RUNTIME + 600);
	EXPECT_EQ(l.python.tls_how, SF_TLS_NONE);
	EXPECT(lang_sound(&l));
	put32(SMALL + 16, 0xd2800000); /* mov x0, #0: no key, rather than a wrong one */
	put32(SMALLER + 8, 0xd503201f);
	EXPECT(describe(&l));
	EXPECT_EQ(l.python.key, 0);
	EXPECT_EQ(l.python.current, 0);
}

TEST(arm64_thread_local)
{
	static const struct arm64 py313 = {
		13,
		RUNTIME + 1688,
		0xa00,
		{ 0xd503245f, 0xb0002d40, 0x911a6000, 0xb9487001, 0x34000061, 0xb9487400,
		  0x17fe8556, 0xd2800000, 0xd65f03c0 },
		{ 0xd503245f, 0xd53bd040, 0x91400000, 0x91006000, 0xf9400000, 0xd65f03c0 }
	};
	static const struct arm64 py314 = {
		14,
		RUNTIME - 0x280,
		0xa00,
		{ 0xd503245f, 0xf0003920, 0xb946a000, 0x34000080, 0xf0003920, 0x911a8000,
		  0x14023e06, 0xd2800000, 0xd65f03c0 },
		{ 0xd503245f, 0xd53bd040, 0xd503201f, 0x91006000, 0xf9400000, 0xd65f03c0 }
	};
	/* libpython3.13.so: the address of _PyRuntime is in the GOT, the offset in a descriptor. */
	static const struct arm64 shared = {
		13,
		RUNTIME + 0xd00,
		0xa00,
		{ 0xd503233f, 0xa9be7bfd, 0x910003fd, 0xf9000bf3, 0xd0001fb3, 0xf9463a73,
		  0x9121c260, 0x94003981, 0x340000c0, 0x9121c260, 0xf9400bf3, 0xa8c27bfd,
		  0xd50323bf, 0x14003915, 0xf9400bf3, 0xd2800000 },
		{ 0xd503233f, 0xd53bd041, 0xa9bf7bfd, 0x910003fd, 0xb0001fe0, 0xf9405802,
		  0x9102c000, 0xd63f0040, 0xf8606820, 0xa8c17bfd, 0xd50323bf, 0xd65f03c0 }
	};
	struct sf_lang l;

	put_arm64(&py313);
	EXPECT(describe(&l));
	EXPECT_EQ(l.python.key, RUNTIME + 1688 + 2164);
	EXPECT_EQ(l.python.tls_how, SF_TLS_EXEC);
	EXPECT_EQ(l.python.tls, 24);
	put_arm64(&py314);
	EXPECT(describe(&l));
	EXPECT_EQ(l.python.key, RUNTIME + 1696 + 4);
	EXPECT_EQ(l.python.tls_how, SF_TLS_EXEC);
	EXPECT_EQ(l.python.tls, 24);
	put_arm64(&shared);
	EXPECT(describe(&l));
	EXPECT_EQ(l.python.key, RUNTIME + 0xd00 + 2160 + 4);
	EXPECT_EQ(l.python.tls_how, SF_TLS_DESC);
	EXPECT_EQ(l.python.tls, RUNTIME + 176);
	EXPECT(lang_sound(&l));
}

/* ---- Constants that code stores ---- */

struct stored {
	uint64_t addr, value;
};

struct stored_list {
	struct stored v[16];
	size_t n;
};

static void note_store(void *ctx, uint64_t addr, uint64_t value)
{
	struct stored_list *l = ctx;

	if (l->n < 16)
		l->v[l->n++] = (struct stored){ addr, value };
}

static struct stored_list stores_of_image(void)
{
	struct stored_list l = { .n = 0 };
	struct elf_image img;
	struct lang_file f = { .img = &img };

	if (!elf_image_open_mem(&img, image, SIZE, NULL)) {
		lang_each_store(&f, note_store, &l);
		elf_image_close(&img);
	}
	return l;
}

static bool has_store(const struct stored_list *l, uint64_t addr, uint64_t value)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].addr == addr && l->v[i].value == value)
			return true;
	return false;
}

TEST(stores_x86)
{
	struct stored_list l;

	put_headers();
	memcpy(image + CODE, "\x48\xc7\x05", 3); /* movq $20, RUNTIME(%rip) */
	put32(CODE + 3, RUNTIME - CODE - 11);
	put32(CODE + 7, 20);
	l = stores_of_image();
	EXPECT_EQ(l.n, 1);
	EXPECT(has_store(&l, BASE + RUNTIME, 20));
}

TEST(stores_arm64)
{
	static const uint32_t code[] = {
		0x90000000, /* adrp x0, page */
		0x9109c000, /* add x0, x0, #0x270 */
		0xd2806f03, /* mov x3, #0x378 */
		0xf901c003, /* str x3, [x0, #0x380] */
		0xf900101f, /* str xzr, [x0, #32] */
		0xaa0303e4, /* mov x4, x3 */
		0xa9010c04, /* stp x4, x3, [x0, #16] */
		0x92800005, /* mov x5, #-1 */
		0xf2c00025, /* movk x5, #1, lsl #32 */
		0xf9002005, /* str x5, [x0, #64] */
		0xf9400003, /* ldr x3, [x0] */
		0xf9002403, /* str x3, [x0, #72]: unknown */
		0xb9004805, /* str w5, [x0, #72]: not 64 bits */
		0x94000001, /* bl */
		0xf9002805, /* str x5, [x0, #80]: after a call */
	};
	const uint64_t at = BASE + RUNTIME + 0x270;
	struct stored_list l;

	put_headers();
	image[18] = EM_AARCH64;
	put_code(CODE, code, sizeof(code) / sizeof(code[0]));
	l = stores_of_image();
	EXPECT_EQ(l.n, 5);
	EXPECT(has_store(&l, at + 0x380, 0x378));
	EXPECT(has_store(&l, at + 32, 0));
	EXPECT(has_store(&l, at + 16, 0x378) && has_store(&l, at + 24, 0x378));
	EXPECT(has_store(&l, at + 64, 0xffff0001ffffffff));
}

/* _Py_DebugOffsets of 3.13: the words that are read. */
static void put_offsets(uint64_t version, uint64_t free_threaded)
{
	const uint32_t thread = 3 + 3 + 13, frame = thread + 9, code = frame + 6;
	const struct {
		uint32_t word;
		uint64_t val;
	} words[] = { { thread, 400 },	 { thread + 4, 80 }, { thread + 5, 160 }, { frame, 100 },
		      { frame + 1, 16 }, { frame + 2, 24 },  { frame + 3, 64 },	  { frame + 5, 71 },
		      { code, 300 },	 { code + 1, 96 },   { code + 2, 104 },	  { code + 3, 112 },
		      { code + 4, 120 }, { code + 5, 60 },   { code + 9, 240 } };

	memcpy(image + RUNTIME, "xdebugpy", 8);
	put64(RUNTIME + 8, version);
	put64(RUNTIME + 16, free_threaded);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		put64(RUNTIME + 8ul * words[i].word, words[i].val);
}

TEST(offsets_in_the_file_are_preferred)
{
	struct sf_lang l;

	put_python(13, 700, 5);
	EXPECT(describe(&l));
	EXPECT_EQ(l.python.frame_back, 8);
	put_offsets(0x030d05f0, 0);
	EXPECT(describe(&l));
	EXPECT_EQ(l.python.tstate_frame, 80);
	EXPECT_EQ(l.python.frame_back, 16);
	EXPECT_EQ(l.python.frame_code, 24);
	EXPECT_EQ(l.python.frame_owner, 71);
	EXPECT_EQ(l.python.code_start, 240);
	put_offsets(0x030d05f0, 1);
	EXPECT(!describe(&l)); /* free-threaded: objects look different */
	put_offsets(0x030c05f0, 0);
	EXPECT(!describe(&l));
	put_offsets(0x030d05f0, 0);
	put64(RUNTIME + 8 * (3 + 3 + 13 + 9 + 1), 4000); /* outside the frame: not believed */
	EXPECT(describe(&l));
	EXPECT_EQ(l.python.frame_back, 8);
}

/* Any part of the file may be missing or changed. */
TEST(damage_is_harmless)
{
	struct sf_lang l;

	put_python(13, 700, 5);
	put_offsets(0x030d05f0, 0);
	for (size_t size = 0; size < SIZE; size += 7)
		describe_size(size, &l);
	for (size_t at = sizeof(Elf64_Ehdr); at < SIZE; at += 3) {
		uint8_t was = image[at];

		image[at] ^= 0xff;
		if (describe(&l))
			EXPECT(lang_sound(&l));
		image[at] = was;
	}
}

TEST(unsound_descriptions)
{
	struct sf_lang l, bad;

	put_python(11, 700, 5);
	EXPECT(describe(&l));
	bad = l;
	bad.language = SF_LANG_MAX;
	EXPECT(!lang_sound(&bad));
	bad = l;
	bad.nloops = SF_LANG_LOOPS + 1;
	EXPECT(!lang_sound(&bad));
	bad = l;
	bad.python.frame_size = SF_PY_FRAME_MAX + 1;
	EXPECT(!lang_sound(&bad));
	bad = l;
	bad.python.frame_back = bad.python.frame_size;
	EXPECT(!lang_sound(&bad));
	bad = l;
	bad.python.code_file = SF_PY_CODE_MAX;
	EXPECT(!lang_sound(&bad));
}

TEST(musl_is_told_from_glibc)
{
	struct elf_dynsym d;
	struct elf_image img;

	for (int musl = 0; musl < 2; musl++) {
		const char *needed = musl ? "libc.musl-x86_64.so.1" : "libc.so.6";

		put_python(11, 700, 5);
		strcpy((char *)image + STRTAB + 0xd0, needed);
		put64(DYNAMIC + 48, DT_NEEDED);
		put64(DYNAMIC + 56, 0xd0);
		EXPECT(!elf_image_open_mem(&img, image, SIZE, NULL));
		EXPECT(elf_dynsym_open(&d, &img));
		EXPECT_EQ(d.musl, musl);
		elf_image_close(&img);
	}
}

/* ---- Lines: tables that CPython made of one function, and its own answers ---- */

struct position {
	uint32_t at, line;
};

static uint32_t line_of(uint8_t minor, const uint8_t *table, size_t len, uint32_t position)
{
	const struct lang_code c = {
		.version = minor, .first_line = 1, .lines = table, .lines_len = (uint32_t)len
	};

	return python_language.line(&c, position);
}

#define CHECK_LINES(minor, table, want)                                                \
	do {                                                                           \
		for (size_t i_ = 0; i_ < sizeof(want) / sizeof((want)[0]); i_++)       \
			EXPECT_EQ(line_of(minor, table, sizeof(table), (want)[i_].at), \
				  (want)[i_].line);                                    \
		for (size_t n_ = 0; n_ < sizeof(table); n_++)                          \
			line_of(minor, table, n_, 60);                                 \
	} while (0)

TEST(lines_39)
{
	static const uint8_t table[] = { 0x00, 0x02, 0x02, 0x01, 0x02, 0xff, 0x04, 0x02, 0x0c,
					 0x02, 0x08, 0x01, 0x08, 0x01, 0x04, 0x01, 0x04, 0x01,
					 0x0a, 0x01, 0x0c, 0x01, 0x0c, 0x02, 0x0c, 0x01 };
	static const struct position want[] = { { 0, 3 },   { 1, 4 },	{ 2, 3 },   { 3, 3 },
						{ 4, 5 },   { 10, 7 },	{ 14, 8 },  { 18, 9 },
						{ 20, 10 }, { 22, 11 }, { 32, 12 }, { 33, 13 },
						{ 39, 15 }, { 45, 16 } };

	CHECK_LINES(9, table, want);
}

TEST(lines_310)
{
	static const uint8_t table[] = {
		0x02, 0x02, 0x02, 0x01, 0x04, 0xff, 0x0c, 0x02, 0x08, 0x02, 0x08, 0x01, 0x02, 0x01,
		0x02, 0xff, 0x04, 0x02, 0x0a, 0x01, 0x0c, 0x01, 0x08, 0x01, 0x02, 0xff, 0x02, 0xff,
		0x04, 0x04, 0x04, 0x01, 0x02, 0xfd, 0x04, 0x02, 0x04, 0x01, 0x06, 0xff
	};
	static const struct position want[] = { { 0, 3 },   { 1, 4 },	{ 2, 3 },   { 4, 5 },
						{ 10, 7 },  { 14, 8 },	{ 18, 9 },  { 19, 8 },
						{ 20, 10 }, { 33, 13 }, { 37, 12 }, { 38, 11 },
						{ 39, 15 }, { 43, 13 }, { 46, 16 }, { 48, 15 } };

	CHECK_LINES(10, table, want);
}

TEST(lines_312)
{
	static const uint8_t table[] = {
		0x80, 0x00, 0xe0, 0x09, 0x0a, 0xd8, 0x09, 0x0a, 0xf1, 0x03, 0x01, 0x0a, 0x0b, 0x80,
		0x41, 0xe4, 0x0d, 0x12, 0x90, 0x31, 0x8b, 0x58, 0xf2, 0x00, 0x04, 0x05, 0x15, 0x88,
		0x01, 0xe0, 0x08, 0x09, 0x88, 0x51, 0x89, 0x06, 0x88, 0x01, 0xd8, 0x0b, 0x0c, 0x88,
		0x71, 0x8b, 0x35, 0xd8, 0x0c, 0x14, 0xf0, 0x09, 0x04, 0x05, 0x15, 0xf0, 0x0a, 0x05,
		0x05, 0x0e, 0xdc, 0x08, 0x09, 0x8c, 0x03, 0xf0, 0x08, 0x00, 0x0d, 0x0e, 0x88, 0x01,
		0xd8, 0x0b, 0x0c, 0x80, 0x48, 0xf8, 0xf4, 0x09, 0x00, 0x0c, 0x16, 0xf2, 0x00, 0x01,
		0x05, 0x0e, 0xd8, 0x0c, 0x0d, 0x8a, 0x01, 0xf0, 0x03, 0x01, 0x05, 0x0e, 0xfb, 0xf0,
		0x06, 0x00, 0x0d, 0x0e, 0x89, 0x01, 0xfa
	};
	static const struct position want[] = { { 0, 1 },   { 1, 3 },	{ 2, 4 },   { 3, 3 },
						{ 6, 5 },   { 20, 7 },	{ 25, 8 },  { 31, 9 },
						{ 32, 5 },  { 33, 10 }, { 34, 11 }, { 44, 15 },
						{ 46, 16 }, { 48, 0 },	{ 49, 12 }, { 57, 13 },
						{ 61, 12 }, { 62, 0 },	{ 66, 15 }, { 69, 0 } };

	CHECK_LINES(12, table, want);
}

/* ---- Numbers of code ---- */

#define HEAD (sizeof(struct sf_code) - SF_CODE_LINES)

static struct sf_code code_of(uint32_t id, const char *name, const char *file)
{
	struct sf_code rec = { .type = SF_REC_CODE,
			       .id = id,
			       .first_line = 7,
			       .language = SF_LANG_PYTHON,
			       .version = 11,
			       .name_unit = 1,
			       .file_unit = 1 };

	rec.name_len = (sf_u16)strlen(name);
	rec.file_len = (sf_u16)strlen(file);
	memcpy(rec.name, name, rec.name_len);
	memcpy(rec.file, file, rec.file_len);
	return rec;
}

static uint32_t number(const struct lang_codes *lc, uint32_t id)
{
	return SF_FRAME_CODE(lang_codes_word(lc, SF_FRAME_LANG_WORD(SF_LANG_PYTHON, id, 3)));
}

TEST(equal_code_has_one_number)
{
	struct lang_codes *lc = lang_codes_new();
	struct sf_code a = code_of(1, "f", "/a.py"), b = code_of(900, "f", "/a.py"),
		       c = code_of(2, "f", "/b.py");
	struct lang_code got;

	EXPECT(lang_codes_add(lc, &a, HEAD) && lang_codes_add(lc, &b, HEAD) &&
	       lang_codes_add(lc, &c, HEAD));
	EXPECT(number(lc, 1) != LANG_CODE_UNKNOWN);
	EXPECT_EQ(number(lc, 1), number(lc, 900));
	EXPECT(number(lc, 1) != number(lc, 2));
	EXPECT_EQ(number(lc, 3), LANG_CODE_UNKNOWN);
	EXPECT_EQ(number(lc, 0), LANG_CODE_UNKNOWN);
	EXPECT(lang_codes_get(lc, number(lc, 2), &got));
	EXPECT_STR(got.name, "f");
	EXPECT_STR(got.file, "/b.py");
	EXPECT_EQ(got.first_line, 7);
	EXPECT(!lang_codes_get(lc, 77, &got));
	/* An id of long ago is not mistaken for one that has its place now. */
	a.id = 1 + 4 * SF_MAX_CODES;
	EXPECT(lang_codes_add(lc, &a, HEAD));
	EXPECT_EQ(number(lc, 1), LANG_CODE_UNKNOWN);
	EXPECT_EQ(number(lc, a.id), number(lc, 900));
	lang_codes_reset(lc);
	EXPECT_EQ(number(lc, 900), LANG_CODE_UNKNOWN);
	lang_codes_free(lc);
}

TEST(texts_become_clean_utf8)
{
	struct lang_codes *lc = lang_codes_new();
	struct sf_code a = code_of(1, "h\xe9\x1b", "x.py"), b = code_of(2, "", "y.py");
	const uint16_t wide[] = { 0x4f60, 0x597d, 0xd800 };
	struct lang_code got;

	memcpy(b.name, wide, sizeof(wide));
	b.name_len = sizeof(wide);
	b.name_unit = 2;
	EXPECT(lang_codes_add(lc, &a, HEAD) && lang_codes_add(lc, &b, HEAD));
	EXPECT(lang_codes_get(lc, number(lc, 1), &got));
	EXPECT_STR(got.name, "h\xc3\xa9.");
	EXPECT(lang_codes_get(lc, number(lc, 2), &got));
	EXPECT(!strncmp(got.name, "\xe4\xbd\xa0\xe5\xa5\xbd\xef\xbf\xbd", 9));
	lang_codes_free(lc);
}

TEST(malformed_code_is_refused)
{
	struct lang_codes *lc = lang_codes_new();
	struct sf_code good = code_of(1, "f", "a.py"), bad;

	EXPECT(!lang_codes_add(lc, &good, HEAD - 1));
	bad = good;
	bad.name_len = SF_CODE_TEXT + 1;
	EXPECT(!lang_codes_add(lc, &bad, sizeof(bad)));
	bad = good;
	bad.lines_len = 1;
	EXPECT(!lang_codes_add(lc, &bad, HEAD));
	bad = good;
	bad.file_unit = 3;
	EXPECT(!lang_codes_add(lc, &bad, HEAD));
	bad = good;
	bad.language = SF_LANG_MAX;
	EXPECT(!lang_codes_add(lc, &bad, HEAD));
	lang_codes_free(lc);
}

/* Takes n pieces of new code of a user, with long names. Returns how many are known. */
static uint32_t take_many(struct lang_codes *lc, uint32_t owner, uint32_t n)
{
	static uint32_t id;
	struct sf_code rec = code_of(0, "f", "a.py");
	uint32_t known = 0;

	rec.owner = owner;
	rec.name_len = SF_CODE_TEXT;
	for (uint32_t i = 0; i < n; i++) {
		rec.id = ++id;
		memset(rec.name, 'n', sizeof(rec.name));
		snprintf((char *)rec.name, 12, "%u", id);
		EXPECT(lang_codes_add(lc, &rec, HEAD));
		known += number(lc, rec.id) != LANG_CODE_UNKNOWN;
	}
	return known;
}

/* No user has all of the memory, and names that find no place take none. */
TEST(code_has_shares_by_user)
{
	struct lang_codes *lc = lang_codes_new();
	const uint32_t all = (64u << 20) / SF_CODE_TEXT;
	uint32_t first = take_many(lc, 1000, all), second = take_many(lc, 1001, all);

	EXPECT(first > all / 8 && first < all / 3);
	EXPECT(second > first / 3 && second < first);
	EXPECT_EQ(take_many(lc, 1000, 10), 0);
	EXPECT_EQ(take_many(lc, 1002, 100), 100);
	EXPECT(take_many(lc, 0, all) > 0);
	EXPECT_EQ(take_many(lc, 0, 10), 0);
	EXPECT(lang_codes_bytes(lc) <= 64u << 20);
	lang_codes_free(lc);
}
