/* SPDX-License-Identifier: BSD-2-Clause */
/* Flame graphs as one self-contained HTML file, or as an SVG picture. */
#ifndef SFBPF_OUT_OUT_HTML_H
#define SFBPF_OUT_OUT_HTML_H

#include <stdio.h>

#include "out/out.h"
#include "prof/slices.h"
#include "prof/stackset.h"

struct changes;

/* When the samples of the leaves were taken. */
struct html_times {
	struct html_cell {
		uint32_t leaf, slice;
		uint64_t count;
	} * cells; /* sorted by leaf, then slice */
	size_t n;
	uint64_t width_ns; /* width of a slice */
	uint32_t slices;   /* 0: times are unknown */
};

/*
 * Where the numbers on the page come from. Strings may be NULL and numbers 0 if unknown. Strings
 * need not be clean.
 */
struct html_meta {
	/* Name of the profile; in a comparison, `before` is the name of the older one */
	const char *title, *before;
	const char *verdict; /* the line of a comparison (verdict.h) */
	/* A comparison of shares has none. Frames without a real change are grey. */
	const struct changes *changes;
	const char *unit; /* unit of values: "samples", "microseconds" or "nanoseconds" */
	const char *event, *host;
	/* Only for clock events: a sample is then 1/hz s of CPU time */
	double hz;
	double duration_s;
	uint64_t start_unix_ns;
	uint64_t lost;
	uint64_t user_stacks, complete;
	const struct html_times *times; /* NULL: unknown */
};

/* Writes a flame graph; with meta->before, it shows differences in red and blue. 0 or -errno. */
typedef int flame_fn(const struct stackset *ss, const struct html_meta *meta, FILE *f);
flame_fn html_write, svg_write;
/* Writes the stacks of a report. 0 or -errno. */
int out_flame(const struct out_report *r, flame_fn *write, FILE *f);

/*
 * leaf_of: by stack of the slices, its leaf. Cells that do not add up to the leaves' values are as
 * none. 0 or -ENOMEM.
 */
int html_times_make(struct html_times *t, const struct stackset *ss, const struct slices *s,
		    const uint32_t *leaf_of, double duration_s);
void html_times_free(struct html_times *t);
/* The cells of a leaf of that value, as digits. */
void html_times_put(const struct html_times *t, uint32_t leaf, uint64_t value, FILE *f);
void html_put_digits(FILE *f, uint64_t v);

/* The kind of a frame, and its name, of which the returned length is without the kind's suffix. */
size_t out_frame_name(const struct out_report *r, const struct profile_frame *f,
		      const char **ret_name, enum stack_kind *ret_kind);
/* A stack of a report by name: the part of a folded line between comm and count. */
struct out_path {
	struct stackset *ss;
	const struct out_report *r;
	struct out_containers *containers; /* NULL: not by container */
	uint32_t *frames;		   /* root first; the caller frees them */
	size_t n, cap;
};

int out_path_of(struct out_path *p, size_t i); /* fills p with stack i; 0 or -ENOMEM */
/*
 * Adds all stacks of a report to ss, with the parts that its options select. leaf_of: the leaf of
 * each; NULL: not wanted. 0 or -ENOMEM.
 */
int out_stackset(const struct out_report *r, struct stackset *ss, enum stack_side side,
		 uint32_t *leaf_of);

#endif
