/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/serve_pages.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "out/out_html.h"
#include "out/out_stacks.h"

#define HOUR_NS	    (3600 * NUM_S)
#define PATIENCE_NS (800 * NUM_MS)
#define MAX_MS	    (UINT64_MAX / NUM_MS / 2)

static const char page[] =
#include "serve.html.h"
	;

struct request {
	struct store_range range, before; /* since_ns of `before` is 0 if there is none */
	char service[256], host[256];
	bool has_before;
};

/* False: it is there and is no time. */
static bool take_time(const struct serve_query *q, const char *name, uint64_t otherwise,
		      uint64_t *ret)
{
	const char *text = serve_parameter(q, name);

	*ret = otherwise / NUM_MS;
	if (text && num_u64(text, 0, MAX_MS, ret))
		return false;
	*ret *= NUM_MS;
	return true;
}

static const char *take_name(const struct serve_query *q, const char *name, char buf[256])
{
	const char *text = serve_parameter(q, name);

	if (!text || !*text)
		return NULL;
	text_clean(buf, 256, text, strlen(text), 0);
	return buf;
}

static bool parse(const struct serve_query *q, struct request *r)
{
	uint64_t now = clock_ns(CLOCK_REALTIME);
	const char *off = serve_parameter(q, "off_cpu");
	struct window_choice *w = &r->range.windows, *b = &r->before.windows;

	*r = (struct request){ 0 };
	if (!take_time(q, "until", now, &w->until_ns) ||
	    !take_time(q, "since", w->until_ns > HOUR_NS ? w->until_ns - HOUR_NS : 1,
		       &w->since_ns) ||
	    !take_time(q, "before_since", 0, &b->since_ns) ||
	    !take_time(q, "before_until", 0, &b->until_ns))
		return false;
	r->has_before = b->until_ns != 0;
	if (w->until_ns <= w->since_ns || (r->has_before && b->until_ns <= b->since_ns))
		return false;
	w->host = b->host = take_name(q, "host", r->host);
	w->off_cpu = b->off_cpu = off && !strcmp(off, "1");
	r->range.service = r->before.service = take_name(q, "service", r->service);
	return true;
}

static int say(struct serve_answer *a, int status, const char *text)
{
	a->type = "text/plain; charset=utf-8";
	fprintf(a->body, "%s\n", text);
	return status;
}

static int say_error(struct serve_answer *a, int err)
{
	if (err == -EFBIG)
		return say(a, 413,
			   "the range needs more memory than --memory allows: choose a shorter "
			   "one");
	return say(a, 500, strerror(-err));
}

static int say_unfinished(struct serve_answer *a, const struct store_sum *sum)
{
	struct json j = json_on(a->body);

	a->type = "application/json";
	json_object(&j, NULL);
	json_u64(&j, "read", sum->windows);
	json_u64(&j, "of", sum->all);
	json_object_end(&j);
	return 202;
}

/* ---- /summary ---- */

