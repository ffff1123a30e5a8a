/* SPDX-License-Identifier: BSD-2-Clause */
#include "symtab/elf_symtab.h"

#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <unistd.h>

#include "codewalk/code_op.h"
#include "files.h"
#include "symtab/sym_names.h"
#include "test.h"

/* ---- Files to read ---- */

struct file {
	int fd;
	struct elf_image img;
	struct symtab *t;
};

static bool open_file(struct file *f, const char *path)
{
	char full[192];

	*f = (struct file){ 0 };
	snprintf(full, sizeof(full), path[0] == '/' ? "%s" : "%s/%s", path[0] == '/' ? path : dir,
		 path);
	f->fd = open(full, O_RDONLY | O_CLOEXEC);
	if (f->fd < 0 || elf_image_open_fd(&f->img, f->fd, NULL))
		return false;
	return symtab_build(&f->img, NULL, UINT32_MAX, &f->t) == 0;
}

static void close_file(struct file *f)
{
	symtab_free(f->t);
	elf_image_close(&f->img);
	close(f->fd);
}

static const char *name_at(const struct file *f, uint64_t vaddr)
{
	static char buf[SYMTAB_NAME_MAX];
	struct symtab_hit hit;
	uint64_t off;

	if (!elf_image_vaddr_to_offset(&f->img, vaddr, &off) || !symtab_find(f->t, off, &hit))
		return "-";
	return symtab_name(f->t, &hit, buf, sizeof(buf)) > 0 ? buf : "?";
}

/* The vaddr at which the function at vaddr begins; 0: none. */
static uint64_t start_at(const struct file *f, uint64_t vaddr)
{
	struct symtab_hit hit;
	uint64_t off;

	if (!elf_image_vaddr_to_offset(&f->img, vaddr, &off) || !symtab_find(f->t, off, &hit))
		return 0;
	return vaddr - (off - hit.start);
}

/* ---- Small files ---- */

static const char asm_text[] = "	.text\n"
			       "base:\n" /* NOTYPE, size 0, up to the next symbol */
			       "	.skip 16, 0x90\n"
			       "	.globl pub, __pub, _pub\n"
			       "	.weak weak_pub\n"
			       "	.type pub, @function\n"
			       "	.type __pub, @function\n"
			       "	.type _pub, @function\n"
			       "	.type weak_pub, @function\n"
			       "__pub:\n"
			       "_pub:\n"
			       "weak_pub:\n"
			       "pub:	.skip 8, 0x90\n"
			       "inside:	.skip 8, 0x90\n" /* a label in a function */
			       "	.size pub, 16\n"
			       "	.size __pub, 16\n"
			       "	.size _pub, 16\n"
			       "	.size weak_pub, 16\n"
			       "	.skip 16, 0x90\n" /* nobody's */
			       "	.type outer, @function\n"
			       "outer:	.skip 8, 0x90\n"
			       "	.type inner, @function\n"
			       "inner:	.skip 4, 0x90\n"
			       "	.size inner, 4\n"
			       "	.skip 20, 0x90\n"
			       "	.size outer, 32\n"
			       "	.type alone, @function\n"
			       "alone:	.skip 16, 0x90\n" /* a function without a size */
			       "\"$x.1\":	.skip 8, 0x90\n"
			       "	.type local_name, @function\n"
			       "	.globl g\n"
			       "	.type g, @function\n"
			       "local_name:\n"
			       "g:	.skip 16, 0x90\n"
			       "	.size local_name, 16\n"
			       "	.size g, 16\n"
			       "	.globl short_one, longer_name\n"
			       "	.type short_one, @function\n"
			       "	.type longer_name, @function\n"
			       "short_one:\n"
			       "longer_name:\n"
			       "	.skip 4, 0x90\n"
			       "	.size short_one, 4\n"
			       "	.size longer_name, 4\n"
			       "	.skip 12, 0x90\n"
			       "	.globl old_version\n"
			       "	.type old_version, @function\n"
			       "old_version:	.skip 16, 0x90\n"
			       "	.size old_version, 16\n"
			       "	.symver old_version, versioned@@V1\n"
			       "two_versions:\n"
			       "	.type \"base@V0\", @function\n"
			       "\"base@V0\":	.skip 16, 0x90\n"
			       "	.size \"base@V0\", 16\n"
			       "no_version:\n"
			       "	.type \"Bag@Walk#each\", @function\n"
			       "\"Bag@Walk#each\":	.skip 16, 0x90\n"
			       "	.size \"Bag@Walk#each\", 16\n"
			       "msvc:\n"
			       "	.type \"?foo@@YAXH@Z\", @function\n"
			       "\"?foo@@YAXH@Z\":	.skip 16, 0x90\n"
			       "	.size \"?foo@@YAXH@Z\", 16\n"
			       "	.type \"$s4main3fooyyF\", @function\n"
			       "\"$s4main3fooyyF\":	.skip 16, 0x90\n"
			       "	.size \"$s4main3fooyyF\", 16\n"
			       "	.data\n"
			       "	.globl thing\n"
			       "thing:	.quad 1\n"
			       "	.section .note.GNU-stack,\"\",@progbits\n";

