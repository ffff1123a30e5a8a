/* SPDX-License-Identifier: BSD-2-Clause */
/* A command to profile: forked early, and started after sampling began. */
#ifndef SFBPF_TOOLS_COMMAND_H
#define SFBPF_TOOLS_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

struct command {
	pid_t pid;
	int go_fd, error_fd; /* the profiler's ends of the pipes */
	bool ended;
	int status;    /* status of waitpid, when ended; -1: exec failed */
	int exit_code; /* the command's, set by command_finish: see there */
};

int command_prepare(struct command *c, char **argv); /* 0 or -1 with errno */
/* Lets the child exec: 0, or -1 with the errno of exec. */
int command_go(struct command *c);
bool command_ended(struct command *c); /* does not wait */
/*
 * Ends the command if it still runs; prints on stderr if it failed. exit_code is the command's exit
 * status, 128 + N if signal N ended it, and 0 if it was ended here or after Ctrl-C (interrupted).
 */
void command_finish(struct command *c, const char *name, bool interrupted);

#endif
