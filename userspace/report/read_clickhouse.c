/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the command line says becomes parameters of the queries ({name:String}), never text of them.
 * Rows are lines of tab-separated columns, the frames of a stack separated by FRAME_END. The server
 * is trusted no more than a file: each name is cleaned, and a line that is no row is an error. So
 * is the text of an exception, with which a server ends an answer that it cannot complete.
 */
#include "report/read_clickhouse.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "agent/body.h"
#include "agent/headers.h"
#include "agent/http.h"
#include "base/complain.h"
#include "base/exitcode.h"
#include "base/num.h"
#include "base/text.h"
#include "base/vec.h"

#define FRAME_END     "\x1f"
#define ROW_BYTES_MAX (16u << 20)
#define NAME_BYTES    2048
#define TIMEOUT_NS    (600 * NUM_S)

/* ---- Queries ---- */

struct query {
	char url[16384];
	size_t len; /* length of url; sizeof(url): it does not fit */
	FILE *sql;
	const struct clickhouse_query *sums;
};

static void put_url(struct query *q, const char *text, const char *escaped)
{
	size_t room = sizeof(q->url) - q->len, n = strlen(text);

	if (n + 3 * strlen(escaped) + 8 > room) {
		q->len = sizeof(q->url);
		return;
	}
	memcpy(q->url + q->len, text, n);
	q->len += n;
	q->len += body_escape(q->url + q->len, sizeof(q->url) - q->len, escaped);
}

/* The server reads the values of parameters as tab-separated text, with backslashes. */
static void put_parameter(struct query *q, const char *name, size_t number, const char *value)
{
	char key[64], text[4096];
	size_t n = 0;

	snprintf(key, sizeof(key), "&param_%s%zu=", name, number);
	for (; *value && n + 3 < sizeof(text); value++) {
		bool special = *value == '\\' || *value == '\t' || *value == '\n';

		if (special)
			text[n++] = '\\';
		text[n++] = (char)(*value == '\t' ? 't' : *value == '\n' ? 'n' : *value);
	}
	text[n] = 0;
	if (*value)
		q->len = sizeof(q->url);
	else
		put_url(q, key, text);
}

static void put_time(struct query *q, const char *name, const char *compare, uint64_t ns)
{
	char text[24];

	if (!ns)
		return;
	snprintf(text, sizeof(text), "%" PRIu64, (uint64_t)(ns / NUM_MS));
	fprintf(q->sql, " AND ts %s fromUnixTimestamp64Milli({%s0:Int64}, 'UTC')", compare, name);
	put_parameter(q, name, 0, text);
}

/* The column of a label, or its value in the column of all others: {NAMEn:String} is its name. */
static void put_label(struct query *q, const char *label, const char *name, size_t n)
{
	static const struct {
		const char *label, *column;
	} columns[] = {
		{ "service.name", "service" },
		{ "service.version", "version" },
		{ "host.name", "host" },
		{ "container.id", "container" },
	};

	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
		if (!strcmp(label, columns[i].label)) {
			fputs(columns[i].column, q->sql);
			return;
		}
	}
	fprintf(q->sql, "labels[{%s%zu:String}]", name, n);
	put_parameter(q, name, n, label);
}

static void put_where(struct query *q, const struct window_choice *w, const struct stack_choice *c)
{
	fputs(" FROM sfbpf_samples WHERE type = {type0:String}", q->sql);
	put_parameter(q, "type", 0, w->off_cpu ? "off_cpu" : "cpu");
	put_time(q, "since", ">=", w->since_ns);
	put_time(q, "until", "<", w->until_ns);
	if (w->host) {
		fputs(" AND host = {host0:String}", q->sql);
		put_parameter(q, "host", 0, w->host);
	}
	if (c->comm) {
		fputs(" AND comm = {comm0:String}", q->sql);
		put_parameter(q, "comm", 0, c->comm);
	}
	for (size_t i = 0; i < c->n; i++) {
		fputs(" AND ", q->sql);
		put_label(q, c->labels[i].name, "name", i);
		fprintf(q->sql, " = {value%zu:String}", i);
		put_parameter(q, "value", i, c->labels[i].value);
	}
}

