/* SPDX-License-Identifier: BSD-2-Clause */
#include "kern/loader.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/vec.h"

#define LOADER_NICE (-10)
#define IDLE_LOOK_MS 60000u
#define PIDS 1024	/* as OWNERS, for processes */
#define OWNERS 256	/* users that share an entry take turns as one; root has one of its own */
#define RETRY_GONE_NS 10000000ull	/* the process had exited: its successor may be about to start */
#define RETRY_FULL_NS 1000000000ull	/* no memory or table budget: when some of what is in use now may not be any more */

/*
 * A host's files at the start, or a storm of new ones, are a second of work. It comes in bursts, so that whoever shares the CPU
 * gets it in between whatever the priorities are.
 */
#define BURST_NS 100000000ull	/* of CPU time */
#define REST_NS 25000000ull

#define PAGES_BETWEEN 16	/* how often a conversion looks at the clock: each page is 50 us */

struct loader {
	struct modules *modules;
	struct tables *tables;
	pthread_t thread;
	bool running, stop, converting;
	struct table_cache *cache;	/* NULL: none */
	uint64_t rest_cpu, rest_wall;	/* clocks when the last burst began; of the converting thread */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct sf_need *queue;
	size_t nqueue, queue_cap;
	uint64_t turn, turns[OWNERS];	/* by owner: when it had its last turn */
	uint64_t pid_turns[PIDS];	/* the same by process */
	loader_unmapped_fn unmapped;	/* NULL: unmapped files keep their tables */
	void *unmapped_ctx;
	uint64_t idle_ms, unmapped_ns;	/* unmapped_ns: when it was asked last */
	struct loader_totals totals;
};

/* One file on its way. */
struct job {
	struct loader *l;
	struct pack_space chunks;
	struct table_pieces pieces;
	bool keep;			/* the tables go to the cache; valid: key */
	struct table_cache_key key;
	unsigned int pages;
};

/* The mapped file itself. A pid that was reused, or a mapping replaced meanwhile, shows in inode and mtime. -1: not to be had. */
static int open_mapped(const struct sf_need *need, char *path, size_t cap)
{
	uint64_t mtime_ns;
	char link[96];
	struct stat st;
	ssize_t n;
	int fd;

	snprintf(link, sizeof(link), "/proc/%u/map_files/%llx-%llx", need->pid,
		 (unsigned long long)need->vm_start, (unsigned long long)need->vm_end);
	n = readlink(link, path, cap - 1);
	path[n > 0 ? n : 0] = 0;
	fd = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -1;
	mtime_ns = fstat(fd, &st) ? 0 : (uint64_t)st.st_mtim.tv_sec * 1000000000ull + (uint64_t)st.st_mtim.tv_nsec;
	/* File systems that stack or snapshot may show another inode number; then the time must agree. */
	if (!mtime_ns || !S_ISREG(st.st_mode) || (st.st_ino != need->key.ino && mtime_ns != need->key.mtime_ns)) {
		close(fd);
		return -1;
	}
	return fd;
}

static void set_path(struct module *m, const char *path)
{
	char *slash;

	m->path = strdup(path);
	slash = m->path ? strrchr(m->path, '/') : NULL;
	m->name = slash ? slash + 1 : m->path ? m->path : "";
}

/* again: its tables had been there, and were taken away. */
static void count(struct loader *l, const struct module *m, enum module_state state, bool again)
{
	pthread_mutex_lock(&l->lock);
	l->totals.build_ns += m->build_ns;
	l->totals.reloaded += again;
	if (again) {
		pthread_mutex_unlock(&l->lock);
		return;
	}
	if (state == MODULE_READY)
		l->totals.loaded++;
	else if (state == MODULE_NO_TABLE)
		l->totals.no_table++;
	else
		l->totals.gone++;
	l->totals.rows += m->rows;
	l->totals.rules += m->rules;
	l->totals.bytes += m->bytes;
	l->totals.bad_fdes += m->bad_fdes;
	pthread_mutex_unlock(&l->lock);
}

