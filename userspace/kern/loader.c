/* SPDX-License-Identifier: BSD-2-Clause */
#include "kern/loader.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "kern/load_queue.h"
#include "kern/opener.h"
#include "unwind/table_parser.h"

#define LOADER_NICE (-10)
#define IDLE_LOOK_MS 60000u
#define RETRY_GONE_NS (10 * NUM_MS)	/* the process had exited: its successor may be about to start */
#define RETRY_SILENT_NS (60 * NUM_S)	/* its file system did not answer */
#define RETRY_BEHIND_NS (2 * NUM_S)	/* another file waits for the same */
#define RETRY_FULL_NS NUM_S	/* no memory or table budget: when some of what is in use now may not be any more */

/*
 * Two children, so that a small file need not wait for a large one, nor for one that was made to take long: what is large, or does not
 * get done in the first lane, goes to the second one. 2 MB of .eh_frame are some 20 ms of CPU time.
 */
enum { FAST, SLOW, LANES, OPENING = LANES };	/* before that it is opened (kern/opener.h) */
#define LARGE_BYTES (2u << 20)
static const struct table_parser_opts lane_opts[LANES] = {
	[FAST] = { .limits = { 96u << 20, 32u << 20, false }, .cpu_ns = 250 * NUM_MS, .wall_ns = 2 * NUM_S },
	[SLOW] = { .limits = { 512u << 20, 256u << 20, true }, .cpu_ns = 5 * NUM_S, .wall_ns = 30 * NUM_S },
};
#define WATCH_MS 50		/* how often a busy child's clock is looked at */
#define CHILD_IDLE_NS (3 * NUM_S)	/* then it may go: another one is there in a millisecond */
#define AT_ONCE 64u		/* files that wait, from which on loader_load_now does, too */

struct lane {
	struct table_parser parser;
	struct load_job job;			/* if the parser is busy */
	bool asked;			/* for the key */
	bool keep;			/* the tables go to the cache, as they are made from a copy; valid: key */
	struct table_key key;
};

struct loader {
	struct modules *modules;
	struct tables *tables;
	struct openers openers;
	bool opening;			/* a file that may be open soon */
	struct lane lanes[LANES];
	pthread_t thread;
	bool running, stop;
	struct table_cache *cache;	/* NULL: none */
	int wake;			/* eventfd: there is something in the queue, or it is to stop */
	pthread_mutex_t lock;		/* of the queue, `active` and the totals */
	struct load_queue queue;
	unsigned int active;		/* lanes that are busy */
	loader_unmapped_fn unmapped;	/* NULL: unmapped files keep their tables */
	void *unmapped_ctx;
	uint64_t idle_ms, unmapped_ns;	/* unmapped_ns: when it was asked last */
	struct loader_totals totals;
};

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

/* ---- One file ---- */

/* What became of making a file's tables. */
struct outcome {
	int err;			/* 0, or -errno as table_answer.err; -ENOSPC, -ENOMEM: no room for them here */
	struct pack_result packed;	/* with !err */
	uint64_t malformed, cpu_ns;
};

/* Published, or the reason why not. packed.sframe is the module's from here on, or freed. Between tables_begin and this nothing else. */
static void conclude(struct loader *l, struct module *m, struct outcome *o)
{
	enum module_state state = MODULE_READY;
	bool again = m->rows != 0;

	m->bad_fdes = o->malformed;
	if (o->packed.bytes > m->room)
		m->room = o->packed.bytes;
	if (!o->err && again) {	/* all of it is known */
		m->evicted = false;
		tables_publish(l->tables, m->id, &o->packed.tables);
		free(o->packed.sframe);
	} else if (!o->err) {
		m->rows = o->packed.rows;
		m->rules = o->packed.rules;
		m->bytes = o->packed.bytes;
		m->sframe = o->packed.sframe;
		m->nsframe = o->packed.nsframe;
		tables_publish(l->tables, m->id, &o->packed.tables);
	} else if (o->err == -ENOMEM || o->err == -ENOSPC) {
		state = again ? MODULE_READY : MODULE_NO_TABLE;
		tables_set_state(l->tables, m->id, SF_MOD_FULL, clock_ns(CLOCK_MONOTONIC) + RETRY_FULL_NS);
	} else {
		/* Executable but no ELF file: code written by a JIT through a file mapping. */
		state = MODULE_NO_TABLE;
		tables_set_state(l->tables, m->id, o->err == -ENOEXEC ? SF_MOD_JIT : SF_MOD_NO_TABLE, 0);
	}
	if (o->err)
		tables_abort(l->tables);
	m->build_ns = o->cpu_ns;
	count(l, m, state, again);
	m->state = state;
}

