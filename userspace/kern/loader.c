/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loader's thread: chooses the next file for each worker.
 *
 * Any user can map a file, and the file decides how long its conversion takes. Therefore the thread
 * never waits for one file: it gives files to its workers, polls them all, and acts on what they
 * report.
 *
 *   BPF -> loader_push -> queue of each user -> opener -> queue -> worker FAST -> tables -> BPF
 *                            |                                      |     ^
 *                            |                    large, or too slow +-> SLOW
 *                            +- the user's CPU time is used up: put off
 *
 * step() does what can be done now, once round: openers, comparisons of copies, reports of the two
 * lanes, new files for idle lanes. If it did nothing, wait_for_work() sleeps until a worker, a
 * request or the clock has something.
 *
 * Invariants:
 *
 *   - A file is in one place: in the queue, with an opener, or in a lane. Its state says so
 *     (files/file_life.h).
 *   - `lock` protects what other threads see: the queues, `active`, the totals. All else belongs to
 *     the thread, and before loader_start to the thread that calls the loader.
 *   - Users take turns, and a user pays for the CPU time of his files (kern/load_queue.h).
 *   - The number of modules bounds the queue: tend_queue() drops files that nobody wants any more.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/process.h"
#include "base/user_account.h"
#include "kern/loader_internal.h"

/* Interval of the search for unmapped files, unless the idle time is shorter */
#define UNMAPPED_MS 60000u
#define WATCH_MS    50	 /* how often the clock of a busy worker is checked */
#define TEND_MS	    1000 /* how often the queue is purged, and users without CPU time looked at */
/* loader_request waits for the workers if the round has more files than this */
#define QUEUE_LONG  64u

/* SLOW: 5 s of the analysis of machine code (tables/table_worker.c), and the tables of its rows */
static const struct worker_limits lane_limits[LANES] = {
	[FAST] = { .cpu_ns = 250 * NUM_MS, .wall_ns = 2 * NUM_S },
	[SLOW] = { .cpu_ns = 8 * NUM_S, .wall_ns = 30 * NUM_S },
};

static void fast_main(int sock, int mem)
{
	table_worker_run(sock, mem,
			 (struct jail_reader){ .memory = 96u << 20, .output = 32u << 20 });
}

static void slow_main(int sock, int mem)
{
	table_worker_run(sock, mem,
			 (struct jail_reader){
				 .memory = 512u << 20, .output = 256u << 20, .huge = true });
}

struct pick {
	struct loader *l;
	int lane;
	uint64_t now;
	bool blocked;
};

static enum load_pick for_lane(void *ctx, const struct load_job *job)
{
	const struct pick *pick = ctx;

	if (job->lane == OPENING) /* users are not charged for it */
		return LOAD_PASS;
	if (!load_queue_may(&pick->l->queue, job->need.owner))
		return LOAD_PUT_OFF;
	return job->lane == pick->lane ? LOAD_READY : LOAD_PASS;
}

/* A file that can be opened now, or that cannot be opened for a while. */
static enum load_pick for_opener(void *ctx, const struct load_job *job)
{
	struct pick *pick = ctx;
	enum open_may may = job->lane == OPENING
				    ? openers_may(&pick->l->openers, &job->need, pick->now)
				    : OPEN_WAIT;

	pick->blocked = may == OPEN_BLOCKED;
	return pick->blocked ? LOAD_AT_ONCE : may == OPEN_NOW ? LOAD_READY : LOAD_PASS;
}

static bool next_job(struct loader *l, load_pick_fn fn, struct pick *pick, struct load_job *ret)
{
	bool any;

	pthread_mutex_lock(&l->lock);
	any = load_queue_next(&l->queue, fn, pick, ret);
	if (any) {
		/* The file is neither in the queue nor in a lane until the next count_active() */
		l->active++;
		if (fn == for_lane)
			load_queue_served(&l->queue, &ret->need);
	}
	pthread_mutex_unlock(&l->lock);
	return any;
}

static bool next_for_lane(struct loader *l, int lane, struct load_job *ret)
{
	return next_job(l, for_lane, &(struct pick){ .l = l, .lane = lane }, ret);
}

