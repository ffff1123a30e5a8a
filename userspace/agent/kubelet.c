/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/kubelet.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/http.h"
#include "agent/log.h"
#include "base/clock.h"
#include "base/idmap.h"
#include "base/num.h"
#include "base/vec.h"

#define ANSWER_BYTES   (16u << 20)
#define ANSWER_NS      (5 * NUM_S) /* a request */
#define MOST_INTERVALS 30
#define MAX_UNKNOWN    4096

struct unknown {
	uint64_t due_ns, wait_ns;
};

struct kubelet {
	struct agent_config *cfg; /* only the members for the kubelet */
	char url[1024];
	void (*on_thread)(void);
	pthread_t thread;
	pthread_mutex_t lock; /* protects the members below */
	pthread_cond_t change;
	struct pods *pods;
	bool wanted;
	/* Containers that no answer has, by digits of their ids. */
	struct idmap ids;
	struct unknown *unknown;
	size_t unknown_cap;
	struct kubelet_totals totals;
	atomic_bool stop;
};

/* ---- The thread ---- */

static bool stopping(void *ctx)
{
	return ((struct kubelet *)ctx)->stop;
}

/* The first line of the file is the token. It is read for each request because it is renewed. */
static int read_token(const char *path, char *ret, size_t cap)
{
	FILE *f = fopen(path, "re");
	bool ok = f && fgets(ret, (int)cap, f);

	if (f)
		fclose(f);
	if (!ok)
		return -EIO;
	ret[strcspn(ret, "\r\n")] = 0;
	return 0;
}

/* 0, or -errno with a message. */
static int request(struct kubelet *k, struct http *h, struct pods **ret, char *error, size_t cap)
{
	struct http_get get = { .url = k->url,
				.ca_file = k->cfg->kubelet_ca,
				.insecure = k->cfg->kubelet_insecure,
				.timeout_ns = ANSWER_NS,
				.most = ANSWER_BYTES };
	char token[8192] = "";
	struct http_answer a;
	int rc;

	if (k->cfg->kubelet_token && read_token(k->cfg->kubelet_token, token, sizeof(token))) {
		snprintf(error, cap, "%.150s cannot be read", k->cfg->kubelet_token);
		return -EIO;
	}
	get.token = token;
	rc = http_get(h, &get, &a);
	if (rc) {
		snprintf(error, cap, "%s", a.error);
	} else if (a.status != 200) {
		snprintf(error, cap, "status %ld", a.status);
		rc = -EPROTO;
	} else {
		rc = pods_parse(a.data ? a.data : "", a.len, k->cfg, ret);
		if (rc)
			snprintf(error, cap, "%s",
				 rc == -EINVAL ? "the answer is no list of pods" : strerror(-rc));
	}
	free(a.data);
	explicit_bzero(token, sizeof(token));
	return rc;
}

static void take_answer(struct kubelet *k, struct pods *pods, int rc, const char *error)
{
	struct pods *before = NULL;
	bool was, first;

	pthread_mutex_lock(&k->lock);
	was = k->totals.answers;
	first = !k->totals.answered && !k->totals.failed;
	k->totals.answers = !rc;
	if (rc) {
		k->totals.failed++;
		k->wanted = true;
	} else {
		k->totals.answered++;
		k->totals.pods = pods_count(pods);
		k->totals.containers = pods_containers(pods);
		before = k->pods;
		k->pods = pods;
	}
	pthread_mutex_unlock(&k->lock);
	pods_free(before);
	if (rc && (was || first))
		agent_log(AGENT_LOG_WARN, "the kubelet does not name pods", "url", "%s", k->url,
			  "error", "%s", error, NULL);
	else if (!rc && !was)
		agent_log(AGENT_LOG_INFO, "the kubelet names pods", "url", "%s", k->url, "pods",
			  "%lu", (uint64_t)pods_count(pods), NULL);
}

/* Waits until a container is to be asked for. false: the thread is to end. */
static bool wait_for_work(struct kubelet *k, uint64_t until_ns)
{
	struct timespec at = { .tv_sec = (time_t)(until_ns / NUM_S),
			       .tv_nsec = (long)(until_ns % NUM_S) };

	pthread_mutex_lock(&k->lock);
	while (!k->stop && clock_ns(CLOCK_MONOTONIC) < until_ns)
		pthread_cond_timedwait(&k->change, &k->lock, &at);
	while (!k->stop && !k->wanted)
		pthread_cond_wait(&k->change, &k->lock);
	k->wanted = false;
	pthread_mutex_unlock(&k->lock);
	return !k->stop;
}

