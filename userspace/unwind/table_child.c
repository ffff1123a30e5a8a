/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/table_child.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fork_server.h"
#include "base/reader_jail.h"
#include "unwind/table_entry.h"

/*
 * A host's files at the start, or a storm of new ones, are a second of work. It comes in bursts, so that whoever shares the CPU
 * gets it in between whatever the priorities are.
 */
#define BURST_NS 100000000ull	/* of CPU time */
#define REST_NS 25000000ull
#define PAGES_BETWEEN 16	/* how often a conversion looks at the clock: each page is 50 us */
#define KEEP_BYTES (16 << 20)	/* of memory from file to file, as fresh pages are what small ones cost; an idle child ends anyway */

struct child {
	int sock, mem;
	uint64_t rest_cpu, rest_wall;	/* clocks when the last burst began */
	bool slow;			/* it has given its priority up */
};

struct block {
	struct block *next;
	max_align_t bytes[];
};

/* One file on its way. */
struct job {
	struct child *c;
	struct table_ask ask;
	struct table_answer answer;
	uint64_t start;
	struct diag diag;
	struct block *blocks;
	uint32_t pieces;
};

static void set_nice(struct child *c, bool slow)
{
	if (c->slow == slow)
		return;
	/* Without the right to it a process like others. */
	setpriority(PRIO_PROCESS, 0, slow ? 0 : FORK_CHILD_NICE);
	c->slow = slow;
}

static void rest(struct child *c)
{
	const struct timespec pause = { .tv_nsec = REST_NS };
	uint64_t cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID), wall = clock_ns(CLOCK_MONOTONIC), used = cpu - c->rest_cpu;

	if (used < BURST_NS)
		return;
	if (wall - c->rest_wall < 2 * used)	/* else it had its pauses: there was nothing to do */
		nanosleep(&pause, NULL);
	c->rest_cpu = cpu;
	c->rest_wall = clock_ns(CLOCK_MONOTONIC);
	/* A file that takes so long has had its share of being served at once. */
	set_nice(c, true);
}

static void *job_alloc(void *ctx, uint32_t size, uint32_t *ret_loc)
{
	struct job *job = ctx;
	struct block *b = malloc(sizeof(*b) + size);

	if (!b)
		return NULL;
	b->next = job->blocks;
	job->blocks = b;
	*ret_loc = ++job->pieces;
	if (job->pieces % PAGES_BETWEEN == 0)
		rest(job->c);
	return b->bytes;
}

static void free_blocks(struct job *job)
{
	for (struct block *b = job->blocks, *next; b; b = next) {
		next = b->next;
		free(b);
	}
	job->blocks = NULL;
}

static int convert(struct job *job, struct unwind_file *file)
{
	const struct pack_space space = { job_alloc, job };
	const struct table_entry_mark mark = { .sign = NULL };
	struct table_pieces pieces = { .inner = &space };
	const struct pack_space recorded = table_pieces_space(&pieces);
	struct pack_result packed = { 0 };
	int err = unwind_file_parse(file, &job->diag);

	if (!err)
		err = pack_file(file, &recorded, &packed, &job->diag);
	if (err == -ENOSPC)
		err = -ENOMEM;
	if (!err && lseek(job->c->mem, 0, SEEK_SET))
		err = -EIO;
	if (!err) {
		job->answer.covered = table_key_covers(file) && !job->diag.malformed;
		err = table_entry_write(job->c->mem, &mark, &packed, &pieces, &job->answer.bytes);
	}
	free(packed.sframe);
	table_pieces_free(&pieces);
	free_blocks(job);
	return err;
}

static int answer(struct job *job, enum table_message message, int err)
{
	job->answer.message = message;
	job->answer.err = err;
	job->answer.malformed = job->diag.malformed;
	job->answer.cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - job->start;
	return fork_send(job->c->sock, &job->answer, sizeof(job->answer), NULL, 0, 0);
}

/* Whether the file has to be converted: the loader may know its tables. */
static bool wanted(struct job *job, struct unwind_file *file)
{
	struct table_ask ask;

	if (!job->ask.keyed || !table_key_of(&job->ask.keying, file, &job->answer.key))
		return true;
	job->answer.reads = file->reads;
	if (answer(job, TABLE_KEYED, 0) || fork_receive(job->c->sock, &ask, sizeof(ask), NULL, 0, 0))
		_exit(0);
	return ask.message == TABLE_CONVERT;
}

static void serve_file(struct job *job, int fd)
{
	struct unwind_file file;
	int err;

	job->start = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	err = unwind_file_find_within(&file, fd, job->ask.max_bytes, &job->diag);
	if (err == -EFBIG) {
		answer(job, TABLE_LARGE, 0);
		return;
	}
	if (!err) {
		job->answer.key.build_id_len = (uint32_t)elf_image_build_id(&file.img, job->answer.key.build_id, sizeof(job->answer.key.build_id));
		/* An emulator maps other machines' programs: data to it, whatever the mapping's rights say. */
		if (file.arch != row_arch_native() || file.img.be) {
			err = -ENODATA;
		} else {
			if (!wanted(job, &file)) {
				unwind_file_close(&file);
				return;
			}
			err = convert(job, &file);
		}
		unwind_file_close(&file);
	}
	answer(job, TABLE_DONE, err);
}

void table_child_keep_memory(void)
{
	reader_keep_memory(KEEP_BYTES);
}

void table_child_main(int sock, int mem)
{
	struct child c = { .sock = sock, .mem = mem, .slow = true };
	struct table_limits limits;
	static struct job job;
	int fd;

	if (fork_receive(sock, &limits, sizeof(limits), NULL, 0, 0))
		_exit(0);
	reader_jail_enter(&(struct reader_limits){ .memory = limits.memory, .output = limits.entry, .keep = KEEP_BYTES, .huge = limits.large });
	c.rest_wall = clock_ns(CLOCK_MONOTONIC);
	for (;;) {
		job = (struct job){ .c = &c };
		if (fork_receive(sock, &job.ask, sizeof(job.ask), &fd, 1, 0))
			_exit(0);
		/* The last one's tables have been taken. */
		if (job.ask.message == TABLE_FILE && lseek(mem, 0, SEEK_END) > KEEP_BYTES && ftruncate(mem, 0))
			_exit(1);
		set_nice(&c, false);
		serve_file(&job, fd);
		close(fd);
		rest(&c);
	}
}