/*
 * Skipped while an opener may still answer soon: this runs for each need, and the queue may be
 * long.
 */
static bool next_to_open(struct loader *l, struct pick *pick, struct load_job *ret)
{
	*pick = (struct pick){ .l = l, .now = clock_ns(CLOCK_MONOTONIC) };
	return openers_ready(&l->openers, pick->now) && next_job(l, for_opener, pick, ret);
}

static bool step_openers(struct loader *l)
{
	bool worked = loader_handle_openers(l);
	struct pick pick;
	struct load_job job;

	while (next_to_open(l, &pick, &job)) {
		struct module *m = pick.blocked ? loader_wanted(l, &job.need) : NULL;

		worked = true;
		if (m)
			loader_advance(l, m, EVENT_BLOCKED);
		else if (!pick.blocked)
			loader_open(l, &job);
	}
	return worked;
}

static bool is_wanted(void *ctx, const struct load_job *job)
{
	return loader_wants_job(ctx, job);
}

/*
 * Drops the jobs that nobody wants any more: the id was reused, or the tables that a later pass was
 * to replace were evicted. So the length of the queue is bounded by the number of modules, however
 * many files come and go while their user has no CPU time left. Then takes the jobs of users who
 * have some again back into the round. Returns the time until the next call, ms.
 */
static int tend_queue(struct loader *l)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	bool any_put_off;

	pthread_mutex_lock(&l->lock);
	if (now - l->tended_ns >= TEND_MS * NUM_MS) {
		l->tended_ns = now;
		load_queue_purge(&l->queue, is_wanted, l);
		load_queue_readmit(&l->queue);
	}
	any_put_off = l->queue.n > l->queue.ready;
	pthread_mutex_unlock(&l->lock);
	return any_put_off ? TEND_MS : INT_MAX;
}

/* Called when there is nothing to load. Returns the time until the next call, ms. */
static int maintain(struct loader *l)
{
	static uint32_t ids[SF_MAX_MODULES];
	uint64_t now = clock_ns(CLOCK_MONOTONIC),
		 period = l->idle_ms < UNMAPPED_MS ? l->idle_ms : UNMAPPED_MS;
	int ms = tables_maintain(l->tables);
	long n;

	if (!l->unmapped)
		return ms;
	if (now - l->unmapped_ns >= period * NUM_MS) {
		l->unmapped_ns = now;
		n = l->unmapped(l->unmapped_ctx, ids, SF_MAX_MODULES);
		if (n < 0) {
			l->unmapped = NULL;
			n = 0;
		}
		n += (long)loader_stale(l, ids + n, SF_MAX_MODULES - (size_t)n);
		tables_unmapped(l->tables, ids, (size_t)n, l->idle_ms);
	}
	return ms < (int)period ? ms : (int)period;
}

static int file_of_module(void *ctx, uint32_t id)
{
	const struct loader *l = ctx;
	const struct module *m = modules_get(l->modules, id);

	return m && m->state == FILE_PUBLISHED ? m->fd : -1;
}

static bool step_copied(struct loader *l)
{
	bool worked;

	pthread_mutex_lock(&l->lock);
	worked = copied_step(&l->copied, file_of_module, l);
	pthread_mutex_unlock(&l->lock);
	return worked;
}

/* Updates the fields that other threads read. */
static void count_active(struct loader *l)
{
	pthread_mutex_lock(&l->lock);
	l->opening = openers_busy(&l->openers);
	l->active = l->opening;
	for (int i = 0; i < LANES; i++)
		l->active += l->lanes[i].worker.busy;
	l->totals.workers = l->workers;
	pthread_mutex_unlock(&l->lock);
}

/* The worker's report. Its CPU time is charged to the user whose file it has. */
static int look_at(struct loader *l, struct lane *lane, struct table_answer *ret)
{
	uint64_t before = l->workers.cpu_ns;
	int event = table_worker_look(&lane->worker, ret);

	pthread_mutex_lock(&l->lock);
	if (l->workers.cpu_ns != before)
		load_queue_spend(&l->queue, lane->job.need.owner, l->workers.cpu_ns - before);
	pthread_mutex_unlock(&l->lock);
	return event;
}

