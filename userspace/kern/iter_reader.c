/* SPDX-License-Identifier: BSD-2-Clause */
#include "kern/iter_reader.h"

#include <errno.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/num.h"

#define SILENT_MS 2000		/* without a use of the CPU */

struct message {
	uint32_t last;			/* bool: there are no more, and this is none */
	_Alignas(uint64_t) uint8_t record[ITER_RECORD_MAX];
};

/* A record at a time: more would be waited for, and these are not asked for again soon. */
static void iter_child_main(int sock, int mem)
{
	struct message m = { .last = 0 };
	uint32_t size;
	ssize_t got;
	int fd;

	(void)mem;
	prctl(PR_SET_NAME, "sfbpf-walk");
	if (fork_receive(sock, &size, sizeof(size), &fd, 1, 0) || !size || size > sizeof(m.record))
		_exit(1);
	/* EAGAIN: a million mappings, and nothing new in them. */
	while ((got = read(fd, m.record, size)) == (ssize_t)size || (got < 0 && errno == EAGAIN))
		if (got > 0 && fork_send(sock, &m, sizeof(m), NULL, 0, 0))
			_exit(1);
	m.last = 1;
	_exit(got || fork_send(sock, &m, sizeof(m), NULL, 0, 0));
}

static int take_all(const struct fork_child *child, void (*take)(void *ctx, const void *record), void *ctx)
{
	struct message m;
	int err;

	do {
		err = fork_receive(child->sock, &m, sizeof(m), NULL, 0, MSG_DONTWAIT);
		/* There may be a lot to look through. */
		if (err == -EAGAIN && fork_child_wait(child, child->sock, SILENT_MS, SILENT_MS * NUM_MS, UINT64_MAX))
			return -ETIMEDOUT;
		if (!err && !m.last)
			take(ctx, m.record);
	} while (err == -EAGAIN || (!err && !m.last));
	return err ? -ECHILD : 0;
}

int iter_read(struct fork_server *server, int iter_fd, size_t size, void (*take)(void *ctx, const void *record), void *ctx)
{
	uint32_t ask = (uint32_t)size;
	struct fork_child child;
	int err = fork_server_child(server, iter_child_main, &child);

	if (!err)
		err = fork_send(child.sock, &ask, sizeof(ask), &iter_fd, 1, MSG_DONTWAIT);
	if (!err)
		err = take_all(&child, take, ctx);
	fork_server_end(server, &child);
	return !err || err == -ETIMEDOUT ? err : -ECHILD;
}
