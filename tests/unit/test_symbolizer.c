/* SPDX-License-Identifier: BSD-2-Clause */
#include "sym/symbolizer.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "elf/elf_image.h"
#include "elf_reader.h"
#include "files.h"
#include "samples.h"
#include "symtab/sym_names.h"
#include "test.h"

/* ---- Names ---- */

struct shown_name {
	const char *in, *want;
};

static void expect_shown(const struct shown_name *cases, size_t n)
{
	char buf[SYM_NAME_MAX];

	for (size_t i = 0; i < n; i++) {
		size_t len = sym_demangle(cases[i].in, buf, sizeof(buf));

		EXPECT_STR(buf, cases[i].want);
		EXPECT_EQ(len, strlen(buf));
	}
}

TEST(sym_demangle)
{
	static const struct shown_name cases[] = {
		{ "malloc", "malloc" },
		{ "_start", "_start" },
		{ "_ZNSt6vectorIiSaIiEE9push_backEOi",
		  "std::vector<int, std::allocator<int> >::push_back" },
		{ "_Z3fooIiEvT_", "foo<int>" },
		{ "_ZNK3Foo3barEv", "Foo::bar" },
		{ "_ZZ4mainENKUliE_clEi.cold", "main::{lambda(int)#1}::operator()" },
		{ "_ZN12_GLOBAL__N_13fooEv", "(anonymous namespace)::foo" },
		{ "_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE",
		  "core::fmt::Formatter::write_str" },
		{ "_RNvXs_C7mycrateNtB4_3FooNtNtC4core3fmt5Debug3fmt",
		  "<mycrate::Foo as core::fmt::Debug>::fmt" },
		{ "_RINvNtC3std3mem8align_ofjdE", "std::mem::align_of::<usize, f64>" },
		{ "_Znonsense", "_Znonsense" },
	};
	char buf[SYM_NAME_MAX];

	expect_shown(cases, sizeof(cases) / sizeof(cases[0]));
	EXPECT_EQ(sym_demangle("_Z3fooIiEvT_", buf, 4), 3);
	EXPECT_STR(buf, "foo");
}

TEST(sym_demangle_other_languages)
{
	static const struct shown_name cases[] = {
		/* D: without the last parameters only */
		{ "_D5dprog3Bag4methMFiZv", "dprog.Bag.meth" },
		{ "_D5dprog3Bag4methMxFiZv", "dprog.Bag.meth" },
		{ "_D5dprog3Bag6__ctorMFiZC5dprog3Bag", "dprog.Bag.this" },
		{ "_D5dprog4mainFZ3fooMFiZv", "dprog.main().foo" },
		{ "_D3std5stdio__T7writelnTAyaZQnFNfQjZv",
		  "std.stdio.writeln!(immutable(char)[]).writeln" },
		{ "_D5dprog__T3fooVAyaa3_612962ZQsFiZv", "dprog.foo!(\"a)b\").foo" },
		{ "_D5dprog3fooFiZv.part.0", "dprog.foo" },
		{ "_D5dprog3Bag6__initZ", "initializer for dprog.Bag" },
		{ "_Dmain", "D main" },
		{ "_D5dprog", "_D5dprog" },
		{ "_D9", "_D9" },
		/* OCaml up to 5.0, and later */
		{ "camlStdlib__List__map_236", "Stdlib.List.map" },
		{ "camlStdlib__failwith_6", "Stdlib.failwith" },
		{ "camlStdlib__$40_190", "Stdlib.@" },
		{ "camlO__f$27_12", "O.f'" },
		{ "camlO__my__fun_12", "O.my__fun" },
		{ "camlDune__exe__Main__loop_12", "Dune__exe.Main.loop" },
		{ "camlO__fun_561", "O.fun_561" },
		{ "camlStdlib__Hashtbl__Make_951", "Stdlib.Hashtbl.Make" },
		{ "camlO__my__Fun_12", "camlO__my__Fun_12" },
		{ "camlO__entry", "O.entry" },
		{ "camlO__map_3_27_code", "O.map_3" },
		{ "camlStdlib__List.map_436", "Stdlib.List.map" },
		{ "camlStdlib.$2b._123", "Stdlib.+." },
		{ "camlPack.Sub.f_1", "Pack.Sub.f" },
		{ "camlO.my__fun_12", "O.my__fun" },
		{ "camlO.f$27_12", "O.f'" },
		{ "camlFib$$$5e$$2a_272", "Fib.^*" },
		{ "camlFib$fib_272", "Fib.fib" },
		{ "caml_alloc_small", "caml_alloc_small" },
		{ "camlO", "camlO" },
		{ "camlO__", "camlO__" },
		{ "camlO__f", "camlO__f" },
		{ "camlO__code_end", "camlO__code_end" },
		{ "camlO__$4", "camlO__$4" },
		{ "camlO___f_12", "camlO___f_12" },
		{ "camlO__f$0a_12", "camlO__f$0a_12" },
		{ "camlibert_12", "camlibert_12" },
		{ "camlInit", "camlInit" },
		/* Haskell */
		{ "base_GHCziBase_map_info", "GHC.Base.map" },
		{ "containerszm0zi6zi5zi1_DataziMapziInternal_insert_info",
		  "Data.Map.Internal.insert" },
		{ "ghczmprim_GHCziTuple_Z2T_con_info", "GHC.Tuple.(,)" },
		{ "ghczmprim_GHCziTypes_ZC_con_info", "GHC.Types.:" },
		{ "base_GHCziBase_zlzg_info", "GHC.Base.<>" },
		{ "Main_zdwgo_info", "Main.$wgo" },
		{ "base_GHCziShow_lvl9_r4bX_info", "GHC.Show.lvl9" },
		{ "Main_z0f7U_info", "Main_z0f7U_info" },
		{ "DataziX_z3bbU_info", "Data.X.\xce\xbb" },
		{ "Main_go_info", "Main_go_info" },
		{ "SDL_Resize_info", "SDL_Resize_info" },
		{ "stg_ap_zz_info", "stg_ap_zz_info" },
		{ "base_GHCziBase_zy_info", "base_GHCziBase_zy_info" },
		{ "base_GHCziBase_z_info", "base_GHCziBase_z_info" },
		{ "base_GHCziBase_Z99999T_info", "base_GHCziBase_Z99999T_info" },
		{ "base_GHCziBase__info", "base_GHCziBase__info" },
		{ "foo.part.0", "foo.part.0" },
		{ "bad\x1b[0m\xff", "bad.[0m\xef\xbf\xbd" },
		{ "", "" },
	};

	expect_shown(cases, sizeof(cases) / sizeof(cases[0]));
}