TEST_IN_DIR(symtab_rules)
{
	static const struct {
		const char *symbol;
		int add;
		const char *want;
	} cases[] = {
		{ "base", 0, "base" },
		{ "base", 15, "base" },
		{ "pub", 0, "pub" },
		{ "inside", 0, "pub" },
		{ "pub", 15, "pub" },
		{ "pub", 16, "-" },
		{ "pub", 31, "-" },
		{ "outer", 0, "outer" },
		{ "inner", 0, "inner" },
		{ "inner", 3, "inner" },
		{ "inner", 4, "outer" },
		{ "outer", 31, "outer" },
		/* $x.1 is no function */
		{ "alone", 0, "alone" },
		{ "alone", 15, "alone" },
		{ "alone", 23, "alone" },
		{ "g", 0, "g" },
		{ "short_one", 3, "longer_name" },
		{ "short_one", 4, "-" },
		{ "old_version", 2, "versioned" },
		/* Only a version that the file has is none of the name. */
		{ "two_versions", 2, "base@V0" },
		{ "no_version", 2, "Bag@Walk#each" },
		{ "msvc", 2, "?foo@@YAXH@Z" },
		{ "$s4main3fooyyF", 2, "$s4main3fooyyF" },
		{ "thing", 0, "-" },
	};
	struct file f = { 0 };
	size_t i;

	write_file("a.s", asm_text);
	write_file("a.map", "V1 { global: *; };\n");
	if (!run("gcc -shared -nostdlib -Wl,--version-script=a.map -o a.so a.s && "
		 "nm a.so > /dev/null"))
		SKIP("no gcc or no nm");
	EXPECT(open_file(&f, "a.so"));
	for (i = 0; f.t && i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t at = nm("a.so", cases[i].symbol);

		if (!at && strcmp(cases[i].symbol, "old_version") == 0)
			at = nm("a.so", "versioned@@V1");
		if (strcmp(name_at(&f, at + (uint64_t)cases[i].add), cases[i].want) != 0) {
			printf("  %s+%d:\n", cases[i].symbol, cases[i].add);
			EXPECT_STR(name_at(&f, at + (uint64_t)cases[i].add), cases[i].want);
		}
	}
	close_file(&f);
}

static const char c_text[] = "#include <stdlib.h>\n"
			     "#include <string.h>\n"
			     "__attribute__((noinline)) int twice(int x) {"
			     " return abs(x) + (int)strlen(getenv(\"HOME\")); }\n"
			     "void *p = (void *)getenv;\n"
			     "int main(int argc, char **argv) {"
			     " (void)argv; return twice(argc) + (p == (void *)getenv); }\n";

/*
 * Stubs of all kinds of PLT that gcc can be made to emit, found through the disassembler's own
 * names.
 */
static void check_plt(const char *file)
{
	char cmd[256], line[512], sym[256];
	unsigned long long value;
	struct file f;
	int seen = 0;
	FILE *p;

	if (!open_file(&f, file)) {
		EXPECT(!"opens");
		return;
	}
	snprintf(cmd, sizeof(cmd), "objdump -d -j .plt -j .plt.sec -j .plt.got %s/%s 2>/dev/null",
		 dir, file);
	p = popen(cmd, "r");
	while (p && fgets(line, sizeof(line), p)) {
		char *at;

		if (sscanf(line, "%llx <%255[^>]>:", &value, sym) != 2 ||
		    !(at = strstr(sym, "@plt")) || at[4] || sym[0] == '*')
			continue;
		*at = 0;
		EXPECT_STR(name_at(&f, value + 3), sym);
		seen++;
	}
	if (p)
		pclose(p);
	EXPECT(seen >= 2);
	close_file(&f);
}

TEST_IN_DIR(symtab_plt)
{
	write_file("b.c", c_text);
	if (!run("gcc -O2 -fno-builtin -o lazy b.c -Wl,-z,lazy -fcf-protection=none && "
		 "gcc -O2 -fno-builtin -o now b.c -Wl,-z,now && "
		 "gcc -O2 -fno-builtin -fcf-protection -Wl,-z,ibtplt,-z,lazy -o ibt b.c && "
		 "gcc -O2 -fno-builtin -no-pie -o fixed b.c && "
		 "objdump --version > /dev/null && uname -m | grep -q x86_64"))
		SKIP("no gcc, no objdump or not x86-64");
	check_plt("lazy");
	check_plt("now");
	check_plt("ibt");
	check_plt("fixed");
}

