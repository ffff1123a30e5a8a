/* SPDX-License-Identifier: BSD-2-Clause */
/* Against elfutils' own server on loopback. */
#include "debuginfo/debuginfod.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include "base/clock.h"
#include "elf/elf_image.h"
#include "files.h"
#include "test.h"

static uint16_t port;

static uint16_t free_port(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int s = socket(AF_INET, SOCK_STREAM, 0);

	bind(s, (struct sockaddr *)&a, sizeof(a));
	getsockname(s, (struct sockaddr *)&a, &len);
	close(s);
	return ntohs(a.sin_port);
}

static pid_t start_server(void)
{
	char number[8], path[128];
	pid_t pid;

	port = free_port();
	snprintf(number, sizeof(number), "%u", port);
	snprintf(path, sizeof(path), "%s/debug", dir);
	pid = fork();
	if (!pid) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, 1);
		dup2(null, 2);
		execlp("debuginfod", "debuginfod", "-d", ":memory:", "-p", number, "-F", "-t", "1",
		       path, (char *)NULL);
		_exit(127);
	}
	return pid;
}

static struct debuginfod *client(const char *cache)
{
	struct debuginfod *d = NULL;
	char urls[128], path[128];

	snprintf(urls, sizeof(urls), "http://127.0.0.1:%u/", port);
	snprintf(path, sizeof(path), "%s/%s", dir, cache);
	setenv("DEBUGINFOD_URLS", urls, 1);
	setenv("DEBUGINFOD_CACHE_PATH", path, 1);
	unsetenv("DEBUGINFOD_MAXSIZE");
	EXPECT_EQ(debuginfod_new(NULL, &d), 0);
	return d;
}

/* libdebuginfod 0.188 does not close a FILE of its cache's settings. */
static int fetch(struct debuginfod *d, const uint8_t *id, size_t len)
{
	int fd;

#ifdef __SANITIZE_ADDRESS__
	__lsan_disable();
#endif
	fd = debuginfod_fetch(d, id, len);
#ifdef __SANITIZE_ADDRESS__
	__lsan_enable();
#endif
	return fd;
}

static bool built_without(void)
{
	struct debuginfod *d = NULL;
	int err;

	setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1", 1);
	err = debuginfod_new(NULL, &d);
	debuginfod_free(d);
	return err == -ENOTSUP;
}

static size_t read_id(const char *file, uint8_t *id)
{
	struct elf_image img;
	char path[128];
	size_t n = 0;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_RDONLY);
	if (!elf_image_open_fd(&img, fd, NULL)) {
		n = elf_image_build_id(&img, id, 64);
		elf_image_close(&img);
	}
	close(fd);
	return n;
}

static void expect_cached(const char *cache, const uint8_t *id, size_t len, off_t *ret_size)
{
	char path[512];
	struct stat st = { 0 };
	int n = snprintf(path, sizeof(path), "%s/%s/", dir, cache);

	for (size_t i = 0; i < len; i++)
		n += snprintf(path + n, sizeof(path) - (size_t)n, "%02x", id[i]);
	strcat(path, "/debuginfo");
	EXPECT_EQ(stat(path, &st), 0);
	*ret_size = st.st_size;
}

TEST_IN_DIR(debuginfod_server)
{
	uint8_t id[64], none[20] = { 1, 2, 3 };
	struct debuginfod *d;
	size_t len;
	off_t size;
	pid_t pid;
	int fd = -1;

	if (built_without())
		SKIP("built without libdebuginfod");
	write_file("a.c", "int main(void) { return 0; }\n");
	if (!run("mkdir debug && gcc -g -o app a.c && "
		 "objcopy --only-keep-debug app debug/app.debug && strip app && "
		 "command -v debuginfod >/dev/null"))
		SKIP("no gcc or debuginfod");
	pid = start_server();
	len = read_id("app", id);
	EXPECT(len > 0);
	/*
	 * It takes a while to look at its directory, and says "not found" until then: each try has
	 * a cache of its own.
	 */
	for (int i = 0; i < 60 && fd < 0; i++) {
		char cache[16];

		snprintf(cache, sizeof(cache), "try%d", i);
		d = client(cache);
		fd = fetch(d, id, len);
		debuginfod_free(d);
		if (fd < 0)
			usleep(250000);
	}
	EXPECT(fd >= 0);
	close(fd);
	d = client("cache");
	fd = fetch(d, id, len);
	EXPECT(fd >= 0);
	expect_cached("cache", id, len, &size);
	EXPECT(size > 1000);
	close(fd);
	/*
	 * The second time it comes from the cache, and so does the answer that there is no such
	 * file.
	 */
	fd = fetch(d, id, len);
	EXPECT(fd >= 0);
	close(fd);
	EXPECT_EQ(fetch(d, none, sizeof(none)), -ENOENT);
	expect_cached("cache", none, sizeof(none), &size);
	EXPECT_EQ(size, 0);
	EXPECT_EQ(debuginfod_totals(d).files, 1);
	EXPECT_EQ(debuginfod_totals(d).error, 0);
	EXPECT(debuginfod_totals(d).bytes > 1000);
	debuginfod_free(d);
	/* Too large: neither kept nor taken for missing. */
	d = client("small");
	setenv("DEBUGINFOD_MAXSIZE", "100", 1);
	EXPECT_EQ(fetch(d, id, len), -EIO);
	EXPECT_EQ(fetch(d, id, len), -EIO);
	EXPECT_EQ(debuginfod_totals(d).error, 0);
	debuginfod_free(d);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	/* The server is gone; what it gave is still there. */
	d = client("cache");
	fd = fetch(d, id, len);
	EXPECT(fd >= 0);
	close(fd);
	debuginfod_free(d);
	d = client("other");
	EXPECT_EQ(fetch(d, id, len), -EIO);
	EXPECT(debuginfod_totals(d).error < 0);
	debuginfod_free(d);
}

