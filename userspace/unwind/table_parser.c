/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/table_parser.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "unwind/table_entry.h"

void table_parser_init(struct table_parser *p, const struct table_parser_opts *opts)
{
	*p = (struct table_parser){ .opts = *opts, .child = FORK_CHILD_NONE };
}

uint64_t table_parser_cpu_ns(const struct table_parser *p)
{
	return p->spent_ns + fork_child_cpu_ns(&p->child);
}

int table_parser_sock(const struct table_parser *p)
{
	return p->child.pid ? p->child.sock : -1;
}

static void end_child(struct table_parser *p)
{
	p->spent_ns += fork_child_cpu_ns(&p->child);
	fork_server_end(p->opts.server, &p->child);
	p->busy = false;
}

void table_parser_end(struct table_parser *p, uint64_t idle_since)
{
	if (p->child.pid && (!idle_since || (!p->busy && p->since_ns < idle_since)))
		end_child(p);
}

static void set_busy(struct table_parser *p, bool busy)
{
	p->busy = busy;
	p->keyed = false;
	p->since_ns = clock_ns(CLOCK_MONOTONIC);
}

int table_parser_file(struct table_parser *p, const struct table_ask *ask, int fd)
{
	int err;

	for (int tries = 0; tries < 2; tries++) {
		bool fresh = !p->child.pid;

		err = fresh ? fork_server_child(p->opts.server, &p->child) : 0;
		if (!err && fresh)
			err = fork_send(p->child.sock, &p->opts.limits, sizeof(p->opts.limits), NULL, 0, MSG_DONTWAIT);
		if (!err)
			err = fork_send(p->child.sock, ask, sizeof(*ask), &fd, 1, MSG_DONTWAIT);
		if (!err) {
			p->cpu_ns = fork_child_cpu_ns(&p->child);
			set_busy(p, true);
			return 0;
		}
		if (!p->child.pid)
			return err;
		/* It had ended while it was idle. */
		p->died++;
		end_child(p);
	}
	return err;
}

void table_parser_go_on(struct table_parser *p, bool convert)
{
	const struct table_ask ask = { .message = convert ? TABLE_CONVERT : TABLE_SKIP };

	if (!fork_send(p->child.sock, &ask, sizeof(ask), NULL, 0, MSG_DONTWAIT))
		p->busy = convert;
	if (!p->busy)
		set_busy(p, false);
}

static bool sound(const struct table_parser *p, const struct table_answer *a)
{
	if (!p->busy || a->key.build_id_len > sizeof(a->key.build_id) || a->err > 0)
		return false;
	return a->message == TABLE_LARGE || a->message == TABLE_DONE || (a->message == TABLE_KEYED && !p->keyed);
}

enum table_event table_parser_look(struct table_parser *p, struct table_answer *ret)
{
	uint64_t wall;
	int err;

	if (!p->child.pid)
		return TABLE_NOTHING;
	err = fork_receive(p->child.sock, ret, sizeof(*ret), NULL, 0, MSG_DONTWAIT);
	if (!err && sound(p, ret)) {
		p->keyed = ret->message == TABLE_KEYED;
		if (!p->keyed)
			set_busy(p, false);
		return TABLE_ANSWERED;
	}
	if (err != -EAGAIN) {
		p->died++;
		end_child(p);
		return TABLE_DIED;
	}
	wall = clock_ns(CLOCK_MONOTONIC) - p->since_ns;
	if (!p->busy || (wall < p->opts.wall_ns && (wall < p->opts.cpu_ns || fork_child_cpu_ns(&p->child) - p->cpu_ns < p->opts.cpu_ns)))
		return TABLE_NOTHING;
	p->late++;
	end_child(p);
	return TABLE_LATE;
}

int table_parser_tables(struct table_parser *p, const struct table_answer *a, uint64_t most, const struct pack_space *space, struct pack_result *ret)
{
	const struct table_entry_mark any = { .sign = NULL };
	int err = a->bytes > most ? -EBADMSG : table_entry_read(p->child.mem, a->bytes, &any, space, ret);

	if (err == -EBADMSG) {
		p->died++;
		end_child(p);
	}
	return err;
}
