/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/metrics.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "agent/budget.h"
#include "agent/log.h"
#include "agent/page_server.h"
#include "base/clock.h"
#include "base/num.h"
#include "kern/host_gaps.h"

struct metrics {
	struct page_server *server;
	pthread_mutex_t lock; /* protects values */
	struct metrics_values values;
	struct sender *sender;
	struct spool *spool;
	char *page; /* the last one, for all who ask within PAGE_NS */
	size_t page_len;
	uint64_t page_ns;
};

/* ---- The page ---- */

static void head(FILE *f, const char *name, const char *type, const char *help)
{
	fprintf(f, "# HELP sfbpf_agent_%s %s\n# TYPE sfbpf_agent_%s %s\n", name, help, name, type);
}

static void one(FILE *f, const char *name, const char *type, const char *help, double value)
{
	head(f, name, type, help);
	fprintf(f, "sfbpf_agent_%s %.17g\n", name, value);
}

static void labelled(FILE *f, const char *name, const char *label, const char *text, uint64_t value)
{
	fprintf(f, "sfbpf_agent_%s{%s=\"%s\"} %" PRIu64 "\n", name, label, text, value);
}

/* The causes of dropped bodies are the outcomes of the spool but the first one, and a slow disk. */
static const char *dropped_name(size_t i)
{
	return i + 1 < SPOOL_OUTCOMES ? spool_outcome_names[i + 1] : "disk_slow";
}

static const struct spool_count *dropped(const struct sender_stats *s,
					 const struct spool_account *a, size_t i)
{
	return i + 1 < SPOOL_OUTCOMES ? &a->done[i + 1] : &s->overrun;
}

_Static_assert(SPOOL_DELIVERED == 0, "the outcomes after it are causes");

void metrics_write(FILE *f, const struct metrics_values *v, const struct sender_stats *s,
		   const struct spool_account *a)
{
	const struct metrics_off_cpu *o = &v->off;
	const struct kubelet_totals *k = &v->kubelet;

#define METRIC(name, type, help, value) one(f, #name, #type, help, (double)(value));
#define OFF_CPU(name, type, help, value) \
	if (v->off_cpu || o->blocked_ns) \
	METRIC(name, type, help, value)
#define KUBELET(name, type, help, value) \
	if (k->on)                       \
	METRIC(name, type, help, value)
#define FAMILY(name, type, help, label, condition, text, value) \
	head(f, #name, #type, help);                            \
	for (size_t i = 0; condition; i++)                      \
		labelled(f, #name, #label, text, value);
#include "agent/metrics.def"
#undef METRIC
#undef OFF_CPU
#undef KUBELET
#undef FAMILY
}

/* ---- Serving ---- */

#define PAGE_NS (100 * NUM_MS)

static void make_page(struct metrics *m, const struct metrics_values *v)
{
	struct sender_stats s;
	struct spool_account a;
	FILE *f;

	free(m->page);
	m->page = NULL;
	f = open_memstream(&m->page, &m->page_len);
	if (!f)
		return;
	sender_stats(m->sender, &s);
	spool_account(m->spool, &a);
	metrics_write(f, v, &s, &a);
	if (fclose(f)) {
		free(m->page);
		m->page = NULL;
	}
}

void metrics_look_for_gaps(struct metrics_values *v)
{
	const struct host_gap *gap;

	for (size_t i = 0; (gap = host_gap_at(i)); i++) {
		bool open = host_gap_open(i), was = v->host_gaps >> i & 1;

		if (open == was)
			continue;
		v->host_gaps ^= 1ull << i;
		agent_log(open ? AGENT_LOG_WARN : AGENT_LOG_INFO, open ? gap->what : "mended",
			  "gap", "%s", gap->id, "fix", "%s", gap->fix, NULL);
	}
}

/* Not ready: what is collected would be incomplete. */
static int answer_ready(const struct metrics_values *v, FILE *f)
{
	const struct host_gap *gap;

	if (!v->alive_ns) {
		fputs("starting\n", f);
		return 503;
	}
	for (size_t i = 0; (gap = host_gap_at(i)); i++)
		if (v->host_gaps >> i & 1)
			fprintf(f, "%s: %s; fix: %s\n", gap->id, gap->what, gap->fix);
	if (v->host_gaps)
		return 503;
	fputs("ok\n", f);
	return 200;
}

static int answer(void *ctx, const char *path, FILE *f)
{
	struct metrics *m = ctx;
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct metrics_values v;
	bool stale;

	pthread_mutex_lock(&m->lock);
	v = m->values;
	pthread_mutex_unlock(&m->lock);
	if (!strcmp(path, "/healthz")) {
		stale = now - v.alive_ns > v.stale_ns;
		fputs(stale ? "stuck\n" : "ok\n", f);
		return stale ? 503 : 200;
	}
	if (!strcmp(path, "/readyz"))
		return answer_ready(&v, f);
	if (strcmp(path, "/metrics"))
		return 404;
	if (!m->page || now - m->page_ns > PAGE_NS) {
		make_page(m, &v);
		m->page_ns = now;
	}
	if (!m->page)
		return 503;
	fwrite(m->page, 1, m->page_len, f);
	return 200;
}

struct metrics *metrics_listen(const char *address, char *err, size_t cap)
{
	struct metrics *m = calloc(1, sizeof(*m));

	if (!m) {
		snprintf(err, cap, "out of memory");
		return NULL;
	}
	pthread_mutex_init(&m->lock, NULL);
	m->server = page_server_listen(address, err, cap);
	if (m->server)
		return m;
	metrics_stop(m);
	return NULL;
}

int metrics_start(struct metrics *m, struct sender *sender, struct spool *spool,
		  void (*on_thread)(void))
{
	m->sender = sender;
	m->spool = spool;
	return page_server_start(m->server, answer, m, on_thread);
}

void metrics_set(struct metrics *m, const struct metrics_values *v)
{
	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	m->values = *v;
	pthread_mutex_unlock(&m->lock);
}

uint64_t metrics_cpu_ns(const struct metrics *m)
{
	return m ? page_server_cpu_ns(m->server) : 0;
}

void metrics_stop(struct metrics *m)
{
	if (!m)
		return;
	page_server_stop(m->server);
	free(m->page);
	pthread_mutex_destroy(&m->lock);
	free(m);
}
