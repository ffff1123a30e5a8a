/* SPDX-License-Identifier: BSD-2-Clause */
#include "sym/perf_map.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "elf_reader.h"
#include "samples.h"
#include "sym/symbolizer.h"
#include "test.h"

static char path[64];

/* A process of its own for each test: what is known of one is kept. */
static pid_t start(void)
{
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			pause();
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
	unlink(path);
	return pid;
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void append(const char *text)
{
	FILE *f = fopen(path, "a");

	EXPECT(f);
	if (!f)
		return;
	fputs(text, f);
	fclose(f);
}

static const char *name(struct perf_maps *pm, pid_t pid, uint64_t addr)
{
	const char *s = perf_maps_find(pm, (uint32_t)pid, addr, 0);

	return s ? s : "-";
}

static void wait_to_look_again(void)
{
	usleep(250000);
}

TEST(perf_map_lines)
{
	struct test_paths paths = open_paths(path_child_main);
	struct perf_maps *pm = open_maps(&paths);
	pid_t pid = start();

	append("7f0000001000 100 first function\n"
	       "0x7f0000001100 0x10 with prefixes\n"
	       "nonsense\n\n 5 5 x\n7f 0 empty\n7f\nffffffffffffffff 10 wraps\n"
	       "7f0000001108 4 newer inside\n"		/* what it overlaps is gone */
	       "7f0000001200 80 old\n7f0000001240 80 new\n7f0000001240 40 newest\n"
	       "7f0000001300 10 half a li");
	EXPECT_STR(name(pm, pid, 0x7f0000001000), "first function");
	EXPECT_STR(name(pm, pid, 0x7f00000010ff), "first function");
	EXPECT_STR(name(pm, pid, 0x7f0000001100), "-");
	EXPECT_STR(name(pm, pid, 0x7f0000001108), "newer inside");
	EXPECT_STR(name(pm, pid, 0x7f000000110c), "-");
	EXPECT_STR(name(pm, pid, 0x7f0000001200), "-");
	EXPECT_STR(name(pm, pid, 0x7f0000001240), "newest");
	EXPECT_STR(name(pm, pid, 0x7f0000001290), "-");
	EXPECT_STR(name(pm, pid, 0x7f0000001300), "-");
	EXPECT_STR(name(pm, pid, 0), "-");
	append("ne\n7f0000001000 100 again\n");
	EXPECT_STR(name(pm, pid, 0x7f0000001000), "first function");	/* not asked at every call */
	wait_to_look_again();
	EXPECT_STR(name(pm, pid, 0x7f0000001000), "again");
	EXPECT_STR(name(pm, pid, 0x7f0000001300), "half a line");
	EXPECT_STR(name(pm, pid, 0x7f0000001240), "newest");
	unlink(path);
	append("7f0000001000 100 another file\n");
	wait_to_look_again();
	EXPECT_STR(name(pm, pid, 0x7f0000001000), "another file");
	EXPECT_STR(name(pm, pid, 0x7f0000001240), "-");
	append("7f0000002000 100 written at the end\n");
	stop(pid);
	wait_to_look_again();
	EXPECT_STR(name(pm, pid, 0x7f0000002000), "written at the end");	/* dead, but was seen */
	unlink(path);
	perf_maps_free(pm);
	close_paths(&paths);
}

TEST(perf_map_not_its_own)
{
	struct test_paths paths = open_paths(path_child_main);
	struct perf_maps *pm = open_maps(&paths);
	pid_t pid;

	if (geteuid() != 0) {
		perf_maps_free(pm);
		close_paths(&paths);
		SKIP("needs root to give files away");
	}
	pid = start();
	append("1000 100 foreign\n");
	EXPECT_EQ(chown(path, 65534, 65534), 0);
	EXPECT_STR(name(pm, pid, 0x1000), "-");
	unlink(path);
	EXPECT_EQ(mkfifo(path, 0600), 0);
	wait_to_look_again();
	EXPECT_STR(name(pm, pid, 0x1000), "-");
	unlink(path);
	EXPECT_EQ(symlink("/dev/zero", path), 0);
	wait_to_look_again();
	EXPECT_STR(name(pm, pid, 0x1000), "-");
	unlink(path);
	append("1000 100 own\n");
	wait_to_look_again();
	EXPECT_STR(name(pm, pid, 0x1000), "own");
	stop(pid);
	unlink(path);
	EXPECT_STR(name(pm, 0x7ffffff0, 0x1000), "-");	/* no such process */
	perf_maps_free(pm);
	close_paths(&paths);
}

TEST(perf_map_names)
{
	struct modules *ms = modules_new();
	struct symbolizer *sz = symbolizer_new(ms);
	struct test_paths paths = open_paths(path_child_main);
	uint64_t frame = JIT(0x1010);
	pid_t pid = start();
	bool is_final;
	uint32_t id;

	symbolizer_set_reader(sz, NULL, paths.o);
	symbolizer_see(sz, &frame, 1, (uint32_t)pid, 1);
	id = symbolizer_user(sz, frame, (uint32_t)pid, &is_final);
	EXPECT_STR(symbolizer_name(sz, id), "[unknown]_[j]");
	EXPECT(!is_final);
	append("1000 100 JS:*f\x1b[31m;\xff\n");
	wait_to_look_again();
	id = symbolizer_user(sz, frame, (uint32_t)pid, &is_final);
	EXPECT_STR(symbolizer_name(sz, id), "JS:*f.[31m;\xef\xbf\xbd_[j]");
	EXPECT_STR(symbolizer_module(sz, id), "[jit]");
	EXPECT(is_final);
	stop(pid);
	unlink(path);
	symbolizer_free(sz);
	close_paths(&paths);
	modules_free(ms);
}

/* More processes than are kept, and a file larger than is read at once. */
TEST(perf_map_many)
{
	struct test_paths paths = open_paths(path_child_main);
	struct perf_maps *pm = open_maps(&paths);
	pid_t pid = start();
	FILE *f = fopen(path, "w");

	for (unsigned int i = 0; f && i < 200000; i++)
		fprintf(f, "%x 10 function number %u\n", 0x100000 + i * 16, i);
	if (f)
		fclose(f);
	EXPECT_STR(name(pm, pid, 0x100000 + 199999 * 16 + 15), "function number 199999");
	EXPECT_STR(name(pm, pid, 0x100000 + 77 * 16), "function number 77");
	for (pid_t other = 1; other < 1000; other++)
		perf_maps_find(pm, (uint32_t)other, 0x1000, 0);
	EXPECT(perf_maps_bytes(pm) < 1 << 20);
	EXPECT_STR(name(pm, pid, 0x100000), "function number 0");
	stop(pid);
	unlink(path);
	perf_maps_free(pm);
	close_paths(&paths);
}
