/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/log.h"
#include "agent/spool_account.h"
#include "agent/spool_file.h"
#include "base/clock.h"
#include "base/num.h"
#include "base/vec.h"

#define MEMORY_MAX (8ull << 20) /* bytes of entries that are only in memory */

const char *const spool_outcome_names[SPOOL_OUTCOMES] = {
	"delivered", "full", "old", "refused", "damaged", "unsure", "other_protocol", "crashed",
};

struct entry {
	uint64_t seq, bytes, time_ns, samples;
	struct body *mem; /* NULL: in its file */
	bool taken;
};

struct spool {
	/*
	 * Protects all but `front`. It is held while the disk is used, which may take long: only
	 * the threads that may wait for the disk take it, those that add and take entries.
	 */
	pthread_mutex_t lock;
	int dir; /* -1: in memory */
	struct spool_opts opts;
	struct entry *entries; /* sorted by seq, ascending */
	size_t n, cap;
	uint64_t bytes, mem_bytes, disk_errors;
	bool disk_failing, full; /* the states that were logged */
	struct account account;
	struct {
		pthread_mutex_t lock; /* never held while the disk is used */
		pthread_cond_t more;
		bool woken;
		struct spool_opts opts;	    /* what spool_limits set */
		struct spool_account state; /* counters after the last change that is complete */
	} front;
};

/* ---- Entries ---- */

static void free_body(struct body *b)
{
	if (b)
		free(b->data);
	free(b);
}

/*
 * Removes entry i from the queue and the disk and counts its outcome, exactly once even if the
 * agent is killed meanwhile.
 */
static void finish(struct spool *sp, size_t i, enum spool_outcome outcome)
{
	struct entry e = sp->entries[i];

	account_begin(&sp->account, e.seq, outcome, e.samples);
	if (sp->dir >= 0 && !e.mem)
		spool_file_remove(sp->dir, e.seq);
	account_end(&sp->account);
	if (e.mem)
		sp->mem_bytes -= e.bytes;
	free_body(e.mem);
	sp->bytes -= e.bytes;
	memmove(sp->entries + i, sp->entries + i + 1, (sp->n - i - 1) * sizeof(*sp->entries));
	sp->n--;
	if (outcome == SPOOL_DELIVERED)
		sp->full = false;
}

/* A body was dropped for want of room: logged once, until the next delivery. */
static void say_full(struct spool *sp)
{
	if (!sp->full)
		agent_log(AGENT_LOG_WARN, "the spool is full: the oldest bodies are dropped",
			  "bytes", "%lu", sp->bytes, "spool_size", "%lu", sp->opts.max_bytes, NULL);
	sp->full = true;
}

static size_t find(const struct spool *sp, uint64_t seq)
{
	size_t i = 0;

	while (i < sp->n && sp->entries[i].seq != seq)
		i++;
	return i;
}

/* Drops the oldest entry that is not being sent. False: no such entry. */
static bool drop_oldest(struct spool *sp, enum spool_outcome outcome)
{
	for (size_t i = 0; i < sp->n; i++) {
		if (sp->entries[i].taken)
			continue;
		finish(sp, i, outcome);
		return true;
	}
	return false;
}

static void drop_old(struct spool *sp)
{
	uint64_t now = clock_ns(CLOCK_REALTIME);

	for (size_t i = 0; i < sp->n;) {
		const struct entry *e = &sp->entries[i];

		/* If the clock was set back, no entry is too old. */
		if (!e->taken && now > e->time_ns && now - e->time_ns > sp->opts.max_age_ns)
			finish(sp, i, SPOOL_OLD);
		else
			i++;
	}
}

static void enforce(struct spool *sp, uint64_t coming)
{
	drop_old(sp);
	while (sp->bytes + coming > sp->opts.max_bytes && drop_oldest(sp, SPOOL_FULL))
		say_full(sp);
}

/* ---- Locks ---- */

