/* SPDX-License-Identifier: BSD-2-Clause */
#include "sym/symbolizer.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "elf/elf_image.h"
#include "files.h"
#include "samples.h"
#include "sym/sym_kernel.h"
#include "sym/sym_names.h"
#include "test.h"

/* ---- Names ---- */

TEST(sym_demangle)
{
	static const struct { const char *in, *want; } cases[] = {
		{ "malloc", "malloc" },
		{ "_start", "_start" },
		{ "_ZNSt6vectorIiSaIiEE9push_backEOi", "std::vector<int, std::allocator<int> >::push_back" },
		{ "_Z3fooIiEvT_", "foo<int>" },
		{ "_ZNK3Foo3barEv", "Foo::bar" },
		{ "_ZZ4mainENKUliE_clEi.cold", "main::{lambda(int)#1}::operator()" },
		{ "_ZN12_GLOBAL__N_13fooEv", "(anonymous namespace)::foo" },
		{ "_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE", "core::fmt::Formatter::write_str" },
		{ "_RNvXs_C7mycrateNtB4_3FooNtNtC4core3fmt5Debug3fmt", "<mycrate::Foo as core::fmt::Debug>::fmt" },
		{ "_RINvNtC3std3mem8align_ofjdE", "std::mem::align_of::<usize, f64>" },
		{ "_Znonsense", "_Znonsense" },
		{ "foo.part.0", "foo.part.0" },
		{ "bad\x1b[0m\xff", "bad.[0m\xef\xbf\xbd" },
		{ "", "" },
	};
	char buf[SYM_NAME_MAX];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t n = sym_demangle(cases[i].in, buf, sizeof(buf));

		EXPECT_STR(buf, cases[i].want);
		EXPECT_EQ(n, strlen(buf));
	}
	EXPECT_EQ(sym_demangle("_Z3fooIiEvT_", buf, 4), 3);
	EXPECT_STR(buf, "foo");
}

/* A name of some hundred bytes whose substitutions double at every step must neither take long nor much memory. */
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

TEST_IN_DIR(sym_kernel_table)
{
	static const char text[] =
		"0000000000001000 A fixed_percpu_data\n"
		"ffffffff81000000 T _text\n"
		"ffffffff81000000 T startup_64\n"
		"ffffffff81000000 t a_local\n"
		"ffffffff81001000 T vfs_read\n"
		"ffffffff81001100 D some_data\n"
		"ffffffff81002000 t __do_it\n"
		"ffffffff81002000 W do_it\n"
		"ffffffffc0001000 t ext4_read\t[ext4]\n"
		"ffffffffc0000000 t ext4_first\t[ext4]\n"
		"ffffffffc0201000 t bpf_prog_6deef7357e7b4530_on_tick\t[bpf]\n"
		"garbage\n\nffffffff T \n";
	static const struct { uint64_t addr; const char *name, *module; } cases[] = {
		{ 0xffffffff81000000, "startup_64", "[kernel]" },
		{ 0xffffffff81000fff, "startup_64", "[kernel]" },
		{ 0xffffffff81001000, "vfs_read", "[kernel]" },
		{ 0xffffffff81001234, "vfs_read", "[kernel]" },
		{ 0xffffffff81002010, "do_it", "[kernel]" },
		{ 0xffffffff90000000, NULL, NULL },		/* too far behind the last one */
		{ 0xffffffffc0000010, "ext4_first", "[ext4]" },
		{ 0xffffffffc0001010, "ext4_read", "[ext4]" },
		{ 0xffffffffc0201010, "bpf_prog_6deef7357e7b4530_on_tick", "[bpf]" },
		{ 0x1000, NULL, NULL },
	};
	struct sym_kernel *k = NULL;
	char path[128];

	write_file("kallsyms", text);
	write_file("hidden", "0000000000000000 T _text\n0000000000000000 T vfs_read\n");
	snprintf(path, sizeof(path), "%s/kallsyms", dir);
	EXPECT_EQ(sym_kernel_load(path, &k), 0);
	for (size_t i = 0; k && i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *module = NULL, *name = sym_kernel_find(k, cases[i].addr, &module);

		if (!cases[i].name) {
			EXPECT(!name);
			continue;
		}
		EXPECT_STR(name, cases[i].name);
		EXPECT_STR(module, cases[i].module);
	}
	sym_kernel_free(k);
	k = NULL;
	snprintf(path, sizeof(path), "%s/hidden", dir);
	EXPECT_EQ(sym_kernel_load(path, &k), 0);
	EXPECT_EQ(sym_kernel_count(k), 0);
	sym_kernel_free(k);
	EXPECT_EQ(sym_kernel_load("/nonexistent", &k), -ENOENT);
}