static void count_cached(struct loader *l)
{
	pthread_mutex_lock(&l->lock);
	l->totals.cached++;
	pthread_mutex_unlock(&l->lock);
}

static void rest(struct loader *l)
{
	const struct timespec pause = { .tv_nsec = REST_NS };
	uint64_t cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID), wall = clock_ns(CLOCK_MONOTONIC), used = cpu - l->rest_cpu;

	if (used < BURST_NS)
		return;
	if (wall - l->rest_wall < 2 * used)	/* else it had its pauses: there was nothing to do */
		nanosleep(&pause, NULL);
	l->rest_cpu = cpu;
	l->rest_wall = clock_ns(CLOCK_MONOTONIC);
}

/* The space that pack_file gets: between two pages it is time for a rest. */
static void *job_alloc(void *ctx, uint32_t size, uint32_t *ret_loc)
{
	struct job *job = ctx;

	if (++job->pages % PAGES_BETWEEN == 0)
		rest(job->l);
	return job->chunks.alloc(job->chunks.ctx, size, ret_loc);
}

/* From the cache, or by conversion. */
static int make_tables(struct job *job, struct unwind_file *file, struct pack_result *ret, struct diag *diag)
{
	struct pack_space space = { job_alloc, job }, recorded = table_pieces_space(&job->pieces);
	struct table_cache *cache = job->l->cache;
	bool known = cache && table_cache_key(cache, file, &job->key);
	int err = known ? table_cache_load(cache, &job->key, &space, ret) : -ENOENT;

	if (!err)
		count_cached(job->l);
	if (err != -ENOENT && err != -EBADMSG)
		return err;
	err = unwind_file_parse(file, diag);
	job->pieces.inner = &space;
	if (!err)
		err = pack_file(file, known ? &recorded : &space, ret, diag);
	/* What is wrong with a file is counted at each start. */
	job->keep = !err && known && !diag->malformed;
	return err;
}

/* Converts and publishes. fd or mem is where the bytes are; m owns fd from here on. */
static void convert(struct loader *l, struct module *m)
{
	uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct job job = { .l = l, .chunks = tables_space(l->tables) };
	struct pack_result packed = { 0 };
	struct unwind_file file;
	struct diag diag = { 0 };
	enum module_state state = MODULE_READY;
	bool again = m->rows != 0;
	int err;

	err = m->mem ? unwind_file_find_mem(&file, m->mem, m->size, &diag) : unwind_file_find_fd(&file, m->fd, &diag);
	if (!err) {
		m->build_id_len = (uint32_t)elf_image_build_id(&file.img, m->build_id, sizeof(m->build_id));
		err = tables_begin(l->tables, m->id, m->room);
		/* An emulator maps other machines' programs: data to it, whatever the mapping's rights say. */
		if (!err)
			err = file.arch == row_arch_native() && !file.img.be ? make_tables(&job, &file, &packed, &diag) : -ENODATA;
	}
	m->bad_fdes = diag.malformed;
	if (packed.bytes > m->room)
		m->room = packed.bytes;
	if (!err && again) {	/* all of it is known */
		m->evicted = false;
		tables_publish(l->tables, m->id, &packed.tables);
	} else if (!err) {
		m->rows = packed.rows;
		m->rules = packed.rules;
		m->bytes = packed.bytes;
		m->sframe = packed.sframe;
		m->nsframe = packed.nsframe;
		tables_publish(l->tables, m->id, &packed.tables);
	} else if (err == -ENOMEM || err == -ENOSPC) {
		state = again ? MODULE_READY : MODULE_NO_TABLE;
		tables_set_state(l->tables, m->id, SF_MOD_FULL, clock_ns(CLOCK_MONOTONIC) + RETRY_FULL_NS);
	} else {
		/* Executable but no ELF file: code written by a JIT through a file mapping. */
		state = MODULE_NO_TABLE;
		tables_set_state(l->tables, m->id, err == -ENOEXEC ? SF_MOD_JIT : SF_MOD_NO_TABLE, 0);
	}
	if (err)
		tables_abort(l->tables);
	m->build_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
	count(l, m, state, again);
	m->state = state;
	/* Only now, so that no stack waits for the disk. */
	if (job.keep)
		table_cache_store(l->cache, &job.key, &file, &packed, &job.pieces);
	if (again)
		free(packed.sframe);
	unwind_file_close(&file);
	table_pieces_free(&job.pieces);
	rest(l);
}