static void enter(struct spool *sp)
{
	struct spool_opts now;

	pthread_mutex_lock(&sp->lock);
	pthread_mutex_lock(&sp->front.lock);
	now = sp->front.opts;
	pthread_mutex_unlock(&sp->front.lock);
	if (now.max_bytes == sp->opts.max_bytes && now.max_age_ns == sp->opts.max_age_ns)
		return;
	sp->opts = now;
	enforce(sp, 0);
}

/* Shows the state to the other threads. */
static void show(struct spool *sp)
{
	struct spool_account a = { .bytes = sp->bytes, .disk_errors = sp->disk_errors };

	account_get(&sp->account, &a.added, a.done);
	for (size_t i = 0; i < sp->n; i++) {
		a.held.entries++;
		a.held.samples += sp->entries[i].samples;
		a.in_memory += sp->entries[i].mem != NULL;
	}
	a.oldest_ns = sp->n ? sp->entries[0].time_ns : 0;
	pthread_mutex_lock(&sp->front.lock);
	sp->front.state = a;
	pthread_cond_signal(&sp->front.more);
	pthread_mutex_unlock(&sp->front.lock);
}

static void leave(struct spool *sp)
{
	show(sp);
	pthread_mutex_unlock(&sp->lock);
}

/* ---- Opening ---- */

static int found_file(void *ctx, const struct spool_head *h)
{
	struct spool *sp = ctx;

	if (vec_reserve(&sp->entries, &sp->cap, sp->n + 1, sizeof(*sp->entries)))
		return -ENOMEM;
	sp->entries[sp->n++] = (struct entry){
		.seq = h->seq,
		.bytes = sizeof(*h) + h->len,
		.time_ns = h->time_ns,
		.samples = h->samples,
	};
	sp->bytes += sizeof(*h) + h->len;
	return 0;
}

