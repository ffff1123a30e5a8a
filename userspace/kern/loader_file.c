/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/text.h"
#include "kern/loader_internal.h"
#include "readers/row_stream.h"

#define LARGE_BYTES (2u << 20)
/* Samples with SF_MODULE_MORE_ROWS are read from the ring within this time */
#define RING_NS	    (50 * NUM_MS)

/* Counts the file once for each kind of outcome. known: m->known before the event. */
static void count(struct loader *l, const struct module *m, enum file_known known)
{
	if (m->known <= known)
		return;
	pthread_mutex_lock(&l->lock);
	l->totals.loaded += m->known == KNOWN_TABLES;
	l->totals.no_table += m->known == KNOWN_FILE;
	l->totals.gone += m->known == KNOWN_PATH;
	l->totals.rows += m->rows;
	l->totals.rules += m->rules;
	l->totals.bytes += m->bytes;
	pthread_mutex_unlock(&l->lock);
}

bool loader_advance(struct loader *l, struct module *m, enum file_event event)
{
	enum file_known known = m->known;
	enum sf_module_state bpf;
	uint32_t retry_ms;

	if (!module_advance(m, event, &retry_ms))
		return false;
	bpf = file_life_bpf(m->state);
	/* BPF has set SF_MOD_LOADING; tables_publish sets SF_MOD_READY. */
	if (bpf != SF_MOD_LOADING && bpf != SF_MOD_READY)
		tables_set_state(l->tables, m->id, bpf, retry_ms);
	count(l, m, known);
	return true;
}

/* The result of converting a file. */
struct outcome {
	/* 0, or -errno as in table_answer.err; -ENOSPC, -ENOMEM: no room for the tables */
	int err;
	struct pack_result packed; /* valid if !err */
	uint64_t cpu_ns;
};

static enum file_event event_of(int err)
{
	switch (err) {
	case 0:
		return EVENT_PUBLISHED;
	case -ENOMEM:
	case -ENOSPC:
		return EVENT_NO_ROOM;
	case -ENOEXEC:
		return EVENT_NOT_ELF;
	default:
		return EVENT_NO_TABLES;
	}
}

/* Takes over packed->ranges. Without memory for them, rows count as those of .eh_frame. */
static void set_facts(struct loader *l, struct module *m, const struct pack_result *packed)
{
	if (packed->language)
		__atomic_fetch_or(&l->languages, 1u << packed->language, __ATOMIC_RELAXED);
	m->rows = packed->rows;
	m->rules = packed->rules;
	m->bytes = packed->bytes;
	module_set_ranges(m, packed->ranges, packed->nranges);
}

/*
 * Publishes or aborts the tables. Takes over or frees packed.ranges. The loader does nothing else
 * between tables_begin and this.
 */
static void conclude(struct loader *l, struct module *m, struct outcome *o)
{
	if (o->packed.bytes > m->room)
		m->room = o->packed.bytes;
	if (!o->err)
		o->err = tables_publish(l->tables, m->id, &o->packed.tables);
	if (o->err)
		tables_abort(l->tables);
	if (m->known < KNOWN_TABLES && !o->err) {
		set_facts(l, m, &o->packed);
		loader_watch(l, m);
	} else {
		free(o->packed.ranges);
	}
	loader_advance(l, m, event_of(o->err));
	pthread_mutex_lock(&l->lock);
	l->totals.build_ns += o->cpu_ns;
	pthread_mutex_unlock(&l->lock);
}

/* Converts the vDSO in this process, because the kernel provides the image. */
static void convert_vdso(struct loader *l, struct module *m)
{
	struct outcome o = { .cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) };
	struct pack_space space = tables_space(l->tables);
	struct unwind_file file;

	if (!loader_advance(l, m, EVENT_STILL_OPEN) || !loader_advance(l, m, EVENT_SENT))
		return;
	o.err = unwind_file_open_mem(&file, m->mem, m->size, NULL);
	if (!o.err) {
		m->build_id_len = (uint32_t)elf_image_build_id(&file.img, m->build_id,
							       sizeof(m->build_id));
		o.err = tables_begin(l->tables, m->id, m->room);
		if (!o.err)
			o.err = pack_file(&file, &space, &o.packed, NULL);
		unwind_file_close(&file);
	}
	o.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - o.cpu_ns;
	conclude(l, m, &o);
}