static void put_totals(struct query *q, const struct window_choice *w, const struct stack_choice *c)
{
	fputs("SELECT count(), uniqExact(host), any(host), min(period_ns), max(period_ns), "
	      "toUnixTimestamp64Milli(min(ts))",
	      q->sql);
	put_where(q, w, c);
	fputs(" FORMAT TabSeparatedRaw", q->sql);
}

static void put_stacks(struct query *q, const struct window_choice *w, const struct stack_choice *c)
{
	fputs("WITH s AS (SELECT ", q->sql);
	if (c->by == STACK_BY_HOST)
		fputs("host", q->sql);
	else if (c->by == STACK_BY_LABEL)
		put_label(q, c->by_label, "by", 0);
	else
		fputs("''", q->sql);
	fputs(" AS root, comm, stack_id, sum(value) AS n", q->sql);
	put_where(q, w, c);
	fputs(" GROUP BY root, comm, stack_id) "
	      "SELECT s.root, s.comm, s.n, arrayStringConcat(t.frames, char(31)) FROM s "
	      "LEFT JOIN (SELECT stack_id, any(frames) AS frames FROM sfbpf_stacks "
	      "GROUP BY stack_id) AS t USING (stack_id) FORMAT TabSeparatedRaw",
	      q->sql);
}

static void put_sums(struct query *q, const struct window_choice *w, const struct stack_choice *c)
{
	fprintf(q->sql, "SELECT %s", q->sums->select);
	put_where(q, w, c);
	fprintf(q->sql, " %s FORMAT TabSeparatedRaw", q->sums->rest);
	put_parameter(q, "service", 0, q->sums->service ? q->sums->service : "");
}

/* ---- Rows ---- */

struct answer {
	struct stackset *ss;
	const struct clickhouse_query *sums; /* the query of clickhouse_sums, else NULL */
	enum stack_side side;
	struct stacks_meta *meta;
	bool off_cpu;
	int (*row)(struct answer *a, char *line);
	char *line; /* the part of a row that has arrived */
	size_t len, cap;
	uint64_t rows;
	int err; /* -errno; why: with a message */
	char why[200];
};

static int damaged(struct answer *a, const char *line)
{
	char text[120];

	text_clean(text, sizeof(text), line, strlen(line), 0);
	snprintf(a->why, sizeof(a->why), "no row of the query: %s", text);
	return -EINVAL;
}

/* Cuts a line into n columns. False: it has another number. */
static bool cut(char *line, char **ret, size_t n)
{
	for (size_t i = 0; i < n; i++)
		ret[i] = strsep(&line, "\t");
	return ret[n - 1] && !line;
}

static int add_frames(struct answer *a, char *text, uint32_t *frames, size_t *n, bool *ret_user)
{
	char name[NAME_BYTES], *part;

	while ((part = strsep(&text, FRAME_END))) {
		size_t len = text_clean(name, sizeof(name), part, strlen(part), 0);
		enum stack_kind kind;

		if (!len) /* the table of stacks does not have it (any more) */
			len = text_clean(name, sizeof(name), "[unknown]", 9, 0);
		if (!strcmp(name, "[no stack]"))
			continue;
		kind = stack_kind_of_name(name, &len);
		if (*n == READ_STACKS_DEPTH)
			return -E2BIG;
		if (stackset_frame(a->ss, name, len, "", kind, &frames[(*n)++]))
			return -ENOMEM;
		*ret_user |= kind != STACK_KERNEL && kind != STACK_NOTE;
	}
	return 0;
}

static int stack_row(struct answer *a, char *line)
{
	struct stack_choice *c = &a->ss->choice;
	uint32_t frames[READ_STACKS_DEPTH + 1];
	char *column[4], comm[64], buf[STACK_LABEL_BYTES];
	struct stack_labels labels = { 0 };
	bool user = false, incomplete;
	const char *root;
	uint64_t value;
	size_t n = 0;
	int err = 0;

	if (!cut(line, column, 4) || num_u64(column[2], 0, UINT64_MAX, &value))
		return damaged(a, line);
	text_clean(labels.by, sizeof(labels.by), column[0], strlen(column[0]), 0);
	text_clean(comm, sizeof(comm), column[1], strlen(column[1]), 0);
	root = stack_choice_root(c, &labels, comm, labels.by, buf);
	if (root != comm)
		err = stackset_frame(a->ss, comm, strlen(comm), "", STACK_NOTE, &frames[n++]);
	incomplete = !strncmp(column[3], "[incomplete:", 12);
	if (!err)
		err = add_frames(a, column[3], frames, &n, &user);
	if (err)
		return err;
	a->rows++;
	if (user || incomplete)
		a->meta->user_stacks += value;
	if (user && !incomplete)
		a->meta->complete += value;
	return stackset_add(a->ss, root, 0, frames, n, a->side, a->off_cpu ? value / 1000 : value);
}

