/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inlined frames and lines against binutils' addr2line, on what the compilers of this machine
 * write.
 */
#include "debuginfo/dwarf_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "debuginfo/debug_file.h"
#include "debuginfo/dwarf_lines.h"
#include "elf/elf_image.h"
#include "elf_reader.h"
#include "files.h"
#include "symtab/elf_symtab.h"
#include "test.h"

#define ADDRS 10000

/* binutils 2.40 finds no inlined code in clang's DWARF 5. */
#define BINUTILS "addr2line"
#define LLVM	 "llvm-addr2line"

struct seen { /* by address: "name file:line" lines, innermost first; NULL: nothing */
	char *names[ADDRS], *lines[ADDRS];
	uint64_t addrs[ADDRS];
	size_t n;
};

static struct seen ours, theirs;

static void forget(struct seen *s)
{
	for (size_t i = 0; i < ADDRS; i++) {
		free(s->names[i]);
		free(s->lines[i]);
		s->names[i] = s->lines[i] = NULL;
	}
	s->n = 0;
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void append(char **to, const char *what)
{
	size_t have = *to ? strlen(*to) : 0;

	*to = realloc(*to, have + strlen(what) + 2);
	strcpy(*to + have, what);
	strcat(*to, "\n");
}

static int take(void *ctx, size_t i, const struct dwarf_frame *frames, size_t n)
{
	struct seen *s = ctx;
	char text[8192];

	for (size_t k = 0; k < n; k++) {
		append(&s->names[i], frames[k].name ? frames[k].name : "??");
		snprintf(text, sizeof(text), "%s:%u",
			 frames[k].file ? base_of(frames[k].file) : "??", frames[k].line);
		append(&s->lines[i], text);
	}
	return 0;
}

/* Addresses evenly over .text. */
static size_t spread(const char *path, uint64_t *ret)
{
	const struct elf_shdr *text;
	struct elf_image img;
	size_t n = 0;
	int fd = open(path, O_RDONLY);

	if (fd < 0 || elf_image_open_fd(&img, fd, NULL))
		return 0;
	text = elf_image_section(&img, ".text");
	for (; text && n < ADDRS && text->size > ADDRS; n++)
		ret[n] = text->addr + text->size * n / ADDRS;
	elf_image_close(&img);
	close(fd);
	return n;
}

static int ask_us(const char *path, const char *alt, bool inlined, bool lines)
{
	struct dwarf_job job = {
		.fd = open(path, O_RDONLY),
		.alt_fd = alt ? open(alt, O_RDONLY) : -1,
		.root_fd = -1,
		.inlined = inlined,
		.lines = lines,
		.addrs = ours.addrs,
		.n = ours.n,
	};
	int err = dwarf_work(&job, &DWARF_LIMITS, take, &ours);

	close(job.fd);
	if (job.alt_fd >= 0)
		close(job.alt_fd);
	return err;
}

static void ask_addr2line(const char *tool, const char *path)
{
	char cmd[512], line[16384], name[16384] = "";
	size_t i = SIZE_MAX;
	FILE *f;

	snprintf(cmd, sizeof(cmd), "%s/addrs", dir);
	f = fopen(cmd, "w");
	for (size_t k = 0; f && k < ours.n; k++)
		fprintf(f, "0x%" PRIx64 "\n", ours.addrs[k]);
	if (f)
		fclose(f);
	snprintf(cmd, sizeof(cmd), "%s -a -f -i -e %s < %s/addrs", tool, path, dir);
	f = popen(cmd, "r");
	while (f && fgets(line, sizeof(line), f)) {
		char *cut = strstr(line, " (discriminator");

		line[strcspn(line, "\n")] = 0;
		if (cut)
			*cut = 0;
		if (!strncmp(line, "0x", 2)) {
			i++;
			*name = 0;
		} else if (!*name) {
			strcpy(name, line);
		} else {
			char *colon = strrchr(line, ':');

			if (colon && !strcmp(colon, ":?"))
				strcpy(colon, ":0");
			if (i < ADDRS) {
				append(&theirs.names[i], name);
				append(&theirs.lines[i], base_of(line));
			}
			*name = 0;
		}
	}
	if (f)
		pclose(f);
	theirs.n = i + 1;
}

static char symbols[ADDRS][512]; /* by address; "": none */

static void read_symbols(const char *path)
{
	struct symtab_hit hit;
	struct symtab *t = NULL;
	struct elf_image img;
	int fd = open(path, O_RDONLY);
	uint64_t off;

	memset(symbols, 0, sizeof(symbols));
	if (elf_image_open_fd(&img, fd, NULL) || symtab_build(&img, NULL, UINT32_MAX, &t))
		return;
	for (size_t i = 0; i < ours.n; i++)
		if (elf_image_vaddr_to_offset(&img, ours.addrs[i], &off) &&
		    symtab_find(t, off, &hit))
			symtab_name(t, &hit, symbols[i], sizeof(symbols[i]));
	symtab_free(t);
	elf_image_close(&img);
	close(fd);
}

/*
 * addr2line prints the symbol instead where the DWARF has no name for the linker in a language that
 * has such names, and where there is no DWARF at all; so does the symbolizer for a function that is
 * not inlined.
 */
static bool same_names(const char *a, const char *b, const char *symbol)
{
	while (*a && *b) {
		size_t la = strcspn(a, "\n"), lb = strcspn(b, "\n");
		bool by_symbol = (!a[la + 1] || strncmp(a, "_Z", 2)) && lb == strlen(symbol) &&
				 !strncmp(b, symbol, lb);

		if (!by_symbol && (la != lb || strncmp(a, b, la)))
			return false;
		a += la + 1;
		b += lb + 1;
	}
	return !*a && !*b;
}

/* Without a line addr2line names a file all the same, from the symbol table. */
static bool same_lines(const char *a, const char *b)
{
	while (*a && *b) {
		size_t la = strcspn(a, "\n"), lb = strcspn(b, "\n");
		bool unknown = la > 1 && lb > 1 && !strncmp(a + la - 2, ":0", 2) &&
			       !strncmp(b + lb - 2, ":0", 2);

		if (!unknown && (la != lb || strncmp(a, b, la)))
			return false;
		a += la + 1;
		b += lb + 1;
	}
	return !*a && !*b;
}

static void compare(const char *what)
{
	size_t names = 0, lines = 0, depth = 0;

	EXPECT_EQ(theirs.n, ours.n);
	for (size_t i = 0; i < ours.n; i++) {
		const char *a = ours.names[i] ? ours.names[i] : "??\n",
			   *b = theirs.names[i] ? theirs.names[i] : "??\n";
		const char *la = ours.lines[i] ? ours.lines[i] : "??:0\n",
			   *lb = theirs.lines[i] ? theirs.lines[i] : "??:0\n";
		/*
		 * Between functions addr2line names the one before; where the DWARF says nothing,
		 * any of a symbol's aliases.
		 */
		bool nothing = (!*symbols[i] || same_lines("??:0\n", lb)) && !strcmp(a, "??\n") &&
			       !strchr(strchr(b, '\n') + 1, '\n');
		bool names_agree = nothing || same_names(a, b, symbols[i]),
		     lines_agree = same_lines(la, lb);

		depth += strchr(strchr(a, '\n') + 1, '\n') != NULL;
		names += names_agree;
		lines += lines_agree;
		if (!names_agree && i - names < 2)
			printf("  %" PRIx64 ": ours\n%stheirs\n%s", ours.addrs[i], a, b);
		if (!lines_agree && i - lines < 2)
			printf("  %" PRIx64 ": ours\n%stheirs\n%s", ours.addrs[i], la, lb);
	}
	printf("# %s: %zu addresses, %zu in inlined code; chains equal %zu, lines equal %zu\n",
	       what, ours.n, depth, names, lines);
	EXPECT(ours.n == ADDRS);
	EXPECT(depth > ours.n / 10);
	EXPECT_EQ(names, ours.n);
	EXPECT(lines * 1000 >= ours.n * 999);
}

/* Builds with cmd, which writes `out` in dir. */
static bool build(const char *cmd, const char *out)
{
	char line[2560], path[128];

	snprintf(line, sizeof(line), "cd %s && %s >/dev/null 2>&1", dir, cmd);
	snprintf(path, sizeof(path), "%s/%s", dir, out);
	return system(line) == 0 && access(path, R_OK) == 0;
}

static const char *sources(void)
{
	static char text[2048];
	char cwd[256];

	if (!getcwd(cwd, sizeof(cwd)))
		return "";
	snprintf(text, sizeof(text),
		 "-w -D_GNU_SOURCE -DSFBPF_VERSION='\"0\"' -I%s/userspace -I%s/bpf "
		 "%s/userspace/base/*.c %s/userspace/readers/*.c %s/userspace/elf/*.c",
		 cwd, cwd, cwd, cwd, cwd);
	return text;
}

static void check_program(const char *what, const char *tool, const char *cmd)
{
	char path[128];
	uint64_t t[3];

	forget(&ours);
	forget(&theirs);
	snprintf(path, sizeof(path), "%s/out", dir);
	unlink(path);
	if (!build(cmd, "out")) {
		printf("# %s: not built here\n", what);
		EXPECT(cmd[0] != 'g'); /* gcc is there wherever the tests are */
		return;
	}
	ours.n = spread(path, ours.addrs);
	t[0] = clock_ns(CLOCK_MONOTONIC);
	EXPECT_EQ(ask_us(path, NULL, true, true), 0);
	t[1] = clock_ns(CLOCK_MONOTONIC);
	read_symbols(path);
	ask_addr2line(tool, path);
	t[2] = clock_ns(CLOCK_MONOTONIC);
	compare(what);
	printf("# %s: %.0f ms; %s %.0f ms\n", what, (double)(t[1] - t[0]) / 1e6, tool,
	       (double)(t[2] - t[1]) / 1e6);
}

static void check_c(const char *what, const char *tool, const char *cc)
{
	char cmd[2304];

	snprintf(cmd, sizeof(cmd), "%s -shared -fPIC -o out %s", cc, sources());
	check_program(what, tool, cmd);
}

static const char cpp[] =
	"#include <algorithm>\n#include <map>\n#include <memory>\n#include <numeric>\n"
	"#include <sstream>\n#include <string>\n#include <unordered_map>\n#include <vector>\n"
	"#include <iostream>\n"
	"struct Shape { virtual ~Shape() = default; virtual double area() const = 0; };\n"
	"template <int N> struct Poly : Shape { double s[N]; "
	"  double area() const override { return std::accumulate(s, s + N, 0.0); } };\n"
	"std::map<std::string, std::vector<int>> index(std::istream &in) {\n"
	"  std::map<std::string, std::vector<int>> m; std::string w; int n = 0;\n"
	"  while (in >> w) {"
	"    std::transform(w.begin(), w.end(), w.begin(), [](char c) { return c | 32; });"
	"    m[w].push_back(n++); }\n"
	"  for (auto &e : m)"
	"    std::sort(e.second.begin(), e.second.end(),"
	"              [](int a, int b) { return a % 7 < b % 7; });\n"
	"  return m; }\n"
	"int main(int argc, char **argv) {\n"
	"  std::vector<std::unique_ptr<Shape>> v;"
	"  for (int i = 0; i < argc; i++) {"
	"    v.push_back(std::make_unique<Poly<3>>());"
	"    v.push_back(std::make_unique<Poly<5>>()); }\n"
	"  std::unordered_map<std::string, double> u;"
	"  for (auto &s : v) u[std::to_string(s->area())] += s->area();\n"
	"  std::vector<std::string> w(argv, argv + argc); std::stable_sort(w.begin(), w.end());\n"
	"  std::ostringstream o;"
	"  for (auto &e : u) o << e.first << e.second;"
	"  for (auto &e : w) o << e;\n"
	"  std::cout << o.str() << u.size() << index(std::cin).size(); }\n";

TEST_IN_DIR(dwarf_c)
{
	check_c("gcc, DWARF 5", BINUTILS, "gcc -O2 -g");
	check_c("clang, DWARF 4", BINUTILS, "clang -O2 -gdwarf-4");
}

TEST_IN_DIR(dwarf_cpp)
{
	write_file("a.cc", cpp);
	check_program("g++", BINUTILS, "g++ -O2 -g -o out a.cc");
	if (system("command -v " LLVM " >/dev/null") == 0)
		check_program("clang++", LLVM, "clang++ -O2 -g -o out a.cc");
	else
		printf("# no " LLVM " to compare with\n");
}

TEST_IN_DIR(dwarf_rust)
{
	write_file(
		"a.rs",
		"use std::collections::HashMap;\nuse std::io::Read;\n"
		"fn words(s: &str) -> HashMap<String, Vec<usize>> {"
		"  let mut m: HashMap<String, Vec<usize>> = HashMap::new();\n"
		"  for (i, w) in s.split_whitespace().enumerate() {"
		"    m.entry(w.to_lowercase()).or_default().push(i); } m }\n"
		"fn main() { let mut s = String::new();"
		"  std::io::stdin().read_to_string(&mut s).unwrap();\n"
		"  let mut v: Vec<_> = words(&s).into_iter().filter(|e| e.1.len() > 1).collect();\n"
		"  v.sort_by(|a, b| b.1.len().cmp(&a.1.len()).then(a.0.cmp(&b.0)));"
		"  for (w, n) in v { println!(\"{w} {n:?}\"); } }\n");
	check_program("rustc", BINUTILS, "rustc -C opt-level=2 -g -o out a.rs");
}

/* ---- The same DWARF in other forms ---- */

static const char small_c[] =
	"struct s { int v; struct s *next; };\n"
	"static inline __attribute__((always_inline)) int low(int x) { return x * 7 + (x >> 3); }\n"
	"static inline __attribute__((always_inline)) int mid(struct s *p) { int t = 0;"
	"  for (; p; p = p->next) t += low(p->v);"
	"  return t; }\n"
	"__attribute__((noinline)) int outer(struct s *p) { return mid(p) - low(p->v); }\n"
	"int main(int argc, char **argv) { (void)argv;"
	"  struct s a = { argc, 0 }, b = { 2, &a }; return outer(&b); }\n";

/* What is said of all bytes of outer and main of that file. */
static void read_form(const char *file, const char *alt, struct seen *keep)
{
	char path[128], alt_path[128];
	uint64_t from = nm(file, "outer");

	forget(&ours);
	snprintf(path, sizeof(path), "%s/%s", dir, file);
	snprintf(alt_path, sizeof(alt_path), "%s/%s", dir, alt ? alt : "");
	for (ours.n = 0; ours.n < 64; ours.n++)
		ours.addrs[ours.n] = from + ours.n;
	EXPECT_EQ(ask_us(path, alt ? alt_path : NULL, true, true), 0);
	if (keep) {
		forget(keep);
		*keep = ours;
		ours = (struct seen){ 0 };
	}
}

static void expect_same(const char *form)
{
	size_t same = 0, deep = 0;

	for (size_t i = 0; i < theirs.n; i++) {
		const char *a = theirs.names[i] ? theirs.names[i] : "",
			   *b = ours.names[i] ? ours.names[i] : "";

		deep += strstr(a, "low\n") != NULL;
		same += !strcmp(a, b) && !strcmp(theirs.lines[i] ? theirs.lines[i] : "",
						 ours.lines[i] ? ours.lines[i] : "");
	}
	if (same != theirs.n)
		printf("  %s: at the start ours is\n%swant\n%s", form,
		       ours.names[0] ? ours.names[0] : "-\n", theirs.names[0]);
	EXPECT(deep > 5);
	EXPECT_EQ(same, theirs.n);
}

TEST_IN_DIR(dwarf_forms)
{
	static const struct {
		const char *cmd, *out;
	} forms[] = {
		{ "gcc -O2 -g -gdwarf-5 -gsplit-dwarf -o split5 a.c", "split5" },
		{ "gcc -O2 -g -gdwarf-4 -gsplit-dwarf -o split4 a.c", "split4" },
		{ "objcopy --compress-debug-sections=zlib plain zlib", "zlib" },
		{ "objcopy --compress-debug-sections=zlib-gnu plain zlibgnu", "zlibgnu" },
#ifdef HAVE_ZSTD
		{ "objcopy --compress-debug-sections=zstd plain zstd", "zstd" },
#endif
		{ "cp plain dwz && dwz -L none -l none dwz", "dwz" },
		{ "objcopy --only-keep-debug plain only", "only" },
	};

	write_file("a.c", small_c);
	if (!build("gcc -O2 -g -o plain a.c", "plain"))
		SKIP("no gcc");
	read_form("plain", NULL, &theirs);
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (!build(forms[i].cmd, forms[i].out)) {
			printf("# %s: not made here\n", forms[i].out);
			continue;
		}
		read_form(forms[i].out, NULL, NULL);
		expect_same(forms[i].out);
	}
}