int loader_enqueue(struct loader *l, const struct load_job *job)
{
	int err;

	pthread_mutex_lock(&l->lock);
	err = load_queue_push(&l->queue, job);
	pthread_mutex_unlock(&l->lock);
	return err;
}

struct module *loader_wanted(struct loader *l, const struct sf_need *need)
{
	return tables_missing(l->tables, need->module) ? modules_get(l->modules, need->module)
						       : NULL;
}

static void give_up(struct loader *l, struct module *m)
{
	l->workers.failed++;
	loader_advance(l, m, EVENT_GIVEN_UP);
}

/* Queues the job for the worker of its lane. */
static void enqueue(struct loader *l, struct module *m, const struct load_job *job)
{
	if (loader_enqueue(l, job))
		give_up(l, m);
}

static void put_back(struct loader *l, struct module *m, struct load_job *job)
{
	job->lane = SLOW;
	if (loader_advance(l, m, EVENT_PUT_BACK))
		enqueue(l, m, job);
}

/*
 * The worker died, took too long or ran out of memory. The file may not be the cause (the machine
 * may be out of memory), so there is a second try, except after a timeout in the slow lane.
 */
void loader_try_again(struct loader *l, struct load_job *job, bool late)
{
	struct module *m = loader_wanted(l, &job->need);
	bool last = job->tries || (late && job->lane == SLOW);

	if (!m)
		return;
	job->tries++;
	if (last)
		give_up(l, m);
	else
		put_back(l, m, job);
}

static void charge_to(struct loader *l, struct module *m, uint32_t owner)
{
	m->owner = owner;
	tables_set_owner(l->tables, m->id, owner);
}

static bool hand_over(struct loader *l, const struct sf_need *need)
{
	bool ok;

	pthread_mutex_lock(&l->lock);
	ok = load_queue_hand_over(&l->queue, need);
	pthread_mutex_unlock(&l->lock);
	return ok;
}

void loader_open(struct loader *l, struct load_job *job)
{
	struct module *m = job->need.key.ino == SF_KEY_VDSO ? NULL : loader_wanted(l, &job->need);

	if (!m)
		return;
	if (m->known == KNOWN_ID) {
		m->key = job->need.key;
		m->size = job->need.size;
	}
	job->lane = FAST;
	if (m->fd >= 0 && loader_advance(l, m, EVENT_STILL_OPEN)) {
		charge_to(l, m, job->need.owner);
		enqueue(l, m, job);
	} else if (m->fd >= 0) {
		if (hand_over(l, &job->need))
			charge_to(l, m, job->need.owner);
	} else if (loader_advance(l, m, EVENT_ASKED)) {
		charge_to(l, m, job->need.owner);
		if (!openers_ask(&l->openers, &job->need, modules_copied()))
			return;
		l->workers.failed++;
		loader_advance(l, m, EVENT_NO_ANSWER);
	}
}

static void opened(struct loader *l, struct module *m, const struct sf_need *need,
		   const struct open_answer *a, int fd)
{
	const struct load_job job = { .need = *need, .lane = FAST };

	if (a->err == -EFBIG || a->err == -ENOMEM) {
		give_up(l, m); /* too large to copy, or no memory */
	} else if (a->err) {
		loader_advance(l, m, EVENT_GONE);
	} else {
		module_set_file(m, fd, a->bytes, a->ctime_ns);
		loader_advance(l, m, EVENT_OPENED);
		enqueue(l, m, &job);
	}
}

