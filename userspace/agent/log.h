/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Log lines on stderr, as logfmt or JSON; for the systemd journal with a priority prefix and
 * without a time. Rate-limited by message: the first 5 in a minute are written, and the next line
 * after that minute has the number of suppressed ones. Thread-safe.
 */
#ifndef SFBPF_AGENT_LOG_H
#define SFBPF_AGENT_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/config.h"

void agent_log_setup(enum agent_log_level level, enum agent_log_format format);

/*
 * agent_log(AGENT_LOG_WARN, "send failed", "status", "%d", 500, "url", "%s", url, NULL): the
 * message, then keys, each with a format and exactly one argument: int ("%d"), uint64_t ("%lu"),
 * double ("%g") or string ("%s"). The rate limit applies to equal messages.
 */
void agent_log(int level, const char *msg, ...) __attribute__((sentinel));
uint64_t agent_log_suppressed(void);

#endif
