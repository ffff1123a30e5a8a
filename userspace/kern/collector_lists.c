/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of files that processes have mapped, from BPF iterators. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "kern/collector_internal.h"
#include "kern/iter_reader.h"

#define COMMAND_MS 1000 /* that a command waits for tables */
/*
 * The most that the start waits for tables. An emulated machine needs 15 s for honest files; other
 * users' files must not keep anybody from profiling. What is not loaded by then is `not_loaded` in
 * stacks until the loader's thread has loaded it.
 */
#define PRELOAD_MS 20000

struct listing {
	struct loader *loader;
	int (*take)(struct loader *l, const struct sf_need *need);
	int n;
};

static void take_listed(void *ctx, const void *record)
{
	struct listing *l = ctx;

	l->take(l->loader, record);
	l->n++;
}

/*
 * Attaches an iterator to the mappings of one process; pid 0: of all. The members of the options
 * are set one by one: libbpf refuses options whose padding is not zero, and an initializer that
 * names all members may leave it as it was.
 */
static struct bpf_link *attach_iterator(struct bpf_program *program, uint32_t pid)
{
	union bpf_iter_link_info info = { .task = { .pid = pid } };
	struct bpf_iter_attach_opts opts;

	memset(&opts, 0, sizeof(opts));
	opts.sz = sizeof(opts);
	opts.link_info = &info;
	opts.link_info_len = sizeof(info);
	return bpf_program__attach_iter(program, pid ? &opts : NULL);
}

/*
 * Passes every file that a process has mapped executable, and that is new, to take(). Returns their
 * number. pid 0: all processes. If the list ends early, the missing files are loaded when they are
 * sampled.
 */
static int list_mapped(struct collector *c, uint32_t pid,
		       int (*take)(struct loader *l, const struct sf_need *need))
{
	struct bpf_link *link = attach_iterator(c->skel->progs.mapped_files, pid);
	struct listing listing = { .loader = c->loader, .take = take };
	int fd;

	if (!link)
		return 0;
	fd = bpf_iter_create(bpf_link__fd(link));
	if (fd >= 0) {
		iter_read(c->opts.servers->openers, fd, sizeof(struct sf_need), take_listed,
			  &listing, c->opts.stopped, &c->lists);
		close(fd);
	}
	bpf_link__destroy(link);
	return listing.n;
}

int collector_preload(struct collector *c)
{
	int n;

	loader_load_by(c->loader, clock_ns(CLOCK_MONOTONIC) + PRELOAD_MS * NUM_MS);
	n = list_mapped(c, 0, loader_request);
	loader_settle(c->loader, c->opts.stopped);
	return n;
}

void collector_preload_range(struct collector *c, uint32_t pid, uint64_t start, uint64_t len)
{
	c->skel->bss->list_start = start;
	c->skel->bss->list_len = len;
	loader_load_by(c->loader, clock_ns(CLOCK_MONOTONIC) + COMMAND_MS * NUM_MS);
	list_mapped(c, pid, loader_request);
	c->skel->bss->list_len = 0;
	loader_settle(c->loader, c->opts.stopped);
}

void collector_look(struct collector *c, uint32_t pid)
{
	list_mapped(c, pid, loader_push);
}

int collector_opened_file(void *ctx, pid_t pid)
{
	struct collector *c = ctx;
	struct bpf_link *link = attach_iterator(c->skel->progs.opened_file, (uint32_t)pid);
	int fd = link ? bpf_iter_create(bpf_link__fd(link)) : -errno;

	bpf_link__destroy(link);
	return fd;
}

/* Needs an iterator over the files of one process (kernel 6.1): this one keeps all files open. */
long collector_list_unmapped(void *ctx, uint32_t *ids, size_t cap)
{
	struct collector *c = ctx;
	struct bpf_link *link = attach_iterator(c->skel->progs.unmapped_files, (uint32_t)getpid());
	size_t have = 0;
	ssize_t got;
	int fd;

	if (!link)
		return -errno;
	fd = bpf_iter_create(bpf_link__fd(link));
	while (fd >= 0 && have < cap * sizeof(*ids) &&
	       (got = read(fd, (char *)ids + have, cap * sizeof(*ids) - have)) > 0)
		have += (size_t)got;
	if (fd >= 0)
		close(fd);
	bpf_link__destroy(link);
	return fd < 0 ? fd : (long)(have / sizeof(*ids));
}
