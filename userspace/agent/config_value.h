/* SPDX-License-Identifier: BSD-2-Clause */
/* Single values of the configuration. */
#ifndef SFBPF_AGENT_CONFIG_VALUE_H
#define SFBPF_AGENT_CONFIG_VALUE_H

#include "agent/config.h"

/* Returns -EINVAL. */
int config_fail(struct agent_config_error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
int config_set_string(char **at, const char *value); /* 0 or -ENOMEM */
bool config_has_control(const char *s);		     /* control characters */
/* key: for the message. */
int config_check_url(const char *key, const char *url, struct agent_config_error *err);
int config_check_readable(const char *key, const char *path, struct agent_config_error *err);

#endif