/* The image of our own kernel, in this process. */
static void convert_vdso(struct loader *l, struct module *m)
{
	struct outcome o = { .cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) };
	struct pack_space space = tables_space(l->tables);
	struct unwind_file file;
	struct diag diag = { 0 };

	o.err = unwind_file_open_mem(&file, m->mem, m->size, &diag);
	if (!o.err) {
		m->build_id_len = (uint32_t)elf_image_build_id(&file.img, m->build_id, sizeof(m->build_id));
		o.err = tables_begin(l->tables, m->id, m->room);
		if (!o.err)
			o.err = pack_file(&file, &space, &o.packed, &diag);
		unwind_file_close(&file);
	}
	o.malformed = diag.malformed;
	o.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - o.cpu_ns;
	conclude(l, m, &o);
}

static int push(struct loader *l, const struct load_job *job)
{
	int err;

	pthread_mutex_lock(&l->lock);
	err = load_queue_push(&l->queue, job);
	pthread_mutex_unlock(&l->lock);
	return err;
}

/* The file that the need is for; NULL: what was asked for before the id was given up, or twice, needs no answer. */
static struct module *wanted(struct loader *l, const struct sf_need *need)
{
	return tables_wanted(l->tables, need->module) ? modules_get(l->modules, need->module) : NULL;
}

static void count_failed(struct loader *l)
{
	pthread_mutex_lock(&l->lock);
	l->totals.parser.failed++;
	pthread_mutex_unlock(&l->lock);
}

static void give_up(struct loader *l, struct module *m)
{
	struct outcome o = { .err = -ECHILD };

	count_failed(l);
	conclude(l, m, &o);
}

/*
 * Its child is no more, or had not enough memory. It may have been somebody else's doing (a machine out of memory), so there is a second try; not
 * for what has taken too long in the lane for that.
 */
static void try_again(struct loader *l, struct load_job *job, bool late)
{
	struct module *m = wanted(l, &job->need);
	bool last = job->tries || (late && job->lane == SLOW);

	if (!m)
		return;
	job->lane = SLOW;
	job->tries++;
	if (last || push(l, job))
		give_up(l, m);
}

/* It is asked for again when that time has passed. */
static void not_now(struct loader *l, struct module *m, uint64_t retry_ns)
{
	tables_set_state(l->tables, m->id, SF_MOD_RETRY, clock_ns(CLOCK_MONOTONIC) + retry_ns);
	if (m->state != MODULE_GONE)
		count(l, m, MODULE_GONE, false);
	m->state = MODULE_GONE;
}

/* The next step for a file: it is open, or an opener has been asked. */
static void open_first(struct loader *l, struct load_job *job)
{
	struct module *m = job->need.key.ino == SF_KEY_VDSO ? NULL : wanted(l, &job->need);

	if (!m)
		return;
	job->lane = FAST;
	if (m->fd >= 0 && !push(l, job))
		return;
	m->key = job->need.key;
	m->size = job->need.size;
	if (m->fd >= 0) {
		give_up(l, m);
	} else if (openers_ask(&l->openers, &job->need, modules_copied())) {
		count_failed(l);
		not_now(l, m, RETRY_SILENT_NS);
	}
}

