/* SPDX-License-Identifier: BSD-2-Clause */
/* The file that -e names for a probe. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/in_root.h"
#include "kern/events.h"

static int open_file(const char *path)
{
	struct stat st;

	return open_regular(path, &st);
}

/* "libc.so.6", and "libc" for it */
static bool has_name(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	size_t len = strlen(name);

	return !strcmp(base, name) || (!strncmp(base, name, len) && !strncmp(base + len, ".so", 3));
}

/* The file as the process has mapped it: its path may lead elsewhere here. */
static int open_mapped(uint32_t pid, const char *name)
{
	char maps[64], line[PATH_MAX + 128], place[64], path[PATH_MAX];
	int fd = -ENOENT;
	FILE *f;

	snprintf(maps, sizeof(maps), "/proc/%u/maps", pid);
	f = fopen(maps, "re");
	while (f && fd < 0 && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		if (sscanf(line, "%40s %*s %*s %*s %*s %4095[^\n]", place, path) == 2 &&
		    has_name(path, name)) {
			snprintf(path, sizeof(path), "/proc/%u/map_files/%s", pid, place);
			fd = open_file(path);
		}
	}
	if (f)
		fclose(f);
	return fd;
}

static int open_in(const char *dir, size_t len, const char *name, bool library)
{
	char path[PATH_MAX];
	struct dirent *e;
	int fd;
	DIR *d;

	if (snprintf(path, sizeof(path), "%.*s/%s", (int)len, dir, name) >= (int)sizeof(path))
		return -ENOENT;
	fd = open_file(path);
	if (fd >= 0 || !library)
		return fd;
	snprintf(path, sizeof(path), "%.*s", (int)len, dir);
	d = opendir(path);
	while (d && fd < 0 && (e = readdir(d)))
		if (has_name(e->d_name, name) && snprintf(path, sizeof(path), "%.*s/%s", (int)len,
							  dir, e->d_name) < (int)sizeof(path))
			fd = open_file(path);
	if (d)
		closedir(d);
	return fd;
}

/* dirs: with colons between them */
static int open_among(const char *dirs, const char *name, bool library)
{
	int fd = -ENOENT;

	for (const char *at = dirs; at && *at && fd < 0;) {
		size_t len = strcspn(at, ":");

		if (len)
			fd = open_in(at, len, name, library);
		at += len + (at[len] == ':');
	}
	return fd;
}

#ifdef __x86_64__
#define TRIPLET "x86_64-linux-gnu"
#else
#define TRIPLET "aarch64-linux-gnu"
#endif

int event_file_open(const char *name, const uint32_t *pids, size_t npids)
{
	int fd = -ENOENT;

	if (strchr(name, '/'))
		return open_file(name);
	for (size_t i = 0; i < npids && fd < 0; i++)
		fd = open_mapped(pids[i], name);
	if (fd < 0)
		fd = open_among(getenv("LD_LIBRARY_PATH"), name, true);
	if (fd < 0)
		fd = open_among("/lib/" TRIPLET ":/usr/lib/" TRIPLET
				":/lib64:/usr/lib64:/usr/local/lib:/lib:/usr/lib",
				name, true);
	return fd < 0 ? open_among(getenv("PATH"), name, false) : fd;
}
