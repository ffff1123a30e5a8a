/* SPDX-License-Identifier: BSD-2-Clause */
/* What /proc says of a process. */
#ifndef SFBPF_TESTS_UNIT_PROC_STATUS_H
#define SFBPF_TESTS_UNIT_PROC_STATUS_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

/* Whether the line of status named field has value in it. */
static inline bool status_has(pid_t pid, const char *field, const char *value)
{
	char path[64], line[256];
	bool is = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, field, strlen(field)) && line[strlen(field)] == ':')
			is = strstr(line, value) != NULL;
	if (f)
		fclose(f);
	return is;
}

static inline int count_fds(const char *of)
{
	DIR *d = opendir(of);
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* The first of its children; 0: it has none. */
static inline pid_t child_of(pid_t server)
{
	char path[64];
	int pid = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", server, server);
	f = fopen(path, "re");
	if (f && fscanf(f, "%d", &pid) != 1)
		pid = 0;
	if (f)
		fclose(f);
	return pid;
}

#endif