static void opened(struct loader *l, struct module *m, const struct sf_need *need, const struct open_answer *a, int fd)
{
	const struct load_job job = { .need = *need, .lane = FAST };

	if (a->err == -EFBIG || a->err == -ENOMEM)
		give_up(l, m);	/* no copy of it can be kept */
	else if (a->err)
		not_now(l, m, RETRY_GONE_NS);
	else
		module_set_file(m, fd, a->bytes);
	if (!a->err && push(l, &job))
		give_up(l, m);
}

/* What the openers have to say. Whether anything. */
static bool look_at_openers(struct loader *l)
{
	struct open_answer a;
	struct sf_need need;
	bool any = false;
	enum open_event event;
	int fd = -1;

	while ((event = openers_look(&l->openers, &need, &a, &fd)) != OPEN_NOTHING) {
		struct module *m = wanted(l, &need);

		any = true;
		if (m && (event == OPEN_DONE || event == OPEN_PATH) && !m->path && a.path[0])
			set_path(m, a.path);
		if (m && event == OPEN_DONE && m->fd < 0) {
			opened(l, m, &need, &a, fd);
			continue;
		}
		if (event == OPEN_DONE && !a.err)
			close(fd);
		else if (event == OPEN_LATE)
			count_failed(l);
		if (m && (event == OPEN_LATE || event == OPEN_DIED))
			not_now(l, m, event == OPEN_LATE ? RETRY_SILENT_NS : RETRY_GONE_NS);
	}
	return any;
}

static void begin(struct loader *l, int lane, const struct load_job *job)
{
	struct lane *to = &l->lanes[lane];
	struct table_ask ask = { .message = TABLE_FILE, .max_bytes = lane == FAST ? LARGE_BYTES : 0 };
	struct module *m = wanted(l, &job->need);
	struct outcome no_room = { 0 };

	if (!m || m->fd < 0)
		return;
	/* Where there is no room for them, making them would be for nothing. */
	no_room.err = tables_make_room(l->tables, m->id, m->room);
	if (no_room.err) {
		conclude(l, m, &no_room);
		return;
	}
	if (l->cache && !job->plain && (m->copied || opener_is_local(&job->need))) {
		ask.keyed = true;
		ask.keying = *table_cache_keying(l->cache);
	}
	to->job = *job;
	to->keep = false;
	to->asked = ask.keyed;
	if (table_parser_file(&to->parser, &ask, m->fd))
		give_up(l, m);
}

/* From the cache, if they are there. Whether that is the end of it. A lie about the key costs the file that it is about. */
static bool load_cached(struct loader *l, struct module *m, const struct table_answer *a)
{
	struct pack_space space = tables_space(l->tables);
	struct outcome o = { .cpu_ns = a->cpu_ns };

	o.err = tables_begin(l->tables, m->id, m->room);
	if (!o.err)
		o.err = table_cache_load(l->cache, &a->key, &space, &o.packed);
	if (o.err == -ENOENT || o.err == -EBADMSG) {
		tables_abort(l->tables);
		return false;
	}
	if (!o.err)
		count_cached(l);
	conclude(l, m, &o);
	return true;
}

/*
 * Tables that shall be kept are made from a copy of what the key is of, by a child that has seen nothing else: what is kept under a key is
 * then made from just that, whatever a file did to the child that read it first. false: they cannot be kept.
 */
static bool convert_copy(struct loader *l, struct lane *from, struct module *m, const struct table_answer *a)
{
	const struct table_ask ask = { .message = TABLE_FILE };
	struct table_key key = a->key;
	int fd = table_key_copy(table_cache_keying(l->cache), m->fd, &a->reads, &key.digest);

	if (fd < 0 || memcmp(&key.digest, &a->key.digest, sizeof(key.digest))) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	table_parser_end(&from->parser, 0);
	from->keep = true;
	from->key = key;
	if (table_parser_file(&from->parser, &ask, fd))
		give_up(l, m);
	close(fd);
	return true;
}

