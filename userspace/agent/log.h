/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Log lines on stderr: logfmt or JSON, or below systemd with its priority prefix and without a time. Rate-limited by message: the
 * first 5 of a minute are written, then how many were not. Thread-safe.
 */
#ifndef SFBPF_AGENT_LOG_H
#define SFBPF_AGENT_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/config.h"

void agent_log_setup(int level, int format);

/*
 * agent_log(AGENT_LOG_WARN, "send failed", "status", "%d", 500, "url", "%s", url, NULL): message, then keys, each with a format and
 * exactly one argument: an int ("%d"), uint64_t ("%lu"), double ("%g") or string ("%s"). The message is the limit's key.
 */
void agent_log(int level, const char *msg, ...) __attribute__((sentinel));
uint64_t agent_log_suppressed(void);

#endif
