/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Symbols that are not in the file itself: debug files in all their places, mini debuginfo, Go's
 * table.
 */
#include "debuginfo/debug_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "debuginfo/dwarf_reader.h"
#include "elf/go_lines.h"
#include "elf_reader.h"
#include "files.h"
#include "rooted.h"
#include "symtab/elf_symtab.h"
#include "test.h"

static const char source[] =
	"static __attribute__((noinline)) int hidden(int x) { return x * 3 + 1; }\n"
	"int shown(int x) { return hidden(x) + hidden(x + 1); }\n";

/* lib.so stripped, lib.debug its symbols, lib.full both. */
static bool build_library(void)
{
	write_file("lib.c", source);
	return run("gcc -O1 -fPIC -shared -Wl,--build-id=0xabcdef0123456789 -o lib.full lib.c") &&
	       run("objcopy --only-keep-debug lib.full lib.debug") &&
	       run("objcopy --strip-all lib.full lib.so");
}

struct stripped {
	int fd;
	struct elf_image img;
};

static bool open_stripped(struct stripped *s, const char *name)
{
	char path[192];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	s->fd = open(path, O_RDONLY | O_CLOEXEC);
	return s->fd >= 0 && !elf_image_open_fd(&s->img, s->fd, NULL);
}

static void close_stripped(struct stripped *s)
{
	elf_image_close(&s->img);
	if (s->fd >= 0)
		close(s->fd);
}

static struct debug_fetch fetch; /* of name_with's questions */

/* The name at a vaddr of the stripped file, looked for as that path by that process. */
static const char *name_with(const char *file, const char *path, uint32_t pid, uint64_t vaddr)
{
	static char buf[SYMTAB_NAME_MAX];
	struct test_reader reader = open_reader(elf_worker_main);
	struct test_paths paths = open_paths(path_worker_main);
	struct debug_file debug = { .fd = -1 };
	struct stripped s = { .fd = -1 };
	struct symtab *t = NULL;
	const char *name = "-";
	struct elf_facts facts;
	struct symtab_hit hit;
	uint64_t off;
	int found, err;

	if (!open_stripped(&s, file))
		return "cannot open";
	EXPECT_EQ(elf_reader_facts(reader.r, s.fd, &facts), 0);
	found = debug_file_find(&(struct debug_query){ .reader = reader.r,
						       .paths = paths.o,
						       .facts = &facts,
						       .path = path,
						       .pid = pid,
						       .fetch = fetch },
				&debug);
	err = elf_reader_symbols(reader.r, s.fd, debug.fd, &t);
	EXPECT(!err || err == -ETIMEDOUT); /* of what unpacks for long, on a busy machine */
	if (err)
		debug_file_close(&debug);
	free(debug.path);
	if (t && elf_image_vaddr_to_offset(&s.img, vaddr, &off) && symtab_find(t, off, &hit) &&
	    symtab_name(t, &hit, buf, sizeof(buf)) > 0)
		name = buf;
	else if (found)
		name = "no debug file";
	close_stripped(&s);
	symtab_free(t);
	close_reader(&reader);
	close_paths(&paths);
	return name;
}

TEST_IN_DIR(debug_link)
{
	uint64_t hidden;

	if (!build_library())
		SKIP("no gcc or objcopy");
	hidden = nm("lib.full", "hidden");
	EXPECT(hidden != 0);
	EXPECT_STR(name_with("lib.so", in_dir("lib.so"), 0, hidden), "no debug file");
	EXPECT(run("objcopy --add-gnu-debuglink=lib.debug lib.so"));
	EXPECT_STR(name_with("lib.so", in_dir("lib.so"), 0, hidden), "hidden");
	EXPECT_STR(name_with("lib.so", in_dir("lib.so"), 0, nm("lib.full", "shown")), "shown");
	EXPECT_STR(name_with("lib.so", "/elsewhere/lib.so", 0, hidden), "no debug file");
	EXPECT_STR(name_with("lib.so", "lib.so", 0, hidden), "no debug file");
	EXPECT(run("mkdir .debug && mv lib.debug .debug/"));
	EXPECT_STR(name_with("lib.so", in_dir("lib.so"), 0, hidden), "hidden");
	/* Another build's file under the same name. */
	EXPECT(run("gcc -O1 -fPIC -shared -Wl,--build-id=0xffff -o .debug/lib.debug lib.c"));
	EXPECT_STR(name_with("lib.so", in_dir("lib.so"), 0, hidden), "no debug file");
	/* Something that is no file, and must not hold us up. */
	EXPECT(run("rm .debug/lib.debug && mkfifo .debug/lib.debug"));
	EXPECT_STR(name_with("lib.so", in_dir("lib.so"), 0, hidden), "no debug file");
}