static void keyed(struct loader *l, struct lane *from, struct module *m, const struct table_answer *a)
{
	bool asked = from->asked;

	from->asked = false;
	if (!m || (asked && load_cached(l, m, a)))
		table_parser_go_on(&from->parser, false);
	else if (!asked || !convert_copy(l, from, m, a))
		table_parser_go_on(&from->parser, true);
}

/* Nobody's tables are twice as large as their file and a few pages. */
static uint64_t most_bytes(const struct module *m)
{
	return m->size < UINT64_MAX / 4 ? 2 * m->size + SF_CHUNK : UINT64_MAX;
}

static void take_tables(struct loader *l, struct lane *from, struct module *m, const struct table_answer *a)
{
	uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct pack_space inner = tables_space(l->tables);
	struct table_pieces pieces = { .inner = &inner };
	struct pack_space recorded = table_pieces_space(&pieces);
	struct outcome o = { .err = a->err, .malformed = a->malformed };
	bool keep = from->keep;

	if (!o.err)
		o.err = tables_begin(l->tables, m->id, m->room);
	if (!o.err)
		o.err = table_parser_tables(&from->parser, a, most_bytes(m), keep ? &recorded : &inner, &o.packed);
	o.cpu_ns = a->cpu_ns + clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
	if (o.err == -EBADMSG) {
		tables_abort(l->tables);
		give_up(l, m);
	} else {
		/* The pages stay where they are until the next file's; only then is the disk waited for. */
		struct pack_result packed = o.packed;

		conclude(l, m, &o);
		packed.sframe = m->sframe;
		packed.nsframe = m->nsframe;
		if (keep && !o.err)
			table_cache_store(l->cache, &from->key, &packed, &pieces);
	}
	table_pieces_free(&pieces);
}

static void answered(struct loader *l, struct lane *from, const struct table_answer *a)
{
	struct load_job job = from->job;
	struct module *m = wanted(l, &job.need);

	if (a->message == TABLE_LARGE && job.lane == FAST) {
		job.lane = SLOW;
		if (m && push(l, &job))
			give_up(l, m);
		return;
	}
	if (m && !m->build_id_len && a->message != TABLE_LARGE) {
		m->build_id_len = a->key.build_id_len;
		memcpy(m->build_id, a->key.build_id, sizeof(m->build_id));
	}
	if (a->message == TABLE_KEYED) {
		keyed(l, from, m, a);
		return;
	}
	if (!m)
		return;
	if (from->keep && (a->err || !a->covered) && a->message == TABLE_DONE) {	/* it needs more than the copy has */
		job.plain = true;
		if (push(l, &job))
			give_up(l, m);
	} else if (a->message == TABLE_LARGE)
		give_up(l, m);
	else if (a->err == -ENOMEM)
		try_again(l, &job, false);
	else
		take_tables(l, from, m, a);
}

/* ---- The thread ---- */

struct pick {
	struct loader *l;
	int lane;
	uint64_t now;
	bool never;
};

static enum load_pick for_lane(void *ctx, const struct load_job *job)
{
	const struct pick *pick = ctx;

	return job->lane == pick->lane ? LOAD_READY : LOAD_PASS;
}

/* One that can be opened now, or one that cannot be for a while. */
static enum load_pick for_opener(void *ctx, const struct load_job *job)
{
	struct pick *pick = ctx;
	enum open_may may = job->lane == OPENING ? openers_may(&pick->l->openers, &job->need, pick->now) : OPEN_WAIT;

	pick->never = may == OPEN_NEVER;
	return pick->never ? LOAD_AT_ONCE : may == OPEN_NOW ? LOAD_READY : LOAD_PASS;
}

static bool next_job(struct loader *l, load_pick_fn fn, struct pick *pick, struct load_job *ret)
{
	bool any;

	pthread_mutex_lock(&l->lock);
	any = load_queue_next(&l->queue, fn, pick, ret);
	if (any) {
		l->active++;	/* until count_active: it is in neither place meanwhile */
		if (fn == for_lane)
			load_queue_served(&l->queue, &ret->need);
	}
	pthread_mutex_unlock(&l->lock);
	return any;
}

