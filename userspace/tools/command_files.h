/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files that a command will map, found before it starts, so that its first samples have their
 * tables: the program, that of a script, and those that env(1) and its like execute, each with its
 * interpreter and libraries. The search for libraries is the dynamic linker's, without its cache:
 * $LD_LIBRARY_PATH, the directories that files name, and that of the interpreter. Java's launcher
 * opens its virtual machine itself. What the search misses is found when it is mapped.
 */
#ifndef SFBPF_TOOLS_COMMAND_FILES_H
#define SFBPF_TOOLS_COMMAND_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A process that has mapped a page of code of each file. */
struct command_files {
	pid_t pid;
	int stop_fd; /* closed: it ends */
	void *room;  /* where they are mapped, room_len bytes */
	size_t room_len;
	bool shell; /* a shell is among the programs: what it starts may not be among the files */
};

/*
 * Starts the process, and waits until it is ready. 0, or -errno: -ETIMEDOUT if it takes too long.
 * command_files_end in either case.
 */
int command_files_start(struct command_files *f, char *const *argv);
void command_files_end(struct command_files *f);

#endif