static int fetch_file(void *ctx, const uint8_t *build_id, size_t len)
{
	(void)build_id, (void)len;
	return open(in_dir(ctx), O_RDONLY | O_CLOEXEC);
}

/* A server, or a cache, that gives whatever it wants. */
TEST_IN_DIR(debug_fetched)
{
	uint64_t hidden;

	if (!build_library())
		SKIP("no gcc or objcopy");
	EXPECT(run("gcc -O1 -fPIC -shared -Wl,--build-id=0xffff -o other.full lib.c"));
	EXPECT(run("gcc -O1 -fPIC -shared -Wl,--build-id=none -o none.full lib.c && "
		   "head -c 100 lib.debug > cut"));
	hidden = nm("lib.full", "hidden");
	fetch = (struct debug_fetch){ fetch_file, "lib.debug" };
	EXPECT_STR(name_with("lib.so", "/lib.so", 0, hidden), "hidden");
	fetch.ctx = "other.full";
	EXPECT_STR(name_with("lib.so", "/lib.so", 0, hidden), "no debug file");
	fetch.ctx = "none.full";
	EXPECT_STR(name_with("lib.so", "/lib.so", 0, hidden), "no debug file");
	fetch.ctx = "cut";
	EXPECT_STR(name_with("lib.so", "/lib.so", 0, hidden), "no debug file");
	fetch = (struct debug_fetch){ NULL, NULL };
}

TEST_IN_DIR(debug_link_crc)
{
	uint64_t hidden;

	write_file("lib.c", source);
	if (!run("gcc -O1 -fPIC -shared -Wl,--build-id=none -o lib.full lib.c") ||
	    !run("objcopy --only-keep-debug lib.full lib.debug") ||
	    !run("objcopy --strip-all --add-gnu-debuglink=lib.debug lib.full lib.so"))
		SKIP("no gcc or objcopy");
	hidden = nm("lib.full", "hidden");
	EXPECT_STR(name_with("lib.so", in_dir("lib.so"), 0, hidden), "hidden");
	EXPECT(run("printf x >> lib.debug"));
	EXPECT_STR(name_with("lib.so", in_dir("lib.so"), 0, hidden), "no debug file");
}

/* As in a container: debug files of its own, and links that point out of it. */
TEST_IN_DIR(debug_build_id_in_other_root)
{
	uint64_t hidden;
	pid_t pid;

	if (!build_library())
		SKIP("no gcc or objcopy");
	hidden = nm("lib.full", "hidden");
	EXPECT(run("mkdir -p root/usr/lib/debug/.build-id/ab && "
		   "cp lib.debug root/usr/lib/debug/.build-id/ab/cdef0123456789.debug"));
	pid = start_in_root(false);
	if (!pid)
		SKIP("chroot needs root");
	EXPECT_STR(name_with("lib.so", "/lib.so", (uint32_t)pid, hidden), "hidden");
	EXPECT_STR(name_with("lib.so", "/lib.so", 0, hidden), "no debug file");
	EXPECT(run("rm root/usr/lib/debug/.build-id/ab/cdef0123456789.debug && "
		   "ln -s $PWD/lib.debug root/usr/lib/debug/.build-id/ab/cdef0123456789.debug"));
	EXPECT_STR(name_with("lib.so", "/lib.so", (uint32_t)pid, hidden), "no debug file");
	EXPECT(run("ln -sf ../../../../../../lib.debug "
		   "root/usr/lib/debug/.build-id/ab/cdef0123456789.debug"));
	EXPECT_STR(name_with("lib.so", "/lib.so", (uint32_t)pid, hidden), "no debug file");
	stop_process(pid);
}

