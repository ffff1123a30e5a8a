/* SPDX-License-Identifier: BSD-2-Clause */
/* forker [SECONDS]: a child made by fork() is busy, without exec; the parent waits. */
#include <sys/wait.h>
#include "prog.h"

HOT(fk)

static NOIPA int fk_run(int argc, char **argv)
{
	unsigned long r;
	pid_t pid = fork();

	if (pid < 0)
		return 1;
	if (pid == 0) {
		prog_init(argc, argv);
		r = fk_hot(1);
		prog_keep(&r);
		_exit(0);
	}
	return waitpid(pid, NULL, 0) != pid;
}

int main(int argc, char **argv)
{
	int r = fk_run(argc, argv);

	prog_keep(&r);
	return r;
}
