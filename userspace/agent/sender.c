/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/sender.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "agent/log.h"
#include "agent/receiver.h"
#include "agent/window_file.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/num.h"

#define QUEUE_MAX	   64 /* bodies that wait for the writer */
#define QUEUE_BYTES	   (32u << 20)
/* Tries for a body that the server answers with an internal error */
#define POISON_TRIES	   10
#define RETRY_AFTER_MAX_S  600
#define UNREADABLE_WAIT_NS NUM_S

struct queued {
	struct body body;
	bool copy;
};

struct sender {
	struct spool *spool;
	const char *host;
	void (*on_thread)(void);
	pthread_t writer, sender;
	pthread_mutex_t lock; /* protects the members below */
	pthread_cond_t change;
	struct queued queue[QUEUE_MAX];
	size_t nqueue, queue_bytes;
	/* a body was taken from the queue and is not in the spool yet */
	bool writing;
	struct agent_config *next; /* the one that sender_reload got; NULL: none */
	char *copy_dir, *copy_format;
	struct sender_stats stats;
	atomic_bool stop;
	bool copy_failing; /* used only by the writer thread */
	/* used only by the sender thread */
	struct agent_config *cfg;
	uint64_t wait_ns, tries, tried_seq;
	bool failing;
};

/* ---- The writer ---- */

static void drop_first(struct sender *s)
{
	s->queue_bytes -= s->queue[0].body.len;
	memmove(s->queue, s->queue + 1, --s->nqueue * sizeof(*s->queue));
}

void sender_push(struct sender *s, struct body *b, bool copy)
{
	pthread_mutex_lock(&s->lock);
	while (s->nqueue && (s->nqueue == QUEUE_MAX || s->queue_bytes + b->len > QUEUE_BYTES)) {
		if (s->queue[0].copy) {
			s->stats.copy_errors++;
		} else {
			s->stats.overrun.entries++;
			s->stats.overrun.samples += s->queue[0].body.samples;
		}
		free(s->queue[0].body.data);
		drop_first(s);
	}
	s->queue[s->nqueue++] = (struct queued){ *b, copy };
	s->queue_bytes += b->len;
	b->data = NULL;
	pthread_cond_broadcast(&s->change);
	pthread_mutex_unlock(&s->lock);
}

static void write_one(struct sender *s, struct queued *q, const char *dir, const char *format)
{
	int err = q->copy ? window_file_write(dir, format, s->host, &q->body)
			  : spool_add(s->spool, &q->body);

	if (!q->copy) {
		if (err)
			agent_log(AGENT_LOG_ERROR, "a body could not be spooled", "error", "%s",
				  strerror(-err), NULL);
		return;
	}
	free(q->body.data);
	if (err && !s->copy_failing)
		agent_log(AGENT_LOG_ERROR, "copies cannot be written", "error", "%s",
			  strerror(-err), NULL);
	else if (!err && s->copy_failing)
		agent_log(AGENT_LOG_INFO, "copies can be written again", NULL);
	s->copy_failing = err != 0;
	if (!err)
		return;
	pthread_mutex_lock(&s->lock);
	s->stats.copy_errors++;
	pthread_mutex_unlock(&s->lock);
}

static void block_signals(void)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
}

