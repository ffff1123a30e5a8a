/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who gives way when something is full that several owners share.
 *
 * Fair shares are max-min: nobody holds more than a level L unless there is room for it, and L is as high as what
 * fits allows; who holds less than L is left alone. What is asked for counts as held by who asks. What can go is what
 * belongs to owners above L; of that, the least recently used goes first. What was used a moment ago goes only
 * for one who stays below L himself, or whose turn it is: else two working sets that do not fit together would chase each
 * other. Of what is in use, the least used goes first.
 *
 * Turns are for those who wait for room that nobody leaves: one at a time, owners one after the other, and of an owner's the one
 * who has waited longest.
 */
#ifndef SFBPF_BASE_SHARE_H
#define SFBPF_BASE_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHARE_NOBODY UINT32_MAX

struct share_item {
	uint32_t id;		/* the caller's */
	uint32_t owner;
	uint64_t size;
	uint64_t last;		/* when it was used last */
	uint64_t uses;		/* how much it is used, compared with the others */
	bool fixed;		/* cannot go, but counts */
	bool fresh;		/* came a moment ago: if it is in use, its own turn is not over */
};

struct share_ask {
	uint32_t owner;		/* who asks; SHARE_NOBODY: room is wanted for whoever comes */
	uint64_t want;		/* this much shall become free */
	uint64_t hot_since;	/* items with `last` at or after this are in use */
	uint64_t turn;		/* not 0: it is his turn, and items in use go, too, if that makes so much free; not `fresh` ones */
};

struct share_waiter {
	uint32_t id;		/* the caller's */
	uint64_t turn;		/* when his owner had the last turn; 0: never */
	uint64_t since;		/* when he began to wait */
};

/* The level L of shares of `total`, if n owners ask for demand[]. Sorts demand. */
uint64_t share_level(uint64_t *demand, size_t n, uint64_t total);
/*
 * Chooses items to let go: moves them to the front, in the order in which they go, and returns their number. Together
 * they are as large as wanted, or all that can go. -ENOMEM.
 */
long share_choose(struct share_item *items, size_t n, const struct share_ask *ask);
/* Whether a's turn comes before b's. */
bool share_before(const struct share_waiter *a, const struct share_waiter *b);

#endif
