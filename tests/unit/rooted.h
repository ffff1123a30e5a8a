/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes with a root of their own, for tests. */
#ifndef SFBPF_TESTS_UNIT_ROOTED_H
#define SFBPF_TESTS_UNIT_ROOTED_H

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "files.h"

/*
 * A process that lives in dir/root, in mounts of its own if it is to have an overlay there, until
 * it is killed. 0: not allowed here.
 */
static inline pid_t start_in_root(bool overlay)
{
	int ready[2];
	char byte = 0;
	pid_t pid;

	if (geteuid() != 0 || pipe(ready))
		return 0;
	pid = fork();
	if (pid == 0) {
		if (chdir(dir) ||
		    (overlay &&
		     (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		      mount("o", "root", "overlay", 0, "lowerdir=root:lower"))))
			_exit(1);
		if (chdir("root") || chroot(".") || write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1) {
		waitpid(pid, NULL, 0);
		pid = 0;
	}
	close(ready[0]);
	return pid;
}

static inline void stop_process(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

#endif