/* Two files that share their entries in a third. */
TEST_IN_DIR(dwarf_dwz_common)
{
	struct test_reader reader = open_reader(elf_worker_main);
	struct test_paths paths = open_paths(path_worker_main);
	struct debug_query q = { .reader = reader.r, .paths = paths.o };
	struct elf_facts facts;
	struct debug_file alt;
	char path[128];
	int fd;

	write_file("a.c", small_c);
	if (!build("gcc -O2 -g -o plain a.c && cp plain one && cp plain two && "
		   "dwz -m common one two",
		   "common"))
		SKIP("no gcc or dwz");
	read_form("plain", NULL, &theirs);
	read_form("one", "common", NULL);
	expect_same("dwz -m");
	snprintf(path, sizeof(path), "%s/one", dir);
	fd = open(path, O_RDONLY);
	EXPECT_EQ(elf_reader_facts(reader.r, fd, &facts), 0);
	q.facts = &facts;
	q.path = path;
	EXPECT_EQ(debug_file_find_alt(&q, &alt), 0);
	EXPECT(alt.fd >= 0);
	debug_file_close(&alt);
	close_reader(&reader);
	close_paths(&paths);
	close(fd);
}

/* ---- Functions that the linker drops ---- */

/* main and what is inlined into it begin at line 20. */
static const char dropped_c[] =
	"volatile unsigned long n;\n"
	"static inline __attribute__((always_inline)) int leafy(int x) { n += x; return x * 7; }\n"
	"#define A x = leafy(x) + (x >> 2);\n#define B A A A A A A A A\n"
	"#define C B B B B B B B B\n__attribute__((noinline)) int dropped(int x) {\n"
	"  C C C C C C C C\n  return x; }\n"
	"\n\n\n\n\n\n\n\n\n\n\n"
	"static inline __attribute__((always_inline)) void tick(void) { n++; }\n"
	"int main(void) {\n  for (int i = 0; i < 100000; i++)\n    tick();\n  return 0; }\n";

