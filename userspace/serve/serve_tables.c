/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/serve_tables.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/text.h"
#include "base/vec.h"

#define NS	      "sum(value * period_ns)" /* period_ns of off-CPU rows is 1 */
#define SERVICES_MOST 1000
#define NAME_MOST     256

struct asking {
	struct store_sum *sum;
	struct strpool *names;
	size_t services_cap;
	uint64_t fastest, slowest; /* periods of the samples, ns */
};

static int service_row(void *ctx, char **column)
{
	struct asking *a = ctx;
	struct store_sum *sum = a->sum;
	char name[NAME_MOST];
	uint64_t ns;
	uint32_t id;
	size_t len;

	if (num_u64(column[1], 0, UINT64_MAX, &ns))
		return -EINVAL;
	len = text_clean(name, sizeof(name), column[0], strlen(column[0]), 0);
	if (strpool_intern(a->names, name, len, &id) ||
	    vec_reserve(&sum->services, &a->services_cap, sum->nservices + 1,
			sizeof(*sum->services)))
		return -ENOMEM;
	sum->services[sum->nservices++] = (struct store_service){ strpool_str(a->names, id),
								  (double)ns / NUM_S };
	return 0;
}

static int host_row(void *ctx, char **column)
{
	struct asking *a = ctx;
	struct store_sum *sum = a->sum;
	uint64_t windows, fastest, slowest;
	struct store_host *host;

	if (num_u64(column[1], 0, SIZE_MAX - sum->windows, &windows) ||
	    num_u64(column[2], 0, UINT64_MAX, &fastest) ||
	    num_u64(column[3], 0, UINT64_MAX, &slowest))
		return -EINVAL;
	a->fastest = !sum->nhosts || fastest < a->fastest ? fastest : a->fastest;
	a->slowest = slowest > a->slowest ? slowest : a->slowest;
	if (vec_reserve(&sum->hosts, &sum->hosts_cap, sum->nhosts + 1, sizeof(*sum->hosts)))
		return -ENOMEM;
	host = &sum->hosts[sum->nhosts++];
	text_clean(host->name, sizeof(host->name), column[0], strlen(column[0]), 0);
	sum->windows += windows;
	sum->all = sum->windows;
	return 0;
}

static int step_row(void *ctx, char **column)
{
	struct store_sum *sum = ((struct asking *)ctx)->sum;
	uint64_t step, all, selected;

	if (num_u64(column[0], 0, STORE_STEPS - 1, &step) ||
	    num_u64(column[1], 0, UINT64_MAX, &all) || num_u64(column[2], 0, UINT64_MAX, &selected))
		return -EINVAL;
	sum->steps[step] += (double)all / NUM_S;
	sum->selected_steps[step] += (double)selected / NUM_S;
	sum->amount += (double)all / NUM_S;
	sum->selected += (double)selected / NUM_S;
	return 0;
}

int serve_tables_ask(const struct clickhouse *c, const struct store_range *range,
		     struct strpool *names, struct store_sum *ret)
{
	const struct window_choice *w = &range->windows;
	const uint64_t since = w->since_ns / NUM_MS, span = w->until_ns / NUM_MS - since;
	struct asking a = { .sum = ret, .names = names };
	struct clickhouse_query q = { .service = range->service, .ctx = &a };
	char steps[256], rest[64];

	*ret = (struct store_sum){ 0 };
	snprintf(rest, sizeof(rest), "GROUP BY service ORDER BY 2 DESC, 1 LIMIT %d", SERVICES_MOST);
	q.select = "service, " NS;
	q.rest = rest;
	q.columns = 2;
	q.row = service_row;
	if (clickhouse_sums(c, w, &q))
		return -EIO;
	q.select = "host, uniqExact(ts), min(period_ns), max(period_ns)";
	q.rest = "GROUP BY host";
	q.columns = 4;
	q.row = host_row;
	if (clickhouse_sums(c, w, &q))
		return -EIO;
	strcpy(ret->meta.unit, w->off_cpu ? "microseconds" : "samples");
	if (a.fastest && a.fastest == a.slowest && !w->off_cpu)
		ret->meta.hz = (double)NUM_S / (double)a.fastest;
	snprintf(steps, sizeof(steps),
		 "intDiv((toUnixTimestamp64Milli(ts) - %" PRIu64 ") * %d, %" PRIu64 ") AS step, " NS
		 ", sumIf(value * period_ns, service = {service0:String})",
		 since, STORE_STEPS, span ? span : 1);
	q.select = steps;
	q.rest = "GROUP BY step";
	q.columns = 3;
	q.row = step_row;
	return clickhouse_sums(c, w, &q) ? -EIO : 0;
}

int serve_tables_stacks(const struct clickhouse *c, const struct store_range *range,
			enum stack_side side, struct stackset *ss)
{
	struct stacks_meta meta;

	ss->choice = (struct stack_choice){ .by = STACK_BY_LABEL, .by_label = LABEL_SERVICE };
	if (range->service) {
		ss->choice.labels[0].name = LABEL_SERVICE;
		ss->choice.labels[0].value = range->service;
		ss->choice.n = 1;
	}
	return clickhouse_read(c, &range->windows, ss, side, &meta) ? -EIO : 0;
}