TEST_IN_DIR(symtab_stripped)
{
	static const char *const flags[] = { "", "-no-pie", "-static", "-static-pie" };
	struct file f;

	write_file("b.c", c_text);
	if (!run("gcc -O2 -o c b.c && strip --version > /dev/null && "
		 "readelf --version > /dev/null"))
		SKIP("no gcc or no binutils");
	for (size_t i = 0; i < 4; i++) {
		char cmd[256];
		uint64_t start, main_at;

		snprintf(cmd, sizeof(cmd), "gcc -O2 %s -o c b.c", flags[i]);
		if (!run(cmd))
			continue;
		start = nm("c", "_start");
		main_at = nm("c", "main");
		EXPECT(open_file(&f, "c"));
		EXPECT_STR(name_at(&f, start + 0x20), "_start");
		EXPECT_STR(name_at(&f, main_at), "main");
		close_file(&f);
		EXPECT(run("strip c"));
		EXPECT(open_file(&f, "c"));
		EXPECT_STR(name_at(&f, start + 0x20), "_start");
		/* The unwind tables know where main begins and ends, and have no name for it. */
		EXPECT_STR(name_at(&f, main_at), "?");
		EXPECT_EQ(start_at(&f, main_at + 5), main_at);
		close_file(&f);
	}
	/* A shared library's entry point starts no process. */
	EXPECT(run("gcc -O2 -shared -fPIC -fvisibility=hidden -Wl,-e,twice -o c b.c && strip c"));
	EXPECT(open_file(&f, "c"));
	EXPECT(f.img.entry != 0);
	EXPECT_STR(name_at(&f, f.img.entry), "?");
	close_file(&f);
}

/* Exported functions without a size, and functions without a symbol after them. */
static const char sizeless_text[] = "	.text\n"
				    "	.globl plain, loop, table, ends, tail, last\n"
				    "plain:	CFI_START\n"
				    "	test	%rdi, %rdi\n"
				    "	jz	1f\n"
				    "	mov	%rdi, %rax\n"
				    "plain_mid:	ret\n"
				    "1:	xor	%eax, %eax\n"
				    "plain_last:	ret\n"
				    "	CFI_END\n"
				    "hidden1:	CFI_START\n"
				    "	lea	1(%rdi), %rax\n"
				    "hidden1_last:	ret\n"
				    "	CFI_END\n"
				    "loop:	CFI_START\n"
				    "	jmp	2f\n"
				    "1:	add	%rdi, %rax\n"
				    "2:	dec	%rdi\n"
				    "	jnz	1b\n"
				    "loop_last:	ret\n"
				    "	CFI_END\n"
				    "hidden2:	CFI_START\n"
				    "hidden2_last:	ret\n"
				    "	CFI_END\n"
				    "table:	CFI_START\n"
				    "	jmp	*%rax\n"
				    "table_more:	ret\n"
				    "	CFI_END\n"
				    "ends:	CFI_START\n"
				    "	call	*%rdi\n"
				    "	CFI_END\n"
				    "	.p2align 4, 0x90\n"
				    "	nop\n"
				    "	.p2align 4, 0x90\n"
				    "hidden3:	CFI_START\n"
				    "hidden3_last:	ret\n"
				    "	CFI_END\n"
				    "tail:	CFI_START\n"
				    "tail_last:	jmp	hidden5\n"
				    "	CFI_END\n"
				    "hidden4:	CFI_START\n"
				    "hidden4_last:	ret\n"
				    "	CFI_END\n"
				    "hidden5:	CFI_START\n"
				    "hidden5_last:	ret\n"
				    "	CFI_END\n"
				    "last:	ret\n"
				    "hidden6:	ret\n"
				    "	.section .note.GNU-stack,\"\",@progbits\n";

/* cfi: each function has an unwind table. */
static void check_sizeless(bool cfi, const char *strip)
{
	static const struct {
		const char *at, *want;
	} cases[] = {
		{ "plain", "plain" },	{ "plain_mid", "plain" }, { "plain_last", "plain" },
		{ "loop", "loop" },	{ "loop_last", "loop" },  { "table", "table" },
		{ "ends", "ends" },	{ "tail", "tail" },	  { "tail_last", "tail" },
		{ "last", "last" },	{ "hidden1", "" },	  { "hidden1_last", "" },
		{ "hidden2_last", "" }, { "hidden3", "" },	  { "hidden4_last", "" },
		{ "hidden5_last", "" }, { "hidden6", "" },
	};
	char cmd[256];
	struct file f;

	snprintf(cmd, sizeof(cmd),
		 "sed 's/CFI_START/%s/;s/CFI_END/%s/' s.s > s1.s && "
		 "gcc -shared -nostdlib -o full.so s1.s && strip %s -o s.so full.so",
		 cfi ? ".cfi_startproc" : "", cfi ? ".cfi_endproc" : "", strip);
	EXPECT(run(cmd));
	EXPECT(open_file(&f, "s.so"));
	for (size_t i = 0; f.t && i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *name = name_at(&f, nm("full.so", cases[i].at)), *want = cases[i].want;

		if (*want ? strcmp(name, want) : strcmp(name, "?") && strcmp(name, "-")) {
			printf("  cfi %d, strip %s, %s: %s\n", cfi, strip, cases[i].at, name);
			EXPECT(!"the name of its function");
		}
	}
	/* Only a table tells what an indirect jump leads to. */
	if (f.t && cfi)
		EXPECT_STR(name_at(&f, nm("full.so", "table_more")), "table");
	close_file(&f);
}