/* One template in two files: the linker keeps one of two functions of different sizes. */
static const char shared_h[] =
	"extern volatile unsigned long n;\n"
	"template <int N> __attribute__((noinline)) int big(int x) {\n"
	"#define A n += x, x = x * 3 + (x >> 2) + N;\n#define B A A A A A A A A\n"
	"#define C B B B B B B B B\n  C C C C C C C C\n  return x; }\n"
	"int other(int x);\n";
static const char first_cc[] = "#include \"shared.h\"\nint other(int x) { return big<1>(x); }\n";
static const char second_cc[] =
	"#include \"shared.h\"\nvolatile unsigned long n;\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n"
	"static inline __attribute__((always_inline)) void tick(void) { n = n + 1; }\n"
	"int main(void) {\n  for (int i = 0; i < 100000; i++)\n    tick();\n"
	"  return big<1>(other(1)); }\n";

static bool lines_from(const char *lines, unsigned int least)
{
	unsigned int line;

	for (const char *at = lines; at && (at = strchr(at, ':')); at++)
		if (sscanf(at, ":%u", &line) != 1 || line < least)
			return false;
	return lines != NULL;
}

/* Nothing is said of main that is not so. */
static void check_main(const char *file, bool inlined)
{
	uint64_t size, from = nm_sized(file, "main", &size);
	size_t deep = 0, wrong = 0;
	char path[128];

	forget(&ours);
	EXPECT(size && size < ADDRS);
	for (ours.n = 0; ours.n < size && ours.n < ADDRS; ours.n++)
		ours.addrs[ours.n] = from + ours.n;
	snprintf(path, sizeof(path), "%s/%s", dir, file);
	EXPECT_EQ(ask_us(path, NULL, inlined, true), 0);
	for (size_t i = 0; i < ours.n; i++) {
		const char *names = ours.names[i] ? ours.names[i] : "-",
			   *want = inlined ? "main\n" : "??\n";
		bool is_tick = inlined && (!strcmp(names, "tick\nmain\n") ||
					   !strcmp(names, "_ZL4tickv\nmain\n"));

		deep += is_tick;
		if ((is_tick || !strcmp(names, want)) && lines_from(ours.lines[i], 20))
			continue;
		if (!wrong++)
			printf("  main+%zu:\n%s%s", i, names, ours.lines[i] ? ours.lines[i] : "-");
	}
	EXPECT_EQ(wrong, 0);
	EXPECT(deep > 5 || !inlined);
}