/*
 * A name of some hundred bytes whose substitutions double at every step must neither take long nor
 * much memory.
 */
TEST(sym_demangle_bomb)
{
	char raw[1024] = "_Z1f1AI1BS0_E", buf[SYM_NAME_MAX];
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t len;

	for (int i = 0; i < 30; i++) {
		char part[16];

		snprintf(part, sizeof(part), "S_IS%c_S%c_E", digits[i + 1], digits[i + 1]);
		strcat(raw, part);
	}
	len = sym_demangle(raw, buf, sizeof(buf));
	EXPECT(len > 0 && len < sizeof(buf));
	memset(raw, 'P', sizeof(raw) - 1);
	memcpy(raw, "_Z1f", 4);
	raw[sizeof(raw) - 1] = 0;
	EXPECT(sym_demangle(raw, buf, sizeof(buf)) > 0);
}

/* ---- The front door ---- */

static struct module *add_in_state(struct modules *ms, uint32_t id, const char *name,
				   enum file_state state)
{
	struct module *m = add_module(ms, id, name);

	m->state = (uint8_t)state;
	m->known = (uint8_t)file_life_known(state);
	return m;
}

TEST(symbolizer_names)
{
	struct modules *ms = modules_new();
	struct symbolizer *sz = symbolizer_new(ms);
	bool is_final;
	uint32_t a, b;

	add_in_state(ms, 1, "libfoo.so.1", FILE_NO_TABLES);
	add_in_state(ms, 2, "gone", FILE_UNREACHABLE);
	add_in_state(ms, 4, "e\x1bvil;\xff", FILE_PUBLISHED);
	modules_get(ms, 3); /* loading */
	a = symbolizer_user(sz, ROW(1, 0x1a2b), 1, &is_final);
	EXPECT_STR(symbolizer_name(sz, a), "[libfoo.so.1+0x1a2b]");
	EXPECT_STR(symbolizer_module(sz, a), "libfoo.so.1");
	EXPECT(is_final);
	b = symbolizer_user(sz, ROW(1, 0x1a2b) | SF_FRAME_RA | SF_FRAME_BY_FP, 2, NULL);
	EXPECT_EQ(a, b);
	a = symbolizer_user(sz, ROW(2, 16), 1, &is_final);
	EXPECT_STR(symbolizer_name(sz, a), "[gone+0x10]");
	EXPECT(!is_final);
	a = symbolizer_user(sz, ROW(3, 16), 1, &is_final);
	EXPECT_EQ(a, SYM_UNKNOWN);
	EXPECT(!is_final);
	a = symbolizer_user(sz, ROW(99, 16), 1, &is_final);
	EXPECT_EQ(a, SYM_UNKNOWN);
	EXPECT(!is_final);
	a = symbolizer_user(sz, ROW(4, 16), 1, &is_final);
	EXPECT_STR(symbolizer_name(sz, a), "[e.vil;\xef\xbf\xbd+0x10]");
	a = symbolizer_user(sz, SF_FRAME_RAW << SF_FRAME_KIND_SHIFT | 0x1234, 1, &is_final);
	EXPECT_EQ(a, SYM_UNKNOWN);
	EXPECT_STR(symbolizer_name(sz, a), "[unknown]");
	EXPECT(is_final);
	a = symbolizer_user(sz, SF_FRAME_JIT << SF_FRAME_KIND_SHIFT | 0x1234, 1, &is_final);
	EXPECT_STR(symbolizer_name(sz, a), "[unknown]_[j]");
	EXPECT_STR(symbolizer_module(sz, a), "[jit]");
	a = symbolizer_kernel(sz, 0xffffffff81000000);
	EXPECT_STR(symbolizer_name(sz, a), "[unknown]_[k]");
	EXPECT_EQ(symbolizer_module_index(sz, a),
		  symbolizer_module_index(sz, symbolizer_kernel(sz, 0xffffffff82000000)));
	EXPECT(symbolizer_count(sz) > 6);
	EXPECT(symbolizer_bytes(sz) > 1000);
	symbolizer_free(sz);
	symbolizer_free(NULL);
	modules_free(ms);
}