bool loader_handle_openers(struct loader *l)
{
	struct open_answer a;
	struct sf_need need;
	bool any = false;
	int fd, event;

	while ((event = openers_look(&l->openers, &need, &a, &fd)) != -EAGAIN) {
		struct module *m = loader_wanted(l, &need);

		any = true;
		/* If another file was in the mapping, the path is that file's. */
		if (m && !event && a.err != -ESTALE && !m->path && a.path[0])
			module_set_path(m, a.path);
		if (event == -ETIMEDOUT)
			l->workers.failed++;
		if (m && event)
			loader_advance(l, m, event == -ETIMEDOUT ? EVENT_NO_ANSWER : EVENT_GONE);
		else if (m && a.err != -EINPROGRESS && m->state == FILE_OPENING)
			opened(l, m, &need, &a, fd);
		else if (!event && !a.err)
			close(fd);
	}
	return any;
}

/*
 * The module of a later pass, if it still has tables. One whose id was given up may be freed
 * already, and modules_get would make another of that id, which nothing frees.
 */
static struct module *later_pass(struct loader *l, const struct load_job *job)
{
	struct module *m = tables_has(l->tables, job->need.module)
				   ? modules_get(l->modules, job->need.module)
				   : NULL;

	return m && m->state == FILE_PUBLISHED && m->fd >= 0 ? m : NULL;
}

bool loader_wants_job(struct loader *l, const struct load_job *job)
{
	return job->code ? later_pass(l, job) != NULL : tables_missing(l->tables, job->need.module);
}

static void convert_again(struct loader *l, int lane, const struct load_job *job,
			  const struct worker_limits *limits)
{
	const struct table_ask ask = { .code = job->code, .code_at = job->code_at };
	struct module *m = later_pass(l, job);

	if (!m)
		return;
	l->lanes[lane].job = *job;
	if (worker_ask(&l->lanes[lane].worker, limits, &ask, sizeof(ask), &m->fd, 1))
		l->workers.failed++;
}

void loader_convert(struct loader *l, int lane, const struct load_job *job,
		    const struct worker_limits *limits)
{
	const struct table_ask ask = { .max_bytes = lane == FAST ? LARGE_BYTES : 0 };
	struct module *m;

	if (job->code) {
		convert_again(l, lane, job, limits);
		return;
	}
	m = loader_wanted(l, &job->need);
	if (!m || m->state != FILE_OPEN)
		return;
	/* Makes room before the conversion, so that it is not wasted. */
	if (tables_make_room(l->tables, m->id, m->room)) {
		loader_advance(l, m, EVENT_NO_ROOM);
		return;
	}
	l->lanes[lane].job = *job;
	if (worker_ask(&l->lanes[lane].worker, limits, &ask, sizeof(ask), &m->fd, 1))
		give_up(l, m);
	else
		loader_advance(l, m, EVENT_SENT);
}

/* Valid tables are smaller than twice the file and a few pages. */
static uint64_t most_bytes(const struct module *m)
{
	return m->size < UINT64_MAX / 4 ? 2 * m->size + SF_CHUNK : UINT64_MAX;
}

/* Samples that were taken before the tables were published do not count. */
static void expect_code(struct module *m, enum table_code next)
{
	m->code_ns = clock_ns(CLOCK_MONOTONIC) + RING_NS;
	m->next_code = next;
}

/* What follows the first pass over machine code: nothing, all of it, or what a sample needs. */
static void plan_code(struct loader *l, struct module *m, const struct table_answer *a)
{
	const struct load_job job = {
		.need = { .module = m->id, .owner = m->owner },
		.lane = SLOW,
		.code = CODE_ALL,
	};

	m->next_code = CODE_QUICK;
	if (m->state != FILE_PUBLISHED || !a->code_left)
		return;
	if (!a->code_soon || !l->started || loader_enqueue(l, &job))
		m->next_code = CODE_FUNCTION;
}

