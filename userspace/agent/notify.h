/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The notification protocol of systemd (sd_notify(3)): datagrams to $NOTIFY_SOCKET. Without that
 * variable the functions do nothing.
 */
#ifndef SFBPF_AGENT_NOTIFY_H
#define SFBPF_AGENT_NOTIFY_H

#include <stdint.h>

void notify_setup(void);	/* reads the environment; call it before privileges are dropped */
void notify(const char *state); /* "READY=1" */
/* Sends WATCHDOG=1 at half of the interval that systemd set */
void notify_alive(void);

#endif