static void *kubelet_main(void *arg)
{
	struct kubelet *k = arg;
	struct http *h = http_new(stopping, k);
	uint64_t interval = k->cfg->kubelet_interval_ns, wait = interval, until = 0;
	char error[512];
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	k->on_thread();
	while (h && wait_for_work(k, until)) {
		struct pods *pods = NULL;
		int rc = request(k, h, &pods, error, sizeof(error));

		if (rc && k->stop)
			break;
		take_answer(k, pods, rc, error);
		wait = !rc				      ? interval
		       : 2 * wait < MOST_INTERVALS * interval ? 2 * wait
							      : MOST_INTERVALS * interval;
		until = clock_ns(CLOCK_MONOTONIC) + wait;
	}
	http_free(h);
	return NULL;
}

/* ---- Its owner ---- */

/* Whether an answer without the container is old enough to ask again. */
static bool is_due(struct kubelet *k, const char *container)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), interval = k->cfg->kubelet_interval_ns;
	unsigned long long a = 0, b = 0;
	struct unknown *u;
	size_t before;
	uint32_t id;

	sscanf(container, "%16llx%16llx", &a, &b);
	if (k->ids.n >= MAX_UNKNOWN)
		idmap_reset(&k->ids);
	before = k->ids.n;
	if (idmap_get(&k->ids, a, b, &id) ||
	    vec_reserve(&k->unknown, &k->unknown_cap, k->ids.n, sizeof(*u)))
		return false;
	u = &k->unknown[id];
	if (id == before)
		*u = (struct unknown){ 0 };
	if (u->due_ns > now)
		return false;
	u->wait_ns = !u->wait_ns				  ? interval
		     : 2 * u->wait_ns < MOST_INTERVALS * interval ? 2 * u->wait_ns
								  : MOST_INTERVALS * interval;
	u->due_ns = now + u->wait_ns;
	return true;
}

enum pods_found kubelet_find(struct kubelet *k, const char *container, const char *uid,
			     struct pod_names *ret)
{
	enum pods_found found;

	pthread_mutex_lock(&k->lock);
	found = pods_find(k->pods, container, uid, ret);
	if (found != PODS_CONTAINER && is_due(k, container)) {
		k->wanted = true;
		pthread_cond_signal(&k->change);
	}
	pthread_mutex_unlock(&k->lock);
	return found;
}

struct kubelet_totals kubelet_totals(struct kubelet *k)
{
	struct kubelet_totals ret = { 0 };

	if (!k)
		return ret;
	pthread_mutex_lock(&k->lock);
	ret = k->totals;
	pthread_mutex_unlock(&k->lock);
	return ret;
}

static void release(struct kubelet *k)
{
	pthread_cond_destroy(&k->change);
	pthread_mutex_destroy(&k->lock);
	pods_free(k->pods);
	idmap_free(&k->ids);
	free(k->unknown);
	agent_config_free(k->cfg);
	free(k);
}

static struct kubelet *kubelet_start(const struct agent_config *cfg, void (*on_thread)(void))
{
	struct kubelet *k = calloc(1, sizeof(*k));
	pthread_condattr_t attr;
	size_t len;

	if (!k)
		return NULL;
	pthread_mutex_init(&k->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&k->change, &attr);
	pthread_condattr_destroy(&attr);
	k->on_thread = on_thread;
	k->totals.on = true;
	k->cfg = agent_config_kubelet(cfg);
	len = strlen(cfg->kubelet);
	len -= len && cfg->kubelet[len - 1] == '/';
	snprintf(k->url, sizeof(k->url), "%.*s/pods", (int)len, cfg->kubelet);
	if (k->cfg && !pthread_create(&k->thread, NULL, kubelet_main, k))
		return k;
	release(k);
	return NULL;
}

void kubelet_stop(struct kubelet *k)
{
	if (!k)
		return;
	pthread_mutex_lock(&k->lock);
	k->stop = true;
	pthread_cond_signal(&k->change);
	pthread_mutex_unlock(&k->lock);
	pthread_join(k->thread, NULL);
	release(k);
}

int kubelet_follow(struct kubelet **k, const struct agent_config *cfg, void (*on_thread)(void))
{
	if (*k && cfg->kubelet && agent_config_same_kubelet((*k)->cfg, cfg))
		return 0;
	kubelet_stop(*k);
	*k = cfg->kubelet ? kubelet_start(cfg, on_thread) : NULL;
	return cfg->kubelet && !*k ? -EAGAIN : 0;
}