static bool next_for_lane(struct loader *l, int lane, struct load_job *ret)
{
	return next_job(l, for_lane, &(struct pick){ .lane = lane }, ret);
}

/* Not while one is on its way: the queue may be long, and this is done at each need. */
static bool next_to_open(struct loader *l, struct pick *pick, struct load_job *ret)
{
	*pick = (struct pick){ .l = l, .now = clock_ns(CLOCK_MONOTONIC) };
	return openers_ready(&l->openers, pick->now) && next_job(l, for_opener, pick, ret);
}

static bool step_openers(struct loader *l)
{
	bool worked = look_at_openers(l);
	struct pick pick;
	struct load_job job;

	while (next_to_open(l, &pick, &job)) {
		struct module *m = pick.never ? wanted(l, &job.need) : NULL;

		worked = true;
		if (m)
			not_now(l, m, RETRY_BEHIND_NS);
		else if (!pick.never)
			open_first(l, &job);
	}
	return worked;
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
	if (now - l->unmapped_ns >= period * NUM_MS) {
		l->unmapped_ns = now;
		n = l->unmapped(l->unmapped_ctx, ids, SF_MAX_MODULES);
		if (n < 0)
			l->unmapped = NULL;
		else
			tables_unmapped(l->tables, ids, (size_t)n, l->idle_ms);
	}
	return ms < (int)period ? ms : (int)period;
}

/* What other threads may know of the lanes. */
static void count_active(struct loader *l)
{
	struct loader_parser_totals *t = &l->totals.parser;

	pthread_mutex_lock(&l->lock);
	l->opening = openers_busy(&l->openers);
	l->active = l->opening;
	t->died = l->openers.died;
	t->late = l->openers.late;
	t->cpu_ns = openers_cpu_ns(&l->openers);
	for (int i = 0; i < LANES; i++) {
		const struct table_parser *p = &l->lanes[i].parser;

		l->active += p->busy;
		t->died += p->died;
		t->late += p->late;
		t->cpu_ns += table_parser_cpu_ns(p);
	}
	pthread_mutex_unlock(&l->lock);
}

/* What has come from the children, and the next files for those that have nothing to do. Whether anything happened. */
static bool step(struct loader *l)
{
	struct table_answer a;
	bool worked = step_openers(l);
	struct load_job job;

	for (int i = 0; i < LANES; i++) {
		struct lane *lane = &l->lanes[i];
		bool was_busy = lane->parser.busy;
		enum table_event event = table_parser_look(&lane->parser, &a);

		if (event == TABLE_ANSWERED)
			answered(l, lane, &a);
		else if (event != TABLE_NOTHING && was_busy)
			try_again(l, &lane->job, event == TABLE_LATE);
		worked |= event != TABLE_NOTHING;
		while (!lane->parser.busy && next_for_lane(l, i, &job)) {
			begin(l, i, &job);
			worked = true;
		}
	}
	/* A file that is not opened soon is not waited for any longer. */
	if (worked || l->opening != openers_busy(&l->openers)) {
		count_active(l);
		if (l->running)
			tables_tend(l->tables);
	}
	return worked;
}

/* Until a child or another thread has something to say, `ms` at most. */
static void wait_for_work(struct loader *l, int ms)
{
	struct pollfd p[1 + LANES + OPENERS] = { { .fd = l->wake, .events = POLLIN } };
	uint64_t n;

	ms = openers_poll(&l->openers, p + 1 + LANES, ms);
	for (int i = 0; i < LANES; i++) {
		const struct table_parser *parser = &l->lanes[i].parser;

		p[1 + i] = (struct pollfd){ .fd = table_parser_sock(parser), .events = POLLIN };
		if (parser->busy && ms > WATCH_MS)
			ms = WATCH_MS;
		else if (parser->child.pid && ms > (int)(CHILD_IDLE_NS / NUM_MS))
			ms = (int)(CHILD_IDLE_NS / NUM_MS);
	}
	if (poll(p, 1 + LANES + OPENERS, ms) > 0 && p[0].revents && read(l->wake, &n, sizeof(n)) < 0)
		n = 0;	/* somebody else's, or none: it is looked at in any case */
}