TEST_IN_DIR(symtab_symbols_without_size)
{
	write_file("s.s", sizeless_text);
	if (!run("gcc --version > /dev/null && strip --version > /dev/null && "
		 "uname -m | grep -q x86_64"))
		SKIP("no gcc, no binutils or not x86-64");
	if (!code_arch_x86())
		SKIP("built without Zydis");
	for (int cfi = 0; cfi < 2; cfi++) {
		check_sizeless(cfi, "-s");
		check_sizeless(cfi, "-x");
	}
}

/* One table entry for several functions says nothing about where each ends. */
TEST_IN_DIR(symtab_one_table_entry_for_all)
{
	struct file f;

	write_file("o.s", "	.text\n"
			  "	.globl first, second\n"
			  "	.type second, @function\n"
			  "first:	.cfi_startproc\n"
			  "	ret\n"
			  "hidden:	nop\n"
			  "	ret\n"
			  "second:	ret\n"
			  "	.size second, 1\n"
			  "hidden2:	nop\n"
			  "	ret\n"
			  "	.cfi_endproc\n"
			  "	.section .note.GNU-stack,\"\",@progbits\n");
	if (!run("uname -m | grep -q x86_64 && gcc -shared -nostdlib -o full.so o.s && "
		 "strip -o o.so full.so") ||
	    !code_arch_x86())
		SKIP("no gcc, no binutils, no Zydis, or not x86-64");
	EXPECT(open_file(&f, "o.so"));
	EXPECT_STR(name_at(&f, nm("full.so", "first")), "first");
	EXPECT_STR(name_at(&f, nm("full.so", "second")), "second");
	EXPECT(strcmp(name_at(&f, nm("full.so", "hidden")), "first"));
	EXPECT(strcmp(name_at(&f, nm("full.so", "hidden2")), "second"));
	close_file(&f);
}

static const char *shown_at(const struct file *f, uint64_t vaddr)
{
	static char shown[SYM_NAME_MAX];

	sym_demangle(name_at(f, vaddr), shown, sizeof(shown));
	return shown;
}

/* Names of one address, and how the one that is shown begins. */
static const struct {
	const char *names[6], *want, *mark;
} folded[] = {
	{ { "_ZN5Alpha3runEv", "_ZN1B2goEv" }, "Alpha::run", " [+1]" },
	{ { "_ZN5Alpha4walkEv", "_ZN1B4walkEv", "_ZN1C4walkEv" }, "Alpha::walk", " [+2]" },
	/* Constructors and destructors of one class, and of two */
	{ { "_ZN3FooC1Ev", "_ZN3FooC2Ev" }, "Foo::Foo", "" },
	{ { "_ZN3FooD0Ev", "_ZN3FooD1Ev", "_ZN3FooD2Ev" }, "Foo::~Foo", "" },
	{ { "_ZN5LargeIiED1Ev", "_ZN5LargeIiED2Ev", "_ZN2LiD1Ev", "_ZN2LiD2Ev" },
	  "Large<int>::~Large",
	  " [+1]" },
	{ { "_ZN1a9makeFooC1Ev", "_ZN1a9makeFooC2Ev" }, "a::makeFooC", " [+1]" },
	/* Overloads and thunks are functions of their own, clones are not. */
	{ { "_ZN3Foo1fEi", "_ZN3Foo1fEj" }, "Foo::f", " [+1]" },
	{ { "_ZN3Foo1hEv", "_ZN3Foo1hEv.localalias", "_ZN3Foo1hEv.part.0", "_ZN3Foo1hEv.llvm.12" },
	  "Foo::h",
	  "" },
	{ { "_ZN3Foo1tEv", "_ZThn16_N3Foo1tEv", "_ZTv0_n24_N3Foo1tEv", "_ZTch0_h16_N3Foo1tEv" },
	  "",
	  " [+3]" },
	{ { "_ZN3Foo1uEv", "_ZThn16_N7Another1vEv" }, "non-virtual thunk to Another::v", " [+1]" },
	/* Rust: the hash is not shown. */
	{ { "_ZN4core3fmt3run17h0123456789abcdefE", "_ZN4core3fmt3run17hfedcba9876543210E" },
	  "core::fmt::run",
	  "" },
	{ { "_ZN4core3fmt4stop17h0123456789abcdefE", "_ZN4core3fmt2go17hfedcba9876543210E" },
	  "core::fmt::stop",
	  " [+1]" },
	{ { "_ZN4core3fmt4halt17h0123456789abcdefE",
	    "_ZN4core3fmt4halt17hfedcba9876543210E.llvm.1" },
	  "core::fmt::halt",
	  "" },
	{ { "_RNvC4long3foo", "_RNvC1a3bar" }, "long::foo", " [+1]" },
	{ { "_RINvNtCs1_4core3ptr4dropNtCs2_1a1TECs3_3bin",
	    "_RINvNtCs12_4core3ptr4dropNtCs34_1a1TECs56_5other" },
	  "core::ptr::drop::<a::T>",
	  " [+1]" },
	{ { "_RINvNtCs1_4core3ptr4keepNtCs2_1a1TECs3_3bin",
	    "_RINvNtCs1_4core3ptr4keepNtCs2_1a4LongE" },
	  "core::ptr::keep::<a::",
	  " [+1]" },
	{ { "_RNCNvC4long3foo0B3_", "_RNCNvC4long3foos_0B3_" }, "long::foo::", " [+1]" },
	/* Parts that differ, and variants of constructors after numbers of all kinds */
	{ { "_ZN1AILi12EEC1Ev", "_ZN1AILi12EEC2Ev" }, "A<12>::A", "" },
	{ { "_ZN1AILin3EEC1ERKS0_", "_ZN1AILin3EEC2ERKS0_" }, "A<-3>::A", "" },
	{ { "_ZN3AC1C1Ev", "_ZN3AC1C2Ev" }, "AC1::AC1", "" },
	{ { "_ZN3BC12goEv", "_ZN3BC22goEv" }, "BC1::go", " [+1]" },
	{ { "_Z4stepIiLi128EEvT_", "_Z4stepIiLi128EEiT_" }, "step<", " [+1]" },
	{ { "_Z4turnIiLi128EEvT_", "_Z4turnIiLi127EEvT_" }, "turn<", " [+1]" },
	{ { "_ZN3VecaSERKS_", "_ZN3VecaSEOS_" }, "Vec::operator=", " [+1]" },
	{ { "_ZNK3VeccvbEv", "_ZNK3VeccviEv" }, "Vec::operator ", " [+1]" },
	{ { "_ZZN3Foo2okEvENKUlvE_clEv", "_ZZN3Foo2okEvENKUlvE0_clEv" }, "Foo::ok", " [+1]" },
	{ { "_ZN1AIXadL_Z1fvEEE3runEi", "_ZN1AIXadL_Z1fvEEE3runEj" }, "A<", " [+1]" },
	{ { "_ZN1BILN1N4KindE5EE3runEi", "_ZN1BILN1N4KindE6EE3runEi" }, "B<", " [+1]" },
	{ { "_ZNSt6vectorIiSaIiEE4sizeEv", "_ZNSt6vectorIlSaIlEE4sizeEv" },
	  "std::vector<",
	  " [+1]" },
	/* Names of C are aliases on purpose. */
	{ { "read_it", "__read_it", "pread_it" }, "pread_it", "" },
	{ { "_ZN1A1cEv", "name_of_c" }, "name_of_c", "" },
	{ { "_Reader", "_Rest" }, "_Reader", "" },
};

