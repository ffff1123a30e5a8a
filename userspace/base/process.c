/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/process.h"

#include <stdio.h>
#include <string.h>

/* Field 22 of /proc/PID/stat, after a comm that may hold any bytes. */
uint64_t process_started(uint32_t pid)
{
	char path[32], buf[1024], *at;
	unsigned long long started = 0;
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
	if (!at || sscanf(at + 1,
			  " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u"
			  " %*d %*d %*d %*d %*d %*d %llu",
			  &started) != 1)
		return 0;
	return started;
}
