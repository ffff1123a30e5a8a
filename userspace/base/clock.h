/* SPDX-License-Identifier: BSD-2-Clause */
/* Clock readings in nanoseconds. */
#ifndef SFBPF_BASE_CLOCK_H
#define SFBPF_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "base/num.h"

static inline uint64_t clock_timespec_ns(struct timespec ts)
{
	return (uint64_t)ts.tv_sec * NUM_S + (uint64_t)ts.tv_nsec;
}

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return clock_timespec_ns(ts);
}

#endif
