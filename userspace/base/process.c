/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A number of /proc/PID/stat, after a comm that may hold any bytes. 0: it cannot be read. */
static uint64_t stat_field(uint32_t pid, int number)
{
	char path[32], buf[1024], *at, *save;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	n = fread(buf, 1, sizeof(buf) - 1, f);
	fclose(f);
	buf[n] = 0;
	at = strrchr(buf, ')');
	at = at ? strtok_r(at + 1, " ", &save) : NULL; /* field 3 */
	for (int i = 3; at && i < number; i++)
		at = strtok_r(NULL, " ", &save);
	return at ? strtoull(at, NULL, 10) : 0;
}

uint64_t process_started(uint32_t pid)
{
	return stat_field(pid, 22);
}

uint64_t process_start_stack(uint32_t pid)
{
	return stat_field(pid, 28);
}

uint32_t process_user(uint32_t pid)
{
	uint32_t user = PROCESS_NO_USER;
	char path[32], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Uid: %u", &user) == 1)
			break;
	if (f)
		fclose(f);
	return user;
}
