/* SPDX-License-Identifier: BSD-2-Clause */
#include "prof/thread_look.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The id in the innermost namespace of the thread, from a status file; 0: unknown. */
static uint32_t inner_id(const char *path, bool *ret_nested)
{
	char line[256], *last;
	uint32_t id = 0;
	FILE *f = fopen(path, "re");

	*ret_nested = false;
	while (f && !id && fgets(line, sizeof(line), f)) {
		if (strncmp(line, "NSpid:\t", 7))
			continue;
		last = strrchr(line, '\t');
		*ret_nested = last != line + 6;
		id = (uint32_t)strtoul(last, NULL, 10);
	}
	if (f)
		fclose(f);
	return id;
}

static bool read_comm(const char *path, char comm[SF_COMM])
{
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(comm, 1, SF_COMM - 1, f) : 0;

	if (f)
		fclose(f);
	comm[n] = 0;
	comm[strcspn(comm, "\n")] = 0;
	return n > 0;
}

/* The thread of a process in another namespace. */
static uint32_t search(uint32_t pid, uint32_t tid)
{
	char path[320];
	struct dirent *e;
	uint32_t found = 0;
	bool nested;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	d = opendir(path);
	while (d && !found && (e = readdir(d))) {
		snprintf(path, sizeof(path), "/proc/%u/task/%s/status", pid, e->d_name);
		if (*e->d_name != '.' && inner_id(path, &nested) == tid)
			found = (uint32_t)strtoul(e->d_name, NULL, 10);
	}
	if (d)
		closedir(d);
	return found;
}

uint32_t thread_look(uint32_t pid, uint32_t tid, char comm[SF_COMM])
{
	bool nested = false;
	char path[64];

	*comm = 0;
	if (pid) {
		snprintf(path, sizeof(path), "/proc/%u/status", pid);
		inner_id(path, &nested);
	}
	if (nested)
		tid = search(pid, tid);
	snprintf(path, sizeof(path), "/proc/%u/comm", tid);
	if (tid)
		read_comm(path, comm);
	return tid;
}
