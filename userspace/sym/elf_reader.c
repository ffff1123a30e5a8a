/* SPDX-License-Identifier: BSD-2-Clause */
#include "sym/elf_reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/sealed_file.h"
#include "sym/elf_child.h"

#define IDLE_NS (3 * NUM_S)

struct elf_reader {
	struct fork_server *server;
	fork_child_fn fn;
	struct fork_child child;
	struct patience *patience;
	uint64_t used_ns;	/* the last question, CLOCK_MONOTONIC */
	struct elf_reader_totals totals;
	struct elf_answer answer;
};

struct elf_reader *elf_reader_new(struct fork_server *server, fork_child_fn child, struct patience *patience)
{
	struct elf_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->server = server;
	r->fn = child;
	r->child = FORK_CHILD_NONE;
	r->patience = patience;
	return r;
}

static void end_child(struct elf_reader *r)
{
	r->totals.cpu_ns += fork_child_cpu_ns(&r->child);
	fork_server_end(r->server, &r->child);
}

void elf_reader_free(struct elf_reader *r)
{
	if (!r)
		return;
	end_child(r);
	free(r);
}

bool elf_reader_has_time(const struct elf_reader *r)
{
	return r && r->patience->unhurried;
}

void elf_reader_rest(struct elf_reader *r)
{
	if (r->child.pid && clock_ns(CLOCK_MONOTONIC) - r->used_ns > IDLE_NS)
		end_child(r);
}

void elf_reader_totals(const struct elf_reader *r, struct elf_reader_totals *ret)
{
	*ret = r->totals;
	ret->cpu_ns += fork_child_cpu_ns(&r->child);
}

/* ---- Questions ---- */

/* -ECHILD: there can be no child. */
static int send_ask(struct elf_reader *r, const struct elf_ask *ask, const int *fds)
{
	for (int tries = 0; tries < 2; tries++) {
		if (!r->child.pid && fork_server_child(r->server, r->fn, &r->child))
			return -ECHILD;
		if (!fork_send(r->child.sock, ask, sizeof(*ask), fds, 2, MSG_DONTWAIT))
			return 0;
		/* It had ended while it was idle. */
		r->totals.died++;
		end_child(r);
	}
	return -ECHILD;
}

static int wait_answer(struct elf_reader *r, uint64_t until)
{
	int err = fork_receive_until(r->child.sock, &r->answer, sizeof(r->answer), NULL, 0, until);

	return err && err != -ETIMEDOUT ? -ECHILD : err;
}

/* Ends the child if it has to be. */
static int failed(struct elf_reader *r, int err)
{
	if (err == -ETIMEDOUT)
		r->totals.late++;
	else if (r->child.pid)
		r->totals.died++;
	end_child(r);
	return err;
}

static int ask_once(struct elf_reader *r, const struct elf_ask *what, const int *fds)
{
	uint32_t owner = patience_owner(fds[0]);
	uint64_t limit = patience_have(r->patience, owner), start = clock_ns(CLOCK_MONOTONIC);
	int err;

	if (!limit) {
		r->totals.deferred++;
		return -EAGAIN;
	}
	err = send_ask(r, what, fds);
	if (!err)
		err = wait_answer(r, start + limit);
	r->used_ns = clock_ns(CLOCK_MONOTONIC);
	patience_spend(r->patience, owner, r->used_ns - start);
	if (!err && (r->answer.question != what->question || r->answer.err > 0 || r->answer.err == -EAGAIN || r->answer.err == -ECHILD))
		err = -ECHILD;
	if (err)
		failed(r, err);
	/* It may be had when there is more time. */
	return err == -ETIMEDOUT && limit < PATIENCE_MOST_NS ? -EAGAIN : err ? err : r->answer.err;
}

static int ask(struct elf_reader *r, const struct elf_ask *what, const int *fds)
{
	int err;

	if (!r)
		return -ENOENT;
	err = ask_once(r, what, fds);
	/* The child may have been ended by somebody else. */
	if (err == -ECHILD)
		err = ask_once(r, what, fds);
	if (err == -ECHILD || err == -ETIMEDOUT)
		r->totals.failed++;
	return err;
}

int elf_reader_facts(struct elf_reader *r, int fd, struct elf_facts *ret)
{
	const struct elf_ask what = { .question = ELF_FACTS };
	int err = ask(r, &what, (const int[]){ fd, fd });

	if (!err && !elf_facts_sound(&r->answer.facts)) {
		r->totals.failed++;
		return failed(r, -ECHILD);
	}
	if (!err)
		*ret = r->answer.facts;
	return err;
}

int elf_reader_crc(struct elf_reader *r, int fd, uint32_t *ret)
{
	const struct elf_ask what = { .question = ELF_CRC };
	int err = ask(r, &what, (const int[]){ fd, fd });

	if (!err)
		*ret = r->answer.crc;
	return err;
}

int elf_reader_symbols(struct elf_reader *r, int fd, int debug_fd, struct symtab **ret)
{
	/* A copy takes memory, and is not kept for the names in it. */
	bool copy = debug_fd >= 0 && sealed_file_is(debug_fd);
	const struct elf_ask what = { .question = ELF_SYMBOLS, .debug = debug_fd >= 0, .all_names = copy };
	int err = ask(r, &what, (const int[]){ fd, debug_fd >= 0 ? debug_fd : fd });
	struct symtab head = { .names = NULL };

	if (err)
		return err;
	head.n = r->answer.n;
	head.names_len = r->answer.names_len;
	head.cut = r->answer.cut;
	memcpy(head.str, r->answer.str, sizeof(head.str));
	err = symtab_read(r->child.mem, &head, ret);
	if (err == -EBADMSG) {
		r->totals.failed++;
		return failed(r, -ECHILD);
	}
	if (!err) {
		(*ret)->debug_fd = copy ? -1 : debug_fd;
		r->totals.cut += head.cut;
	}
	return err;
}

int elf_reader_name(struct elf_reader *r, int fd, const struct symtab *t, const struct symtab_hit *hit, char *buf, size_t cap)
{
	struct elf_ask what = { .question = ELF_NAME };
	bool debug;
	int err;

	if (!symtab_name_place(t, hit, &what.off, &what.len, &debug))
		return symtab_name(t, hit, buf, cap) > 0 ? 0 : -ENOENT;
	what.debug = debug;
	err = ask(r, &what, (const int[]){ fd, debug ? t->debug_fd : fd });
	if (!err && !memchr(r->answer.name, 0, sizeof(r->answer.name))) {
		r->totals.failed++;
		return failed(r, -ECHILD);
	}
	if (!err)
		snprintf(buf, cap, "%s", r->answer.name);
	return err;
}
