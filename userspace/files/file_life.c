/* SPDX-License-Identifier: BSD-2-Clause */
#include "files/file_life.h"

#define BIT(state) (1u << (state))
/* BPF has asked for its tables, and no opener has been asked yet. */
#define WAITING	   (BIT(FILE_NEW) | BIT(FILE_UNREACHABLE) | BIT(FILE_FULL) | BIT(FILE_EVICTED))
#define ANY	   (BIT(FILE_STATES) - 1)

static const struct transition {
	uint32_t from; /* a bit for each state */
	enum file_state to;
	uint32_t retry_ms;
} transitions[FILE_EVENTS] = {
	[EVENT_ASKED] = { WAITING, FILE_OPENING, 0 },
	[EVENT_OPENED] = { BIT(FILE_OPENING), FILE_OPEN, 0 },
	[EVENT_STILL_OPEN] = { WAITING, FILE_OPEN, 0 },
	[EVENT_SENT] = { BIT(FILE_OPEN), FILE_CONVERTING, 0 },
	[EVENT_PUT_BACK] = { BIT(FILE_CONVERTING), FILE_OPEN, 0 },
	[EVENT_PUBLISHED] = { BIT(FILE_CONVERTING), FILE_PUBLISHED, 0 },
	[EVENT_NO_ROOM] = { BIT(FILE_OPEN) | BIT(FILE_CONVERTING), FILE_FULL, 1000 },
	[EVENT_GONE] = { BIT(FILE_OPENING) | BIT(FILE_CONVERTING), FILE_UNREACHABLE, 10 },
	[EVENT_NO_ANSWER] = { WAITING | BIT(FILE_OPENING), FILE_UNREACHABLE, 60000 },
	[EVENT_BLOCKED] = { WAITING, FILE_UNREACHABLE, 2000 },
	[EVENT_NO_TABLES] = { BIT(FILE_CONVERTING), FILE_NO_TABLES, 0 },
	[EVENT_NOT_ELF] = { BIT(FILE_CONVERTING), FILE_NOT_ELF, 0 },
	[EVENT_GIVEN_UP] = { WAITING | BIT(FILE_OPENING) | BIT(FILE_OPEN) | BIT(FILE_CONVERTING),
			     FILE_FAILED, 0 },
	[EVENT_EVICTED] = { BIT(FILE_PUBLISHED), FILE_EVICTED, 0 },
	[EVENT_ID_REUSED] = { ANY & ~BIT(FILE_RETIRED), FILE_RETIRED, 0 },
};

static const struct {
	enum sf_module_state bpf;
	enum file_known known;
} states[FILE_STATES] = {
	[FILE_NEW] = { SF_MOD_LOADING, KNOWN_ID },
	[FILE_OPENING] = { SF_MOD_LOADING, KNOWN_ID },
	[FILE_OPEN] = { SF_MOD_LOADING, KNOWN_ID },
	[FILE_CONVERTING] = { SF_MOD_LOADING, KNOWN_ID },
	[FILE_PUBLISHED] = { SF_MOD_READY, KNOWN_TABLES },
	[FILE_EVICTED] = { SF_MOD_RETRY, KNOWN_TABLES },
	[FILE_FULL] = { SF_MOD_FULL, KNOWN_FILE },
	[FILE_UNREACHABLE] = { SF_MOD_RETRY, KNOWN_PATH },
	[FILE_NO_TABLES] = { SF_MOD_NO_TABLE, KNOWN_FILE },
	[FILE_NOT_ELF] = { SF_MOD_JIT, KNOWN_FILE },
	[FILE_FAILED] = { SF_MOD_NO_TABLE, KNOWN_FILE },
	[FILE_RETIRED] = { SF_MOD_LOADING, KNOWN_ID },
};

bool file_life_next(enum file_state from, enum file_event event, enum file_state *ret,
		    uint32_t *ret_retry_ms)
{
	const struct transition *t = &transitions[event];

	if (!(t->from & BIT(from)))
		return false;
	*ret = t->to;
	*ret_retry_ms = t->retry_ms;
	return true;
}

enum sf_module_state file_life_bpf(enum file_state state)
{
	return states[state].bpf;
}

enum file_known file_life_known(enum file_state state)
{
	return states[state].known;
}
