/* SPDX-License-Identifier: BSD-2-Clause */
#include "sym/elf_reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/asked_child.h"
#include "base/clock.h"
#include "base/sealed_file.h"
#include "sym/elf_child.h"

struct elf_reader {
	struct asked_child child;
	struct patience *patience;
	struct elf_reader_totals totals;
	struct elf_answer answer;
};

struct elf_reader *elf_reader_new(struct fork_server *server, fork_child_fn child, struct patience *patience)
{
	struct elf_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	asked_child_init(&r->child, server, child);
	r->patience = patience;
	return r;
}

void elf_reader_free(struct elf_reader *r)
{
	if (!r)
		return;
	asked_child_end(&r->child);
	free(r);
}

bool elf_reader_has_time(const struct elf_reader *r)
{
	return r && r->patience->unhurried;
}

void elf_reader_rest(struct elf_reader *r)
{
	asked_child_rest(&r->child);
}

void elf_reader_totals(const struct elf_reader *r, struct elf_reader_totals *ret)
{
	*ret = r->totals;
	ret->died = r->child.died;
	ret->cpu_ns = asked_child_cpu_ns(&r->child);
}

/* ---- Questions ---- */

static int wait_answer(struct elf_reader *r, uint64_t until)
{
	int err = fork_receive_until(r->child.now.sock, &r->answer, sizeof(r->answer), NULL, 0, until);

	return err && err != -ETIMEDOUT ? -ECHILD : err;
}

/* Ends the child if it has to be. */
static int failed(struct elf_reader *r, int err)
{
	if (err == -ETIMEDOUT) {
		r->totals.late++;
		asked_child_end(&r->child);
	} else {
		asked_child_lose(&r->child);
	}
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
	err = asked_child_send(&r->child, what, sizeof(*what), fds, 2);
	if (!err)
		err = wait_answer(r, start + limit);
	r->child.used_ns = clock_ns(CLOCK_MONOTONIC);
	patience_spend(r->patience, owner, r->child.used_ns - start);
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
	err = symtab_read(r->child.now.mem, &head, ret);
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
