/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who gives way when something is full that several owners share.
 *
 * Fair shares are max-min: nobody holds more than a level L unless there is room for it, and L is as high as what
 * fits allows; who holds less than L is left alone. What can go is what belongs to owners above L, and what belongs to the
 * one who asks. Of that, the least recently used goes first. What was used a moment ago goes only
 * for one who is below L himself: else two working sets that do not fit together would chase each other.
 */
#ifndef SFBPF_BASE_SHARE_H
#define SFBPF_BASE_SHARE_H

#include <stddef.h>
#include <stdint.h>

#define SHARE_NOBODY UINT32_MAX

struct share_item {
	uint32_t id;		/* the caller's */
	uint32_t owner;
	uint64_t size;
	uint64_t last;		/* when it was used last */
};

struct share_ask {
	uint32_t owner;		/* who asks; SHARE_NOBODY: room is wanted for whoever comes */
	uint64_t want;		/* this much shall become free */
	uint64_t hot_since;	/* items with `last` at or after this are in use */
};

/* The level L of shares of `total`, if n owners ask for demand[]. Sorts demand. */
uint64_t share_level(uint64_t *demand, size_t n, uint64_t total);
/*
 * Chooses items to let go: moves them to the front, in the order in which they go, and returns their number. Together
 * they are as large as wanted, or all that can go. -ENOMEM.
 */
long share_choose(struct share_item *items, size_t n, const struct share_ask *ask);

#endif
