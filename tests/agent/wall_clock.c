/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For LD_PRELOAD: CLOCK_REALTIME is off by as many seconds as the file $WALL_CLOCK says, which a
 * test writes while the program runs.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	const char *path = getenv("WALL_CLOCK");
	char text[32] = "";
	int rc = (int)syscall(SYS_clock_gettime, clock, ts), fd;

	if (rc || clock != CLOCK_REALTIME || !path)
		return rc;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0)
		ts->tv_sec += strtol(text, NULL, 10);
	if (fd >= 0)
		close(fd);
	return 0;
}
