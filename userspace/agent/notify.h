/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The notification protocol of systemd (sd_notify(3)): datagrams to $NOTIFY_SOCKET. Without that
 * variable the functions do nothing.
 */
#ifndef SFBPF_AGENT_NOTIFY_H
#define SFBPF_AGENT_NOTIFY_H

#include <stdint.h>

void notify_setup(void);	/* reads the environment; call it before privileges are dropped */
void notify(const char *state); /* sends a state, such as "READY=1" */
/* Call it often: sends WATCHDOG=1 if half of the interval that systemd set has passed. */
void notify_alive(void);

#endif