/* How often what lib.so says of its functions is less than there should be. */
static uint64_t cut_names(void)
{
	struct test_reader reader = open_reader(elf_worker_main);
	int fd = open(in_dir("lib.so"), O_RDONLY | O_CLOEXEC);
	struct worker_totals totals;
	struct symtab *t = NULL;

	EXPECT_EQ(elf_reader_symbols(reader.r, fd, -1, &t), 0);
	totals = reader.allowance->totals;
	EXPECT(!totals.died && !totals.late && !totals.failed);
	symtab_free(t);
	close(fd);
	close_reader(&reader);
	return totals.cut;
}

TEST_IN_DIR(debug_data)
{
	uint64_t hidden;

	if (!build_library())
		SKIP("no gcc or objcopy");
	hidden = nm("lib.full", "hidden");
	if (!run("objcopy --strip-debug --keep-symbol=hidden --only-keep-debug lib.full mini && "
		 "xz -f mini && "
		 "objcopy --add-section .gnu_debugdata=mini.xz lib.so"))
		SKIP("no xz");
#ifdef HAVE_LZMA
	EXPECT_STR(name_with("lib.so", in_dir("lib.so"), 0, hidden), "hidden");
	/* From .dynsym */
	EXPECT_STR(name_with("lib.so", in_dir("lib.so"), 0, nm("lib.full", "shown")), "shown");
	EXPECT_EQ(cut_names(), 0);
	EXPECT(run(
		"head -c 100 mini.xz > cut && objcopy --update-section .gnu_debugdata=cut lib.so"));
	EXPECT_STR(name_with("lib.so", in_dir("lib.so"), 0, hidden), "no debug file");
	EXPECT_EQ(cut_names(), 1);
	/* A few bytes that would unpack to more than is taken. */
	if (run("head -c 150000000 /dev/zero | xz -0 > bomb && "
		"objcopy --update-section .gnu_debugdata=bomb lib.so")) {
		EXPECT_STR(name_with("lib.so", in_dir("lib.so"), 0, hidden), "no debug file");
		EXPECT_EQ(cut_names(), 1);
	}
#else
	(void)hidden;
#endif
}

/* Frames of places in a Go program, as text, by its table or DWARF. */
#define GO_PLACES 4000
static struct go_text {
	uint64_t addrs[GO_PLACES];
	char *by_table[GO_PLACES], *by_dwarf[GO_PLACES];
	size_t n;
} go;

static void add_frame(char **to, const char *name, const char *file, unsigned int line)
{
	char *text = NULL;

	EXPECT(asprintf(&text, "%s%s %s:%u\n", *to ? *to : "", name ? name : "?", file ? file : "?",
			line) > 0);
	free(*to);
	*to = text;
}

static int take_dwarf(void *ctx, size_t i, const struct dwarf_frame *frames, size_t n)
{
	(void)ctx;
	for (size_t k = 0; k < n; k++)
		add_frame(&go.by_dwarf[i], frames[k].name, frames[k].file, frames[k].line);
	return 0;
}

/* Reads both, of places evenly over the code of Go; img: the stripped file. */
static bool read_go_places(const struct elf_image *img, const char *full)
{
	struct dwarf_job job = { .alt_fd = -1, .root_fd = -1, .inlined = true, .lines = true };
	struct go_frame frames[GO_FRAMES_MAX];
	struct go_table table;
	struct go_lines lines;
	struct go_func f;
	int err;

	if (go_table_open(img, &table))
		return false;
	EXPECT_EQ(go_lines_open(img, &table, &lines), 0);
	for (go.n = 0; go.n < GO_PLACES; go.n++) {
		size_t i = go.n;

		EXPECT(go_table_func(&table, table.count * i / GO_PLACES, &f));
		go.addrs[i] = f.start + (f.end - f.start) * (i % 7) / 7;
		if (i && go.addrs[i] <= go.addrs[i - 1])
			go.addrs[i] = go.addrs[i - 1] + 1;
		for (size_t k = 0, n = go_lines_at(&lines, go.addrs[i], frames); k < n; k++)
			add_frame(&go.by_table[i], frames[k].name, frames[k].file, frames[k].line);
	}
	go_table_close(&table);
	job.fd = open(in_dir(full), O_RDONLY | O_CLOEXEC);
	job.addrs = go.addrs;
	job.n = go.n;
	err = dwarf_read(&job, take_dwarf, NULL);
	close(job.fd);
	return !err;
}

