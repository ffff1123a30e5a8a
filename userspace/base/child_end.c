/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/child_end.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEATH_MS 100	/* a child that was killed is gone by then, unless it waits in the kernel for a file system that does not answer */

bool child_wait(pid_t pid, int ms, int *ret_status)
{
	struct pollfd p = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };
	pid_t ended;

	if (p.fd >= 0) {
		poll(&p, 1, ms);
		close(p.fd);
	}
	*ret_status = -1;
	/* Kernels that cannot wait for a while (before 5.3) wait until it is over. */
	do
		ended = waitpid(pid, ret_status, p.fd >= 0 ? WNOHANG : 0);
	while (ended < 0 && errno == EINTR);
	return ended != 0;
}

bool child_kill(pid_t pid, int *ret_status)
{
	kill(pid, SIGKILL);
	return child_wait(pid, DEATH_MS, ret_status);
}
