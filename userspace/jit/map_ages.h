/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ages of the pieces in a perf-PID.map, whose lines have no times. The file is looked at while
 * samples arrive. If it has grown, its new lines were written between two looks. Lines that name
 * memory which older lines name, too, begin a new generation.
 *
 *   look: nothing new   look: lines that replace    look
 *   ------|-------------------------|---------------|--->  time
 *    g    |            g + 1        |     g + 2
 *
 * Samples taken before the first of these looks are of an even generation, g, and samples taken
 * after the second one of g + 2: the newest piece up to it counts. In between, in g + 1, each piece
 * from g to g + 2 may have been there.
 *
 * A generation is a piece's time in a code table. An epoch is a generation in a frame word.
 */
#ifndef SFBPF_JIT_MAP_AGES_H
#define SFBPF_JIT_MAP_AGES_H

#include <stdbool.h>
#include <stdint.h>

#define MAP_AGES_CHANGES 8
#define MAP_AGES_NO_FILE 2u /* epoch of samples that were taken while there was no file */

struct map_ages {	     /* zeroed: nothing was read yet */
	uint64_t whole_ns;   /* look at which no line was unread, CLOCK_MONOTONIC; 0: none yet */
	uint32_t generation; /* the newest pieces' generation, an even number */
	uint32_t since;	     /* generation from which on the pieces have their real ages */
	bool replaces;	     /* lines read since whole_ns replace others */
	bool expected;	     /* generation + 1 was given to samples */
	struct map_change {
		uint64_t before_ns, after_ns; /* the lines were written between these looks */
		uint32_t generation;	      /* generation from after_ns on */
	} changes[MAP_AGES_CHANGES];	      /* the latest; a ring */
	uint32_t nchanges;
};

/* The time of pieces from lines that are read now. */
uint32_t map_ages_next(const struct map_ages *a);
/* The pieces were dropped, and the file will be read from its start. */
void map_ages_lost(struct map_ages *a);
/*
 * Lines were read. replaces: some name memory that older pieces have. whole: no line is left, as of
 * look_ns, when the file's size was asked for. now_ns: the time now.
 */
void map_ages_read(struct map_ages *a, bool replaces, bool whole, uint64_t look_ns,
		   uint64_t now_ns);
/*
 * The epoch of a sample taken in [from_ns, to_ns], never 0. unread: the file has lines that were
 * not read.
 */
uint32_t map_ages_epoch(struct map_ages *a, uint64_t from_ns, uint64_t to_ns, bool unread);
/*
 * The times [*ret_from, *ret_to) of the pieces that count for an epoch; 0, 0 for epoch 0: the
 * newest. false: lines that count were not read yet.
 */
bool map_ages_span(const struct map_ages *a, uint32_t epoch, uint64_t *ret_from, uint64_t *ret_to);

#endif