/* ---- The front door ---- */

static struct module *add_in_state(struct modules *ms, uint32_t id, const char *name, int state)
{
	struct module *m = add_module(ms, id, name);

	m->state = state;
	return m;
}

TEST(symbolizer_names)
{
	struct modules *ms = modules_new();
	struct symbolizer *sz = symbolizer_new(ms);
	bool is_final;
	uint32_t a, b;

	symbolizer_set_kallsyms(sz, NULL);
	add_in_state(ms, 1, "libfoo.so.1", MODULE_NO_TABLE);
	add_in_state(ms, 2, "gone (deleted)", MODULE_GONE);
	add_in_state(ms, 4, "e\x1bvil;\xff", MODULE_READY);
	modules_get(ms, 3);	/* loading */
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
	EXPECT_EQ(symbolizer_module_index(sz, a), symbolizer_module_index(sz, symbolizer_kernel(sz, 0xffffffff82000000)));
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

	symbolizer_set_kallsyms(sz, NULL);
	add_in_state(ms, 1, "lib", MODULE_READY);
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
	struct modules *ms;
	struct symbolizer *sz;
	struct module *m;
	struct elf_image img;
	uint64_t off = 0;
	char path[128];
	size_t len = 0;
	uint8_t *mem;
	uint32_t id;

	write_file("d.cc", "namespace ns { template <class T> __attribute__((noinline)) T twice(T x) { return x + x; } template int twice(int); }\n");
	if (!run("g++ -O2 -shared -fPIC -o d.so d.cc"))
		SKIP("no g++");
	snprintf(path, sizeof(path), "%s/d.so", dir);
	ms = modules_new();
	sz = symbolizer_new(ms);
	m = add_in_state(ms, 1, "d.so", MODULE_LOADING);
	m->fd = open(path, O_RDONLY | O_CLOEXEC);
	mem = slurp(path, &len);
	EXPECT_EQ(elf_image_open_mem(&img, mem, len, NULL), 0);
	EXPECT(elf_image_vaddr_to_offset(&img, nm("d.so", "_ZN2ns5twiceIiEET_S1_"), &off));
	EXPECT_EQ(symbolizer_user(sz, ROW(1, off), 1, NULL), SYM_UNKNOWN);
	m->state = MODULE_READY;
	id = symbolizer_user(sz, ROW(1, off), 1, NULL);
	EXPECT_STR(symbolizer_name(sz, id), "ns::twice<int>");
	EXPECT_EQ(symbolizer_user(sz, ROW(1, off + 1), 1, NULL), id);
	/* The same image in memory, as the vDSO is. */
	m = add_in_state(ms, 2, "[vdso]", MODULE_READY);
	m->mem = mem;
	m->size = len;
	id = symbolizer_user(sz, ROW(2, off), 1, NULL);
	EXPECT_STR(symbolizer_name(sz, id), "ns::twice<int>");
	EXPECT_STR(symbolizer_module(sz, id), "[vdso]");
	id = symbolizer_user(sz, ROW(2, 0), 1, NULL);
	EXPECT_STR(symbolizer_name(sz, id), "[vdso+0x0]");
	elf_image_close(&img);
	symbolizer_free(sz);
	modules_free(ms);
	free(mem);
}
