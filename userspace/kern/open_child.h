/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process that opens mapped files, and what it and the loader say to each other: a message each way on a SOCK_SEQPACKET socket.
 * It has the rights to open everybody's files and parses none. Whatever it asks the kernel may
 * take for ever: a file system may belong to another user, or to a server that is down, and /proc waits for a process's mappings.
 */
#ifndef SFBPF_KERN_OPEN_CHILD_H
#define SFBPF_KERN_OPEN_CHILD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fork_server.h"

struct open_ask {
	uint32_t pid;
	uint32_t copy;			/* bool: its contents are wanted in a file of our own */
	uint64_t start, end;		/* the mapping */
	uint64_t ino, mtime_ns;		/* the file that it shall be */
	uint64_t most;			/* bytes to copy; a larger file is -EFBIG */
};

struct open_answer {			/* with a descriptor: the file, or its copy; with err: none of use */
	int32_t err;			/* -EINPROGRESS: only its path; another answer follows, or not */
	uint32_t bytes;			/* of memory that the copy takes */
	char path[4096];		/* as the process sees it; "": not to be had */
};

/* Capabilities that it takes to open mapped files, of those that we have. */
uint64_t open_child_rights(void);
/* A fork_child_fn. */
void open_child_main(int sock, int mem);

#endif