static void load(struct loader *l, const struct sf_need *need)
{
	struct module *m;
	char path[4096];

	/* What was asked for before the id was given up, or twice, needs no answer. */
	if (!tables_wanted(l->tables, need->module) || need->key.ino == SF_KEY_VDSO)
		return;
	m = modules_get(l->modules, need->module);
	if (!m)
		return;
	if (m->state == MODULE_LOADING || m->state == MODULE_GONE) {
		m->key = need->key;
		m->fd = open_mapped(need, path, sizeof(path));
		if (!m->path && path[0])
			set_path(m, path);
		if (m->fd < 0) {
			tables_set_state(l->tables, need->module, SF_MOD_RETRY, clock_ns(CLOCK_MONOTONIC) + RETRY_GONE_NS);
			count(l, m, MODULE_GONE, false);
			m->state = MODULE_GONE;
			return;
		}
		m->size = need->size;
	}
	convert(l, m);
}

static uint64_t *turn_of(struct loader *l, uint32_t owner)
{
	return &l->turns[owner ? 1 + owner % (OWNERS - 1) : 0];
}

static uint64_t *pid_turn_of(struct loader *l, uint32_t pid)
{
	return &l->pid_turns[pid % PIDS];
}

/*
 * Users take turns, and so do a user's processes: nobody waits for all the files of somebody else, nor for a file that becomes
 * another one each time that it is rewritten. Of a process's files, the smallest: a short-lived program must not wait
 * for a compiler's libraries, which take a hundred times as long.
 */
static bool before(struct loader *l, const struct sf_need *a, const struct sf_need *b)
{
	uint64_t a_turn = *turn_of(l, a->owner), b_turn = *turn_of(l, b->owner);

	if (a_turn != b_turn)
		return a_turn < b_turn;
	a_turn = *pid_turn_of(l, a->pid);
	b_turn = *pid_turn_of(l, b->pid);
	return a_turn == b_turn ? a->size < b->size : a_turn < b_turn;
}

static size_t choose(struct loader *l)
{
	size_t best = 0;

	for (size_t i = 1; i < l->nqueue; i++)
		if (before(l, &l->queue[i], &l->queue[best]))
			best = i;
	return best;
}

/* Looks after the tables while there is nothing to load. Returns how long that can be left alone, ms. */
static int tend(struct loader *l)
{
	static uint32_t ids[SF_MAX_MODULES];
	uint64_t now = clock_ns(CLOCK_MONOTONIC), period = l->idle_ms < IDLE_LOOK_MS ? l->idle_ms : IDLE_LOOK_MS;
	int ms = tables_tend(l->tables);
	long n;

	if (!l->unmapped)
		return ms;
	if (now - l->unmapped_ns >= period * 1000000) {
		l->unmapped_ns = now;
		n = l->unmapped(l->unmapped_ctx, ids, SF_MAX_MODULES);
		if (n < 0)
			l->unmapped = NULL;
		else
			tables_unmapped(l->tables, ids, (size_t)n, l->idle_ms);
	}
	return ms < (int)period ? ms : (int)period;
}

/* Waits for requests, `ms` at most. l->lock is held. */
static void wait_for_needs(struct loader *l, int ms)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ms / 1000 + 1;
	pthread_cond_timedwait(&l->wake, &l->lock, &until);
}