static void check_linkers(const char *cc, const char *objects)
{
#define LLD	      "-fuse-ld=lld -Blld"
#define HIGH(section) " -Wl,-z,dead-reloc-in-nonalloc=" section "=0xffffffffffffffff"
	static const char *const linkers[] = { "", "-fuse-ld=gold", "-fuse-ld=mold", LLD,
					       LLD HIGH(".debug_info") HIGH(".debug_line")
						       HIGH(".debug_addr")
							       HIGH(".debug_rnglists") };

	for (size_t i = 0; i < sizeof(linkers) / sizeof(linkers[0]); i++) {
		char cmd[512];
		int before = test_errors;

		snprintf(cmd, sizeof(cmd), "%s -pie -Wl,--gc-sections %s %s -o linked", cc,
			 linkers[i], objects);
		if (!build(cmd, "linked")) {
			printf("# not here: %s\n", cmd);
			EXPECT(i > 0);
			continue;
		}
		check_main("linked", true);
		check_main("linked", false);
		if (test_errors != before)
			printf("  %s\n", cmd);
	}
}

/* The debug information of what is dropped stays, at an address where other code may be. */
TEST_IN_DIR(dwarf_dropped)
{
	static const char *const ccs[] = { "gcc -gdwarf-5", "gcc -gdwarf-4", "clang -gdwarf-5",
					   "clang -gdwarf-4", "gcc -gdwarf-5 -gsplit-dwarf" };
	char cmd[256];

	write_file("a.c", dropped_c);
	write_file("shared.h", shared_h);
	write_file("1.cc", first_cc);
	write_file("2.cc", second_cc);
	/* rustc brings lld along. */
	if (!run("ln -s $(rustc --print sysroot)/lib/rustlib/*/bin/gcc-ld lld"))
		printf("# no rustc\n");
	for (size_t i = 0; i < sizeof(ccs) / sizeof(ccs[0]); i++) {
		snprintf(cmd, sizeof(cmd), "%s -O1 -fPIE -ffunction-sections -c a.c", ccs[i]);
		if (build(cmd, "a.o"))
			check_linkers(ccs[i], "a.o");
		else
			EXPECT(ccs[i][0] == 'c');
		run("rm -f a.o a.dwo");
	}
	EXPECT(run("g++ -g -O2 -fPIE -c 1.cc && g++ -g -O1 -fPIE -c 2.cc"));
	check_linkers("g++", "1.o 2.o");
}