static int totals_row(struct answer *a, char *line)
{
	struct stacks_meta *m = a->meta;
	uint64_t hosts, fastest, slowest, start;
	char *column[6];

	if (!cut(line, column, 6) || num_u64(column[0], 0, UINT64_MAX, &a->rows) ||
	    num_u64(column[1], 0, UINT64_MAX, &hosts) ||
	    num_u64(column[3], 0, UINT64_MAX, &fastest) ||
	    num_u64(column[4], 0, UINT64_MAX, &slowest) ||
	    num_u64(column[5], 0, UINT64_MAX / NUM_MS, &start))
		return damaged(a, line);
	m->start_unix_ns = start * NUM_MS;
	if (hosts == 1)
		text_clean(m->host, sizeof(m->host), column[2], strlen(column[2]), 0);
	if (fastest == slowest && fastest && !a->off_cpu)
		m->hz = 1e9 / (double)fastest;
	return 0;
}

static int sums_row(struct answer *a, char *line)
{
	char *column[CLICKHOUSE_COLUMNS];
	int err = cut(line, column, a->sums->columns) ? a->sums->row(a->sums->ctx, column)
						      : -EINVAL;

	return err == -EINVAL ? damaged(a, line) : err;
}

/* Takes the rows of a part of the answer. */
static bool take(void *ctx, const char *data, size_t len)
{
	struct answer *a = ctx;
	size_t done = 0, from = a->len;
	char *end;

	if (a->meta)
		a->meta->bytes += len;
	if (vec_reserve(&a->line, &a->cap, a->len + len, 1)) {
		a->err = -ENOMEM;
		return false;
	}
	memcpy(a->line + a->len, data, len);
	a->len += len;
	while (!a->err && (end = memchr(a->line + from, '\n', a->len - from))) {
		*end = 0;
		a->err = a->row(a, a->line + done);
		from = done = (size_t)(end - a->line) + 1;
	}
	memmove(a->line, a->line + done, a->len - done);
	a->len -= done;
	if (!a->err && a->len > ROW_BYTES_MAX)
		a->err = -E2BIG;
	return !a->err;
}

/* ---- Requests ---- */

static atomic_bool stopped;

void clickhouse_stop(void)
{
	atomic_store(&stopped, true);
}

static bool is_stopped(void *ctx)
{
	(void)ctx;
	return atomic_load(&stopped);
}

static int begin_url(struct query *q, const struct clickhouse *c)
{
	const char *query = strchr(c->url, '?'), *host = strstr(c->url, "://") + 3;
	size_t len = query ? (size_t)(query - c->url) : strlen(c->url);
	static const char key[] = "?database=";
	bool other = query && (strncmp(query, key, strlen(key)) != 0 || strchr(query, '&'));

	if (!*host || *host == '/' || strpbrk(c->url, "@#") || other)
		return complain(EXIT_USAGE,
				"'%s' is not http[s]://HOST[:PORT][/?database=NAME]; user and "
				"password belong in --header-file",
				c->url);
	while (len && c->url[len - 1] == '/')
		len--;
	q->len = 0;
	if (len + 64 < sizeof(q->url))
		q->len = (size_t)snprintf(q->url, sizeof(q->url), "%.*s/", (int)len, c->url);
	put_url(q, key, query ? query + strlen(key) : "default");
	return 0;
}