/* The cache is bounded: past its limit answers stay the same. */
TEST(symbolizer_cache_overflow)
{
	struct modules *ms = modules_new();
	struct symbolizer *sz = symbolizer_new(ms);
	uint32_t first;

	add_in_state(ms, 1, "lib", FILE_PUBLISHED);
	first = symbolizer_user(sz, ROW(1, 0), 1, NULL);
	for (uint64_t i = 0; i < 300000; i++)
		symbolizer_kernel(sz, 0xffff800000000000 + i);
	EXPECT_EQ(symbolizer_user(sz, ROW(1, 0), 1, NULL), first);
	EXPECT(symbolizer_bytes(sz) < 16 << 20);
	symbolizer_free(sz);
	modules_free(ms);
}

TEST_IN_DIR(symbolizer_reads_files)
{
	struct test_reader reader;
	struct modules *ms;
	struct symbolizer *sz;
	struct module *m;
	struct elf_image img;
	uint64_t off = 0;
	char path[128];
	size_t len = 0;
	uint8_t *mem;
	uint32_t id;

	write_file("d.cc",
		   "namespace ns {"
		   " template <class T> __attribute__((noinline)) T twice(T x) { return x + x; }"
		   " template int twice(int); }\n");
	if (!run("g++ -O2 -shared -fPIC -o d.so d.cc"))
		SKIP("no g++");
	snprintf(path, sizeof(path), "%s/d.so", dir);
	reader = open_reader(elf_worker_main);
	ms = modules_new();
	sz = symbolizer_new(ms);
	symbolizer_set_reader(sz, reader.r, NULL);
	m = add_in_state(ms, 1, "d.so", FILE_OPENING);
	m->fd = open(path, O_RDONLY | O_CLOEXEC);
	mem = slurp(path, &len);
	EXPECT_EQ(elf_image_open_mem(&img, mem, len, NULL), 0);
	EXPECT(elf_image_vaddr_to_offset(&img, nm("d.so", "_ZN2ns5twiceIiEET_S1_"), &off));
	EXPECT_EQ(symbolizer_user(sz, ROW(1, off), 1, NULL), SYM_UNKNOWN);
	m->state = FILE_PUBLISHED;
	m->known = KNOWN_TABLES;
	id = symbolizer_user(sz, ROW(1, off), 1, NULL);
	EXPECT_STR(symbolizer_name(sz, id), "ns::twice<int>");
	EXPECT_EQ(symbolizer_user(sz, ROW(1, off + 1), 1, NULL), id);
	/* The same image in memory, as the vDSO is. */
	m = add_in_state(ms, 2, "[vdso]", FILE_PUBLISHED);
	m->mem = mem;
	m->size = len;
	id = symbolizer_user(sz, ROW(2, off), 1, NULL);
	EXPECT_STR(symbolizer_name(sz, id), "ns::twice<int>");
	EXPECT_STR(symbolizer_module(sz, id), "[vdso]");
	id = symbolizer_user(sz, ROW(2, 0), 1, NULL);
	EXPECT_STR(symbolizer_name(sz, id), "[vdso+0x0]");
	elf_image_close(&img);
	symbolizer_free(sz);
	close_reader(&reader);
	modules_free(ms);
	free(mem);
}
