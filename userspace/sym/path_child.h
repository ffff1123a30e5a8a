/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process that opens paths which others arrange, for names: debug files, perf maps, dumps. Each step of such a path may wait for ever, for a
 * file system of another user's or for a server that is down; so does /proc for a process's mappings. What it and our own process say to each
 * other (sym/path_opener.h): a message each, with a descriptor each, on a SOCK_SEQPACKET socket. It has the rights to look into all processes' roots,
 * and parses nothing.
 */
#ifndef SFBPF_SYM_PATH_CHILD_H
#define SFBPF_SYM_PATH_CHILD_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

enum path_question {
	PATH_ROOT = 1,		/* a process's root directory, only to name files below it (O_PATH) */
	PATH_FILE,		/* the first of some paths at which there is a regular file */
	PATH_DUMP,		/* a process's jitdump (sym/jit_dump.h) */
};

#define PATH_ASK_ROOM (4 * PATH_MAX)

struct path_ask {		/* as many bytes as there are paths */
	uint32_t question;
	uint32_t owner;		/* the user who arranges what is there; 0 is trusted with more */
	uint32_t pid;		/* whose root; 0: ours */
	uint32_t ns_pid;	/* PATH_DUMP: as the process itself knows it */
	uint8_t at_root;	/* bools: the root comes along, and is not pid's any more */
	uint8_t other_root;	/* -ENOENT if pid's root is ours */
	uint8_t part;		/* we read it ourselves, from `from` on: a copy unless it is certain that reading asks nobody, and that may be cut */
	uint8_t live;		/* samples wait: not for long */
	uint64_t from, ino;	/* part: ino 0, or the file that `from` was found in; of another one it is all bytes */
	uint64_t most;		/* bytes to copy; a larger file is -EFBIG, or cut (part) */
	uint32_t first, n;	/* PATH_FILE: the path to begin with, and how many there are */
	uint32_t len;		/* bytes of paths */
	char paths[PATH_ASK_ROOM];	/* each with its NUL */
};

struct path_answer {		/* with a descriptor: the file, a copy of it (sealed, in memory), the root; with err: none of use */
	uint32_t question;
	int32_t err;		/* 0; -ENOENT; -EFBIG, -ENOMEM: no copy of it can be kept */
	uint32_t place;		/* which of the paths it was */
	uint32_t uid;		/* the file's */
	uint64_t dev, ino;
	uint64_t size;		/* of what the descriptor is */
	uint32_t copied;	/* bool */
	char path[PATH_MAX];	/* PATH_DUMP */
};

/* A fork_child_fn. */
void path_child_main(int sock, int mem);

#endif
