/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks are checked without symbols: each function of the chain stores its return address. These
 * addresses, as offsets in the profiler's executable, must be adjacent frames of the sample.
 */
#include "tools/selftest.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/num.h"
#include "kern/collector.h"
#include "prof/profile.h"
#include "tools/session.h"

#define HZ	   999
#define RUN_MS	   350
#define RUN_MAX_MS 3000 /* if the machine is so busy that the thread hardly runs */
#define ENOUGH	   50	/* samples */
#define CHAIN	   3
/* The thread's comm. Unlike a process id, it is the same in every PID namespace. */
#define NAME	   "sfbpf-selftest"

static atomic_bool stop;
static _Atomic uint64_t returns[CHAIN]; /* return addresses of the chain, leaf first */
static volatile uint64_t sink;

/* The barrier after each call prevents tail-call optimisation. */
#define LINK(level)                                                                \
	do {                                                                       \
		returns[level] = (uint64_t)(uintptr_t)__builtin_return_address(0); \
		__asm__ volatile("" : : : "memory");                               \
	} while (0)

static __attribute__((noinline)) void chain_leaf(void)
{
	LINK(0);
	while (!stop)
		for (int i = 0; i < 1000; i++)
			sink = sink * 6364136223846793005ull + 1442695040888963407ull;
	__asm__ volatile("" : : : "memory");
}

static __attribute__((noinline)) void chain_middle(void)
{
	LINK(1);
	chain_leaf();
	__asm__ volatile("" : : : "memory");
}

static __attribute__((noinline)) void chain_root(void)
{
	LINK(2);
	chain_middle();
	__asm__ volatile("" : : : "memory");
}

static void *burn(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, NAME);
	chain_root();
	return NULL;
}

struct judge {
	struct selftest *result;
	uint64_t offsets[CHAIN]; /* expected file offsets in the frame words */
	unsigned int stops[SF_STOP_MAX], other;
};

/* The file offset of an address in this process. */
static bool file_offset(uint64_t addr, uint64_t *ret)
{
	unsigned long long start, end, off;
	char line[512];
	FILE *f = fopen("/proc/self/maps", "re");
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f)) {
		found = sscanf(line, "%llx-%llx %*s %llx", &start, &end, &off) == 3 &&
			addr >= start && addr < end;
		if (found)
			*ret = addr - start + off;
	}
	if (f)
		fclose(f);
	return found;
}

static bool has_chain(const struct judge *j, const struct sf_sample *s)
{
	for (uint32_t i = 0; i + CHAIN <= s->n_user; i++) {
		uint32_t k = 0;

		while (k < CHAIN && SF_FRAME_KIND(s->frames[i + k]) == SF_FRAME_ROW &&
		       SF_FRAME_OFFSET(s->frames[i + k]) == j->offsets[k])
			k++;
		if (k == CHAIN)
			return true;
	}
	return false;
}

static void judge_sample(void *ctx, const struct sf_sample *s)
{
	struct judge *j = ctx;

	if (s->stop == SF_STOP_NOT_LOADED) {
		j->result->early++;
		return;
	}
	j->result->judged++;
	if (s->stop != SF_STOP_COMPLETE)
		j->stops[s->stop]++;
	else if (has_chain(j, s))
		j->result->known++;
	else
		j->other++;
}

static void name_reason(struct judge *j)
{
	struct selftest *t = j->result;
	unsigned int worst = 0;

	for (unsigned int i = 1; i < SF_STOP_MAX; i++)
		if (j->stops[i] > j->stops[worst])
			worst = i;
	if (!t->judged)
		snprintf(t->text, sizeof(t->text),
			 t->early ? "the tables of its files were never loaded" : "no samples");
	else if (j->stops[worst] >= j->other && j->stops[worst])
		snprintf(t->text, sizeof(t->text), "%s: %s", profile_stop_name((uint8_t)worst),
			 profile_stop_help((uint8_t)worst));
	else
		snprintf(t->text, sizeof(t->text), "complete, but without the functions that ran");
}

static uint64_t allowed_hz(void)
{
	unsigned long long max = HZ;
	FILE *f = fopen("/proc/sys/kernel/perf_event_max_sample_rate", "re");

	if (f && fscanf(f, "%llu", &max) != 1)
		max = HZ;
	if (f)
		fclose(f);
	return max && max < HZ ? max : HZ;
}

static int record(struct collector *c, struct judge *j, struct collector_error *err)
{
	uint64_t start = session_now(), ms = 0;

	if (collector_attach(c, err))
		return -1;
	for (; ms < RUN_MS || (j->result->judged < ENOUGH && ms < RUN_MAX_MS);
	     ms = (session_now() - start) / NUM_MS)
		collector_poll(c, 20, judge_sample, j);
	collector_detach(c);
	collector_poll(c, 0, judge_sample, j);
	return 0;
}

/*
 * Waits until the chain has stored its return addresses. Frame words have the address before the
 * return address.
 */
static bool wait_for_chain(struct judge *j)
{
	uint64_t end = session_now() + 2 * NUM_S;

	while (!returns[0]) {
		if (session_now() > end)
			return false;
		sched_yield();
	}
	for (int i = 0; i < CHAIN; i++)
		if (!file_offset(returns[i] - 1, &j->offsets[i]))
			return false;
	return true;
}

void selftest_run(struct selftest *ret)
{
	struct judge j = { .result = ret };
	struct loader_servers servers;
	struct events events = { .n = 0 };
	bool started = !loader_servers_start(&servers);
	struct collector_opts opts = {
		.events = &events,
		.hz = allowed_hz(),
		.user = true,
		.kernel = true,
		.all_languages = true, /* the kernel has to accept all programs */
		.filter = { .comm = NAME, .comm_len = sizeof(NAME) - 1 },
		.ring_bytes = 2 << 20,
		.table_bytes = 64ull << 20,
		.servers = &servers,
	};
	struct collector_error err = { .trouble = COLLECTOR_FAILED, .text = "out of memory" };
	const struct offcpu_opts blocked = {
		.states = ~0u,
		.max_stacks = 1024,
		.wakers = true,
		.where = OFFCPU_AUTO,
	};
	struct modules *modules = modules_new();
	struct collector *c;
	pthread_t thread;

	events_default(&events);
	c = modules && started ? collector_new(&opts, modules, &err) : NULL;
	memset(ret, 0, sizeof(*ret));
	stop = false;
	if (!c) {
		ret->error = err;
	} else if (pthread_create(&thread, NULL, burn, NULL)) {
		ret->error = (struct collector_error){ .trouble = COLLECTOR_FAILED,
						       .text = "cannot start a thread" };
	} else {
		if (wait_for_chain(&j) && record(c, &j, &err))
			ret->error = err;
		stop = true;
		pthread_join(thread, NULL);
	}
	if (!ret->error.trouble) {
		name_reason(&j);
		collector_offcpu_try(c, &blocked, &ret->blocked);
	}
	collector_free(c);
	modules_free(modules);
	loader_servers_stop(&servers);
	events_free(&events);
}
