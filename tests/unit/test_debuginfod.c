/* SPDX-License-Identifier: BSD-2-Clause */
/* Against elfutils' own server on loopback. */
#include "sym/debuginfod.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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
		execlp("debuginfod", "debuginfod", "-d", ":memory:", "-p", number, "-F", "-t", "1", path, (char *)NULL);
		_exit(127);
	}
	return pid;
}

static struct debuginfod *client(const char *cache, const struct debuginfod_opts *more)
{
	struct debuginfod_opts o = more ? *more : (struct debuginfod_opts){ 0 };
	struct debuginfod *d = NULL;
	char urls[128], path[128];

	snprintf(urls, sizeof(urls), "http://127.0.0.1:%u/ ", port);
	snprintf(path, sizeof(path), "%s/%s", dir, cache);
	o.cache = path;
	if (!o.urls)
		o.urls = urls;
	EXPECT_EQ(debuginfod_new(&o, &d), 0);
	return d;
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
	struct debuginfod_opts small = { .max_bytes = 100 };
	uint8_t id[64], none[20] = { 1, 2, 3 };
	struct debuginfod *d;
	unsigned int files;
	uint64_t bytes;
	size_t len;
	off_t size;
	pid_t pid;
	int fd = -1;

	write_file("a.c", "int main(void) { return 0; }\n");
	if (!run("mkdir debug && gcc -g -o app a.c && objcopy --only-keep-debug app debug/app.debug && strip app && command -v debuginfod >/dev/null"))
		SKIP("no gcc or debuginfod");
	d = NULL;
	if (debuginfod_new(&(struct debuginfod_opts){ .urls = "http://127.0.0.1:1", .cache = dir }, &d) == -ENOTSUP)
		SKIP("built without libcurl");
	debuginfod_free(d);
	pid = start_server();
	len = read_id("app", id);
	EXPECT(len > 0);
	/* It takes a while to look at its directory, and says "not found" until then: each try without the memory of the last. */
	for (int i = 0; i < 60 && fd < 0; i++) {
		char cache[16];

		snprintf(cache, sizeof(cache), "try%d", i);
		d = client(cache, NULL);
		fd = debuginfod_fetch(d, id, len);
		debuginfod_free(d);
		if (fd < 0)
			usleep(250000);
	}
	EXPECT(fd >= 0);
	close(fd);
	d = client("cache", NULL);
	fd = debuginfod_fetch(d, id, len);
	EXPECT(fd >= 0);
	expect_cached("cache", id, len, &size);
	EXPECT(size > 1000);
	close(fd);
	/* The second time it comes from the cache, the one that nobody has too. */
	fd = debuginfod_fetch(d, id, len);
	EXPECT(fd >= 0);
	close(fd);
	EXPECT_EQ(debuginfod_fetch(d, none, sizeof(none)), -ENOENT);
	expect_cached("cache", none, sizeof(none), &size);
	EXPECT_EQ(size, 0);
	debuginfod_totals(d, &files, &bytes);
	EXPECT_EQ(files, 1);
	EXPECT(bytes > 1000);
	debuginfod_free(d);
	/* Too large: neither kept nor taken for missing. */
	d = client("small", &small);
	EXPECT_EQ(debuginfod_fetch(d, id, len), -EIO);
	EXPECT_EQ(debuginfod_fetch(d, id, len), -EIO);
	debuginfod_free(d);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	/* The server is gone; what it gave is still there. */
	d = client("cache", NULL);
	fd = debuginfod_fetch(d, id, len);
	EXPECT(fd >= 0);
	close(fd);
	debuginfod_free(d);
	d = client("other", NULL);
	EXPECT_EQ(debuginfod_fetch(d, id, len), -EIO);
	debuginfod_free(d);
}

/* One that takes the connection and says nothing. */
TEST(debuginfod_silent_server)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct debuginfod_opts opts = { .timeout_s = 1, .max_s = 2 };
	int s = socket(AF_INET, SOCK_STREAM, 0);
	uint64_t start = clock_ns(CLOCK_MONOTONIC);
	uint8_t id[20] = { 9 };
	struct debuginfod *d = NULL;

	port = free_port();
	a.sin_port = htons(port);
	if (!make_dir() || bind(s, (struct sockaddr *)&a, sizeof(a)) || listen(s, 4))
		SKIP("no socket");
	if (debuginfod_new(&(struct debuginfod_opts){ .urls = "http://127.0.0.1:1", .cache = dir }, &d) == -ENOTSUP)
		SKIP("built without libcurl");
	debuginfod_free(d);
	d = client("cache", &opts);
	EXPECT_EQ(debuginfod_fetch(d, id, sizeof(id)), -EIO);
	EXPECT(clock_ns(CLOCK_MONOTONIC) - start < 6000000000ull);
	/* It is not waited for a second time. */
	start = clock_ns(CLOCK_MONOTONIC);
	id[0]++;
	EXPECT_EQ(debuginfod_fetch(d, id, sizeof(id)), -EIO);
	EXPECT(clock_ns(CLOCK_MONOTONIC) - start < 500000000ull);
	debuginfod_free(d);
	close(s);
	remove_dir();
}