static void note_row(void *ctx, const struct dwarf_row *row)
{
	char *text = ctx;

	snprintf(text + strlen(text), 100, "%" PRIx64 " %" PRIx64 " %" PRIx64 " %u:%u.%u\n",
		 row->sequence, row->start, row->end, row->file, row->line, row->discriminator);
}

/* A line program in bytes: special opcodes, two sequences, and damage. */
TEST(dwarf_line_program)
{
	static const uint8_t program[] = {
		82, 0, 0, 0, 4, 0, 27, 0, 0, 0, /* length, version, bytes of the header's rest */
		/* Of an instruction; operations; is_stmt; -5 and 14 lines; first special opcode */
		1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, /* operands */
		0, 'a', '.', 'c', 0, 0, 0, 0, 0, /* no directories, one file */
		/* From -1 on: it wraps */
		0, 9, 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 0x90, 0x02, 1, 2, 4,
		0, 1, 1,
		/*
		 * 0x1000: line 3, file 2; line 4; line 5, discriminator 7, at the same address;
		 * then 17 bytes; line 6
		 */
		0, 9, 2, 0, 0x10, 0, 0, 0, 0, 0, 0, 3, 2, 4, 2, 1, 47, 0, 2, 4, 7, 19, 8, 19, 33, 0,
		1, 1
	};
	uint8_t copy[sizeof(program)];
	struct bytes b = bytes_of(program, sizeof(program), false);
	char text[2048] = "";

	dwarf_lines_read(&b, 0, note_row, text);
	EXPECT_STR(text, "ffffffffffffffff 10f 113 1:1.0\n"
			 "1000 1000 1002 2:3.0\n"
			 "1000 1002 1013 2:5.7\n"
			 "1000 1013 1014 2:6.0\n");
	/* Any bytes at all: each row takes a byte of the program. */
	srand(3);
	for (int i = 0; i < 20000; i++) {
		size_t len = (size_t)rand() % sizeof(copy);

		memcpy(copy, program, sizeof(copy));
		for (int k = 0; k < 1 + i % 4; k++)
			copy[(size_t)rand() % sizeof(copy)] = (uint8_t)rand();
		b = bytes_of(copy, i % 2 ? sizeof(copy) : len, i % 7 == 0);
		*text = 0;
		dwarf_lines_read(&b, 0, note_row, text);
	}
	b = bytes_of(program, sizeof(program), false);
	dwarf_lines_read(&b, sizeof(program), note_row, text);
	dwarf_lines_read(&b, UINT64_MAX, note_row, text);
}

