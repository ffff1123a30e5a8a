/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/pace.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"

/* The key of hashes is random in each process. */
static uint64_t random_number(void)
{
	return hash_mix(clock_ns(CLOCK_REALTIME), (uint64_t)getpid());
}

/* A fleet that was started at once does not send at once. */
uint64_t pace_window_ns(const struct agent_config *c)
{
	uint64_t spread = c->interval_ns * c->jitter_pct / 100;

	return spread ? c->interval_ns - spread / 2 + random_number() % (spread + 1)
		      : c->interval_ns;
}

bool pace_samples(const struct agent_config *c)
{
	return (double)(random_number() % 1000000) < c->window_share * 10000;
}