/* The table of a stripped Go program says what its DWARF said. */
static void check_go_lines(const struct elf_image *img, const char *full)
{
	unsigned int both = 0, same = 0, inlined = 0;
	bool readable = read_go_places(img, full);

	for (size_t i = 0; i < go.n; i++) {
		char *a = go.by_table[i], *b = go.by_dwarf[i];

		/* DWARF has a directory for a method that the compiler made. */
		if (a && b && !strstr(a, "<autogenerated>")) {
			both++;
			same += !strcmp(a, b);
			inlined += strchr(a, '\n')[1] != 0;
			if (strcmp(a, b) != 0 && both - same < 4)
				printf("# %#llx: %s# DWARF: %s", (unsigned long long)go.addrs[i], a,
				       b);
		}
		free(a);
		free(b);
		go.by_table[i] = go.by_dwarf[i] = NULL;
	}
	printf("# %zu places: %u in both, %u the same, %u inlined\n", go.n, both, same, inlined);
	if (readable) {
		EXPECT(both > go.n / 2);
		EXPECT(same > both * 0.99);
		EXPECT(inlined > 100);
	}
}

/* A stripped Go program's functions have the names that its symbol table had. */
static void check_go(const char *how)
{
	char cmd[256], line[4096], name[SYMTAB_NAME_MAX], got[SYMTAB_NAME_MAX], type, *abi;
	unsigned int checked = 0, wrong = 0;
	struct stripped s = { .fd = -1 };
	struct symtab *t = NULL;
	unsigned long long addr;
	FILE *p;

	snprintf(cmd, sizeof(cmd),
		 "GOCACHE=$PWD/cache GOFLAGS= GO111MODULE=off go build %s -o full main.go && "
		 "objcopy --strip-all full stripped",
		 how);
	if (!run(cmd)) {
		printf("# no Go program with %s here\n", how);
		return;
	}
	EXPECT(open_stripped(&s, "stripped"));
	EXPECT_EQ(symtab_build(&s.img, NULL, UINT32_MAX, &t), 0);
	snprintf(cmd, sizeof(cmd), "nm %s/full | grep -i ' t '", dir);
	p = popen(cmd, "r");
	while (t && p && fgets(line, sizeof(line), p)) {
		struct symtab_hit hit;
		uint64_t off;

		if (sscanf(line, "%llx %c %4095s", &addr, &type, name) != 3 ||
		    !elf_image_vaddr_to_offset(&s.img, addr, &off))
			continue;
		abi = strstr(name, ".abi0");
		if (abi)
			*abi = 0;
		checked++;
		if (!symtab_find(t, off, &hit) || hit.start != off ||
		    symtab_name(t, &hit, got, sizeof(got)) <= 0 || strcmp(got, name) != 0)
			wrong++;
	}
	if (p)
		pclose(p);
	printf("# go build %s: %u functions, %u without their name\n", how, checked, wrong);
	EXPECT(checked > 500);
	/* These are runtime.text and other marks of the linker, and what the C library brings. */
	EXPECT(wrong <= (strstr(how, "external") ? 60 : 10));
	symtab_free(t);
	check_go_lines(&s.img, "full");
	close_stripped(&s);
}

TEST_IN_DIR(go_table)
{
	if (!run("command -v go >/dev/null"))
		SKIP("go is not installed");
	write_file("main.go", "package main\nfunc main() { println(\"x\") }\n");
	check_go("");
	check_go("-buildmode=pie");
	check_go("-buildmode=pie -ldflags=-linkmode=external"); /* words of its data are 0 */
}
