/* SPDX-License-Identifier: BSD-2-Clause */
/* systemd's notification protocol (sd_notify(3)): datagrams to $NOTIFY_SOCKET. Without it, all of this does nothing. */
#ifndef SFBPF_AGENT_NOTIFY_H
#define SFBPF_AGENT_NOTIFY_H

#include <stdint.h>

void notify_setup(void);		/* reads the environment; before privileges are dropped */
void notify(const char *state);		/* "READY=1" */
void notify_alive(void);		/* WATCHDOG=1, at half of the interval that systemd asked for */

#endif
