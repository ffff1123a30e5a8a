/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of the lists in bpf/border: stop reasons and causes of losses. */
#include "prof/profile.h"

struct listed {
	const char *name, *help;
};

static const struct listed *stop_entry(uint8_t stop)
{
	static const struct listed list[] = {
#define STOP(id, name, help) { name, help },
#include "border/stop_reasons.def"
#undef STOP
		{ "?", "unknown" },
	};

	return &list[stop < SF_STOP_MAX ? stop : SF_STOP_MAX];
}

static const struct listed *lost_entry(unsigned int cause)
{
	static const struct listed list[] = {
#define LOST(id, name, help) { name, help },
#include "border/lost.def"
#undef LOST
		{ "?", "unknown" },
	};

	return &list[cause < SF_LOST_MAX ? cause : SF_LOST_MAX];
}

const char *profile_stop_name(uint8_t stop)
{
	return stop_entry(stop)->name;
}

const char *profile_stop_help(uint8_t stop)
{
	return stop_entry(stop)->help;
}

const char *profile_lost_name(unsigned int cause)
{
	return lost_entry(cause)->name;
}

const char *profile_lost_help(unsigned int cause)
{
	return lost_entry(cause)->help;
}
