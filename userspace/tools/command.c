/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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
		/* The profiler died before it let us go: so do we. */
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
		n = read(c->error_fd, &err, sizeof(err));	/* closed by a successful exec */
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

void command_finish(struct command *c, const char *name)
{
	if (c->go_fd >= 0) {		/* never let go: it ends by itself */
		close(c->go_fd);
		close(c->error_fd);
		waitpid(c->pid, NULL, 0);
		return;
	}
	if (!command_ended(c)) {
		/* Time is up, or Ctrl-C: end it, as its parent's terminal would. */
		kill(c->pid, SIGTERM);
		for (int i = 0; i < 20 && !command_ended(c); i++)
			usleep(50000);
		if (!c->ended) {
			kill(c->pid, SIGKILL);
			waitpid(c->pid, &c->status, 0);
		}
		c->ended = true;
	}
	if (c->status == -1)
		return;
	if (WIFSIGNALED(c->status))
		fprintf(stderr, "sfbpf: %s was ended by signal %d (%s)\n", name, WTERMSIG(c->status), strsignal(WTERMSIG(c->status)));
	else if (WEXITSTATUS(c->status))
		fprintf(stderr, "sfbpf: %s exited with status %d\n", name, WEXITSTATUS(c->status));
}
