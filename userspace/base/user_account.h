/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whose share of a resource a user spends. A user with a range of subordinate ids (/etc/subuid) can
 * be any of them: all ids of a range count as its first one.
 */
#ifndef SFBPF_BASE_USER_ACCOUNT_H
#define SFBPF_BASE_USER_ACCOUNT_H

#include <stddef.h>
#include <stdint.h>

struct user_range {
	uint32_t first, count;
};

/* Reads the ranges of lines NAME:FIRST:COUNT. Returns their number; others are left out. */
size_t user_ranges_parse(const char *text, struct user_range *ret, size_t most);
/* The ranges of this machine. Returns their number. */
size_t user_ranges(const struct user_range **ret);
/* Replaces the ranges of this machine by those of a text, for tests. */
void user_ranges_use(const char *text);
/* The account of a user. The ranges are read once, at the first call in any thread. */
uint32_t user_account(uint32_t uid);

#endif
