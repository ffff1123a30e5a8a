/* SPDX-License-Identifier: BSD-2-Clause */
/* A command to profile: forked early and held back, so that sampling sees it from its first instruction. */
#ifndef SFBPF_TOOLS_COMMAND_H
#define SFBPF_TOOLS_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

struct command {
	pid_t pid;
	int go_fd, error_fd;	/* pipe ends of ours */
	bool ended;
	int status;		/* of waitpid, when ended */
};

int command_prepare(struct command *c, char **argv);	/* 0 or -1 with errno */
int command_go(struct command *c);			/* lets it exec: 0, or -1 with exec's errno */
bool command_ended(struct command *c);			/* does not wait */
/* Waits if it still runs and was asked to end; says on stderr how it ended. */
void command_finish(struct command *c, const char *name);

#endif
