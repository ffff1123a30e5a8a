/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the loader's files.
 *
 *   loader.c		the thread: chooses the next file for each worker
 *   loader_file.c	one file: acts on each answer
 *   loader_watch.c	files that change while they are mapped
 */
#ifndef SFBPF_KERN_LOADER_INTERNAL_H
#define SFBPF_KERN_LOADER_INTERNAL_H

#include <pthread.h>

#include "kern/copied.h"
#include "kern/load_queue.h"
#include "kern/loader.h"
#include "kern/opener.h"
#include "tables/table_worker.h"

/*
 * Two lanes with a worker each, so that a small file does not wait for a large file, or for one
 * that was made to take long. Files that are large, or take too long in the fast lane, go to the
 * slow lane. 2 MB of .eh_frame take some 20 ms of CPU time.
 */
enum { FAST, SLOW, LANES, OPENING = LANES }; /* OPENING: waits for an opener */

struct lane {
	struct worker worker; /* table_worker_run */
	struct load_job job;  /* valid if the worker is busy */
};

struct watched_file {
	uint32_t module;
	int wd; /* inotify's watch; -1: none */
};

struct watched {
	/* Modules with tables; the first nstale of them have changed, and no mapping is theirs */
	struct watched_file *v;
	size_t n, nstale, cap;
	int inotify;	    /* -1: none */
	uint64_t looked_ns; /* CLOCK_MONOTONIC */
};

struct loader {
	struct modules *modules;
	struct tables *tables;
	struct openers openers;
	bool opening; /* some opener may answer soon */
	struct lane lanes[LANES];
	struct worker_totals workers;
	pthread_t thread;
	bool running, stop;
	/* The files that were mapped at the start are listed: new ones are in use from now on */
	bool started;
	/* eventfd: the queue has a new file, or the thread must stop */
	int wake;
	pthread_mutex_t lock; /* protects the queues, `active` and the totals */
	struct load_queue queue;
	struct copied copied;	     /* its queue */
	unsigned int active;	     /* number of busy lanes, plus `opening` */
	uint64_t load_until_ns;	     /* loader_load_by's */
	uint64_t tended_ns;	     /* time of the last purge of the queue */
	loader_unmapped_fn unmapped; /* NULL: unmapped files keep their tables */
	void *unmapped_ctx;
	uint64_t idle_ms, unmapped_ns; /* unmapped_ns: time of the last call */
	struct watched watched;
	struct loader_totals totals;
	uint32_t languages; /* loader_languages */
};

/* Advances the life of the file and sets its state in BPF. false: the event does not apply. */
bool loader_advance(struct loader *l, struct module *m, enum file_event event);
/* The module that the need is for. NULL: it has tables, or its id was reused after the request. */
struct module *loader_wanted(struct loader *l, const struct sf_need *need);
/*
 * Whether the file of a queued job still needs it: its first tables are missing, or it has tables
 * that a later pass can replace.
 */
bool loader_wants_job(struct loader *l, const struct load_job *job);
int loader_enqueue(struct loader *l, const struct load_job *job); /* 0 or -ENOMEM */
void loader_wake(struct loader *l);				  /* the thread; any thread */
/* Handles the openers' reports. Returns whether there were any. */
bool loader_handle_openers(struct loader *l);
/* First step of a file: enqueues it for its lane if it is open, else passes it to an opener. */
void loader_open(struct loader *l, struct load_job *job);
/* Sends the file to the worker of the lane, within its limits. */
void loader_convert(struct loader *l, int lane, const struct load_job *job,
		    const struct worker_limits *limits);
void loader_answered(struct loader *l, struct lane *from, const struct table_answer *a);
void loader_watch_start(struct loader *l);
void loader_watch_end(struct loader *l);
/* Looks for changes of this file from now on. */
void loader_watch(struct loader *l, const struct module *m);
/*
 * Returns the time until the next call, ms. The call is also due when *ret_fd can be read; -1: not
 * before that time.
 */
int loader_look_for_changes(struct loader *l, int *ret_fd);
/* The modules that no mapping has any more because their files have changed. */
size_t loader_stale(struct loader *l, uint32_t *ids, size_t max);
/* The worker died, took too long (late) or ran out of memory. */
void loader_try_again(struct loader *l, struct load_job *job, bool late);

#endif
