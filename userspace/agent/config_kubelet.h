/* SPDX-License-Identifier: BSD-2-Clause */
/* The keys of [kubernetes]. */
#ifndef SFBPF_AGENT_CONFIG_KUBELET_H
#define SFBPF_AGENT_CONFIG_KUBELET_H

#include "agent/config.h"

/* Checks and completes them. 0, or a negative errno with *err filled. */
int config_check_kubelet(struct agent_config *c, struct agent_config_error *err);

#endif
