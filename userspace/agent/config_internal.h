/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of the configuration: config.c reads, config_check.c judges. */
#ifndef SFBPF_AGENT_CONFIG_INTERNAL_H
#define SFBPF_AGENT_CONFIG_INTERNAL_H

#include "agent/config.h"

/* Returns -EINVAL. */
int config_fail(struct agent_config_error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
int config_set_string(char **at, const char *value); /* 0 or -ENOMEM */
/* Adds a list "name=value,name=value" with percent-escapes. 0, -EINVAL or -ENOMEM. */
int config_pairs_from(struct agent_pairs *p, bool headers, const char *list);
/* key: for the message. */
int config_check_url(const char *key, const char *url, struct agent_config_error *err);
int config_check_readable(const char *key, const char *path, struct agent_config_error *err);
/* The keys of [kubernetes]. */
int config_check_kubelet(struct agent_config *c, struct agent_config_error *err);

#endif