static void *loader_main(void *arg)
{
	struct loader *l = arg;
	struct sf_need need;
	size_t at;
	int ms;

	/*
	 * On a busy machine, the one that needs a profiler, a file's first samples wait for this thread. It runs for
	 * milliseconds, so let it run at once. Best effort: without the capability it is a thread like others.
	 */
	setpriority(PRIO_PROCESS, (id_t)gettid(), LOADER_NICE);
	l->rest_cpu = 0;
	l->rest_wall = clock_ns(CLOCK_MONOTONIC);
	pthread_mutex_lock(&l->lock);
	while (!l->stop) {
		if (!l->nqueue) {
			pthread_mutex_unlock(&l->lock);
			ms = tend(l);
			pthread_mutex_lock(&l->lock);
			if (!l->nqueue && !l->stop)
				wait_for_needs(l, ms);
			continue;
		}
		at = choose(l);
		need = l->queue[at];
		memmove(l->queue + at, l->queue + at + 1, (--l->nqueue - at) * sizeof(*l->queue));
		*turn_of(l, need.owner) = ++l->turn;
		*pid_turn_of(l, need.pid) = l->turn;
		l->converting = true;
		pthread_mutex_unlock(&l->lock);
		load(l, &need);
		tables_tend(l->tables);
		pthread_mutex_lock(&l->lock);
		l->converting = false;
	}
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

struct loader *loader_new(struct modules *modules, struct tables *tables, struct table_cache *cache)
{
	struct loader *l = calloc(1, sizeof(*l));
	pthread_condattr_t attr;

	if (!l)
		return NULL;
	l->modules = modules;
	l->tables = tables;
	l->cache = cache;
	l->rest_cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	l->rest_wall = clock_ns(CLOCK_MONOTONIC);
	pthread_mutex_init(&l->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&l->wake, &attr);
	pthread_condattr_destroy(&attr);
	return l;
}

void loader_load_now(struct loader *l, const struct sf_need *need)
{
	load(l, need);
}

void loader_load_vdso(struct loader *l, uint32_t module, const struct sf_file_key *key)
{
	struct module *m = modules_get(l->modules, module);
	unsigned long long start, end;
	char line[512];
	FILE *f;

	if (!m)
		return;
	set_path(m, "[vdso]");
	m->key = *key;
	f = fopen("/proc/self/maps", "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (!strstr(line, "[vdso]") || sscanf(line, "%llx-%llx", &start, &end) != 2)
			continue;
		m->mem = (const void *)(uintptr_t)start;
		m->size = end - start;
		convert(l, m);
		tables_pin(l->tables, module, key);
		break;
	}
	if (f)
		fclose(f);
}

void loader_drop_unmapped(struct loader *l, uint64_t idle_ms, loader_unmapped_fn list, void *ctx)
{
	l->idle_ms = idle_ms;
	l->unmapped = list;
	l->unmapped_ctx = ctx;
	l->unmapped_ns = clock_ns(CLOCK_MONOTONIC);
}

int loader_start(struct loader *l)
{
	int err = pthread_create(&l->thread, NULL, loader_main, l);

	l->running = !err;
	return -err;
}

int loader_push(struct loader *l, const struct sf_need *need)
{
	int err;

	pthread_mutex_lock(&l->lock);
	err = vec_reserve(&l->queue, &l->queue_cap, l->nqueue + 1, sizeof(*l->queue));
	if (!err) {
		l->queue[l->nqueue++] = *need;
		pthread_cond_signal(&l->wake);
	}
	pthread_mutex_unlock(&l->lock);
	return err;
}

bool loader_busy(struct loader *l)
{
	bool busy;

	pthread_mutex_lock(&l->lock);
	busy = l->nqueue || l->converting;
	pthread_mutex_unlock(&l->lock);
	return busy;
}

void loader_totals(struct loader *l, struct loader_totals *ret)
{
	pthread_mutex_lock(&l->lock);
	*ret = l->totals;
	pthread_mutex_unlock(&l->lock);
}

void loader_free(struct loader *l)
{
	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	l->stop = true;
	pthread_cond_signal(&l->wake);
	pthread_mutex_unlock(&l->lock);
	if (l->running)
		pthread_join(l->thread, NULL);
	pthread_mutex_destroy(&l->lock);
	pthread_cond_destroy(&l->wake);
	free(l->queue);
	free(l);
}
