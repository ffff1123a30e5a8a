/* SPDX-License-Identifier: BSD-2-Clause */
/* Labels, and headers of requests: names with a value each. */
#ifndef SFBPF_AGENT_CONFIG_PAIRS_H
#define SFBPF_AGENT_CONFIG_PAIRS_H

#include "agent/config.h"

/* What is wrong with a label, or with a header; NULL: nothing. */
const char *config_pair_error(bool header, const char *name, size_t len, const char *value);
struct agent_pair *config_find_pair(const struct agent_pairs *p, const char *name, size_t len);
/* Sets the value of name, replacing an earlier one. 0 or -ENOMEM. */
int config_set_pair(struct agent_pairs *p, const char *name, size_t len, const char *value);
/*
 * Adds "a=1,b=x%20y": the W3C baggage format of OTEL_EXPORTER_OTLP_HEADERS and
 * OTEL_RESOURCE_ATTRIBUTES. 0, -EINVAL or -ENOMEM.
 */
int config_pairs_from(struct agent_pairs *p, bool headers, const char *list);

#endif
