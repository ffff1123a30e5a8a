/* SPDX-License-Identifier: BSD-2-Clause */
#include "kern/copied.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/in_root.h"
#include "base/num.h"
#include "files/text_copy.h"

#define WALL_NS (5 * NUM_S)

static const struct sf_copy none = { .start = 1, .end = 1 };

/* ---- The worker ---- */

static bool read_memory(void *ctx, uint64_t addr, void *to, size_t len)
{
	const uint32_t *pid = ctx;
	struct iovec mine = { to, len }, theirs = { (void *)(uintptr_t)addr, len };

	return process_vm_readv((pid_t)*pid, &mine, 1, &theirs, 1, 0) == (ssize_t)len;
}

static int compare(const struct worker_request *r)
{
	const struct sf_copy_need *need = r->ask;
	uint32_t pid = living_thread(need->pid);

	*(struct sf_copy *)r->answer = text_copy_find(need, r->fds[0], read_memory, &pid);
	return -1;
}

static void copied_worker_main(int sock, int mem)
{
	static const struct worker_service service = {
		.least = sizeof(struct sf_copy_need),
		.most = sizeof(struct sf_copy_need),
		.nfds = 1,
		.answer_len = sizeof(struct sf_copy),
		.reply = compare,
	};

	prctl(PR_SET_NAME, "sfbpf-copied");
	worker_serve(sock, mem, &service);
}

/* ---- The client ---- */

void copied_init(struct copied *c, int map_fd, struct fork_server *server,
		 struct worker_totals *totals)
{
	c->map_fd = map_fd;
	c->first = c->n = 0;
	worker_init(&c->worker, server, copied_worker_main, totals);
}

void copied_push(struct copied *c, const struct sf_copy_need *need, uint32_t account)
{
	uint32_t of_user = 0;

	for (uint32_t i = 0; i < c->n; i++)
		of_user += c->queue[(c->first + i) % COPIED_QUEUE].account == account;
	if (c->n < COPIED_QUEUE && of_user < COPIED_OF_USER)
		c->queue[(c->first + c->n++) % COPIED_QUEUE] = (struct copied_request){ *need,
											account };
	else
		bpf_map_delete_elem(c->map_fd, &need->key);
}

static void answer(struct copied *c, const struct sf_copy *copy)
{
	const struct sf_copy_need *need = &c->queue[c->first].need;
	bool sound = copy->start >= need->key.start && copy->start < copy->end &&
		     copy->end <= need->key.end &&
		     copy->end + copy->delta <= SF_FRAME_OFFSET_MASK &&
		     copy->start + copy->delta <= SF_FRAME_OFFSET_MASK;

	/* Not there any more: the map replaced it, and BPF asks again. */
	bpf_map_update_elem(c->map_fd, &need->key, sound ? copy : &none, BPF_EXIST);
	c->first = (c->first + 1) % COPIED_QUEUE;
	c->n--;
}

static bool ask(struct copied *c, int fd)
{
	static const struct worker_limits limits = { .wall_ns = WALL_NS };
	const struct sf_copy_need *need = &c->queue[c->first].need;

	return fd >= 0 && !worker_ask(&c->worker, &limits, need, sizeof(*need), &fd, 1);
}

bool copied_step(struct copied *c, int (*file)(void *ctx, uint32_t module), void *ctx)
{
	bool was_busy = c->worker.busy, worked = false;
	struct sf_copy copy;
	int event;

	event = worker_look(&c->worker, &copy, sizeof(copy), sizeof(copy), NULL);
	if (was_busy && event != -EAGAIN) {
		answer(c, event ? &none : &copy);
		worked = true;
	}
	while (c->n && (!c->worker.busy || c->worker.killed) &&
	       !ask(c, file(ctx, c->queue[c->first].need.module))) {
		answer(c, &none);
		worked = true;
	}
	return worked;
}

void copied_end(struct copied *c)
{
	if (c->worker.busy)
		worker_drop(&c->worker);
	else
		worker_end(&c->worker);
}
