/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of the configuration: config.c reads, config_check.c judges. */
#ifndef SFBPF_AGENT_CONFIG_INTERNAL_H
#define SFBPF_AGENT_CONFIG_INTERNAL_H

#include "agent/config.h"

/* Returns -EINVAL. */
int config_fail(struct agent_config_error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
int config_set_string(char **at, const char *value); /* 0 or -ENOMEM */

#endif