/*
 * Handles the workers' reports and gives idle workers the next files. Returns whether anything
 * happened.
 */
static bool step(struct loader *l)
{
	struct table_answer a;
	bool worked = step_openers(l);
	struct load_job job;

	worked |= step_copied(l);
	for (int i = 0; i < LANES; i++) {
		struct lane *lane = &l->lanes[i];
		bool was_busy = lane->worker.busy;
		int event = look_at(l, lane, &a);

		if (!event)
			loader_answered(l, lane, &a);
		else if (event != -EAGAIN && was_busy)
			loader_try_again(l, &lane->job, event != -ECHILD);
		worked |= event != -EAGAIN;
		while (!lane->worker.busy && next_for_lane(l, i, &job)) {
			loader_convert(l, i, &job, &lane_limits[i]);
			worked = true;
		}
	}
	/* Other threads no longer wait for a file that is not opened soon. */
	if (worked || l->opening != openers_busy(&l->openers)) {
		count_active(l);
		if (l->running)
			tables_maintain(l->tables);
	}
	return worked;
}

/*
 * Waits until a worker or another thread has something to report, or `fd` can be read, at most
 * `ms`.
 */
static void wait_for_work(struct loader *l, int fd, int ms)
{
	struct pollfd p[3 + LANES + OPENERS] = { { .fd = l->wake, .events = POLLIN } };
	const struct worker *copied = &l->copied.worker;
	uint64_t n;

	ms = openers_poll(&l->openers, p + 2 + LANES, ms);
	p[2 + LANES + OPENERS] = (struct pollfd){ .fd = fd, .events = POLLIN };
	p[1 + LANES] = (struct pollfd){ .fd = copied->busy ? copied->child.sock : -1,
					.events = copied->killed ? 0 : POLLIN };
	for (int i = 0; i < LANES; i++) {
		const struct worker *w = &l->lanes[i].worker;

		p[1 + i] = (struct pollfd){ .fd = w->child.sock, .events = POLLIN };
		if (w->busy && ms > WATCH_MS)
			ms = WATCH_MS;
		else if (w->child.pid && ms > (int)(WORKER_IDLE_NS / NUM_MS))
			ms = (int)(WORKER_IDLE_NS / NUM_MS);
	}
	if (poll(p, 3 + LANES + OPENERS, ms) > 0 && p[0].revents &&
	    read(l->wake, &n, sizeof(n)) < 0)
		n = 0; /* the next step checks everything anyway */
}

static bool all_done(struct loader *l)
{
	bool busy;

	pthread_mutex_lock(&l->lock);
	busy = l->queue.ready || l->active;
	pthread_mutex_unlock(&l->lock);
	return !busy;
}

static void *loader_main(void *arg)
{
	struct loader *l = arg;
	bool stop = false;

	while (!stop) {
		if (!step(l)) {
			int fd, soon = loader_look_for_changes(l, &fd), tend = tend_queue(l),
				ms = all_done(l) ? maintain(l) : WATCH_MS;

			soon = tend < soon ? tend : soon;
			for (int i = 0; i < LANES; i++)
				worker_rest(&l->lanes[i].worker);
			worker_rest(&l->copied.worker);
			if (l->lanes[SLOW].worker.busy && !l->lanes[FAST].worker.busy &&
			    !openers_busy(&l->openers))
				/*
				 * The tables of compilers and their libraries take 1/15 to 1/30 of
				 * the file
				 */
				tables_reserve(l->tables, l->lanes[SLOW].job.need.size / 15);
			wait_for_work(l, fd, ms < soon ? ms : soon);
		}
		pthread_mutex_lock(&l->lock);
		stop = l->stop;
		pthread_mutex_unlock(&l->lock);
	}
	return NULL;
}

int loader_servers_start(struct loader_servers *s)
{
	*s = (struct loader_servers){ fork_server_start(0), NULL };
	if (s->parsers)
		s->openers = fork_server_start(open_worker_rights());
	return s->openers ? 0 : -errno;
}

void loader_servers_stop(struct loader_servers *s)
{
	fork_server_stop(s->parsers);
	fork_server_stop(s->openers);
	*s = (struct loader_servers){ NULL, NULL };
}

