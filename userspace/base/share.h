/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chooses the items to evict when a shared resource is full.
 *
 * Shares are max-min fair: there is a level L, as high as fits, and no user holds more than L
 * unless there is room to spare. A request counts as held by its user. Items of users above L can
 * be evicted, least recently used first. Items in use are evicted only for a user who stays below
 * L, least used first. Otherwise two working sets that do not fit would evict each other all the
 * time.
 */
#ifndef SFBPF_BASE_SHARE_H
#define SFBPF_BASE_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHARE_NO_USER UINT32_MAX

struct share_item {
	uint32_t id;	/* id given by the caller */
	uint32_t owner; /* the user who holds it */
	uint64_t size;
	uint64_t last; /* time of last use */
	uint64_t uses; /* amount of use, relative to the other items */
	bool fixed;    /* cannot be evicted, but counts as held */
};

struct share_request {
	/* The user who needs room; SHARE_NO_USER: room for any future request */
	uint32_t owner;
	uint64_t want;	    /* size to free */
	uint64_t hot_since; /* items with `last` at or after this time are in use */
};

/* The level L of shares of `total` for n demands. Sorts demand. */
uint64_t share_level(uint64_t *demand, size_t n, uint64_t total);
/*
 * Moves the items to evict to the front, in order, and returns their number. Their total size is at
 * least `want`, or all that can be evicted. -ENOMEM.
 */
long share_choose(struct share_item *items, size_t n, const struct share_request *req);

#endif
