/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/container.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ID_DIGITS     32   /* minimum number of hex digits of an id; most have 64 */
#define FILEID_KERNFS 0xfe /* linux/exportfs.h: the handle is the 64-bit id */

static size_t hex_digits(const char *s, size_t len)
{
	size_t n = 0;

	while (n < len && isxdigit((unsigned char)s[n]))
		n++;
	return n;
}

static bool set(struct container *ret, const char *runtime, size_t runtime_len, const char *id,
		size_t len)
{
	if (!runtime_len) {
		runtime = "container";
		runtime_len = strlen(runtime);
	}
	if (!len || len >= sizeof(ret->id))
		return false;
	snprintf(ret->runtime, sizeof(ret->runtime), "%.*s", (int)runtime_len, runtime);
	memcpy(ret->id, id, len);
	ret->id[len] = 0;
	return true;
}

/* Checks one component of the path; `above` is the component before it. */
static bool container_of_part(const char *part, size_t len, const char *above, size_t above_len,
			      struct container *ret)
{
	static const char lxc[] = "lxc.payload.", conmon[] = "conmon";
	const char *id, *dash = NULL;
	size_t left, n;

	if (len > strlen(lxc) && !strncmp(part, lxc, strlen(lxc)))
		return set(ret, "lxc", 3, part + strlen(lxc), len - strlen(lxc));
	/* "PREFIX-ID.scope", "SLICE:PREFIX:ID", "ID", "ID-NUMBER". */
	for (const char *p = part; p < part + len; p++)
		if ((*p == '-' || *p == ':') &&
		    hex_digits(p + 1, (size_t)(part + len - p - 1)) >= ID_DIGITS)
			dash = p;
	id = dash ? dash + 1 : part;
	left = (size_t)(part + len - id);
	n = hex_digits(id, left);
	if (n < ID_DIGITS || (n < left && id[n] != '.' && id[n] != '-'))
		return false;
	if (n < left && id[n] == '-') {
		size_t digits = n + 1;

		while (digits < left && isdigit((unsigned char)id[digits]))
			digits++;
		if (digits != left)
			return false;
		n = left;
	}
	if (!dash) /* "/docker/ID" */
		return set(ret, above, above_len == 6 && !strncmp(above, "docker", 6) ? 6 : 0, id,
			   n);
	if (*dash == ':') {
		while (dash > part && dash[-1] != ':')
			dash--;
		return set(ret, dash, (size_t)(id - 1 - dash), id, n);
	}
	len = (size_t)(dash - part);
	if (len >= strlen(conmon) && !strncmp(dash - strlen(conmon), conmon, strlen(conmon)))
		return false;
	return set(ret, part, len, id, n);
}

bool container_of_path(const char *cgroup_path, struct container *ret)
{
	const char *end = cgroup_path + strlen(cgroup_path);

	while (end > cgroup_path) {
		const char *part = end, *above;

		while (part > cgroup_path && part[-1] != '/')
			part--;
		above = part > cgroup_path ? part - 1 : part;
		while (above > cgroup_path && above[-1] != '/')
			above--;
		if (container_of_part(part, (size_t)(end - part), above,
				      part > above ? (size_t)(part - 1 - above) : 0, ret))
			return true;
		end = part > cgroup_path ? part - 1 : part;
	}
	return false;
}

/* ---- Cgroups of processes ---- */

/* Mount point of the v2 hierarchy; "": not mounted. It is assumed not to move during the run. */
static const char *mount_point(void)
{
	static char dir[512];
	static bool tried;
	char line[1024], type[64], where[512];
	FILE *f = tried ? NULL : fopen("/proc/self/mounts", "re");

	tried = true;
	while (f && !*dir && fgets(line, sizeof(line), f))
		if (sscanf(line, "%*s %511s %63s", where, type) == 2 && !strcmp(type, "cgroup2"))
			strcpy(dir, where);
	if (f)
		fclose(f);
	return dir;
}

bool cgroup_path_of_id(uint64_t id, char *dst, size_t cap)
{
	union {
		struct file_handle h;
		char room[sizeof(struct file_handle) + sizeof(id)];
	} handle = { .h = { .handle_bytes = sizeof(id), .handle_type = FILEID_KERNFS } };
	const char *root = mount_point();
	char link[64], path[PATH_MAX];
	ssize_t n = -1;
	int mnt, fd;

	if (!id || !*root)
		return false;
	memcpy(handle.h.f_handle, &id, sizeof(id));
	mnt = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = mnt < 0 ? -1 : open_by_handle_at(mnt, &handle.h, O_PATH | O_CLOEXEC);
	if (fd >= 0) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		n = readlink(link, path, sizeof(path) - 1);
		close(fd);
	}
	if (mnt >= 0)
		close(mnt);
	if (n < 0 || strncmp(path, root, strlen(root)))
		return false;
	path[n] = 0;
	n = snprintf(dst, cap, "%s", path[strlen(root)] ? path + strlen(root) : "/");
	return n < (ssize_t)cap;
}

/* A v1 hierarchy may have an id that the v2 path lacks. */
static enum container_found container_in_proc(uint32_t pid, struct container *ret)
{
	enum container_found found = CONTAINER_GONE;
	char path[32], *line = NULL, *at;
	size_t cap = 0;
	ssize_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/cgroup", pid);
	f = fopen(path, "re");
	while (f && found != CONTAINER_FOUND && (n = getline(&line, &cap, f)) > 0) {
		line[n - 1] = 0;
		at = strchr(line, ':');
		at = at ? strchr(at + 1, ':') : NULL;
		found = at && container_of_path(at + 1, ret) ? CONTAINER_FOUND : CONTAINER_NONE;
	}
	if (f)
		fclose(f);
	free(line);
	return found;
}

enum container_found container_of_process(uint32_t pid, uint64_t cgroup_id, struct container *ret)
{
	bool known;
	enum container_found found;
	char path[PATH_MAX];

	known = cgroup_path_of_id(cgroup_id, path, sizeof(path));
	if (known && container_of_path(path, ret))
		return CONTAINER_FOUND;
	found = container_in_proc(pid, ret);
	return known && found == CONTAINER_GONE ? CONTAINER_NONE : found;
}
