/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by out_firefox.c and out_firefox_markers.c. */
#ifndef SFBPF_OUT_OUT_FIREFOX_H
#define SFBPF_OUT_OUT_FIREFOX_H

#include "base/idmap.h"
#include "base/json.h"
#include "out/out.h"
#include "prof/stackset.h"
#include "prof/timeline.h"

enum firefox_category {
	FIREFOX_OTHER,
	FIREFOX_USER,
	FIREFOX_KERNEL,
	FIREFOX_JIT,
	FIREFOX_BLOCKED,
	FIREFOX_IDLE,
	FIREFOX_RUNNABLE,
	FIREFOX_CATEGORIES
};

struct firefox {
	const struct out_report *r;
	struct stackset ss;
	/* The node of each stack of the profile, and its node below the frame of the process */
	uint32_t *nodes, *cpu_nodes;
	uint32_t *waker_nodes;	/* the node of each stack of the profile of wakers */
	struct idmap functions; /* name, module (ids of strings) */
	struct idmap modules;	/* id of the string */
	uint32_t *function;	/* the function of each frame */
	uint64_t begin_ns;	/* time 0 */
	uint64_t period_ns;	/* 0: no clock event */
	const struct timeline_mark *marks;
	struct firefox_note {  /* what the threads of a stack waited for */
		uint32_t name; /* id of the string, plus 1; 0: not known yet */
		enum firefox_category category;
	} * notes;		  /* one for each stack of the profile */
	uint32_t runnable, wakes; /* ids of the names of other markers */
	struct json j;
};

/* A column of n values, each written by put. */
void firefox_column(struct firefox *w, const char *key, size_t n,
		    void (*put)(struct firefox *w, size_t i));
/* Begins a table; the caller writes its columns and ends the object. */
void firefox_table(struct firefox *w, const char *key, size_t n);

/* Adds the stacks and names of all markers, before the tables are written. 0 or -ENOMEM. */
int firefox_add_marks(struct firefox *w);
void firefox_marker_schema(struct firefox *w);
void firefox_markers(struct firefox *w, const struct timeline_mark *marks, size_t n);

#endif