/* Functions that a linker or a compiler has folded into one. */
TEST_IN_DIR(symtab_folded)
{
	static char text[32768];
	struct symtab_hit hit;
	struct file f;
	size_t n = 0;

	for (size_t i = 0; i < sizeof(folded) / sizeof(folded[0]); i++) {
		for (const char *const *name = folded[i].names; *name; name++)
			n += (size_t)snprintf(text + n, sizeof(text) - n,
					      "\t.globl \"%s\"\n\t.type \"%s\", @function\n"
					      "\"%s\":\n\t.size \"%s\", 16\n",
					      *name, *name, *name, *name);
		n += (size_t)snprintf(text + n, sizeof(text) - n, "\t.skip 16, 0x90\n");
	}
	/* A function without code has the address of the next one. */
	snprintf(text + n, sizeof(text) - n,
		 "\t.type _ZN9Unreached1fEv, @function\n_ZN9Unreached1fEv:\n"
		 "\t.type _ZN4Next1fEv, @function\n_ZN4Next1fEv:\n\t.skip 16, 0x90\n"
		 "\t.size _ZN4Next1fEv, 16\n");
	write_file("f.s", text);
	if (!run("gcc --version"))
		SKIP("no gcc");
	EXPECT(run("gcc -shared -nostdlib -o f.so f.s"));
	EXPECT(open_file(&f, "f.so"));
	for (size_t i = 0; f.t && i < sizeof(folded) / sizeof(folded[0]); i++) {
		const char *want = folded[i].want,
			   *got = shown_at(&f, nm("f.so", *folded[i].names));
		const char *mark = strstr(got, " [");

		if (strncmp(got, want, strlen(want)) || strcmp(mark ? mark : "", folded[i].mark)) {
			printf("  %s%s:\n", want, folded[i].mark);
			EXPECT_STR(got, want);
		}
	}
	if (f.t)
		EXPECT_STR(name_at(&f, nm("f.so", "_ZN4Next1fEv")), "_ZN4Next1fEv");
	/* Where other names stay in the file, marked ones are in the table. */
	symtab_free(f.t);
	EXPECT_EQ(symtab_build(&f.img, NULL, 64, &f.t), 0);
	EXPECT_STR(shown_at(&f, nm("f.so", "_ZN5Alpha4walkEv")), "Alpha::walk [+2]");
	EXPECT_STR(shown_at(&f, nm("f.so", "_RNvC1a3bar")), "long::foo [+1]");
	EXPECT_STR(name_at(&f, nm("f.so", "_ZN4Next1fEv")), "?");
	for (uint32_t i = 0; symtab_at(f.t, i, &hit); i++) {
		bool debug, own = symtab_name(f.t, &hit, text, sizeof(text)) > 0;
		uint64_t at;
		uint32_t len;

		EXPECT(hit.size == 16 && own != symtab_name_place(f.t, &hit, &at, &len, &debug));
	}
	close_file(&f);
}

