/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"

static struct {
	int fd;
	uint64_t watchdog_ns, last_ns;
} state = { .fd = -1 };

void notify_setup(void)
{
	const char *path = getenv("NOTIFY_SOCKET"), *usec = getenv("WATCHDOG_USEC"),
		   *pid = getenv("WATCHDOG_PID");
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	size_t len = path ? strlen(path) : 0;
	uint64_t v;

	if (!len || len >= sizeof(addr.sun_path) || (*path != '/' && *path != '@'))
		return;
	memcpy(addr.sun_path, path, len);
	if (*path == '@')
		addr.sun_path[0] = 0; /* the abstract namespace */
	state.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (state.fd >= 0 && connect(state.fd, (struct sockaddr *)&addr,
				     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len))) {
		close(state.fd);
		state.fd = -1;
	}
	if (usec && !num_u64(usec, 1, UINT64_MAX / 1000, &v) && (!pid || atol(pid) == getpid()))
		state.watchdog_ns = v * 1000;
}

void notify(const char *text)
{
	if (state.fd >= 0)
		send(state.fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void notify_alive(void)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (!state.watchdog_ns || now - state.last_ns < state.watchdog_ns / 2)
		return;
	state.last_ns = now;
	notify("WATCHDOG=1");
}