struct loader *loader_new(struct modules *modules, struct tables *tables, int copies_fd,
			  const struct loader_servers *servers)
{
	struct loader *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (l->wake < 0) {
		free(l);
		return NULL;
	}
	l->modules = modules;
	l->tables = tables;
	openers_init(&l->openers, servers->openers, &l->workers);
	worker_init(&l->lanes[FAST].worker, servers->parsers, fast_main, &l->workers);
	worker_init(&l->lanes[SLOW].worker, servers->parsers, slow_main, &l->workers);
	loader_watch_start(l);
	copied_init(&l->copied, copies_fd, servers->openers, &l->workers);
	pthread_mutex_init(&l->lock, NULL);
	return l;
}

void loader_load_by(struct loader *l, uint64_t until_ns)
{
	l->load_until_ns = until_ns;
}

int loader_request(struct loader *l, const struct sf_need *need)
{
	const struct load_job job = { .need = *need, .lane = OPENING };
	int err = loader_enqueue(l, &job);

	if (!err && clock_ns(CLOCK_MONOTONIC) < l->load_until_ns && !step(l) &&
	    l->queue.ready > QUEUE_LONG)
		wait_for_work(l, -1, WATCH_MS);
	return err;
}

void loader_settle(struct loader *l, bool (*stopped)(void))
{
	while ((!stopped || !stopped()) && clock_ns(CLOCK_MONOTONIC) < l->load_until_ns) {
		if (step(l))
			continue;
		if (all_done(l))
			break;
		wait_for_work(l, -1, WATCH_MS);
	}
	l->started = true;
}

void loader_drop_unmapped(struct loader *l, uint64_t idle_ms, loader_unmapped_fn list, void *ctx)
{
	l->idle_ms = idle_ms;
	l->unmapped = list;
	l->unmapped_ctx = ctx;
	l->unmapped_ns = clock_ns(CLOCK_MONOTONIC);
}

void loader_prove_files(struct loader *l, int (*iter)(void *ctx, pid_t pid), void *ctx)
{
	l->openers.iter = iter;
	l->openers.iter_ctx = ctx;
}

int loader_start(struct loader *l)
{
	int err;

	l->running = true;
	err = pthread_create(&l->thread, NULL, loader_main, l);
	l->running = !err;
	return -err;
}

void loader_wake(struct loader *l)
{
	const uint64_t one = 1;

	/* This fails only if the counter is full; then the thread is awake. */
	if (write(l->wake, &one, sizeof(one)) < 0)
		return;
}

int loader_push(struct loader *l, const struct sf_need *need)
{
	const struct load_job job = { .need = *need, .lane = OPENING };
	int err = loader_enqueue(l, &job);

	if (!err)
		loader_wake(l);
	return err;
}

void loader_compare(struct loader *l, const struct sf_copy_need *need)
{
	const uint32_t account = user_account(process_user(need->pid));

	pthread_mutex_lock(&l->lock);
	copied_push(&l->copied, need, account);
	pthread_mutex_unlock(&l->lock);
	loader_wake(l);
}

bool loader_busy(struct loader *l)
{
	return !all_done(l);
}

void loader_totals(struct loader *l, struct loader_totals *ret)
{
	clockid_t clock;

	pthread_mutex_lock(&l->lock);
	*ret = l->totals;
	pthread_mutex_unlock(&l->lock);
	if (l->running && !pthread_getcpuclockid(l->thread, &clock))
		ret->thread_ns = clock_ns(clock);
}

uint32_t loader_languages(const struct loader *l)
{
	return __atomic_load_n(&l->languages, __ATOMIC_RELAXED);
}

void loader_free(struct loader *l)
{
	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	l->stop = true;
	pthread_mutex_unlock(&l->lock);
	loader_wake(l);
	if (l->running)
		pthread_join(l->thread, NULL);
	for (int i = 0; i < LANES; i++)
		worker_end(&l->lanes[i].worker);
	openers_end(&l->openers);
	copied_end(&l->copied);
	pthread_mutex_destroy(&l->lock);
	close(l->wake);
	load_queue_free(&l->queue);
	loader_watch_end(l);
	free(l);
}
