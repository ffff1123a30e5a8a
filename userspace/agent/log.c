/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/log.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/num.h"
#include "base/text.h"

#define BURST	  5
#define PERIOD_NS (60 * NUM_S)
/* messages whose rate is tracked; messages with equal hash bits replace each other */
#define LIMITS	  64

struct limit {
	uint64_t key, since_ns, seen;
};

static struct {
	pthread_mutex_t lock;
	int level, format;
	bool journal;
	struct limit limits[LIMITS];
	uint64_t suppressed;
} state = { .lock = PTHREAD_MUTEX_INITIALIZER, .level = AGENT_LOG_INFO };

static const char *const levels[] = { "error", "warn", "info", "debug" };

void agent_log_setup(enum agent_log_level level, enum agent_log_format format)
{
	pthread_mutex_lock(&state.lock);
	state.level = level;
	state.format = format;
	state.journal = getenv("JOURNAL_STREAM") != NULL;
	pthread_mutex_unlock(&state.lock);
}

/*
 * Whether to write the message. *ret_missed: how many were suppressed in the last period, when a
 * new one begins.
 */
static bool admit(const char *msg, uint64_t *ret_missed)
{
	uint64_t key = hash_bytes(msg, strlen(msg)), now = clock_ns(CLOCK_MONOTONIC);
	struct limit *l = &state.limits[key & (LIMITS - 1)];

	*ret_missed = 0;
	if (l->key != key)
		*l = (struct limit){ .key = key, .since_ns = now };
	if (now - l->since_ns > PERIOD_NS) {
		*ret_missed = l->seen > BURST ? l->seen - BURST : 0;
		l->since_ns = now;
		l->seen = 0;
	}
	if (++l->seen <= BURST)
		return true;
	state.suppressed++;
	return false;
}

static void value_of(char *buf, size_t cap, const char *fmt, va_list *args)
{
	char raw[512];

	if (!strcmp(fmt, "%s")) {
		const char *s = va_arg(*args, const char *);

		text_clean(buf, cap, s ? s : "", s ? strlen(s) : 0, 0);
		return;
	}
	if (!strcmp(fmt, "%d"))
		snprintf(raw, sizeof(raw), "%d", va_arg(*args, int));
	else if (!strcmp(fmt, "%lu"))
		snprintf(raw, sizeof(raw), "%" PRIu64, va_arg(*args, uint64_t));
	else
		snprintf(raw, sizeof(raw), "%.3g", va_arg(*args, double));
	snprintf(buf, cap, "%s", raw);
}

static void write_pair(struct json *j, FILE *f, const char *key, const char *value, bool quote)
{
	if (state.format == AGENT_LOG_JSON) {
		json_str(j, key, value);
		return;
	}
	fprintf(f, " %s=", key);
	if (!quote && *value && !strpbrk(value, " =\"\\")) {
		fputs(value, f);
		return;
	}
	putc('"', f);
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			putc('\\', f);
		putc(*value, f);
	}
	putc('"', f);
}

static void put_time(struct json *j, FILE *f)
{
	struct timespec now;
	struct tm tm;
	char date[40], text[64];

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text, sizeof(text), "%s.%03ldZ", date, now.tv_nsec / (long)NUM_MS);
	if (state.format == AGENT_LOG_JSON)
		json_str(j, "ts", text);
	else
		fprintf(f, "ts=%s", text);
}

static void write_line(FILE *f, int level, const char *msg, uint64_t missed, va_list *args)
{
	struct json j = json_on(f);
	char value[1024];
	const char *key;

	if (state.journal)
		fprintf(f, "<%d>",
			level == AGENT_LOG_ERROR  ? 3
			: level == AGENT_LOG_WARN ? 4
			: level == AGENT_LOG_INFO ? 6
						  : 7);
	if (state.format == AGENT_LOG_JSON)
		json_object(&j, NULL);
	if (!state.journal)
		put_time(&j, f);
	write_pair(&j, f, "level", levels[level], false);
	write_pair(&j, f, "msg", msg, true);
	while ((key = va_arg(*args, const char *))) {
		value_of(value, sizeof(value), va_arg(*args, const char *), args);
		write_pair(&j, f, key, value, false);
	}
	if (missed) {
		snprintf(value, sizeof(value), "%" PRIu64, missed);
		write_pair(&j, f, "suppressed", value, false);
	}
	if (state.format == AGENT_LOG_JSON)
		json_object_end(&j);
	putc('\n', f);
}

void agent_log(int level, const char *msg, ...)
{
	uint64_t missed;
	char *line = NULL;
	size_t len = 0;
	va_list args;
	FILE *f;

	pthread_mutex_lock(&state.lock);
	if (level <= state.level && admit(msg, &missed) && (f = open_memstream(&line, &len))) {
		va_start(args, msg);
		write_line(f, level, msg, missed, &args);
		va_end(args);
		/*
		 * One write() for each line, so that lines of several threads do not mix. A failure
		 * cannot be reported.
		 */
		if (!fclose(f) && write(STDERR_FILENO, line, len) < 0)
			state.suppressed++;
		free(line);
	}
	pthread_mutex_unlock(&state.lock);
}

uint64_t agent_log_suppressed(void)
{
	uint64_t n;

	pthread_mutex_lock(&state.lock);
	n = state.suppressed;
	pthread_mutex_unlock(&state.lock);
	return n;
}
