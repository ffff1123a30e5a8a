/* SPDX-License-Identifier: BSD-2-Clause */
#include "sym/data_name.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"
#include "base/text.h"
#include "paths/process_maps.h"
#include "symtab/elf_reader.h"
#include "symtab/sym_names.h"

/* The kernel's own variables are from here on; below is memory that it allocates. */
#ifdef __x86_64__
#define KERNEL_IMAGE_FROM 0xffffffff80000000ull
#else
#define KERNEL_IMAGE_FROM 0xffff800000000000ull
#endif

/* Finds the nearest code below the address: data of a file is above the file's code. */
static bool code_below(char *text, uint64_t addr, struct process_map *ret)
{
	struct process_map m;
	bool found = false;

	while (process_maps_next(&text, &m))
		if (m.start <= addr && (!found || m.start > ret->start)) {
			*ret = m;
			found = true;
		}
	return found;
}

/* "libfoo.so.1", clean; "?": the descriptor is of a copy */
static void base_name(int fd, char *ret, size_t cap)
{
	char link[64], path[PATH_MAX];
	const char *slash;
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, path, sizeof(path) - 1);
	path[len > 0 ? len : 0] = 0;
	slash = strncmp(path, "/memfd:", 7) ? strrchr(path, '/') : NULL;
	slash = slash && slash[1] ? slash + 1 : "?";
	text_clean(ret, cap, slash, strlen(slash), 0);
}

int data_name(struct path_opener *paths, struct elf_reader *reader, uint32_t pid, uint64_t addr,
	      char *ret, size_t cap)
{
	uint32_t owner = process_user(pid);
	char *list = NULL, name[SYM_NAME_MAX], file[256];
	struct process_map m = { 0 };
	int fd = -ENOENT, err;

	if (owner == PROCESS_NO_USER)
		return -ENOENT;
	err = process_maps_read(paths, pid, owner, &list);
	if (!err)
		fd = code_below(list, addr, &m) ? process_maps_open(paths, pid, owner, &m)
						: -ENOENT;
	free(list);
	if (err || fd < 0)
		return err ? err : fd;
	err = elf_reader_data(reader, fd, m.offset, addr - m.start, name, sizeof(name));
	if (!err && *name == '+') {
		base_name(fd, file, sizeof(file));
		snprintf(ret, cap, "[%s%s]", file, name);
	} else if (!err) {
		snprintf(ret, cap, "%s", name);
	}
	close(fd);
	return err;
}

int kernel_data_name(uint64_t addr, char *ret, size_t cap)
{
	char line[512], name[256], type;
	int err = -ENOENT;
	uint64_t at;
	FILE *f = addr < KERNEL_IMAGE_FROM ? NULL : fopen("/proc/kallsyms", "re");

	while (f && err && fgets(line, sizeof(line), f))
		if (sscanf(line, "%" SCNx64 " %c %255s", &at, &type, name) == 3 && at == addr &&
		    strchr("bBdDrR", type)) {
			text_clean(ret, cap, name, strlen(name), 0);
			err = 0;
		}
	if (f)
		fclose(f);
	return err;
}