static int complain_about(const struct clickhouse *c, const struct answer *a,
			  const struct http_answer *h)
{
	char text[400] = "";

	if (a->err)
		return complain(EXIT_FAILED, "%s: %s", c->url,
				*a->why		       ? a->why
				: a->err == -E2BIG     ? "a row is too long"
				: a->err == -EOVERFLOW ? "the counts add up to more than 2^64 - 1"
						       : strerror(-a->err));
	if (*h->error)
		return complain(EXIT_FAILED, "%s: %s", c->url, h->error);
	if (h->status == 200)
		return complain(EXIT_FAILED, "%s: the answer ends within a row", c->url);
	text_clean(text, sizeof(text), h->data ? h->data : "", h->len, 0);
	return complain(EXIT_FAILED, "%s: status %ld%s%s", c->url, h->status, *text ? ": " : "",
			text);
}

static int request(const struct clickhouse *c, const struct query *q, const char *sql,
		   struct answer *a)
{
	static struct header_list headers;
	struct http_get get = { .url = q->url,
				.ca_file = c->ca_file,
				.proxy = true,
				.timeout_ns = c->timeout_ns ? c->timeout_ns : TIMEOUT_NS,
				.most = 65536,
				.headers = headers.at,
				.post = sql,
				.take = take,
				.ctx = a };
	struct http *h = http_new(is_stopped, NULL);
	struct http_answer answer;
	int err;

	if (!h)
		return complain(EXIT_FAILED, "out of memory");
	headers = (struct header_list){ 0 };
	if (c->header_file && !headers_read(&headers, c->header_file)) {
		http_free(h);
		return complain(EXIT_FAILED, "cannot read '%s': %s", c->header_file,
				strerror(errno));
	}
	err = http_get(h, &get, &answer);
	if (a->err || err || answer.status != 200 || a->len)
		err = is_stopped(NULL) ? EXIT_FAILED : complain_about(c, a, &answer);
	free(answer.data);
	http_free(h);
	return err;
}

typedef void (*put_fn)(struct query *q, const struct window_choice *w,
		       const struct stack_choice *c);

static int ask(const struct clickhouse *c, const struct window_choice *w, put_fn put,
	       struct answer *a)
{
	static const struct stack_choice all;
	struct query *q = calloc(1, sizeof(*q));
	char *sql = NULL;
	size_t len;
	bool bad;
	int err = q ? begin_url(q, c) : complain(EXIT_FAILED, "out of memory");

	if (!err) {
		q->sums = a->sums;
		q->sql = open_memstream(&sql, &len);
		if (q->sql)
			put(q, w, a->ss ? &a->ss->choice : &all);
		bad = !q->sql || ferror(q->sql);
		bad |= q->sql && fclose(q->sql);
		err = bad ? complain(EXIT_FAILED, "out of memory")
		      : q->len >= sizeof(q->url) - 1
			      ? complain(EXIT_USAGE, "the options are too long")
			      : request(c, q, sql, a);
	}
	free(sql);
	free(a->line);
	a->line = NULL;
	a->cap = 0;
	free(q);
	return err;
}

int clickhouse_read(const struct clickhouse *c, const struct window_choice *choice,
		    struct stackset *ss, enum stack_side side, struct stacks_meta *meta)
{
	struct answer a = {
		.ss = ss, .side = side, .meta = meta, .off_cpu = choice->off_cpu, .row = totals_row
	};
	int err;

	*meta = (struct stacks_meta){ 0 };
	strcpy(meta->unit, choice->off_cpu ? "microseconds" : "samples");
	err = ask(c, choice, put_totals, &a);
	if (!err && !a.rows)
		return complain(EXIT_FAILED, "%s: no samples match the options", c->url);
	a.row = stack_row;
	a.rows = 0;
	return err ? err : ask(c, choice, put_stacks, &a);
}

int clickhouse_sums(const struct clickhouse *c, const struct window_choice *choice,
		    const struct clickhouse_query *query)
{
	struct answer a = { .sums = query, .off_cpu = choice->off_cpu, .row = sums_row };

	return ask(c, choice, put_sums, &a);
}

int clickhouse_check(const struct clickhouse *c)
{
	struct query *q = calloc(1, sizeof(*q));
	int err = q ? begin_url(q, c) : complain(EXIT_FAILED, "out of memory");

	free(q);
	return err;
}