/* A resolver is not the function that it chooses. */
TEST_IN_DIR(symtab_resolvers)
{
	static const struct {
		const char *symbol, *want;
	} cases[] = {
		{ "copy", "copy [resolver]" },
		{ "other_copy", "copy_ifunc" },
		{ "_ZN1A4moveEv", "_ZN1A4moveEv [resolver]" },
		{ "_ZN1A2cpEv", "_ZN1A2cpEv.resolver [resolver]" },
		{ "plain", "plain" },
	};
	struct file f;

	write_file("i.s", "	.globl copy, other_copy, _ZN1A4moveEv, _ZN1B4moveEv, plain\n"
			  "	.type copy, @gnu_indirect_function\n"
			  "copy:	.skip 16, 0x90\n"
			  "	.size copy, 16\n"
			  "	.type other_copy, @gnu_indirect_function\n"
			  "	.type copy_ifunc, @function\n"
			  "copy_ifunc:\n"
			  "other_copy:	.skip 16, 0x90\n"
			  "	.size copy_ifunc, 16\n"
			  "	.size other_copy, 16\n"
			  "	.type _ZN1A4moveEv, @gnu_indirect_function\n"
			  "_ZN1A4moveEv:	.skip 16, 0x90\n"
			  "	.size _ZN1A4moveEv, 16\n"
			  "	.type _ZN1A2cpEv, @gnu_indirect_function\n"
			  "	.type _ZN1A2cpEv.resolver, @function\n"
			  "_ZN1A2cpEv.resolver:\n"
			  "_ZN1A2cpEv:	.skip 16, 0x90\n"
			  "	.size _ZN1A2cpEv, 16\n"
			  "	.size _ZN1A2cpEv.resolver, 16\n"
			  "	.type plain, @function\n"
			  "plain:	.skip 16, 0x90\n"
			  "	.size plain, 16\n"
			  "	.section .note.GNU-stack,\"\",@progbits\n");
	if (!run("gcc -shared -nostdlib -o i.so i.s"))
		SKIP("no gcc, or no such functions here");
	EXPECT(open_file(&f, "i.so"));
	for (size_t i = 0; f.t && i < sizeof(cases) / sizeof(cases[0]); i++)
		EXPECT_STR(name_at(&f, nm("i.so", cases[i].symbol)), cases[i].want);
	close_file(&f);
}

/* Names of Ada and Nim are those of units whose source the file lists; others are of C. */
TEST_IN_DIR(symtab_names_by_source)
{
	static const struct {
		const char *symbol, *want;
	} cases[] = {
		{ "pack__child__run", "pack.child.run" },
		{ "pack__child__Oadd", "pack.child.\"+\"" },
		{ "pack__child__local.3", "pack.child.local" },
		{ "_ada_tool", "tool" },
		{ "tool__inner.2", "tool.inner" },
		{ "my__c_function", "my__c_function" },
		{ "system__run", "system__run" },
		{ "work__digits_u12", "digits.work" },
		{ "add__stdZdigits_164.part.0", "digits.add" },
		{ "push__vec_u8", "push__vec_u8" },
		{ "__digits_u8", "__digits_u8" },
		{ "digits_u8", "digits_u8" },
	};
	static const char *const sources[] = { "pack-child.adb", "tool.adb",
					       "@m..@sstd@sdigits.nim.c", "c.c" };
	char text[4096] = "", cmd[128];
	struct file f;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "\t.globl %1$s\n\t.type %1$s, @function\n%1$s:\tnop\n"
			 "\t.size %1$s, 1\n",
			 cases[i].symbol);
	write_file("all.s", text);
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		snprintf(text, sizeof(text), "\t.file \"%s\"\n\t.local l%zu\nl%zu:\n", sources[i],
			 i, i);
		snprintf(cmd, sizeof(cmd), "s%zu.s", i);
		write_file(cmd, text);
	}
	if (!run("gcc -shared -nostdlib -o n.so all.s s0.s s1.s s2.s s3.s"))
		SKIP("no gcc");
	EXPECT(open_file(&f, "n.so"));
	for (size_t i = 0; f.t && i < sizeof(cases) / sizeof(cases[0]); i++)
		EXPECT_STR(name_at(&f, nm("n.so", cases[i].symbol)), cases[i].want);
	close_file(&f);
}

/* Zeroes e_shoff, e_shnum, e_shstrndx. */
static void drop_sections(uint8_t *mem)
{
	memset(mem + offsetof(Elf64_Ehdr, e_shoff), 0, 8);
	memset(mem + offsetof(Elf64_Ehdr, e_shnum), 0, 4);
}