static void *writer_main(void *arg)
{
	struct sender *s = arg;
	struct queued q;

	block_signals();
	s->on_thread();
	pthread_mutex_lock(&s->lock);
	for (;;) {
		while (!s->nqueue && !s->stop)
			pthread_cond_wait(&s->change, &s->lock);
		if (!s->nqueue)
			break; /* the queue is written out even when stopping */
		char *dir = strdup(s->copy_dir ? s->copy_dir : ""),
		     *format = strdup(s->copy_format ? s->copy_format : "");

		q = s->queue[0];
		drop_first(s);
		s->writing = true;
		pthread_mutex_unlock(&s->lock);
		write_one(s, &q, dir ? dir : "", format ? format : "");
		free(dir);
		free(format);
		pthread_mutex_lock(&s->lock);
		s->writing = false;
		pthread_cond_broadcast(&s->change);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* ---- The sender ---- */

static bool stopping(void *ctx)
{
	return atomic_load(&((struct sender *)ctx)->stop);
}

static void take_config(struct sender *s)
{
	pthread_mutex_lock(&s->lock);
	if (s->next) {
		agent_config_free(s->cfg);
		s->cfg = s->next;
		s->next = NULL;
		s->wait_ns = 0;
	}
	pthread_mutex_unlock(&s->lock);
}

static void count_request(struct sender *s, const struct body *b, const struct delivery *d)
{
	struct sender_stats *st = &s->stats;
	size_t i = 0;

	pthread_mutex_lock(&s->lock);
	st->requests++;
	st->bytes += b->len;
	st->seconds += d->seconds;
	st->rejected_profiles += d->rejected;
	while (i < st->ncodes && strcmp(st->codes[i].code, d->code))
		i++;
	if (i == st->ncodes && i < SENDER_CODES)
		memcpy(st->codes[st->ncodes++].code, d->code, sizeof(d->code));
	if (i < st->ncodes)
		st->codes[i].n++;
	if (d->verdict == DELIVER_OK) {
		st->failures = 0;
		st->last_ok_ns = clock_ns(CLOCK_MONOTONIC);
	} else {
		st->failures++;
	}
	pthread_mutex_unlock(&s->lock);
}

/*
 * The wait after a failure: what the server requested, or a time that doubles, of which a random
 * half to all is used.
 */
static uint64_t next_wait(struct sender *s, const struct delivery *d)
{
	uint64_t ns = s->wait_ns ? s->wait_ns * 2 : s->cfg->retry_min_ns;

	if (ns > s->cfg->retry_max_ns || d->verdict == DELIVER_CONFIG)
		ns = s->cfg->retry_max_ns;
	s->wait_ns = ns;
	if (d->retry_after_s >= 0)
		return (uint64_t)((d->retry_after_s > RETRY_AFTER_MAX_S ? RETRY_AFTER_MAX_S
									: d->retry_after_s) *
				  1e9);
	return ns / 2 + hash_u64(clock_ns(CLOCK_MONOTONIC)) % (ns / 2 + 1);
}

static void pause_for(struct sender *s, uint64_t ns)
{
	uint64_t until = clock_ns(CLOCK_MONOTONIC) + ns;
	struct timespec ts = { .tv_sec = (time_t)(until / NUM_S),
			       .tv_nsec = (long)(until % NUM_S) };

	pthread_mutex_lock(&s->lock);
	while (!s->stop && !s->next && clock_ns(CLOCK_MONOTONIC) < until)
		if (pthread_cond_timedwait(&s->change, &s->lock, &ts) == ETIMEDOUT)
			break;
	pthread_mutex_unlock(&s->lock);
}

static void drop(struct sender *s, const struct body *b, uint64_t seq, enum spool_outcome why,
		 const struct delivery *d)
{
	spool_done(s->spool, seq, why);
	receiver_dropped(b);
	agent_log(AGENT_LOG_ERROR, "dropped", "reason", "%s", spool_outcome_names[why], "status",
		  "%s", d->code, "samples", "%lu", b->samples, "error", "%s", d->error, NULL);
}

static void failed(struct sender *s, const struct body *b, uint64_t seq, struct delivery *d)
{
	uint64_t wait;

	s->tries = s->tried_seq == seq ? s->tries + 1 : 1;
	s->tried_seq = seq;
	if (stopping(s)) {
		spool_keep(s->spool, seq);
		if (d->verdict != DELIVER_UNSURE)
			/* Otherwise it stays marked as sent: the next agent cannot tell either */
			spool_sending(s->spool, 0);
		return;
	}
	if (d->verdict == DELIVER_UNSURE && s->cfg->unsure == AGENT_UNSURE_DROP) {
		drop(s, b, seq, SPOOL_UNSURE, d);
		return;
	}
	if (d->verdict == DELIVER_REFUSED || (d->poison && s->tries >= POISON_TRIES)) {
		drop(s, b, seq, SPOOL_REFUSED, d);
		return;
	}
	if (d->verdict == DELIVER_OTHER_PROTOCOL) {
		drop(s, b, seq, SPOOL_OTHER_PROTOCOL, d);
		return;
	}
	spool_keep(s->spool, seq);
	spool_sending(s->spool, 0);
	wait = next_wait(s, d);
	agent_log(AGENT_LOG_WARN, "not delivered, will be tried again", "status", "%s", d->code,
		  "error", "%s", d->error, "tries", "%lu", s->tries, "wait_s", "%g",
		  (double)wait / 1e9, NULL);
	s->failing = true;
	pause_for(s, wait);
}

static void send_one(struct sender *s, struct http *h, struct body *b, uint64_t seq, bool again)
{
	struct delivery d = { .verdict = DELIVER_UNSURE, .code = "none" };

	if (again && s->cfg->unsure == AGENT_UNSURE_DROP) {
		drop(s, b, seq, SPOOL_UNSURE, &d);
		return;
	}
	spool_sending(s->spool, seq);
	deliver(h, s->cfg, s->host, b, &d);
	count_request(s, b, &d);
	if (d.verdict != DELIVER_OK) {
		failed(s, b, seq, &d);
		return;
	}
	spool_done(s->spool, seq, SPOOL_DELIVERED);
	s->wait_ns = 0;
	if (d.rejected)
		agent_log(AGENT_LOG_WARN, "the server accepted only a part", "rejected_profiles",
			  "%lu", d.rejected, "error", "%s", d.error, NULL);
	if (s->failing)
		agent_log(AGENT_LOG_INFO, "delivery works again", "status", "%s", d.code, NULL);
	s->failing = false;
}

static void *sender_main(void *arg)
{
	struct sender *s = arg;
	struct http *h;
	struct body b;
	uint64_t seq;
	bool again;
	int err;

	block_signals();
	s->on_thread();
	h = http_new(stopping, s);
	while (h && !stopping(s)) {
		take_config(s);
		err = spool_take(s->spool, &b, &seq, &again);
		if (err == -ENOENT) {
			spool_wait(s->spool);
			continue;
		}
		if (err) {
			agent_log(AGENT_LOG_ERROR,
				  "the oldest body in the spool cannot be read, "
				  "will be tried again",
				  "error", "%s", strerror(-err), NULL);
			pause_for(s, UNREADABLE_WAIT_NS);
			continue;
		}
		send_one(s, h, &b, seq, again);
		free(b.data);
		pthread_mutex_lock(&s->lock);
		pthread_cond_broadcast(&s->change); /* sender_drain waits for it */
		pthread_mutex_unlock(&s->lock);
	}
	if (!h)
		agent_log(AGENT_LOG_ERROR, "out of memory for libcurl: nothing will be sent", NULL);
	http_free(h);
	return NULL;
}

/* ---- Life ---- */

static void set_copy(struct sender *s, const struct agent_config *cfg)
{
	free(s->copy_dir);
	free(s->copy_format);
	s->copy_dir = cfg->copy ? strdup(cfg->copy) : NULL;
	s->copy_format = cfg->format ? strdup(cfg->format) : NULL;
}

struct sender *sender_start(struct spool *sp, struct agent_config *cfg, const char *host,
			    void (*on_thread)(void))
{
	struct sender *s = calloc(1, sizeof(*s));
	pthread_condattr_t attr;

	if (!s) {
		agent_config_free(cfg);
		return NULL;
	}
	s->spool = sp;
	s->cfg = cfg;
	s->host = host;
	s->on_thread = on_thread;
	set_copy(s, cfg);
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->change, &attr);
	pthread_condattr_destroy(&attr);
	if (!pthread_create(&s->writer, NULL, writer_main, s)) {
		if (!pthread_create(&s->sender, NULL, sender_main, s))
			return s;
		atomic_store(&s->stop, true);
		pthread_cond_broadcast(&s->change);
		pthread_join(s->writer, NULL);
	}
	agent_config_free(s->cfg);
	free(s->copy_dir);
	free(s->copy_format);
	free(s);
	return NULL;
}

void sender_reload(struct sender *s, struct agent_config *cfg)
{
	pthread_mutex_lock(&s->lock);
	agent_config_free(s->next);
	s->next = cfg;
	set_copy(s, cfg);
	pthread_cond_broadcast(&s->change);
	pthread_mutex_unlock(&s->lock);
	spool_wake(s->spool);
}

bool sender_drain(struct sender *s, uint64_t timeout_ns)
{
	uint64_t until = clock_ns(CLOCK_MONOTONIC) + timeout_ns, now;
	struct spool_account a;
	bool empty = false;

	pthread_mutex_lock(&s->lock);
	while ((now = clock_ns(CLOCK_MONOTONIC)) < until) {
		struct timespec ts;

		if (!s->nqueue && !s->writing) {
			spool_account(s->spool, &a);
			empty = !a.held.entries;
			if (empty)
				break;
		}
		now += 100 * NUM_MS;
		ts = (struct timespec){ .tv_sec = (time_t)(now / NUM_S),
					.tv_nsec = (long)(now % NUM_S) };
		pthread_cond_timedwait(&s->change, &s->lock, &ts);
	}
	pthread_mutex_unlock(&s->lock);
	return empty;
}

void sender_stats(struct sender *s, struct sender_stats *ret)
{
	pthread_mutex_lock(&s->lock);
	*ret = s->stats;
	ret->waiting = s->nqueue;
	pthread_mutex_unlock(&s->lock);
}

void sender_stop(struct sender *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	atomic_store(&s->stop, true);
	pthread_cond_broadcast(&s->change);
	pthread_mutex_unlock(&s->lock);
	spool_wake(s->spool);
	pthread_join(s->writer, NULL);
	pthread_join(s->sender, NULL);
	agent_config_free(s->cfg);
	agent_config_free(s->next);
	free(s->copy_dir);
	free(s->copy_format);
	pthread_cond_destroy(&s->change);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