static bool all_done(struct loader *l)
{
	bool busy;

	pthread_mutex_lock(&l->lock);
	busy = l->queue.n || l->active;
	pthread_mutex_unlock(&l->lock);
	return !busy;
}

static void *loader_main(void *arg)
{
	struct loader *l = arg;
	bool stop = false;

	/*
	 * On a busy machine, the one that needs a profiler, a file's first samples wait for this thread. It runs for
	 * milliseconds, so let it run at once. Best effort: without the capability it is a thread like others.
	 */
	setpriority(PRIO_PROCESS, (id_t)gettid(), LOADER_NICE);
	while (!stop) {
		if (!step(l)) {
			bool done = all_done(l);
			int ms = done ? tend(l) : WATCH_MS;

			for (int i = 0; i < LANES; i++)
				table_parser_end(&l->lanes[i].parser, clock_ns(CLOCK_MONOTONIC) - CHILD_IDLE_NS);
			if (l->lanes[SLOW].parser.busy && !l->lanes[FAST].parser.busy && !openers_busy(&l->openers))
				tables_stock(l->tables, l->lanes[SLOW].job.need.size / 15);	/* compilers and their libraries: 1/15 to 1/30 */
			wait_for_work(l, ms);
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
		s->openers = fork_server_start(open_child_rights());
	return s->openers ? 0 : -errno;
}

void loader_servers_stop(struct loader_servers *s)
{
	fork_server_stop(s->parsers);
	fork_server_stop(s->openers);
	*s = (struct loader_servers){ NULL, NULL };
}

struct loader *loader_new(struct modules *modules, struct tables *tables, struct table_cache *cache, const struct loader_servers *servers)
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
	l->cache = cache;
	openers_init(&l->openers, servers->openers);
	for (int i = 0; i < LANES; i++) {
		struct table_parser_opts opts = lane_opts[i];

		opts.server = servers->parsers;
		opts.child = table_child_main;
		table_parser_init(&l->lanes[i].parser, &opts);
	}
	pthread_mutex_init(&l->lock, NULL);
	return l;
}

int loader_load_now(struct loader *l, const struct sf_need *need)
{
	const struct load_job job = { .need = *need, .lane = OPENING };
	int err = push(l, &job);

	if (!err && !step(l) && l->queue.n > AT_ONCE)
		wait_for_work(l, WATCH_MS);
	return err;
}

void loader_settle(struct loader *l)
{
	do
		while (step(l))
			;
	while (!all_done(l) && (wait_for_work(l, WATCH_MS), true));
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
		convert_vdso(l, m);
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
	int err;

	l->running = true;
	err = pthread_create(&l->thread, NULL, loader_main, l);
	l->running = !err;
	return -err;
}

static void wake(struct loader *l)
{
	const uint64_t one = 1;

	/* It can only fail where it is awake already. */
	if (write(l->wake, &one, sizeof(one)) < 0)
		return;
}

int loader_push(struct loader *l, const struct sf_need *need)
{
	const struct load_job job = { .need = *need, .lane = OPENING };
	int err = push(l, &job);

	if (!err)
		wake(l);
	return err;
}

bool loader_busy(struct loader *l)
{
	return !all_done(l);
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
	pthread_mutex_unlock(&l->lock);
	wake(l);
	if (l->running)
		pthread_join(l->thread, NULL);
	for (int i = 0; i < LANES; i++)
		table_parser_end(&l->lanes[i].parser, 0);
	openers_end(&l->openers);
	pthread_mutex_destroy(&l->lock);
	close(l->wake);
	free(l->queue.jobs);
	free(l);
}
