/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The worker that opens foreign paths for names: debug files, perf maps, dumps, and the memory in
 * which a process says its name. Each step of such a path may block for ever, on another user's
 * file system or on a server that is down. So may /proc, which waits for the lock on a process's
 * mappings. Question and answer (paths/path_opener.h) are one SOCK_SEQPACKET message each, with one
 * descriptor each. The worker may enter the roots of all processes, and parses nothing but lists of
 * mappings.
 */
#ifndef SFBPF_PATHS_PATH_WORKER_H
#define SFBPF_PATHS_PATH_WORKER_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "paths/process_context.h"

enum path_question {
	/* Root directory of a process (O_PATH), only to open files below it */
	PATH_ROOT = 1,
	PATH_FILE,    /* the first of the paths that names a regular file */
	PATH_DUMP,    /* the jitdump of a process (jit/jit_dump.h) */
	PATH_CONTEXT, /* a copy of the context of a process (paths/process_context.h) */
	PATH_MAPS,    /* a copy of the list of its mappings: those of files, with code */
	PATH_MAPPED,  /* the file that a process maps */
};

#define PATH_ASK_ROOM (4 * PATH_MAX)

struct path_ask { /* sent with only the bytes of paths in use */
	uint32_t question;
	uint32_t owner;	    /* the user who controls the path; 0 (root) is trusted with more */
	uint32_t pid;	    /* the process whose root is used; 0: our own root */
	uint32_t ns_pid;    /* PATH_DUMP: its pid in its own namespace */
	uint8_t at_root;    /* bools: the root comes with the question instead of from pid */
	uint8_t other_root; /* -ENOENT if pid's root is ours */
	/*
	 * The main process reads the file, from `from` on. It gets a copy unless reading can never
	 * block. The copy may be cut.
	 */
	uint8_t part;
	uint8_t live; /* samples are waiting: use a short deadline */
	/* part: the file that `from` applies to; another file is read from 0. ino 0: none */
	uint64_t from, ino;
	uint64_t most; /* bytes to copy; a larger file gives -EFBIG, or is cut (part) */
	uint64_t at;   /* PATH_CONTEXT: address where it was before; 0: unknown */
	struct {       /* PATH_MAPPED: the mapping */
		uint64_t start, end;
	} mapping;
	uint32_t first, n;	   /* PATH_FILE: the first path to try, and the number of paths */
	uint32_t len;		   /* bytes of paths */
	char paths[PATH_ASK_ROOM]; /* each with its NUL */
};

/*
 * Comes with a descriptor: the file, a copy of it (sealed, in memory), or the root. With err:
 * unused
 */
struct path_answer {
	uint32_t question;
	int32_t err;	/* 0; -ENOENT; -EFBIG, -ENOMEM: the file cannot be copied */
	uint32_t place; /* index of the path that was opened */
	uint32_t uid;	/* owner of the file */
	uint64_t dev, ino;
	uint64_t size;		 /* size of the file or copy */
	struct timespec written; /* its last write */
	uint64_t at;		 /* PATH_CONTEXT: its address */
	struct mapped_id id;	 /* PATH_MAPPED */
	uint32_t copied;	 /* bool */
	char path[PATH_MAX];	 /* PATH_DUMP */
};

/* A fork_child_fn. */
void path_worker_main(int sock, int mem);

/*
 * The path of the dump, malloc'ed, below the root of the process. pid is in our namespace, ns_pid
 * in that of the process. NULL: out of memory. It may block for ever, because /proc waits for the
 * lock on a process's mappings.
 */
char *jit_dump_path(uint32_t pid, uint32_t ns_pid);

#endif
