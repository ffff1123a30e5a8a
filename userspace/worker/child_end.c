/* SPDX-License-Identifier: BSD-2-Clause */
#include "worker/child_end.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * A killed child exits within this time, unless it is blocked in the kernel on a file system that
 * does not answer
 */
#define DEATH_MS 100

bool child_kill(pid_t pid, int *ret_status)
{
	struct pollfd p = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };
	pid_t ended;

	kill(pid, SIGKILL);
	if (p.fd >= 0) {
		poll(&p, 1, DEATH_MS);
		close(p.fd);
	}
	*ret_status = -1;
	/*
	 * Kernels before 5.3 have no pidfd_open: there waitpid blocks until the child has exited.
	 */
	do
		ended = waitpid(pid, ret_status, p.fd >= 0 ? WNOHANG : 0);
	while (ended < 0 && errno == EINTR);
	return ended != 0;
}
