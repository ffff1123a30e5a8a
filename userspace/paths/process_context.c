/* SPDX-License-Identifier: BSD-2-Clause */
#include "paths/process_context.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/in_root.h"
#include "base/num.h"

#define VERSION	  2
#define TRIES	  4
#define RETRY_US  1000
#define LIST_MOST (8u << 20) /* bytes of a list of mappings: 100,000 of them */
#define NAMED_MAX 8	     /* mappings of that name that are looked at */

struct header {
	char signature[8]; /* written last */
	uint32_t version, size;
	uint64_t published_ns; /* 0 while the payload is being changed */
	uint64_t payload;      /* its address */
};

_Static_assert(sizeof(struct header) == 32, "as processes write it");

static bool read_at(int mem, uint64_t at, void *ret, size_t len)
{
	return at <= INT64_MAX && pread(mem, ret, len, (off_t)at) == (ssize_t)len;
}

static bool read_header(int mem, uint64_t at, struct header *ret)
{
	return read_at(mem, at, ret, sizeof(*ret)) && !memcmp(ret->signature, "OTEL_CTX", 8);
}

/*
 * Reads the payload to buf. It is whole if the header has not changed meanwhile. Returns its bytes;
 * 0: it cannot be read; -ENOENT: there is no header.
 */
static int read_payload(int mem, uint64_t at, uint8_t *buf)
{
	struct header before, after;

	for (int i = 0; i < TRIES; i++) {
		if (i)
			usleep(RETRY_US);
		if (!read_header(mem, at, &before))
			return -ENOENT;
		if (before.version != VERSION || before.size > PROCESS_CONTEXT_MOST)
			return 0;
		if (before.published_ns && read_at(mem, before.payload, buf, before.size) &&
		    read_header(mem, at, &after) && !memcmp(&before, &after, sizeof(after)))
			return (int)before.size;
	}
	return 0;
}

/* A line of the list of mappings. Returns the address of one with the name; 0: another one. */
static uint64_t address_of(const char *line)
{
	static const char *const names[] = { "/memfd:OTEL_CTX", "[anon_shmem:OTEL_CTX]",
					     "[anon:OTEL_CTX]" };
	const char *name = strpbrk(line, "/[");

	for (size_t i = 0; name && i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(name, names[i], strlen(names[i])))
			return strtoull(line, NULL, 16);
	return 0;
}

/* Reads the payload of the first mapping that has a header. Returns as read_payload. */
static int search(uint32_t thread, int mem, uint64_t *at, uint8_t *buf)
{
	char path[32], *line = NULL;
	int size = -ENOENT, named = 0;
	size_t cap = 0, seen = 0;
	ssize_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/maps", thread);
	f = fopen(path, "re");
	while (f && size < 0 && named < NAMED_MAX && seen < LIST_MOST &&
	       (n = getline(&line, &cap, f)) > 0) {
		seen += (size_t)n;
		*at = address_of(line);
		if (!*at)
			continue;
		named++;
		size = read_payload(mem, *at, buf);
	}
	if (f)
		fclose(f);
	free(line);
	return size;
}

/* Whether a line of the list of mappings is of a file with code. */
static bool is_code(const char *line)
{
	const char *rights = strchr(line, ' '), *name = strchr(line, '/');

	return rights && name && strlen(rights) > 4 && rights[3] == 'x';
}

/* The mapped file itself, whatever its path leads to. O_PATH: nothing is asked of it. */
static int mapped_file(uint32_t thread, uint64_t start, uint64_t end)
{
	char link[80];

	snprintf(link, sizeof(link), "/proc/%u/map_files/%" PRIx64 "-%" PRIx64, thread, start, end);
	return open(link, O_PATH | O_CLOEXEC);
}

/* Which file fd is, without asking its file system. false: it is no regular file. */
static bool identify(int fd, struct mapped_id *ret)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &st) ||
	    !S_ISREG(st.stx_mode))
		return false;
	ret->dev = (uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor;
	ret->ino = st.stx_ino;
	ret->ctime_ns = (uint64_t)st.stx_ctime.tv_sec * NUM_S + st.stx_ctime.tv_nsec;
	return true;
}

/* Writes the line of a mapping to fd. The bytes that were written; 0: it is left out; -ENOMEM. */
static int write_mapping(int fd, uint32_t thread, const char *line)
{
	uint64_t start, end, offset;
	struct mapped_id id;
	char text[160];
	int len = 0, at;

	if (!is_code(line) ||
	    sscanf(line, "%" SCNx64 "-%" SCNx64 " %*4s %" SCNx64, &start, &end, &offset) != 3)
		return 0;
	at = mapped_file(thread, start, end);
	if (at < 0)
		return 0;
	if (identify(at, &id))
		len = snprintf(text, sizeof(text), PROCESS_CONTEXT_MAP "\n", start, end, offset,
			       id.dev, id.ino, id.ctime_ns);
	close(at);
	return write(fd, text, (size_t)len) == len ? len : -ENOMEM;
}

int process_context_mapped(uint32_t pid, uint64_t start, uint64_t end, struct mapped_id *ret)
{
	int at = mapped_file(living_thread(pid), start, end), fd = -1;
	char self[32];

	if (at < 0)
		return -errno;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", at);
	if (identify(at, ret))
		fd = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	close(at);
	return fd < 0 ? -ENOENT : fd;
}

int process_context_maps(uint32_t pid, uint64_t *ret_size)
{
	uint32_t thread = living_thread(pid);
	char path[32], *line = NULL;
	size_t cap = 0, seen = 0;
	int fd, err = 0;
	ssize_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/maps", thread);
	f = fopen(path, "re");
	if (!f)
		return -ENOENT;
	fd = memfd_create("sfbpf-maps", MFD_CLOEXEC);
	*ret_size = 0;
	while (fd >= 0 && !err && seen < LIST_MOST && (n = getline(&line, &cap, f)) > 0) {
		seen += (size_t)n;
		n = write_mapping(fd, thread, line);
		if (n < 0)
			err = -ENOMEM;
		else
			*ret_size += (uint64_t)n;
	}
	fclose(f);
	free(line);
	if (fd >= 0 && err)
		close(fd);
	return fd < 0 || err ? -ENOMEM : fd;
}

int process_context_open(uint32_t pid, uint64_t *at, uint64_t *ret_size)
{
	static uint8_t buf[PROCESS_CONTEXT_MOST];
	uint32_t thread = living_thread(pid);
	int mem, fd, size = -ENOENT;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u/mem", thread);
	mem = open(path, O_RDONLY | O_CLOEXEC);
	if (mem < 0)
		return -ENOENT;
	if (*at)
		size = read_payload(mem, *at, buf);
	if (size < 0)
		size = search(thread, mem, at, buf);
	close(mem);
	if (size < 0)
		return size;
	fd = memfd_create("sfbpf-context", MFD_CLOEXEC);
	if (fd < 0 || write(fd, buf, (size_t)size) != size) {
		if (fd >= 0)
			close(fd);
		return -ENOMEM;
	}
	*ret_size = (uint64_t)size;
	return fd;
}
