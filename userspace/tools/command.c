/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/complain.h"
#include "tools/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "worker/child_end.h"

int command_prepare(struct command *c, char **argv)
{
	int go[2], error[2];
	char byte;

	*c = (struct command){ .go_fd = -1, .error_fd = -1 };
	if (pipe2(go, O_CLOEXEC))
		return -1;
	if (pipe2(error, O_CLOEXEC)) {
		close(go[0]);
		close(go[1]);
		return -1;
	}
	c->pid = fork();
	if (c->pid == 0) {
		close(go[1]);
		close(error[0]);
		/* End if the profiler died before command_go. */
		if (read(go[0], &byte, 1) != 1)
			_exit(127);
		execvp(argv[0], argv);
		if (write(error[1], &errno, sizeof(errno)) < 0)
			_exit(126);
		_exit(127);
	}
	close(go[0]);
	close(error[1]);
	c->go_fd = go[1];
	c->error_fd = error[0];
	if (c->pid < 0) {
		close(c->go_fd);
		close(c->error_fd);
		return -1;
	}
	return 0;
}

int command_go(struct command *c)
{
	int err = 0;
	ssize_t n;

	if (write(c->go_fd, "", 1) != 1)
		return -1;
	close(c->go_fd);
	do
		n = read(c->error_fd, &err, sizeof(err)); /* 0: exec succeeded and closed it */
	while (n < 0 && errno == EINTR);
	close(c->error_fd);
	c->go_fd = c->error_fd = -1;
	if (n == (ssize_t)sizeof(err)) {
		waitpid(c->pid, NULL, 0);
		c->ended = true;
		c->status = -1;
		errno = err;
		return -1;
	}
	return 0;
}

bool command_ended(struct command *c)
{
	if (!c->ended && waitpid(c->pid, &c->status, WNOHANG) == c->pid)
		c->ended = true;
	return c->ended;
}

/* Ends the command after SECONDS or Ctrl-C. */
static void stop(struct command *c)
{
	kill(c->pid, SIGTERM);
	for (int i = 0; i < 20 && !command_ended(c); i++)
		usleep(50000);
	/* It may be stuck in the kernel, so this does not wait for it. */
	if (!c->ended)
		child_kill(c->pid, &c->status);
	c->ended = true;
}

void command_finish(struct command *c, const char *name, bool interrupted)
{
	if (!command_ended(c)) {
		stop(c);
		return;
	}
	if (c->status == -1 || interrupted)
		return;
	if (WIFSIGNALED(c->status)) {
		c->exit_code = 128 + WTERMSIG(c->status);
		complain(0, "%s was killed by signal %d (%s)", name, WTERMSIG(c->status),
			 strsignal(WTERMSIG(c->status)));
	} else if (WEXITSTATUS(c->status)) {
		c->exit_code = WEXITSTATUS(c->status);
		complain(0, "%s exited with status %d", name, c->exit_code);
	}
}
