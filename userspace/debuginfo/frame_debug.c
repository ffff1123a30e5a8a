/* SPDX-License-Identifier: BSD-2-Clause */
#include "debuginfo/frame_debug.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/radix.h"
#include "base/vec.h"
#include "elf/go_lines.h"

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
static int read_dwarf(struct part *p, const struct place *places, size_t n)
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

/* ---- Go ---- */

#define GO_ANSWERS_MAX (32u << 20) /* bytes of all answers about a file */

_Static_assert(GO_FRAMES_MAX <= DWARF_MAX_CHAIN, "");

/* Emits the frames of one place as the options want them. */
static int tell_go(struct part *p, uint64_t offset, const struct go_places *got, uint32_t at,
		   uint32_t n)
{
	bool inlined = p->opts->go || p->opts->inlined, lines = p->opts->go || p->opts->lines;
	struct dwarf_frame frames[GO_FRAMES_MAX];

	for (uint32_t i = 0; i < n; i++) {
		const struct go_place *v = &got->v[at + i];

		frames[i] = (struct dwarf_frame){
			.name = got->text[v->name] ? got->text + v->name : NULL,
			.file = lines && got->text[v->file] ? got->text + v->file : NULL,
			.line = lines ? v->line : 0,
			.start_line = v->start_line,
		};
	}
	/* Without inlined functions, the function itself has the line of the address. */
	if (!inlined) {
		frames[0].name = frames[n - 1].name;
		frames[0].start_line = frames[n - 1].start_line;
		n = 1;
	}
	return p->opts->found(p->opts->ctx, p->m, offset, frames, n);
}

/* Collects the next offsets of the places, each once. Moves *at to the place after them. */
static size_t next_offsets(const struct place *places, size_t n, size_t *at,
			   uint64_t ret[GO_PLACES_ASKED])
{
	size_t count = 0;

	for (; *at < n; ++*at) {
		uint64_t offset = places[*at].key & SF_FRAME_OFFSET_MASK;

		if (count && ret[count - 1] == offset)
			continue;
		if (count == GO_PLACES_ASKED)
			break;
		ret[count++] = offset;
	}
	return count;
}

/* Emits an answer. Moves the places that it has nothing about to the end of the first *kept. */
static int take_go(struct part *p, const uint64_t *offsets, size_t n, const struct go_places *got,
		   struct place *places, size_t *kept)
{
	uint32_t at = 0, end;
	int err = 0;

	for (size_t i = 0; i < n && !err; i++, at = end) {
		for (end = at; end < got->n && got->v[end].at == i; end++)
			;
		if (end > at)
			err = tell_go(p, offsets[i], got, at, end - at);
		else
			places[(*kept)++] = (struct place){
				(uint64_t)p->m->id << SF_FRAME_MODULE_SHIFT | offsets[i], p->pid
			};
	}
	return err;
}

/*
 * Reads Go's table for the places, and leaves those that it does not know, *n of them. 0; -ENOENT:
 * not a Go program; or another error.
 */
static int read_go(struct part *p, struct place *places, size_t *n)
{
	uint64_t offsets[GO_PLACES_ASKED], bytes = 0;
	size_t at = 0, kept = 0, count;
	struct go_places got;
	int err = 0;

	while (at < *n && !err && bytes < GO_ANSWERS_MAX) {
		size_t from = at;

		count = next_offsets(places, *n, &at, offsets);
		err = elf_reader_go(p->opts->reader, p->m->fd, offsets, count, &got);
		if (err) {
			at = from;
			break;
		}
		err = elf_reader_check(p->opts->reader, p->m);
		if (!err)
			err = take_go(p, offsets, count, &got, places, &kept);
		bytes += got.n * sizeof(*got.v) + got.text_len;
		go_places_free(&got);
	}
	for (; at < *n; at++)
		places[kept++] = places[at];
	*n = kept;
	return err;
}

/* 0; -ENOENT: the file has neither; or another error. */
static int read_part(struct part *p, struct place *places, size_t n)
{
	int go = read_go(p, places, &n), err = -ENOENT;

	if (go == -ENOMEM)
		return go;
	if (n && (p->opts->inlined || p->opts->lines) && dwarf_supported() &&
	    !elf_reader_facts(p->opts->reader, p->m->fd, &p->facts) &&
	    !elf_reader_check(p->opts->reader, p->m))
		err = read_dwarf(p, places, n);
	return err == -ENOENT && !go ? 0 : err;
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
		if (!p.m || p.m->known < KNOWN_FILE || p.m->fd < 0)
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
