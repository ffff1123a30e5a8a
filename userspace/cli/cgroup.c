/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/exitcode.h"
#include "base/num.h"
#include "cli/options.h"

/* Where the v2 hierarchy is mounted. */
static int mount_point(char *ret, size_t cap)
{
	char line[1024], dir[512], type[64];
	int found = 0;
	FILE *f = fopen("/proc/self/mounts", "re");

	while (f && !found && fgets(line, sizeof(line), f))
		if (sscanf(line, "%*s %511s %63s", dir, type) == 2 && !strcmp(type, "cgroup2"))
			found = snprintf(ret, cap, "%s", dir) < (int)cap;
	if (f)
		fclose(f);
	return found ? 0 : -1;
}

/* Depth-first search for the directory with this inode number, which is the id of a cgroup. */
static int find_id(const char *dir, uint64_t id, char *ret, size_t cap, int depth)
{
	struct stat st;
	struct dirent *e;
	char path[PATH_MAX];
	int err = -1;
	DIR *d;

	if (depth > 32 || stat(dir, &st))
		return -1;
	if (st.st_ino == id)
		return snprintf(ret, cap, "%s", dir) < (int)cap ? 0 : -1;
	d = opendir(dir);
	while (d && err && (e = readdir(d))) {
		if (e->d_type != DT_DIR || e->d_name[0] == '.' ||
		    snprintf(path, sizeof(path), "%s/%s", dir, e->d_name) >= (int)sizeof(path))
			continue;
		err = find_id(path, id, ret, cap, depth + 1);
	}
	if (d)
		closedir(d);
	return err;
}

int cgroup_resolve(const char *arg, uint64_t *ret_id, uint32_t *ret_level)
{
	char mnt[512], path[PATH_MAX], real[PATH_MAX];
	struct stat st;
	uint64_t id;
	size_t len;
	uint32_t level = 0;

	if (mount_point(mnt, sizeof(mnt)))
		return complain(EXIT_UNSUPPORTED,
				"-G: no cgroup v2 hierarchy is mounted (see 'man 7 cgroups')");
	len = strlen(mnt);
	if (!num_u64(arg, 1, UINT64_MAX, &id)) {
		if (find_id(mnt, id, path, sizeof(path), 0))
			return complain(EXIT_FAILED, "-G: no cgroup with id %s", arg);
	} else if (!strncmp(arg, mnt, len) && (arg[len] == '/' || !arg[len])) {
		snprintf(path, sizeof(path), "%s", arg);
	} else {
		snprintf(path, sizeof(path), "%s/%s", mnt, arg);
	}
	if (!realpath(path, real) || strncmp(real, mnt, len) || stat(real, &st) ||
	    !S_ISDIR(st.st_mode))
		return complain(EXIT_FAILED, "-G: no cgroup '%s' below %s", arg, mnt);
	for (const char *p = real + len; *p; p++)
		level += *p == '/' && p[1];
	*ret_id = st.st_ino;
	*ret_level = level;
	return 0;
}