TEST_IN_DIR(symtab_without_section_headers)
{
	static const char *const styles[] = { "gnu", "sysv" };
	char path[128], cmd[256];
	uint8_t *mem;
	size_t len = 0;

	write_file("b.c", c_text);
	for (int i = 0; i < 2; i++) {
		struct elf_image img;
		struct symtab *t = NULL;
		struct symtab_hit hit;
		char name[64] = "";
		uint64_t off = 0;

		snprintf(cmd, sizeof(cmd), "gcc -O2 -shared -fPIC -Wl,--hash-style=%s -o c.so b.c",
			 styles[i]);
		if (!run(cmd))
			SKIP("no gcc");
		snprintf(path, sizeof(path), "%s/c.so", dir);
		mem = slurp(path, &len);
		drop_sections(mem);
		EXPECT_EQ(elf_image_open_mem(&img, mem, len, NULL), 0);
		EXPECT_EQ(symtab_build(&img, NULL, UINT32_MAX, &t), 0);
		EXPECT_EQ(t->n, 4); /* and two PLT entries without names */
		EXPECT(elf_image_vaddr_to_offset(&img, nm("c.so", "twice"), &off));
		EXPECT(symtab_find(t, off + 1, &hit) &&
		       symtab_name(t, &hit, name, sizeof(name)) == 5);
		EXPECT_STR(name, "twice");
		symtab_free(t);
		elf_image_close(&img);
		free(mem);
	}
}

/* ---- Real libraries: what readelf lists is what is found ---- */

struct listed {
	uint64_t value, size;
	char name[160];
};

static int compare_listed(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;

	return x->value < y->value ? -1 : x->value > y->value;
}

static size_t read_listed(const char *path, struct listed *list, size_t cap)
{
	char cmd[256], line[8192], type[16], bind[16], vis[16], ndx[16], size[32], name[4096];
	unsigned long long value;
	size_t n = 0;
	FILE *p;

	snprintf(cmd, sizeof(cmd), "readelf --dyn-syms -W %s 2>/dev/null", path);
	p = popen(cmd, "r");
	while (p && n < cap && fgets(line, sizeof(line), p)) {
		if (sscanf(line, "%*d: %llx %31s %15s %15s %15s %15s %4095s", &value, size, type,
			   bind, vis, ndx, name) != 7 ||
		    (strcmp(type, "FUNC") != 0 && strcmp(type, "IFUNC") != 0) ||
		    strcmp(ndx, "UND") == 0)
			continue;
		name[strcspn(name, "@")] = 0;
		list[n].value = value;
		list[n].size = strtoull(size, NULL, 0);
		snprintf(list[n++].name, sizeof(list[0].name), "%.159s", name);
	}
	if (p)
		pclose(p);
	qsort(list, n, sizeof(*list), compare_listed);
	return n;
}

/* A name may have a mark. */
static bool is_listed(const struct listed *list, size_t n, uint64_t value, const char *name)
{
	const char *mark = strstr(name, " [");
	size_t len = mark ? (size_t)(mark - name) : strlen(name), most = sizeof(list[0].name) - 1;

	if (len > most)
		len = most;
	for (size_t i = 0; i < n; i++)
		if (list[i].value == value && strlen(list[i].name) == len &&
		    strncmp(list[i].name, name, len) == 0)
			return true;
	return false;
}

static void check_library(const char *path)
{
	static struct listed list[60000];
	size_t n = read_listed(path, list, 60000), group = 0;
	struct file f;
	int wrong = 0;

	EXPECT(n > 100);
	EXPECT(open_file(&f, path));
	for (size_t i = 0; i < n && f.t; i++) {
		uint64_t off, last = list[i].value + (list[i].size ? list[i].size - 1 : 0);

		if (!i || list[i].value != list[group].value)
			group = i;
		if (!elf_image_vaddr_to_offset(&f.img, list[i].value, &off))
			continue;
		if (is_listed(list + group, n - group < 64 ? n - group : 64, list[i].value,
			      name_at(&f, list[i].value)) &&
		    strcmp(name_at(&f, last), "-") != 0)
			continue;
		if (wrong++ < 5)
			printf("  %s %s: %s\n", path, list[i].name, name_at(&f, list[i].value));
	}
	EXPECT_EQ(wrong, 0);
	close_file(&f);
}

/* Where the clone3 call is, in a file without a symbol for it. */
static bool has_clone3(const char *path)
{
	struct symtab_hit hit;
	bool found = false;
	char name[64];
	struct file f;

	EXPECT(open_file(&f, path));
	for (uint32_t i = 0; symtab_at(f.t, i, &hit) && !found; i++)
		found = symtab_name(f.t, &hit, name, sizeof(name)) > 0 &&
			strcmp(name, "clone3") == 0 && hit.size > 32;
	close_file(&f);
	return found;
}

