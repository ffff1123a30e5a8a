/* SPDX-License-Identifier: BSD-2-Clause */
#include "debuginfo/frame_debug.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/radix.h"
#include "base/vec.h"

struct place {
	uint64_t key; /* module << SF_FRAME_MODULE_SHIFT | offset */
	uint64_t pid;
};

struct frame_debug {
	struct place *wanted;
	size_t n, cap;
};

/* The work for one file. */
struct part {
	struct module *m;
	const struct frame_debug_opts *opts;
	struct elf_facts facts; /* facts of the mapped file; they convert offsets to addresses */
	uint64_t *addrs;	/* ascending */
	uint64_t *offsets;	/* parallel */
	size_t n;
	uint32_t pid;
};

struct frame_debug *frame_debug_new(void)
{
	return calloc(1, sizeof(struct frame_debug));
}

void frame_debug_free(struct frame_debug *fd)
{
	if (!fd)
		return;
	free(fd->wanted);
	free(fd);
}

int frame_debug_want(struct frame_debug *fd, uint32_t module, uint64_t offset, uint32_t pid)
{
	if (vec_reserve(&fd->wanted, &fd->cap, fd->n + 1, sizeof(*fd->wanted)))
		return -ENOMEM;
	fd->wanted[fd->n++] = (struct place){
		(uint64_t)module << SF_FRAME_MODULE_SHIFT | (offset & SF_FRAME_OFFSET_MASK), pid
	};
	return 0;
}

static int found(void *ctx, size_t i, const struct dwarf_frame *frames, size_t n)
{
	const struct part *p = ctx;

	return p->opts->found(p->opts->ctx, p->m, p->offsets[i], frames, n);
}

struct address {
	uint64_t addr, offset;
};

/* The addresses of the places, ascending. Segments may be in another order in the file. */
static int place_addresses(struct part *p, const struct place *places, size_t n)
{
	struct address *list = malloc(n * sizeof(*list));
	int err = list ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !err; i++) {
		uint64_t offset = places[i].key & SF_FRAME_OFFSET_MASK;

		const struct module_code *code = module_code_at(p->facts.code, p->facts.ncode,
								offset);

		if ((p->n && list[p->n - 1].offset == offset) || !code)
			continue;
		list[p->n++] = (struct address){ code->vaddr + (offset - code->off), offset };
	}
	if (!err)
		err = radix_sort(list, p->n, sizeof(*list));
	p->addrs = malloc((p->n + 1) * sizeof(*p->addrs));
	p->offsets = malloc((p->n + 1) * sizeof(*p->offsets));
	if (!p->addrs || !p->offsets)
		err = -ENOMEM;
	for (size_t i = 0; i < p->n && !err; i++) {
		p->addrs[i] = list[i].addr;
		p->offsets[i] = list[i].offset;
	}
	free(list);
	return err;
}

static struct debug_query query_of(const struct part *p, const struct elf_facts *facts,
				   const char *path)
{
	return (struct debug_query){
		.reader = p->opts->reader,
		.paths = p->opts->paths,
		.facts = facts,
		.path = path,
		.owner = allowance_owner(p->m->fd),
		.pid = p->pid,
		.fetch = p->opts->fetch,
	};
}

/*
 * Files of root and of the caller may take their time. Files of other users are charged to the
 * allowance.
 */
static int work_within(struct part *p, const struct dwarf_job *job)
{
	struct allowance *allowance = p->opts->reader->allowance;
	struct dwarf_limits limits = p->opts->limits;
	uint32_t owner = allowance_owner(job->fd);
	bool free = !job->foreign && (!owner || owner == allowance->caller);
	uint64_t start = clock_ns(CLOCK_MONOTONIC);
	int err;

	if (free)
		allowance_hold(allowance);
	else if (!(limits.most_ns = allowance_have(allowance, owner)))
		return -ETIMEDOUT;
	err = dwarf_work(job, &limits, found, p);
	if (free)
		allowance_go_on(allowance);
	else
		allowance_spend(allowance, owner, clock_ns(CLOCK_MONOTONIC) - start);
	return err;
}

/* fd, facts: the file with DWARF and its facts. */
static int work(struct part *p, int fd, const struct elf_facts *facts, const char *path,
		bool foreign)
{
	struct debug_query q = query_of(p, facts, path);
	struct dwarf_job job = {
		.fd = fd,
		.alt_fd = -1,
		.inlined = p->opts->inlined,
		.lines = p->opts->lines,
		.addrs = p->addrs,
		.n = p->n,
		.foreign = foreign,
	};
	struct debug_file alt;
	int err;

	if (!debug_file_find_alt(&q, &alt))
		job.alt_fd = alt.fd;
	job.root_fd = foreign ? debug_file_root(p->opts->paths, p->pid) : -ENOENT;
	/* File names in the DWARF are valid only below that root. */
	if (job.root_fd < 0 && job.root_fd != -ENOENT)
		err = job.root_fd;
	else
		err = work_within(p, &job);
	if (job.root_fd >= 0)
		close(job.root_fd);
	debug_file_close(&alt);
	return err;
}

/* -ENOENT: the file has no DWARF. */
static int read_part(struct part *p, const struct place *places, size_t n)
{
	struct debug_query q = query_of(p, &p->facts, p->m->path);
	struct debug_file debug = { .fd = -1 };
	bool own = p->facts.dwarf;
	int err = own ? 0 : debug_file_find_dwarf(&q, &debug);

	if (!err)
		err = place_addresses(p, places, n);
	if (!err && own)
		err = work(p, p->m->fd, &p->facts, p->m->path,
			   !debug_file_is_at(p->opts->paths, p->m->path, p->m->fd));
	else if (!err)
		err = work(p, debug.fd, &debug.facts, debug.path, debug.foreign);
	debug_file_close(&debug);
	free(p->addrs);
	free(p->offsets);
	return err;
}

int frame_debug_read(struct frame_debug *fd, struct modules *ms,
		     const struct frame_debug_opts *opts, unsigned int *ret_files)
{
	size_t from = 0, to;
	int err = fd->n ? radix_sort(fd->wanted, fd->n, sizeof(*fd->wanted)) : 0;

	*ret_files = 0;
	for (; from < fd->n && !err; from = to) {
		uint32_t id = (uint32_t)(fd->wanted[from].key >> SF_FRAME_MODULE_SHIFT);
		struct part p = { .m = modules_find(ms, id),
				  .opts = opts,
				  .pid = (uint32_t)fd->wanted[from].pid };
		int rc;

		for (to = from; to < fd->n && fd->wanted[to].key >> SF_FRAME_MODULE_SHIFT == id;
		     to++)
			;
		if (opts->limits.stopped && opts->limits.stopped())
			break;
		if (!p.m || p.m->known < KNOWN_FILE || p.m->fd < 0 ||
		    elf_reader_facts(opts->reader, p.m->fd, &p.facts) ||
		    elf_reader_check(opts->reader, p.m))
			continue;
		rc = read_part(&p, &fd->wanted[from], to - from);
		if (rc == -ENOMEM)
			err = rc;
		else if (rc && rc != -ENOENT && rc != -EINTR && opts->failed)
			opts->failed(opts->ctx, p.m, rc);
		*ret_files += rc != -ENOENT;
	}
	fd->n = 0;
	return err;
}
