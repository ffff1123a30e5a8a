/* SPDX-License-Identifier: BSD-2-Clause */
/* What is random about an agent's windows: how long one is, and whether it is sampled. */
#ifndef SFBPF_AGENT_PACE_H
#define SFBPF_AGENT_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/config.h"

/* Nanoseconds: `interval`, more or less by half of `jitter`. */
uint64_t pace_window_ns(const struct agent_config *c);
/* True for window-share of the windows. */
bool pace_samples(const struct agent_config *c);

#endif