static void put_steps(struct json *j, const char *key, const double steps[STORE_STEPS])
{
	json_array(j, key);
	for (size_t i = 0; i < STORE_STEPS; i++)
		json_double(j, NULL, steps[i], 3);
	json_array_end(j);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void put_summary(const struct request *r, struct store_sum *sum, FILE *f)
{
	struct json j = json_on(f);

	if (sum->nhosts)
		qsort(sum->hosts, sum->nhosts, sizeof(*sum->hosts), by_name);
	json_object(&j, NULL);
	json_u64(&j, "since", r->range.windows.since_ns / NUM_MS);
	json_u64(&j, "until", r->range.windows.until_ns / NUM_MS);
	json_u64(&j, "windows", sum->windows);
	json_u64(&j, "unread", sum->unread);
	json_double(&j, "amount", sum->amount, 3);
	json_double(&j, "selected", sum->selected, 3);
	json_array(&j, "services");
	for (size_t i = 0; i < sum->nservices; i++) {
		json_object(&j, NULL);
		json_str(&j, "name", sum->services[i].name);
		json_double(&j, "amount", sum->services[i].amount, 3);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_array(&j, "hosts");
	for (size_t i = 0; i < sum->nhosts; i++)
		json_str(&j, NULL, sum->hosts[i].name);
	json_array_end(&j);
	put_steps(&j, "steps", sum->steps);
	put_steps(&j, "selectedSteps", sum->selected_steps);
	json_object_end(&j);
}

static int answer_summary(struct serve_pages *p, struct request *r, struct serve_answer *a)
{
	struct store_sum sum = { 0 };
	int err = store_ask(p->store, &r->range, PATIENCE_NS, &sum), status = 200;

	a->type = "application/json";
	if (err)
		status = say_error(a, err);
	else if (sum.windows < sum.all)
		status = say_unfinished(a, &sum);
	else
		put_summary(r, &sum, a->body);
	store_sum_free(&sum);
	return status;
}

/* ---- Stacks ---- */

/* A service that others are there without: perhaps its name is misspelt. */
static int say_no_service(struct serve_answer *a, const char *service, const struct store_sum *sum)
{
	struct text_near near = { .word = service, .len = strlen(service) };

	for (size_t i = 0; i < sum->nservices; i++)
		text_near_try(&near, sum->services[i].name);
	a->type = "text/plain; charset=utf-8";
	fprintf(a->body, "there is no service '%s' in this range", service);
	if (near.best)
		fprintf(a->body, "; the nearest name is '%s'", near.best);
	fputc('\n', a->body);
	return 404;
}

/*
 * Adds a range to one side, which may_lack the service. The HTTP status; other than 200: the answer
 * is there.
 */
static int add_range(struct serve_pages *p, const struct store_range *range, enum stack_side side,
		     bool may_lack, struct stackset *ss, struct stacks_meta *meta,
		     struct serve_answer *a)
{
	struct store_sum sum = { 0 };
	int err = store_ask(p->store, range, PATIENCE_NS, &sum), status = 200;

	if (err)
		status = say_error(a, err);
	else if (sum.windows < sum.all)
		status = say_unfinished(a, &sum);
	else if (range->service && !may_lack && sum.amount > 0 && !(sum.selected > 0))
		status = say_no_service(a, range->service, &sum);
	else if ((range->service ? sum.selected : sum.amount) > 0 &&
		 (err = store_stacks(p->store, range, side, ss)))
		status = say_error(a, err);
	*meta = sum.meta;
	store_sum_free(&sum);
	return status;
}

static struct html_meta meta_of(const struct request *r, const struct stacks_meta *m,
				const char *title)
{
	uint64_t since = r->range.windows.since_ns, until = r->range.windows.until_ns;

	return (struct html_meta){
		.title = title,
		.unit = *m->unit ? m->unit : "samples",
		.event = *m->event ? m->event : NULL,
		.host = r->range.windows.host,
		.hz = m->hz,
		.start_unix_ns = since,
		.duration_s = (double)(until - since) / 1e9,
		.lost = m->lost,
		.user_stacks = r->range.service ? 0 : m->user_stacks,
		.complete = r->range.service ? 0 : m->complete,
	};
}

static int write_stacks(struct serve_pages *p, struct request *r, struct stackset *ss,
			const char *name, struct serve_answer *a)
{
	bool pprof = !strcmp(name, "/pprof");
	struct stacks_meta meta, before;
	struct html_meta html;
	int status = 200, err;

	if (r->has_before && !pprof) {
		ss->no_modules = true;
		status = add_range(p, &r->before, STACK_BEFORE, true, ss, &before, a);
	}
	if (status == 200)
		status = add_range(p, &r->range, STACK_AFTER, r->has_before, ss, &meta, a);
	if (status != 200)
		return status;
	if (!ss->totals[STACK_AFTER] && !ss->totals[STACK_BEFORE])
		return say(a, 404, "there is nothing in this range");
	html = meta_of(r, &meta, r->range.service ? r->range.service : p->title);
	html.before = r->has_before ? "before" : NULL;
	a->type = pprof ? "application/octet-stream" : "text/html; charset=utf-8";
	a->file = pprof ? "sfbpf.pb.gz" : NULL;
	err = pprof ? stacks_write_pprof(ss, &html, LABEL_SERVICE, a->body)
		    : html_write(ss, &html, a->body);
	return err ? 500 : 200;
}

static int answer_stacks(struct serve_pages *p, struct request *r, const char *name,
			 struct serve_answer *a)
{
	struct stackset ss;
	int status;

	if (stackset_init(&ss))
		return say_error(a, -ENOMEM);
	status = write_stacks(p, r, &ss, name, a);
	stackset_free(&ss);
	return status;
}

/* ---- / ---- */

static int answer_page(struct serve_answer *a)
{
	static const char mark[] = "@NONCE@";
	static __thread char nonce[33];
	const char *at = page, *next;
	uint8_t raw[16];

	if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
		return say_error(a, -EIO);
	for (size_t i = 0; i < sizeof(raw); i++)
		snprintf(nonce + 2 * i, 3, "%02x", raw[i]);
	for (; (next = strstr(at, mark)); at = next + strlen(mark)) {
		fwrite(at, 1, (size_t)(next - at), a->body);
		fputs(nonce, a->body);
	}
	fputs(at, a->body);
	a->type = "text/html; charset=utf-8";
	a->nonce = nonce;
	return 200;
}

int serve_pages_answer(void *ctx, const char *name, const struct serve_query *q,
		       struct serve_answer *a)
{
	struct serve_pages *p = ctx;
	bool summary = !strcmp(name, "/summary");
	struct request r;
	int status;

	if (!strcmp(name, "/"))
		return answer_page(a);
	if (!summary && strcmp(name, "/flame") != 0 && strcmp(name, "/pprof") != 0)
		return say(a, 404, "there is no such page");
	if (!parse(q, &r))
		return say(a, 400, "since and until are milliseconds of Unix time, in order");
	__atomic_store_n(&p->asked_ns, clock_ns(CLOCK_MONOTONIC), __ATOMIC_RELAXED);
	store_lock(p->store);
	status = summary ? answer_summary(p, &r, a) : answer_stacks(p, &r, name, a);
	store_unlock(p->store);
	return status;
}

bool serve_pages_prepare(struct serve_pages *p, uint64_t patience_ns)
{
	uint64_t now = clock_ns(CLOCK_REALTIME);
	struct store_range range = { .windows = { .since_ns = now > HOUR_NS ? now - HOUR_NS : 1,
						  .until_ns = now + 1 } };
	struct store_sum sum = { 0 };
	bool done;

	store_lock(p->store);
	done = store_ask(p->store, &range, patience_ns, &sum) || sum.windows == sum.all;
	store_sum_free(&sum);
	store_unlock(p->store);
	return done;
}