static int listening(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int s = socket(AF_INET, SOCK_STREAM, 0);

	port = free_port();
	a.sin_port = htons(port);
	EXPECT_EQ(bind(s, (struct sockaddr *)&a, sizeof(a)), 0);
	EXPECT_EQ(listen(s, 4), 0);
	return s;
}

/* One that takes the connection and says nothing. */
TEST_IN_DIR(debuginfod_silent_server)
{
	uint8_t id[20] = { 9 };
	struct debuginfod *d;
	uint64_t start;
	int s;

	if (built_without())
		SKIP("built without libdebuginfod");
	s = listening();
	d = client("cache");
	setenv("DEBUGINFOD_TIMEOUT", "1", 1);
	start = clock_ns(CLOCK_MONOTONIC);
	EXPECT_EQ(fetch(d, id, sizeof(id)), -EIO);
	EXPECT(clock_ns(CLOCK_MONOTONIC) - start < 6000000000ull);
	/* It is not waited for a second time. */
	start = clock_ns(CLOCK_MONOTONIC);
	id[0]++;
	EXPECT_EQ(fetch(d, id, sizeof(id)), -EIO);
	EXPECT(clock_ns(CLOCK_MONOTONIC) - start < 500000000ull);
	EXPECT(debuginfod_totals(d).error < 0);
	debuginfod_free(d);
	unsetenv("DEBUGINFOD_TIMEOUT");
	close(s);
}

/* One whose answer announces no length and goes on for 4 MB. */
static void answer_at_length(int s)
{
	static const char head[] =
		"HTTP/1.0 200 OK\r\nContent-Type: application/octet-stream\r\n\r\n";
	char block[4096] = { 0 };
	int c = accept(s, NULL, NULL);

	if (read(c, block, sizeof(block)) > 0 && write(c, head, sizeof(head) - 1) > 0)
		for (int i = 0; i < 1024 && write(c, block, sizeof(block)) > 0; i++)
			;
	_exit(0);
}

TEST_IN_DIR(debuginfod_endless_answer)
{
	uint8_t id[20] = { 10 };
	struct debuginfod *d;
	struct rlimit after;
	pid_t pid;
	int s;

	if (built_without())
		SKIP("built without libdebuginfod");
	s = listening();
	pid = fork();
	if (!pid)
		answer_at_length(s);
	d = client("cache");
	setenv("DEBUGINFOD_MAXSIZE", "1000000", 1);
	EXPECT_EQ(fetch(d, id, sizeof(id)), -EIO);
	EXPECT(run("! find cache -size +900k | grep -q ."));
	EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &after), 0);
	EXPECT(after.rlim_cur > 1000000);
	debuginfod_free(d);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(s);
}

/* A home directory of another user's, as sudo may leave it in the environment. */
TEST_IN_DIR(debuginfod_foreign_home)
{
	uint8_t id[20] = { 11 };
	struct debuginfod *d;
	char home[128];
	pid_t pid;
	int status;

	if (built_without() || geteuid())
		SKIP("built without libdebuginfod, or not root");
	port = free_port();
	snprintf(home, sizeof(home), "%s/home", dir);
	EXPECT(run("mkdir home && chown 65534 home"));
	pid = fork();
	if (!pid) {
		d = client("cache");
		setenv("HOME", home, 1);
		fetch(d, id, sizeof(id));
		_exit(strcmp(getenv("HOME"), home) ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	EXPECT_EQ(status, 0);
}
