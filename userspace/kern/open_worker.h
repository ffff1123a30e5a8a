/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The worker that opens mapped files, and its protocol with the loader: one message each way on a
 * SOCK_SEQPACKET socket. It has the capabilities to open files of all users, and parses nothing.
 * Any of its system calls may never return: a file system may belong to another user, or to a
 * server that is down, and /proc waits for the lock of a process's mappings.
 */
#ifndef SFBPF_KERN_OPEN_WORKER_H
#define SFBPF_KERN_OPEN_WORKER_H

#include "border/sfbpf_shared.h"
#include "worker/worker.h"

/* Sent with the BPF iterator opened_file over the worker itself. */
struct open_ask {
	uint32_t pid;
	uint32_t copy;		/* bool: return a copy of the file instead of the file */
	uint64_t start, end;	/* the mapping */
	struct sf_file_key key; /* key of the file that is expected there */
	uint64_t most;		/* most bytes to copy; -EFBIG for a larger file */
};

/* Sent with a descriptor: the file, or its copy; to be ignored if err is set */
struct open_answer {
	int32_t err;	   /* -EINPROGRESS: only the path; another answer may follow */
	uint32_t bytes;	   /* memory that the copy takes */
	uint64_t ctime_ns; /* the file's, as its descriptor says; 0: a copy */
	char path[4096];   /* the file's path as the process sees it; "": unknown */
};

/* The capabilities of this process that opening mapped files needs. */
uint64_t open_worker_rights(void);
/* A fork_child_fn. */
void open_worker_main(int sock, int mem);

#endif