TEST(symtab_libc)
{
	static const char path[] = "/lib/x86_64-linux-gnu/libc.so.6";
	static const char *const names[] = { "read", "malloc", "qsort", "printf", "fork" };

	if (access(path, R_OK) || system("readelf --version > /dev/null 2>&1"))
		SKIP("no libc there, or no readelf");
	check_library(path);
	/* glibc before 2.34 has no clone3; one with its symbols calls it __clone3. */
	if (system("nm /lib/x86_64-linux-gnu/libc.so.6 2>/dev/null | grep -q . ; test $? -ne 0 && "
		   "ldd --version | grep -q 2.3[4-9]") == 0)
		EXPECT(has_clone3(path));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char cmd[256];
		unsigned long long at = 0;
		struct file f;
		FILE *p;

		snprintf(cmd, sizeof(cmd), "nm -D %s | awk '$3 ~ /^%s@@/ { print $1; exit }'", path,
			 names[i]);
		p = popen(cmd, "r");
		EXPECT(p && fscanf(p, "%llx", &at) == 1);
		if (p)
			pclose(p);
		EXPECT(open_file(&f, path));
		EXPECT_STR(name_at(&f, at + 1), names[i]);
		close_file(&f);
	}
}

TEST(symtab_libllvm)
{
	glob_t files;

	if (system("readelf --version > /dev/null 2>&1") ||
	    glob("/usr/lib/*/libLLVM*.so.*", 0, NULL, &files))
		SKIP("no libLLVM there, or no readelf");
	check_library(files.gl_pathv[0]);
	globfree(&files);
}

/* ---- Hostile files ---- */

static void read_all(const uint8_t *mem, size_t len)
{
	static char buf[SYMTAB_NAME_MAX];
	struct elf_image img;
	struct symtab *t = NULL;
	struct symtab_hit hit;
	uint64_t last = 0;

	if (elf_image_open_mem(&img, mem, len, NULL))
		return;
	if (!symtab_build(&img, NULL, UINT32_MAX, &t)) {
		for (uint32_t i = 0; symtab_at(t, i, &hit); i++) {
			EXPECT(!i || hit.start > last);
			EXPECT(hit.size > 0);
			last = hit.start;
			symtab_name(t, &hit, buf, i % 7 ? sizeof(buf) : 2);
			EXPECT(symtab_find(t, hit.start, &hit));
		}
		symtab_find(t, 0, &hit);
		symtab_find(t, UINT64_MAX, &hit);
	}
	symtab_free(t);
	elf_image_close(&img);
}

static uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*state >> 33);
}

/* Where a mutation is likely to hurt: headers, symbols, relocations, the dynamic section. */
static size_t interesting(const struct elf_image *img, uint64_t *state)
{
	const struct elf_shdr *s;

	switch (next_random(state) % 4) {
	case 0:
		return next_random(state) % 1024;
	case 1:
		return img->size - 1 - next_random(state) % (64 * (img->nshdrs + 1));
	default:
		s = &img->shdrs[next_random(state) % img->nshdrs];
		return s->offset + (s->size ? next_random(state) % s->size : 0);
	}
}

static void mutate_all(const char *path, bool sections)
{
	size_t len = 0;
	uint8_t *mem = slurp(path, &len), *copy;
	struct elf_image img;
	uint64_t state = 42;

	if (!mem || elf_image_open_mem(&img, mem, len, NULL)) {
		EXPECT(!"opens");
		free(mem);
		return;
	}
	for (int i = 0; i < 3000; i++) {
		size_t cut = i % 10 == 9 ? next_random(&state) % len : len;

		/* Exactly as long as the file: a sanitizer sees one byte more */
		copy = malloc(cut ? cut : 1);
		memcpy(copy, mem, cut);
		if (!sections && cut > sizeof(Elf64_Ehdr))
			drop_sections(copy);
		for (uint32_t k = 0; k < 1 + next_random(&state) % 8; k++) {
			static const uint8_t bytes[] = { 0, 1, 0x7f, 0x80, 0xff };
			size_t at = interesting(&img, &state);

			for (int run_len = 1 << next_random(&state) % 4; run_len-- && at < cut;
			     at++)
				copy[at] = next_random(&state) % 2 ? bytes[next_random(&state) % 5]
								   : (uint8_t)next_random(&state);
		}
		read_all(copy, cut);
		free(copy);
	}
	elf_image_close(&img);
	free(mem);
}

TEST_IN_DIR(symtab_survives_mutation)
{
	char path[128];

	write_file("a.s", asm_text);
	write_file("a.map", "V1 { global: *; };\n");
	write_file("b.c", c_text);
	if (!run("gcc -shared -nostdlib -Wl,--version-script=a.map -o a.so a.s && "
		 "gcc -O2 -fno-builtin -o b b.c -Wl,-z,lazy"))
		SKIP("no gcc");
	snprintf(path, sizeof(path), "%s/a.so", dir);
	mutate_all(path, true);
	mutate_all(path, false);
	snprintf(path, sizeof(path), "%s/b", dir);
	mutate_all(path, true);
}