static int by_seq(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

/* Reads the entries in the directory and corrects the account accordingly. */
static int resume(struct spool *sp)
{
	struct spool_count held = { 0 };
	uint64_t damaged = 0, last = 0;
	int err = spool_files(sp->dir, found_file, sp, &damaged);

	if (err)
		return err;
	if (sp->n)
		qsort(sp->entries, sp->n, sizeof(*sp->entries), by_seq);
	for (size_t i = 0; i < sp->n; i++) {
		held.entries++;
		held.samples += sp->entries[i].samples;
		last = sp->entries[i].seq;
	}
	account_resume(&sp->account, &held, damaged, last);
	drop_old(sp);
	enforce(sp, 0);
	return 0;
}

static int open_dir(struct spool *sp, char *err, size_t cap)
{
	const char *dir = sp->opts.dir;
	int rc;

	if (mkdir(dir, 0700) && errno != EEXIST)
		return snprintf(err, cap, "%s: %s", dir, strerror(errno)), -errno;
	sp->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (sp->dir < 0)
		return snprintf(err, cap, "%s: %s", dir, strerror(errno)), -errno;
	if (flock(sp->dir, LOCK_EX | LOCK_NB))
		return snprintf(err, cap, "%s: in use by another agent", dir), -EBUSY;
	rc = account_open(&sp->account, sp->dir);
	if (!rc)
		rc = resume(sp);
	if (rc)
		snprintf(err, cap, "%s: %s", dir, strerror(-rc));
	return rc;
}

struct spool *spool_open(const struct spool_opts *opts, char *err, size_t cap)
{
	struct spool *sp = calloc(1, sizeof(*sp));

	if (!sp) {
		snprintf(err, cap, "out of memory");
		return NULL;
	}
	sp->opts = sp->front.opts = *opts;
	sp->dir = -1;
	pthread_mutex_init(&sp->lock, NULL);
	pthread_mutex_init(&sp->front.lock, NULL);
	pthread_cond_init(&sp->front.more, NULL);
	snprintf(err, cap, "out of memory");
	if (account_open(&sp->account, -1) || (opts->dir && open_dir(sp, err, cap))) {
		spool_close(sp);
		return NULL;
	}
	show(sp);
	return sp;
}

void spool_close(struct spool *sp)
{
	if (!sp)
		return;
	for (size_t i = 0; i < sp->n; i++)
		free_body(sp->entries[i].mem);
	account_close(&sp->account);
	if (sp->dir >= 0)
		close(sp->dir);
	pthread_cond_destroy(&sp->front.more);
	pthread_mutex_destroy(&sp->front.lock);
	pthread_mutex_destroy(&sp->lock);
	free(sp->entries);
	free(sp);
}

int spool_give(struct spool *sp, uid_t uid, gid_t gid)
{
	int err = sp->dir >= 0 && fchown(sp->dir, uid, gid) ? -errno : 0;

	if (!err && sp->dir >= 0)
		err = account_give(sp->dir, uid, gid);
	for (size_t i = 0; i < sp->n && !err; i++)
		if (!sp->entries[i].mem)
			err = spool_file_give(sp->dir, sp->entries[i].seq, uid, gid);
	return err;
}

void spool_limits(struct spool *sp, const struct spool_opts *opts)
{
	pthread_mutex_lock(&sp->front.lock);
	sp->front.opts.max_bytes = opts->max_bytes;
	sp->front.opts.max_age_ns = opts->max_age_ns;
	pthread_mutex_unlock(&sp->front.lock);
}

/* ---- Adding ---- */

/*
 * Drops entries in memory to make room. False: bytes alone exceed the limit, or all are being sent.
 */
static bool room_in_memory(struct spool *sp, uint64_t bytes)
{
	for (size_t i = 0; i < sp->n && sp->mem_bytes + bytes > MEMORY_MAX;) {
		if (sp->entries[i].mem && !sp->entries[i].taken) {
			finish(sp, i, SPOOL_FULL);
			say_full(sp);
		} else {
			i++;
		}
	}
	return sp->mem_bytes + bytes <= MEMORY_MAX;
}

/*
 * A full or broken disk is logged when it begins and when it ends. It ends when a body is written
 * and none is held in memory: on a nearly full disk, small bodies fit between large ones.
 */
static void note_disk(struct spool *sp, int err)
{
	if (err)
		sp->disk_errors++;
	if (err && !sp->disk_failing)
		agent_log(AGENT_LOG_ERROR,
			  "the spool cannot be written: bodies stay in memory, and the oldest are "
			  "dropped beyond 8 MB",
			  "error", "%s", strerror(-err), NULL);
	else if (!err && sp->disk_failing && !sp->mem_bytes)
		agent_log(AGENT_LOG_INFO, "the spool can be written again", NULL);
	sp->disk_failing = err || (sp->disk_failing && sp->mem_bytes);
}

/* Writes b to disk, or if that fails copies it into *ret_mem. */
static int store(struct spool *sp, struct body *b, uint64_t seq, struct body **ret_mem)
{
	int err = sp->dir < 0 ? -ENOENT : spool_file_write(sp->dir, seq, b);

	if (sp->dir >= 0)
		note_disk(sp, err);
	*ret_mem = NULL;
	if (!err)
		return 0;
	*ret_mem = room_in_memory(sp, sizeof(struct spool_head) + b->len)
			   ? malloc(sizeof(**ret_mem))
			   : NULL;
	if (!*ret_mem)
		return -ENOMEM;
	sp->mem_bytes += sizeof(struct spool_head) + b->len;
	**ret_mem = *b;
	b->data = NULL;
	return 0;
}

/* Counts a body that was dropped before it became an entry. */
static void count_dropped(struct spool *sp, const struct body *b)
{
	account_add(&sp->account, b->samples);
	account_begin(&sp->account, 0, SPOOL_FULL, b->samples);
	account_end(&sp->account);
}

int spool_add(struct spool *sp, struct body *b)
{
	uint64_t bytes = sizeof(struct spool_head) + b->len;
	struct body *mem = NULL;
	int err = 0;

	enter(sp);
	if (bytes > sp->opts.max_bytes) {
		count_dropped(sp, b);
		err = -ENOSPC;
	} else {
		enforce(sp, bytes);
	}
	if (!err && vec_reserve(&sp->entries, &sp->cap, sp->n + 1, sizeof(*sp->entries))) {
		count_dropped(sp, b);
		err = -ENOMEM;
	}
	if (!err) {
		uint64_t seq = account_next(&sp->account, b->samples);

		err = store(sp, b, seq, &mem);
		account_added(&sp->account, !err);
		if (err) {
			count_dropped(sp, b);
		} else {
			sp->entries[sp->n++] = (struct entry){ seq,	   bytes, b->time_ns,
							       b->samples, mem,	  false };
			sp->bytes += bytes;
		}
	}
	leave(sp);
	free(b->data);
	b->data = NULL;
	return err;
}

/* ---- Taking ---- */

static int load(struct spool *sp, const struct entry *e, struct body *b)
{
	if (!e->mem)
		return spool_file_read(sp->dir, e->seq, b);
	*b = *e->mem;
	b->data = malloc(b->len ? b->len : 1);
	if (!b->data)
		return -ENOMEM;
	memcpy(b->data, e->mem->data, b->len);
	return 0;
}

int spool_take(struct spool *sp, struct body *b, uint64_t *seq, bool *again)
{
	int err = -ENOENT;

	enter(sp);
	drop_old(sp);
	while (sp->n) {
		struct entry *e = &sp->entries[0];

		err = load(sp, e, b);
		if (err == -EBADMSG || err == -ENOENT) {
			finish(sp, 0, SPOOL_DAMAGED);
			err = -ENOENT;
			continue;
		}
		if (!err) {
			e->taken = true;
			*seq = e->seq;
			*again = account_was_sending(&sp->account, e->seq);
		}
		break;
	}
	leave(sp);
	return err;
}

void spool_sending(struct spool *sp, uint64_t seq)
{
	pthread_mutex_lock(&sp->lock);
	account_sending(&sp->account, seq);
	pthread_mutex_unlock(&sp->lock);
}

void spool_done(struct spool *sp, uint64_t seq, enum spool_outcome outcome)
{
	size_t i;

	enter(sp);
	i = find(sp, seq);
	if (i < sp->n)
		finish(sp, i, outcome);
	account_sending(&sp->account, 0);
	leave(sp);
}

void spool_keep(struct spool *sp, uint64_t seq)
{
	size_t i;

	pthread_mutex_lock(&sp->lock);
	i = find(sp, seq);
	if (i < sp->n)
		sp->entries[i].taken = false;
	pthread_mutex_unlock(&sp->lock);
}

void spool_wait(struct spool *sp)
{
	pthread_mutex_lock(&sp->front.lock);
	while (!sp->front.state.held.entries && !sp->front.woken)
		pthread_cond_wait(&sp->front.more, &sp->front.lock);
	sp->front.woken = false;
	pthread_mutex_unlock(&sp->front.lock);
}

void spool_wake(struct spool *sp)
{
	pthread_mutex_lock(&sp->front.lock);
	sp->front.woken = true;
	pthread_cond_signal(&sp->front.more);
	pthread_mutex_unlock(&sp->front.lock);
}

uint64_t spool_kept(struct spool *sp)
{
	uint64_t kept = 0;

	pthread_mutex_lock(&sp->lock);
	for (size_t i = 0; i < sp->n; i++)
		kept += !sp->entries[i].mem && spool_file_exists(sp->dir, sp->entries[i].seq);
	pthread_mutex_unlock(&sp->lock);
	return kept;
}

void spool_account(struct spool *sp, struct spool_account *ret)
{
	pthread_mutex_lock(&sp->front.lock);
	*ret = sp->front.state;
	pthread_mutex_unlock(&sp->front.lock);
}