/* A reader that dies or does not end costs its own frames only. */
TEST_IN_DIR(dwarf_damaged)
{
	const struct dwarf_limits limits = { .bytes = 512u << 20, .seconds = 5 };
	uint64_t slowest = 0, offsets[8], sizes[8];
	unsigned int bad = 0, n = 0;
	struct elf_image img;
	uint8_t *good;
	char path[128];
	size_t len = 0;
	int fd;

	write_file("a.c", small_c);
	if (!build("gcc -O2 -g -o plain a.c", "plain"))
		SKIP("no gcc");
	snprintf(path, sizeof(path), "%s/plain", dir);
	good = slurp(path, &len);
	EXPECT_EQ(elf_image_open_mem(&img, good, len, NULL), 0);
	for (uint32_t i = 0; i < img.nshdrs && n < 8; i++) {
		if (strncmp(img.shdrs[i].name, ".debug_", 7))
			continue;
		offsets[n] = img.shdrs[i].offset;
		sizes[n++] = img.shdrs[i].size;
	}
	elf_image_close(&img);
	snprintf(path, sizeof(path), "%s/bad", dir);
	fd = open(path, O_RDWR | O_CREAT, 0644);
	srand(7);
	for (ours.n = 0; ours.n < 64; ours.n++)
		ours.addrs[ours.n] = nm("plain", "outer") + ours.n * 2;
	for (int round = 0; round < 150 && n; round++) {
		struct dwarf_job job = { .fd = fd,
					 .alt_fd = -1,
					 .root_fd = -1,
					 .inlined = true,
					 .lines = true,
					 .addrs = ours.addrs,
					 .n = 64 };
		uint64_t start = clock_ns(CLOCK_MONOTONIC);
		uint8_t *copy = malloc(len);

		memcpy(copy, good, len);
		for (int k = 0; k < 1 + round % 20; k++) {
			unsigned int s = (unsigned int)rand() % n;

			copy[offsets[s] + (uint64_t)rand() % sizes[s]] =
				(uint8_t)(rand() % 4 ? rand() : 0xff);
		}
		EXPECT_EQ(pwrite(fd, copy, len, 0), (ssize_t)len);
		free(copy);
		forget(&ours);
		bad += dwarf_work(&job, &limits, take, &ours) != 0;
		if (clock_ns(CLOCK_MONOTONIC) - start > slowest)
			slowest = clock_ns(CLOCK_MONOTONIC) - start;
	}
	printf("# 150 damaged files: %u could not be read to their end, the slowest took %.0f ms\n",
	       bad, (double)slowest / 1e6);
	EXPECT(slowest < 22000000000ull);
	free(good);
	close(fd);
}

static bool stopped(void)
{
	return true;
}

/* A worker is stopped when its time is over, or on request. */
TEST(dwarf_time_is_limited)
{
	const struct dwarf_limits limits = { .bytes = 512u << 20, .seconds = 1 };
	struct dwarf_limits more = limits;
	struct dwarf_job job = {
		.alt_fd = -1, .root_fd = -1, .inlined = true, .addrs = ours.addrs, .n = 1
	};
	uint64_t start = clock_ns(CLOCK_MONOTONIC);
	int fds[2];

	/* Reading from a pipe without a writer: as from a file system that does not answer. */
	EXPECT_EQ(pipe(fds), 0);
	job.fd = fds[0];
	forget(&ours);
	EXPECT(dwarf_work(&job, &limits, take, &ours) != 0);
	EXPECT(clock_ns(CLOCK_MONOTONIC) - start < 8000000000ull);
	more.most_ns = 1;
	EXPECT_EQ(dwarf_work(&job, &more, take, &ours), -ETIMEDOUT);
	more = (struct dwarf_limits){ .bytes = 512u << 20, .seconds = 20, .stopped = stopped };
	EXPECT_EQ(dwarf_work(&job, &more, take, &ours), -EINTR);
	close(fds[0]);
	close(fds[1]);
}
