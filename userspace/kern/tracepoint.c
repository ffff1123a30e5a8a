/* SPDX-License-Identifier: BSD-2-Clause */
#include "kern/tracepoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/num.h"

/* <linux/mount.h> of this age conflicts with <sys/mount.h>; values: the kernel's uapi */
#ifndef FSCONFIG_CMD_CREATE
#define FSCONFIG_CMD_CREATE 6
#endif

static bool is_tracefs(int fd)
{
	return fd >= 0 && !faccessat(fd, "events", F_OK, 0);
}

/* Mounts tracefs without attaching the mount to a directory. A descriptor or -errno. */
static int mount_detached(void)
{
	int fs = (int)syscall(SYS_fsopen, "tracefs", 1 /* FSOPEN_CLOEXEC */), fd, err;

	if (fs < 0)
		return -errno;
	fd = syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0)
		     ? -1
		     : (int)syscall(SYS_fsmount, fs, 1 /* FSMOUNT_CLOEXEC */, 0);
	err = errno;
	close(fs);
	return fd < 0 ? -err : fd;
}

int tracefs_open(void)
{
	static const char *const places[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		int fd = open(places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (is_tracefs(fd))
			return fd;
		if (fd >= 0)
			close(fd);
	}
	return mount_detached();
}

/* Reads a file below events/. Bytes, or -errno. */
static ssize_t read_file(int tracefs, const char *system, const char *name, const char *file,
			 char *buf, size_t cap)
{
	char path[PATH_MAX];
	size_t n = 0;
	ssize_t got = 0;
	int fd;

	if (strchr(system, '/') || strchr(name, '/') || *system == '.' || *name == '.' ||
	    snprintf(path, sizeof(path), "events/%s/%s/%s", system, name, file) >=
		    (int)sizeof(path))
		return -ENOENT;
	fd = openat(tracefs, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (n < cap - 1 && (got = read(fd, buf + n, cap - 1 - n)) > 0)
		n += (size_t)got;
	close(fd);
	buf[n] = 0;
	return got < 0 ? -errno : (ssize_t)n;
}

/* "field:TYPE NAME[SIZE];", of which the last word is the name */
static void take_name(const char *at, size_t len, struct tracepoint_field *f)
{
	size_t end = len, start;
	const char *bracket = memchr(at, '[', len);

	/* "__data_loc char[] name" has its bracket in the type. */
	f->dynamic = len > 11 && !strncmp(at, "__data_loc ", 11);
	f->text = !strncmp(at + (f->dynamic ? 11 : 0), "char", 4) && bracket;
	if (bracket && !f->dynamic)
		end = (size_t)(bracket - at);
	for (start = end; start > 0 && at[start - 1] != ' ' && at[start - 1] != '*';)
		start--;
	if (end - start < sizeof(f->name))
		memcpy(f->name, at + start, end - start);
}

static bool take_field(const char *line, struct tracepoint_field *f)
{
	const char *field = strstr(line, "field:"), *end = field ? strchr(field, ';') : NULL;
	unsigned int at, size, is_signed;

	*f = (struct tracepoint_field){ .at = 0 };
	if (!end || sscanf(end, "; offset:%u; size:%u; signed:%u;", &at, &size, &is_signed) != 3 ||
	    at > UINT16_MAX || size > UINT16_MAX)
		return false;
	take_name(field + 6, (size_t)(end - field - 6), f);
	f->at = (uint16_t)at;
	f->size = (uint16_t)size;
	f->is_signed = is_signed;
	/* A pointer to pt_regs is where the kernel's record begins with common_type etc. */
	return *f->name && strncmp(f->name, "common_", 7);
}

void tracepoint_parse(const char *text, struct tracepoint *ret)
{
	char line[512];

	for (const char *p = text; p && *p; p = strchr(p, '\n'), p += p != NULL) {
		size_t len = strcspn(p, "\n");

		if (len >= sizeof(line) || ret->nfields >= TRACEPOINT_FIELDS)
			continue;
		memcpy(line, p, len);
		line[len] = 0;
		ret->nfields += take_field(line, &ret->fields[ret->nfields]);
	}
}

int tracepoint_read(int tracefs, const char *system, const char *name, struct tracepoint *ret)
{
	static char text[65536];
	ssize_t n = read_file(tracefs, system, name, "id", text, sizeof(text));

	*ret = (struct tracepoint){ .id = 0 };
	if (n < 0)
		return (int)n;
	text[strcspn(text, "\n")] = 0;
	if (num_u64(text, 1, UINT32_MAX, &ret->id))
		return -ENOENT;
	n = read_file(tracefs, system, name, "format", text, sizeof(text));
	if (n >= 0)
		tracepoint_parse(text, ret);
	return n < 0 ? (int)n : 0;
}

const struct tracepoint_field *tracepoint_field(const struct tracepoint *t, const char *name,
						size_t len)
{
	for (size_t i = 0; i < t->nfields; i++)
		if (strlen(t->fields[i].name) == len && !memcmp(t->fields[i].name, name, len))
			return &t->fields[i];
	return NULL;
}

static int each_of(int tracefs, const char *system,
		   int (*fn)(void *ctx, const char *system, const char *name), void *ctx)
{
	char path[PATH_MAX];
	struct dirent *e;
	int fd, rc = 0;
	DIR *d;

	snprintf(path, sizeof(path), "events/%s", system);
	fd = openat(tracefs, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	while (!rc && (e = readdir(d))) {
		snprintf(path, sizeof(path), "%s/id", e->d_name);
		if (*e->d_name != '.' && !faccessat(fd, path, F_OK, 0))
			rc = fn(ctx, system, e->d_name);
	}
	closedir(d);
	return rc;
}

int tracepoints_each(int tracefs, int (*fn)(void *ctx, const char *system, const char *name),
		     void *ctx)
{
	int fd = openat(tracefs, "events", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return -errno;
	}
	while (!rc && (e = readdir(d)))
		if (*e->d_name != '.')
			rc = each_of(tracefs, e->d_name, fn, ctx);
	closedir(d);
	return rc;
}