static void take_tables(struct loader *l, struct lane *from, struct module *m,
			const struct table_answer *a)
{
	uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	const struct pack_space space = tables_space(l->tables);
	struct outcome o = { .err = a->err };

	if (!o.err)
		o.err = tables_begin(l->tables, m->id, m->room);
	if (!o.err)
		o.err = table_worker_read(&from->worker, a, most_bytes(m), &space, &o.packed);
	o.cpu_ns = a->cpu_ns + clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
	if (o.err == -EBADMSG) {
		tables_abort(l->tables);
		give_up(l, m);
	} else {
		conclude(l, m, &o);
		plan_code(l, m, a);
	}
}

/*
 * Whether the answer is about the bytes that BPF has met: those of the time when the file was
 * opened, or of that of its first tables.
 */
static bool has_bytes_of(const struct module *m, const struct table_answer *a)
{
	uint64_t ns;

	if (m->known >= KNOWN_TABLES && m->digest)
		return a->message == TABLE_LARGE || a->digest == m->digest;
	return module_change(m, &ns) != MODULE_WRITTEN;
}

/* The answer of a later pass. After an error the module keeps the tables that it has. */
static void replace_tables(struct loader *l, struct lane *from, const struct table_answer *a)
{
	const struct pack_space space = tables_space(l->tables);
	struct module *m = later_pass(l, &from->job);
	struct pack_result packed = { 0 };
	int err = !m || !has_bytes_of(m, a) ? -ESRCH : a->message == TABLE_DONE ? a->err : -EFBIG;

	if (!err)
		err = tables_begin(l->tables, m->id, 0);
	if (!err) {
		err = table_worker_read(&from->worker, a, most_bytes(m), &space, &packed);
		if (!err)
			err = tables_publish(l->tables, m->id, &packed.tables);
		else
			tables_abort(l->tables);
	}
	pthread_mutex_lock(&l->lock);
	l->totals.build_ns += a->cpu_ns;
	l->totals.rows += err ? 0 : packed.rows - m->rows;
	l->totals.rules += err ? 0 : packed.rules - m->rules;
	l->totals.bytes += err ? 0 : packed.bytes - m->bytes;
	pthread_mutex_unlock(&l->lock);
	if (err)
		free(packed.ranges);
	else
		set_facts(l, m, &packed);
	if (m)
		expect_code(m, (err ? from->job.code == CODE_FUNCTION : a->code_left) ? CODE_ALL
										      : CODE_QUICK);
}

void loader_want_code(struct loader *l, uint32_t module, uint64_t offset)
{
	struct module *m = modules_find(l->modules, module);
	struct load_job job = { .need = { .module = module }, .lane = SLOW, .code_at = offset };

	if (!m || m->known < KNOWN_TABLES || !m->next_code ||
	    clock_ns(CLOCK_MONOTONIC) < m->code_ns)
		return;
	job.need.owner = m->owner;
	job.code = m->next_code;
	m->next_code = CODE_QUICK;
	if (!loader_enqueue(l, &job))
		loader_wake(l);
}

void loader_answered(struct loader *l, struct lane *from, const struct table_answer *a)
{
	struct load_job job = from->job;
	struct module *m;

	if (job.code) {
		replace_tables(l, from, a);
		return;
	}
	m = loader_wanted(l, &job.need);
	if (!m)
		return;
	if (!has_bytes_of(m, a)) {
		loader_advance(l, m, EVENT_GONE);
		return;
	}
	if (a->message == TABLE_LARGE) {
		if (job.lane == FAST)
			put_back(l, m, &job);
		else
			give_up(l, m);
		return;
	}
	if (m->known < KNOWN_TABLES) {
		m->digest = a->digest;
		memcpy(m->build_id, a->build_id, sizeof(m->build_id));
		m->build_id_len = a->build_id_len;
	}
	if (a->err == -ENOMEM)
		loader_try_again(l, &job, false);
	else
		take_tables(l, from, m, a);
}

void loader_load_vdso(struct loader *l, uint32_t module, const struct sf_file_key *key)
{
	struct module *m = modules_get(l->modules, module);
	unsigned long long start, end;
	char line[512];
	FILE *f;

	if (!m)
		return;
	module_set_path(m, "[vdso]");
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
